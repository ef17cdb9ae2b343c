"""The page of a report: one file, well formed, that shows hostile text and never obeys it."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kvstats.prereg import verify
from kvstats.prereg.markup import markup

TOY = Path(__file__).parents[2] / "golden" / "toy" / "preregistration.yaml"

VOID = {"meta", "br"}

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'

CLAIMS = f"""\
study: 'toy {HOSTILE}'
description: '{HOSTILE}'
registered_at: 2026-10-31T12:00:00Z
data: {{runs: [logs/*.jsonl]}}
exclusions: '{HOSTILE}'
deviations: [{{at: 2026-11-02T12:00:00Z, text: '{HOSTILE}'}}]
guards:
  - {{id: scored, statement: '{HOSTILE}', estimator: accuracy, arguments: {{arm: full}}, holds: estimate > 0}}
claims:
  - {{id: harm, statement: '{HOSTILE}', estimator: delta, arguments: {{arm: evict}}, by: [task, budget],
     where: "budget < 1 AND task <> '<b>'", supported: high < 0, killed: low > 0}}
  - {{id: none, statement: Nothing is known., estimator: delta, arguments: {{arm: evict}}, by: task,
     where: budget = 7, supported: low > 0}}
"""


class Page(HTMLParser):
    """What a page holds; an element that is not closed, or closed twice, is an error."""

    def __init__(self, text):
        super().__init__()
        self.open, self.names, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def values(self, name):
        return [value for key, value in self.attributes if key == name]


@pytest.fixture
def hostile(write_log, make_records, register):
    ones = [1.0] * 10
    scores = {"full": {1.0: ones}, "evict": {0.5: [0.0] * 4 + [1.0] * 6, 0.25: [0.0] * 9 + [1.0]}}
    records = [record for task in ("qa", HOSTILE) for record in make_records(scores, task=task)]
    write_log(records)
    return register(base=CLAIMS)


def test_the_page_is_well_formed_and_complete():
    report = verify(TOY)
    page = Page(report.to_html())
    assert page.names.count("h3") == len(report.claims)
    assert page.names.count("svg") == page.names.count("figure") == len(report.claims)
    for claim in report.claims:
        for text in (claim.statement, claim.reason, claim.supported, claim.verdict):
            assert " ".join(text.split()) in page.text
    for text in (
        report.registration.sha256,
        "96 runs, 24 inputs, 48 replay cells, 0 rejects",
        "policy gate: tau",
    ):
        assert text in page.text
    assert "The second task was first named other." in page.text


def test_the_page_loads_and_runs_nothing(hostile):
    for report in (verify(TOY), verify(hostile)):
        text = report.to_html()
        page = Page(text)
        assert not {"script", "link", "iframe", "img", "object", "embed", "form", "base"} & set(page.names)
        assert not [name for name, _ in page.attributes if name.startswith("on")]
        assert {value[0] for value in page.values("href")} == {"#"}
        assert not page.values("src")
        style = text[text.index("<style>") : text.index("</style>")]
        assert not re.search("url|import|expression", style)
        assert page.values("content")[0].startswith("default-src 'none'")


def test_links_lead_to_elements_and_ids_are_unique(hostile):
    page = Page(verify(hostile).to_html())
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {value[1:] for value in page.values("href")} <= set(ids)
    named = [name for value in page.values("aria-labelledby") for name in value.split()]
    assert set(named) <= set(ids)


def test_hostile_text_is_shown_as_it_is(hostile):
    report = verify(hostile)
    page = Page(report.to_html())
    # Study (title, heading, state), description, exclusions, deviation, guard, statement twice, rows, plot.
    assert page.text.count(HOSTILE) >= 10
    assert "<script" not in report.to_html()
    assert "<script" not in report.to_markdown()


def test_characters_that_deceive_or_break_are_written_as_escapes(write_log, make_records, register):
    scores = {"full": {1.0: [1.0, 1.0]}, "evict": {0.5: [0.0, 1.0]}}
    write_log(make_records(scores, task="qa\u202e\u0085"))
    html = verify(register(("    where: budget = 0.5\n", "    by: task\n"))).to_html()
    assert html.count("qa\\u202e\\u0085") >= 2
    assert not re.search("[\u202e\u0085]", html)
    assert markup(chr(0xD800) + chr(0)) == "\\ud800\\u0000"


def test_the_same_bytes_whatever_the_order_of_rows(hostile, tmp_path):
    before = verify(hostile).to_html()
    log = next(tmp_path.glob("logs/*.jsonl"))
    first, *lines = log.read_text().splitlines()
    random.Random(1).shuffle(lines)
    log.write_text("\n".join([first, *lines]) + "\n")
    report = verify(hostile)
    after = report.to_html()
    digest = report.files[0].sha256
    assert after != before
    assert re.sub("[0-9a-f]{64}", "", after) == re.sub("[0-9a-f]{64}", "", before)
    assert digest in after
    assert verify(hostile).to_html() == after


def test_a_claim_of_many_rows_is_drawn_in_parts(write_log, make_records, register):
    ones = [1.0] * 3
    records = [
        record
        for number in range(61)
        for record in make_records(
            {"full": {1.0: ones}, "evict": {0.5: [0.0, 1.0, 1.0]}}, task=f"t{number:02}"
        )
    ]
    write_log(records)
    html = verify(register(("    where: budget = 0.5\n", "    by: task\n"))).to_html()
    page = Page(html)
    assert page.names.count("svg") == 3
    assert "rows 61 to 61 of 61" in page.text
    assert page.names.count("circle") == 61


def test_rows_without_estimates_are_said_to_be_so(hostile):
    page = Page(verify(hostile).to_html())
    assert "the result has no rows" in page.text
    assert page.names.count("svg") == 1


def test_an_undefined_row_alone_is_not_drawn(toy, register):
    path = register(("estimator: delta", "estimator: accuracy"), ("budget = 0.5", "budget = 7"))
    page = Page(verify(path).to_html())
    assert "svg" not in page.names
    assert "No row has an estimate to be plotted." in page.text


def test_faults_come_before_claims(toy, register):
    guard = "{id: broken, statement: a, estimator: delta, arguments: {arm: evict}, holds: estimate > 0}"
    page = Page(verify(register(("claims:\n", f"guards: [{guard}]\nclaims:\n"))).to_html())
    assert "state fault" in page.values("class")
    assert page.text.index("broken FAILS") < page.text.index("Verdicts")
    assert "Rows of guard broken" in page.text
    page = Page(verify(register(), expect_sha256="0" * 64).to_html())
    assert page.text.index("Integrity") < page.text.index("Verdicts")
    assert "data not opened" in page.text
    assert "! invalid" in page.text


def test_save_html(toy, register, tmp_path):
    report = verify(register())
    report.save_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_bytes() == report.to_html().encode()


def test_markdown_has_a_row_for_each_row_and_one_for_each_claim_of_several(hostile):
    report = verify(hostile)
    text = report.to_markdown()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + (1 + 4) + 1
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {8}
    assert report.registration.sha256 in text
    assert "deviation, 2026-11-02T12:00:00Z" in text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_a_browser_shows_the_page_without_a_complaint(hostile, tmp_path):
    report = verify(hostile)
    path = tmp_path / "report.html"
    report.save_html(path)
    switches = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    switches += ["--no-first-run", f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr"]
    command = ["chromium", *switches, "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr
    shown, written = Page(done.stdout), Page(report.to_html())
    assert shown.names.count("svg") == written.names.count("svg") == 1
    assert shown.text.count(HOSTILE) == written.text.count(HOSTILE)
    assert "script" not in shown.names
