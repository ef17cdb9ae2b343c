import re

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.estimators import retry_saving
from kvstats.planning import retry_break_even

CERTIFICATE = [0.1, 0.9, 0.5, 0.7, 0.2, 0.8]
FAILED = np.array([0, 1, 0, 1, 1, 0])
COSTS = {"prefill_cost": 2.0, "decode_cost": 1.0, "gate_cost": 0.4}
CALL = {"arm": "a", "signal": "certificate", "threshold": 0.7, **COSTS}


@pytest.fixture
def log(make_log):
    return make_log({"a": {0.5: (1 - FAILED).tolist()}}, signals={"certificate": CERTIFICATE})


def test_the_saving_is_that_of_the_rates(log):
    row = retry_saving(log, **CALL).frame.row(0, named=True)
    flagged = np.array(CERTIFICATE) >= 0.7
    rates = {
        "prevalence": FAILED.mean(),
        "tpr": flagged[FAILED == 1].mean(),
        "fpr": flagged[FAILED == 0].mean(),
    }
    assert row["estimate"] == pytest.approx(retry_break_even(**rates, **COSTS).saving)
    assert row["estimate"] == pytest.approx(0.5 * 3 - 0.4)
    assert retry_saving(log, **CALL).null == 0


def test_low_signals_may_be_flagged(log):
    found = retry_saving(log, **(CALL | {"threshold": 0.2, "higher": "negative"}))
    assert found.frame["estimate"].item() == pytest.approx(2 / 6 * 3 - 0.4)


def test_all_or_none(log):
    assert retry_saving(log, **(CALL | {"threshold": 2.0})).frame["status"].item() == "zero variance"
    assert retry_saving(log, **CALL, where="budget > 1").frame["status"].item() == "no rows"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gate_cost": -1.0}, "retry_saving: gate_cost=-1.0 is not a finite number of at least 0"),
        ({"threshold": float("nan")}, "retry_saving: threshold=nan is not a finite number;"),
        ({"signal": "certificat"}, "retry_saving: signal='certificat' is not a numeric column"),
        ({"higher": "yes"}, "retry_saving: higher='yes' is not known"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(log, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        retry_saving(log, **(CALL | arguments))


def test_unknown_signals_are_refused(make_log):
    log = make_log({"a": {0.5: [1, 0]}}, signals={"certificate": [0.1, None]})
    with pytest.raises(InputError, match="retry_saving: certificate is null in 1 of 2 rows"):
        retry_saving(log, **CALL)
