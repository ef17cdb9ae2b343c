import re
from datetime import UTC, datetime

import msgspec
import pytest
import yaml

from kvstats.document import read_document
from kvstats.errors import InputError
from kvstats.estimators import recovery_headroom_ratio
from kvstats.expressions import check_expression
from kvstats.planning import PredictedInterval, RatioBand, ratio_bands
from kvstats.prereg.schema import Claim, decode_registration

CELLS = {
    "task": ["VT", "VT", "VT", "FWE", "easy"],
    "headroom": [0.2, 0.0, 0.8, 0.5, 0.0],
    "rho": [0.1, 0.0, 0.2, 0.05, 0.0],
}


def test_a_band_is_the_range_of_ratios_where_there_is_headroom():
    bands = {band.group: band for band in ratio_bands(CELLS)}
    assert set(bands) == {"VT", "FWE"}
    assert (bands["VT"].low, bands["VT"].high, bands["VT"].cells) == pytest.approx((0.25, 0.5, 2))
    assert (bands["FWE"].low, bands["FWE"].high, bands["FWE"].cells) == pytest.approx((0.1, 0.1, 1))
    assert ratio_bands({"task": ["a"], "headroom": [0.0], "rho": [0.0]}) == ()


def test_a_prediction_holds_values_within_its_bounds():
    predicted = RatioBand("VT", 0.25, 0.5, 2).predict(0.4)
    assert predicted == PredictedInterval(pytest.approx(0.1), pytest.approx(0.2))
    assert 0.15 in predicted
    assert 0.25 not in predicted
    assert None not in predicted
    assert predicted.low in predicted


@pytest.mark.parametrize(
    ("recovered", "supported", "killed"), [(4, True, False), (9, False, True), (6, False, False)]
)
def test_a_claim_says_what_the_prediction_says(make_log, recovered, supported, killed):
    band = RatioBand("qa", 0.25, 0.5, 3)
    claim = band.claim("qa-32k", arm="a")
    decoded = msgspec.convert(claim, Claim)
    assert (decoded.id, decoded.estimator, decoded.where) == (
        "qa-32k",
        "recovery_headroom_ratio",
        "task = 'qa'",
    )
    evicted = [float(number < recovered) for number in range(10)] + [1.0] * 90
    log = make_log({"full": {1.0: [0.0] * 10 + [1.0] * 90}, "a": {0.5: evicted}})
    frame = recovery_headroom_ratio(log, **decoded.arguments, where=decoded.where).frame
    rules = [check_expression("test", "rule", rule) for rule in (decoded.supported, decoded.killed)]
    assert [frame.select(rule).to_series().item() for rule in rules] == [supported, killed]
    # The same by the prediction for the headroom that was measured.
    assert (recovered / 100 in band.predict(0.1)) == supported


def test_conditions_join_and_quotes_are_doubled():
    claim = RatioBand("o'clock", 0.1, 0.2, 1).claim("x", arm="a", where="a = 1 OR b = 2")
    assert claim["where"] == "task = 'o''clock' AND (a = 1 OR b = 2)"


def test_a_claim_can_be_written_into_a_registration(tmp_path):
    registration = {
        "study": "s",
        "registered_at": datetime(2026, 1, 1, tzinfo=UTC),
        "data": {"runs": ["*.jsonl"]},
        "claims": [band.claim(f"{band.group}-32k", arm="snapkv") for band in ratio_bands(CELLS)],
    }
    path = tmp_path / "registration.yaml"
    path.write_text(yaml.safe_dump(registration))
    assert len(decode_registration(read_document(path)).claims) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ratio_bands(CELLS, group="tasks"),
            "ratio_bands: group='tasks' is not a column; did you mean 'task'",
        ),
        (
            lambda: ratio_bands(CELLS | {"rho": [-0.1] * 5}),
            "ratio_bands: cells='rho' has a number below 0; pass headrooms and rates",
        ),
        (lambda: ratio_bands(CELLS, rho="ratio"), "ratio_bands: cells='ratio' is not a column of numbers"),
        (lambda: RatioBand("a", 0.1, 0.2, 1).predict(1.5), "RatioBand.predict: headroom=1.5 is not a share"),
    ],
)
def test_cells_that_cannot_be_used_are_refused(make, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make()
