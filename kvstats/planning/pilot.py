"""What a pilot says of the likeness of an input's rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from kvstats.errors import InputError
from kvstats.inference.linear import linear_error
from kvstats.inference.result import Result

__all__ = ["pilot_correlation"]

SCHEMA: dict[str, pl.DataType] = {
    "inputs": pl.Int64(),
    "rows_per_input": pl.Float64(),
    "design_effect": pl.Float64(),
    "intraclass_correlation": pl.Float64(),
}


def pilot_correlation(result: Result) -> pl.DataFrame:
    r"""Return how alike the rows of an input are in a pilot, for the size of the next study.

    .. math:: \mathrm{deff} = \frac{\mathrm{se}^2_{\mathrm{clustered}}}{\mathrm{se}^2_{\mathrm{independent}}},
        \qquad \rho = \frac{\mathrm{deff} - 1}{m' - 1}, \qquad m' = \frac{\sum_c m_c^2}{\sum_c m_c}

    with both standard errors linearised, and m_c the rows of cluster c. It holds for any estimator: for
    `kvstats.delta` it is the correlation of differences that `difference_power` asks for, for `kvstats.auc`
    that of influence values of `auc_power`, for `kvstats.harm_rate` that of events of `rate_power`.

    Parameters
    ----------
    result : Result
        Of any estimator, from a pilot; no contrast.

    Returns
    -------
    polars.DataFrame
        The by-columns, ``inputs`` (clusters), ``rows_per_input``, ``design_effect`` and
        ``intraclass_correlation``, cut off at 0 and 1. The last two are null without variance or with less
        than two clusters, the last also where every input has one row. With few inputs it is a rough guess:
        plan with a higher one too.

    Raises
    ------
    InputError
        When the result is a contrast.

    References
    ----------
    .. [1] Kish (1965), Survey Sampling, section 5.4.

    Examples
    --------
    >>> from kvstats.estimators import harm_rate
    >>> from kvstats.planning import simulate_log
    >>> pilot = simulate_log(seed=5, inputs=400, accuracy=1.0, recovery=0.0, intraclass_correlation=0.5)
    >>> found = pilot_correlation(harm_rate(pilot.log, arm="plain"))
    >>> [round(figure, 3) for figure in found.row(0)]
    [400, 3.0, 2.008, 0.504]
    """
    rows = []
    for sample in result.samples:
        if sample.kind == "difference":
            raise InputError.argument(
                "pilot_correlation",
                "result",
                result.estimator,
                "is a contrast, whose sides share inputs",
                "pass the result of an estimator, such as delta for paired differences",
            )
        size, clusters = sample.codes.size, sample.n_clusters
        row = dict.fromkeys(SCHEMA) | {"inputs": clusters, "rows_per_input": size / max(clusters, 1)}
        rows.append(row)
        if clusters < 2 or np.isnan(sample.statistic.value(sample.weights)):
            continue
        numbered = tuple((str(number),) for number in range(size))
        apart = replace(sample, codes=np.arange(size), clusters=numbered, strata=None, drawn=None)
        clustered, independent = linear_error(sample)[0], linear_error(apart)[0]
        if independent == 0:
            continue
        effect = (clustered / independent) ** 2
        row["design_effect"] = effect
        counts = np.bincount(sample.codes).astype(np.float64)
        likely_size = float((counts**2).sum() / counts.sum())
        if likely_size > 1:
            row["intraclass_correlation"] = min(max((effect - 1) / (likely_size - 1), 0.0), 1.0)
    found = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return pl.concat([result.frame.select(result.by), found], how="horizontal")
