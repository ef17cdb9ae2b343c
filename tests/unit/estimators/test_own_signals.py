import re

import numpy as np
import pytest

from kvstats import auc
from kvstats.errors import InputError
from kvstats.estimators.own_signals import own_signal_auc
from kvstats.log import RunRecord, log_from_records


def made():
    rng = np.random.default_rng(2)
    records = []
    for i in range(60):
        key = {"suite": "6k" if i % 2 else "16k", "model": "m", "task": "t", "input_id": f"{i:02}"}
        records.append(RunRecord(**key, arm="full", budget=1.0, score=1.0, success=bool(rng.random() < 0.9)))
        for arm in ("poisson", "topk"):
            ok = bool(rng.random() < 0.6)
            signals = {"certificate": rng.normal() - ok, "margin": rng.normal() + ok, "other": rng.normal()}
            outcome = {"score": float(ok), "success": ok, "signals": signals}
            records.append(RunRecord(**key, arm=arm, budget=0.5, **outcome))
    return log_from_records(records)


def test_each_row_is_the_area_of_its_own_arm():
    log = made()
    found = own_signal_auc(log, signals={"certificate": "poisson", "margin": "topk"}, by="suite").frame
    assert found.select("suite", "arm", "signal").rows() == [
        ("16k", "poisson", "certificate"),
        ("16k", "topk", "margin"),
        ("6k", "poisson", "certificate"),
        ("6k", "topk", "margin"),
    ]
    for arm, signal, higher in (("poisson", "certificate", "positive"), ("topk", "margin", "negative")):
        expected = auc(
            log, signal=signal, outcome="induced_failure", arm=arm, higher=higher, by="suite"
        ).frame.select("suite", "estimate", "low", "high", "n")
        assert found.filter(signal=signal).select(expected.columns).equals(expected)


def test_messages():
    for options, message in (
        ({"signals": {}}, "own_signal_auc: signals={} names no signal; name each with its arm"),
        (
            {"signals": {"other": "topk"}},
            "signals='other' is not known to be higher in one class or the other",
        ),
        (
            {"signals": {"margin": "topk"}, "by": "arm"},
            "own_signal_auc: by='arm' is a column of every such table",
        ),
        ({"signals": {"margin": "top"}}, "auc: arm='top' is not an arm of the log; did you mean 'topk'?"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            own_signal_auc(made(), **options)
    own = own_signal_auc(made(), signals={"other": "topk"}, higher={"other": "negative"})
    assert own.frame["status"].to_list() == ["ok"]
