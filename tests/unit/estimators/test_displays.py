"""What is made of several tables, or of a frame beside a result, is shown as results are."""

import numpy as np
import polars as pl

from kvstats.estimators.draws import DrawVariance
from kvstats.estimators.origin_fit import OriginFit
from kvstats.estimators.replicates import Replicates
from kvstats.inference import Design, Sample, infer
from kvstats.statistics import Mean

CLUSTERS = tuple((str(i),) for i in range(4))
SAMPLE = Sample((), Mean([1.0, 2.0, 2.0, 4.0]), np.ones(4), np.arange(4), CLUSTERS, "mean")
RESULT = infer("slope", [SAMPLE], Design())


def test_variances_show_digits_by_their_intervals():
    frame = pl.DataFrame(
        {"quantity": ["between"], "estimate": [0.123456], "low": [0.1], "high": [0.2], "status": ["ok"]}
    )
    assert repr(DrawVariance(frame, 0.9)) == (
        "draw_variance, 90% intervals\n"
        "quantity  estimate   low  high  status\n"
        "between       0.12  0.10  0.20  ok"
    )


def test_a_result_and_its_frame_stand_below_each_other():
    frame = pl.DataFrame({"n": [4], "sd": [0.5]})
    spread, fit = Replicates(RESULT, frame), OriginFit(RESULT, frame)
    assert repr(spread) == f"{RESULT!r}\nspread over replicates\nn   sd\n4  0.5"
    assert repr(fit) == f"{RESULT!r}\nslope without each cell\nn   sd\n4  0.5"
    assert spread._repr_html_().count("<table>") == fit.to_latex().count(r"\midrule") == 2
