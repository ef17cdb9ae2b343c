"""Logs that are read one by one are the log that is read at once."""

from __future__ import annotations

import pytest
from polars.testing import assert_frame_equal

from kvstats.log import log_from_records
from kvstats.log.concat import concat_logs


@pytest.mark.parametrize("cuts", [(0, 7), (3, 20), (1, 1)])
def test_the_parts_make_the_whole(make_records, cuts):
    scores = {"full": {1.0: [1.0, 0.0, None]}, "evict": {0.5: [0.0, 1.0, 1.0]}}
    records = [
        *make_records(scores, drop=[0.1, 0.2, 0.3], cells=[(0.1, 0.2)], signals={"margin": [1.0, None, 2.0]}),
        *make_records(scores, task="b", signals={"logprob": [0.0, 1.0, 2.0]}),
    ]
    records.append(records[5])
    first, second = cuts
    parts = [records[:first], records[first:second], records[second:]]
    joined, whole = concat_logs([log_from_records(part) for part in parts]), log_from_records(records)
    for name in ("runs", "inputs", "replays", "studies", "rejects"):
        assert_frame_equal(getattr(joined, name), getattr(whole, name))
    assert (joined.run_signals, joined.input_signals) == (whole.run_signals, whole.input_signals)


def test_one_log_is_itself(make_log):
    log = make_log({"full": {1.0: [1.0]}})
    assert concat_logs([log]) is log
