import re

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.estimators import risk_coverage
from kvstats.statistics import RiskCoverageArea

ARM = [1, 1, 0, 1, 0, 0, 1, 1, 0, 0]
MARGIN = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


@pytest.fixture
def log(make_log):
    return make_log({"full": {1.0: [1] * 10}, "x": {0.5: ARM}}, signals={"margin": MARGIN})


def only(result):
    assert result.frame.height == 1
    return result.frame.row(0, named=True)


def test_risk_at_a_coverage(log):
    row = only(risk_coverage(log, signal="margin", arm="x", coverage=0.5))
    assert row["estimate"] == pytest.approx(2 / 5, abs=1e-15)
    turned = only(risk_coverage(log, signal="margin", arm="x", coverage=0.5, higher="negative"))
    assert turned["estimate"] == pytest.approx(3 / 5, abs=1e-15)
    assert only(risk_coverage(log, signal="margin", arm="x", coverage=1.0))["estimate"] == pytest.approx(0.5)


def test_the_area(log):
    row = only(risk_coverage(log, signal="margin", arm="x"))
    expected = RiskCoverageArea(MARGIN, 1 - np.array(ARM))
    assert row["estimate"] == expected.value(np.ones(10))
    influence = expected.influence(np.ones(10))
    assert row["se"] == pytest.approx((10 / 9 * np.sum(influence**2)) ** 0.5, rel=1e-12)
    assert 0 <= row["low"] < row["estimate"] < row["high"] <= 1


def test_the_same_outcome_everywhere(make_log):
    log = make_log({"full": {1.0: [1] * 4}, "x": {0.5: [1] * 4}}, signals={"margin": [1, 2, 3, 4]})
    for coverage in (None, 0.5):
        row = only(risk_coverage(log, signal="margin", arm="x", coverage=coverage))
        assert (row["estimate"], row["low"], row["status"]) == (0, None, "zero variance")


def test_no_rows(log):
    row = only(risk_coverage(log, signal="margin", arm="x", where="margin > 2"))
    assert (row["estimate"], row["status"]) == (None, "no rows")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"coverage": 0.0}, "RiskAtCoverage: coverage=0.0 is not in (0, 1]"),
        ({"signal": "margn"}, "risk_coverage: signal='margn' is not a numeric column of the pairs"),
        ({"outcome": "score"}, "risk_coverage: outcome='score' is not a Boolean column of the pairs"),
        ({"higher": "up"}, "risk_coverage: higher='up' is not known"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        risk_coverage(log, **({"signal": "margin", "arm": "x"} | arguments))
