"""What a scenario makes true, in closed form."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from kvstats.planning.scenario import Cell, Scenario

__all__ = ["DROP_CENTRE", "DROP_SCALE", "TRUTH_SCHEMA", "any_event", "separation", "truth_of"]

DROP_CENTRE = 0.05
DROP_SCALE = 0.02
"""Mean of the drop of inputs that are not fragile, and its standard deviation within either class."""

TRUTH_SCHEMA: dict[str, pl.DataType] = {
    "estimator": pl.String(),
    "model": pl.String(),
    "task": pl.String(),
    "condition": pl.String(),
    "arm": pl.String(),
    "budget": pl.Float64(),
    "signal": pl.String(),
    "outcome": pl.String(),
    "value": pl.Float64(),
}
"""One row a true value; null where a column does not apply."""


def separation(area: float) -> float:
    """Return how many standard deviations apart two normal classes are whose AUC is given.

    Examples
    --------
    >>> round(separation(0.75), 6), separation(0.5)
    (0.953873, 0.0)
    """
    return float(math.sqrt(2) * special.ndtri(area))


def any_event(chances: Sequence[float], correlation: float) -> float:
    r"""Return the probability that at least one of several correlated events happens.

    Event b happens when the row's uniform number is below q_b. With probability :math:`\sqrt\rho` a row takes
    the number of its input, and else one of its own, so that events of equal chance have
    correlation :math:`\rho` [1]_:

    .. math:: 1 - \int_0^1 \prod_b \bigl(\sqrt\rho\, 1[u \ge q_b] + (1 - \sqrt\rho)(1 - q_b)\bigr)\, du

    References
    ----------
    .. [1] Lunn and Davies, Biometrika 85, 1998: a note on generating correlated binary variables.

    Examples
    --------
    >>> [round(any_event([0.1, 0.2], correlation), 6) for correlation in (0, 0.25, 1)]
    [0.28, 0.26, 0.2]
    """
    q = np.sort(np.asarray(chances, dtype=np.float64))
    shared = math.sqrt(correlation)
    edges = np.concatenate([[0.0], q, [1.0]])
    none = 0.0
    for number, width in enumerate(np.diff(edges)):
        # In this stretch of u the first `number` events do not happen to rows that share it.
        missed = np.arange(q.size) < number
        none += width * float(np.prod(shared * missed + (1 - shared) * (1 - q)))
    return max(0.0, 1 - float(none))


def truth_of(scenario: Scenario) -> pl.DataFrame:
    """Return the true values behind a simulated log, each named by the estimator that recovers it."""
    rows = [row for group in scenario.groups() for row in group_rows(scenario, *group)]
    if scenario.cells:
        rows.append({"estimator": "certificate_coverage", "value": float(scenario.coverage)})
        rows.append({"estimator": "rank_correlation", "value": float(scenario.rank_correlation)})
    return pl.DataFrame(rows, schema=TRUTH_SCHEMA, orient="row")


def group_rows(scenario: Scenario, model: str, task: str, condition: str | None) -> Iterator[dict[str, Any]]:
    group = {"model": model, "task": task, "condition": condition}
    accuracy = scenario.accuracy_at(model, task, condition)
    yield {"estimator": "accuracy", **group, "arm": "full", "budget": 1.0, "value": accuracy}
    drop = DROP_CENTRE + DROP_SCALE * scenario.drop_separation * scenario.fragile
    yield {"estimator": "mean_drop", **group, "signal": "drop", "value": drop}
    for arm in scenario.arms:
        cells = scenario.cells_of(model, task, condition, arm)
        for cell in cells:
            for row in cell_rows(scenario, cell):
                yield {**group, "arm": arm, "budget": cell.budget, **row}
        recovered = any_event([cell.recovered for cell in cells], scenario.intraclass_correlation)
        value = (1 - accuracy) * recovered
        yield {"estimator": "recovery_rate", **group, "arm": arm, "value": value}


def cell_rows(scenario: Scenario, cell: Cell) -> Iterator[dict[str, Any]]:
    kept = round(cell.budget * scenario.context_tokens) / scenario.context_tokens
    inherent = 1 - cell.accuracy - cell.recovery
    yield {"estimator": "accuracy", "value": cell.accuracy - cell.harm + cell.recovery}
    yield {"estimator": "kept_fraction", "value": kept}
    yield {"estimator": "harm_rate", "value": cell.harm}
    yield {"estimator": "delta", "value": cell.recovery - cell.harm}
    if cell.accuracy:
        yield {"estimator": "induced_failure_rate", "value": cell.induced}
    for signal, (for_induced, for_inherent) in scenario.signals.items():
        if 0 < cell.induced < 1:
            yield {"estimator": "auc", "signal": signal, "outcome": "induced_failure", "value": for_induced}
        if 0 < cell.harm + inherent < 1:
            value = (cell.harm * for_induced + inherent * for_inherent) / (cell.harm + inherent)
            yield {"estimator": "auc", "signal": signal, "outcome": "failure", "value": value}
    if 0 < cell.induced < 1:
        yield {
            "estimator": "auc",
            "signal": "drop",
            "outcome": "induced_failure",
            "value": drop_area(scenario, cell.induced),
        }


def drop_area(scenario: Scenario, induced: float) -> float:
    """Return the area of the drop for induced failure: a mixture over which class each side comes from."""
    shared, fragile = math.sqrt(scenario.intraclass_correlation), scenario.fragile
    both = shared * min(induced, fragile) + (1 - shared) * induced * fragile
    among_failures, among_others = both / induced, (fragile - both) / (1 - induced)
    apart = float(special.ndtr(scenario.drop_separation / math.sqrt(2)))
    up, down = among_failures * (1 - among_others), (1 - among_failures) * among_others
    return up * apart + down * (1 - apart) + (1 - up - down) / 2
