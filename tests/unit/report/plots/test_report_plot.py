import re
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from kvstats.errors import InputError
from kvstats.prereg import verify

TOY = Path(__file__).parents[3] / "golden" / "toy"


@pytest.fixture(scope="module")
def report():
    return verify(TOY / "preregistration.yaml")


def test_each_claim_has_a_panel_with_its_verdict(report):
    drawn = report.plot()
    assert [axes.get_title(loc="left") for axes in drawn.axes] == [
        f"{claim.id}: {claim.verdict}" for claim in report.claims
    ]
    assert drawn.caption.startswith(f"{report!r}. Points are estimates, lines 90% intervals.")


def test_what_the_rules_compare_with_is_drawn(report):
    claim = report.claim("eviction_is_harmless")
    (axes,) = replace(report, claims=(claim,)).plot().axes
    lines = {line.get_linestyle(): line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 2}
    assert lines == {"-": -0.05, "--": -0.05}


def test_a_claim_without_rows_says_why(report):
    claim = replace(report.claims[0], rows=(), rules=(), verdict="invalid", reason="a guard fails")
    (axes,) = replace(report, claims=(claim,)).plot().axes
    assert [text.get_text() for text in axes.texts] == ["a guard fails"]
    assert not axes.lines


def test_axes_of_the_caller_and_no_claims(report):
    axes = Figure().add_subplot()
    assert replace(report, claims=report.claims[:1]).plot(axes).axes == (axes,)
    with pytest.raises(InputError, match=re.escape("is not 2 axes of matplotlib; pass a list")):
        replace(report, claims=report.claims[:2]).plot(axes)
    with pytest.raises(InputError, match=re.escape("Report.plot: the report has no claims")):
        replace(report, claims=()).plot()
