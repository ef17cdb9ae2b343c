"""Appearance of a report's page, on screens and on paper."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """\
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 2rem auto;
  max-width: 60rem; padding: 0 1rem; overflow-wrap: break-word; }
h1 { line-height: 1.2; margin: 0 0 .5rem; }
h2 { margin: 2.5rem 0 .5rem; border-bottom: 1px solid #999; }
h3 { margin: 2rem 0 .25rem; }
code { font: .875em ui-monospace, monospace; }
a { color: #00548a; }
.statement { font-size: 1.1em; margin: .25rem 0; white-space: pre-line; }
.note { white-space: pre-line; overflow-wrap: anywhere; }
.quiet { color: #555; }
.state { border: 1px solid #1a1a1a; border-left-width: .5rem; padding: .5rem 1rem; margin: 1rem 0; }
.fault { border-left-style: double; font-weight: bold; }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: .15rem 1.25rem;
  margin: .75rem 0; }
dt { color: #555; }
dd { margin: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .75rem 0; font-size: .9rem; }
caption { text-align: left; color: #555; }
th, td { padding: .3rem .75rem .3rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid #ccc; }
td code { overflow-wrap: anywhere; }
td:has(> a) { min-width: 14rem; }
td:last-child:has(> code) { min-width: 14rem; }
td:first-child code, td > a code { overflow-wrap: break-word; }
th { border-bottom-color: #1a1a1a; white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.verdict { display: inline-block; white-space: nowrap; font-weight: bold; font-size: .875rem;
  line-height: 1.4; padding: 0 .5rem; border: 2px solid #1a1a1a; border-radius: .25rem; }
.supported { border-color: #0072b2; background: #e3f1fa; }
.killed { border-color: #d55e00; border-style: double; border-width: 4px; background: #fdeee3; }
.inconclusive, .not-met { border-style: dashed; }
.undefined, .exploratory { border-style: dotted; }
.invalid { background: #1a1a1a; color: #fff; }
figure { margin: 1rem 0; }
figcaption { color: #555; font-size: .875rem; }
svg { max-width: 100%; height: auto; }
footer { margin-top: 3rem; border-top: 1px solid #999; color: #555; }
@page { margin: 1.5cm; }
@media print {
  body { font-size: 10pt; margin: 0; max-width: none; padding: 0; }
  .scroll { overflow: visible; }
  a { color: inherit; text-decoration: none; }
  h2, h3, .statement { break-after: avoid; }
  tr, figure, .state, .head { break-inside: avoid; }
  thead, caption { break-after: avoid; }
  thead { display: table-header-group; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
"""Verdicts differ in words and in the kind of their border too, not by colour alone."""
