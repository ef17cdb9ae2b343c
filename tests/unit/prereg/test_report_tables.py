from dataclasses import replace
from pathlib import Path

import pytest

from kvstats.prereg import verify

TOY = Path(__file__).parents[2] / "golden" / "toy"


@pytest.fixture(scope="module")
def report():
    return verify(TOY / "preregistration.yaml")


def test_latex_has_every_claim_and_every_row(report):
    lines = report.to_latex().splitlines()
    assert lines[:5] == [
        f"% {report!r}",
        r"\begin{tabular}{llrrrrr}",
        r"\toprule",
        r"claim & verdict & estimate & 90\% interval & n & clusters & p \\",
        r"\midrule",
    ]
    assert r"gate\_helps & supported & 0.75 & 0.52 to 0.98 & 12 & 12 & 0.00013 \\" in lines
    assert r"task=single & inconclusive & 0.000 & no discordant pairs & 12 & 12 & 1 \\" in lines
    assert all(line.count(" & ") == 6 for line in lines[5:-2])


def test_latex_of_a_claim_without_rows(report):
    claim = replace(report.claims[0], rows=(), rules=(), verdict="invalid")
    assert (
        replace(report, claims=(claim,)).to_latex().splitlines()[5]
        == r"gate\_helps & invalid &  &  &  &  &  \\"
    )


def test_pandas_has_the_columns_of_the_frame(report):
    frame = report.to_pandas()
    assert list(frame.columns) == report.to_frame().columns
    assert frame["estimate"].isna().tolist() == report.to_frame()["estimate"].is_null().to_list()
