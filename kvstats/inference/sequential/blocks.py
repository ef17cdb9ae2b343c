"""Steps that share their random draws: what may be averaged, and what may be multiplied."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.inference.sequential.e_values import checked_e_values
from kvstats.inference.sequential.outcomes import checked_outcomes
from kvstats.statistics.statistic import FloatArray, IntArray

__all__ = ["block_e_process", "block_means"]


def block_e_process(e_values: npt.ArrayLike, blocks: npt.ArrayLike, *, size: int | None = None) -> FloatArray:
    r"""E-process over steps of which those of one block share their random draws.

    With :math:`k_b` the planned number of steps of block b, the value after its step j is

    .. math:: \prod_{c<b} \Bigl(\frac1{k_c} \sum_{s} E_{c,s}\Bigr) \cdot \frac1{k_b} \sum_{s \le j} E_{b,s}

    Parameters
    ----------
    e_values : array-like of float, shape (n,)
        One e-value a step, in order; n at least 1. Each must be an e-value GIVEN the blocks before its own:
        :math:`E[E_{b,s} \mid \text{blocks} < b] \le 1` under the hypothesis. Within a block they may depend
        on one another in any way, as decode steps do that read the same sampled cache.
    blocks : array-like, shape (n,)
        Label of each step's block; steps of a block are consecutive.
    size : int, optional
        Planned number of steps of every block, at least that of the longest one seen. By default each block's
        number of steps as given, which is right only if it was fixed before the block began.

    Returns
    -------
    array of float, shape (n,)
        At least 0. Under the hypothesis it reaches 1/a, ever, with probability a at most.

    Raises
    ------
    InputError
        ``e_values`` is empty, negative or NaN; ``blocks`` has another length, or a label returns after
        another; ``size`` is below the number of steps of a block.

    Notes
    -----
    Across blocks with fresh draws the averages multiply: each has conditional expectation at most 1, so the
    products at the ends of blocks are a supermartingale. Within a block nothing may be multiplied; the
    average may. Before the block's end the sum so far, over the planned number, is at most the average at its
    end, so a stop in mid-block inherits the bound: for a stopping time in block b the expected value is
    at most that of the product at the end of b. The process falls at the start of each block and is what
    an honest reader may act on at any step.

    References
    ----------
    .. [1] Vovk and Wang (2021), Annals of Statistics 49, sections 3 and 4.

    Examples
    --------
    >>> block_e_process([2.0, 4.0, 1.0, 3.0], ["a", "a", "b", "b"]).tolist()
    [1.0, 3.0, 1.5, 6.0]
    """
    name = "block_e_process"
    values = checked_e_values(name, "e_values", e_values)
    start, count = block_bounds(name, values, blocks)
    if size is not None and size < count.max():
        raise InputError.argument(
            name,
            "size",
            size,
            f"is below the {count.max()} steps of a block",
            "pass the planned number",
        )
    process = np.empty(values.size)
    capital = 1.0
    for first, steps in zip(start, count, strict=True):
        part = slice(first, first + steps)
        running = np.cumsum(values[part]) / (steps if size is None else size)
        # Capital lost for good stays lost: 0 times an infinite e-value is 0.
        process[part] = capital * running if capital > 0 else 0.0
        capital = process[first + steps - 1]
    return process


def block_means(outcomes: npt.ArrayLike, blocks: npt.ArrayLike) -> FloatArray:
    """Reduce outcomes to one a block, so that what shares its draws counts once.

    Parameters
    ----------
    outcomes : array-like of float, shape (n,)
        In [0, 1], in order; n at least 1.
    blocks : array-like, shape (n,)
        Label of each outcome's block; outcomes of a block are consecutive.

    Returns
    -------
    array of float, shape (number of blocks,)
        Means of the blocks in order, in [0, 1]: bounded outcomes again, of the same conditional mean,
        whatever the dependence within a block. For `mean_e_process` and the confidence sequences.

    Raises
    ------
    InputError
        As for `block_e_process`, and for a value outside [0, 1].

    Examples
    --------
    >>> block_means([1, 0, 0, 0], [7, 7, 8, 8]).tolist()
    [0.5, 0.0]
    """
    values = checked_outcomes("block_means", outcomes)
    start, count = block_bounds("block_means", values, blocks)
    return np.asarray(np.add.reduceat(values, start) / count)


def block_bounds(function: str, values: FloatArray, blocks: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """Return the first position and the number of steps of each block."""
    labels = np.asarray(blocks)
    if values.ndim != 1 or values.size == 0 or labels.shape != values.shape:
        fault = f"has shape {labels.shape} for values of shape {values.shape}"
        raise InputError.argument(function, "blocks", "an array", fault, "pass one label a step, n >= 1")
    start = np.flatnonzero(np.concatenate([[True], labels[1:] != labels[:-1]]))
    if np.unique(labels).size != start.size:
        raise InputError.argument(
            function,
            "blocks",
            "an array",
            "has a label that returns after another",
            "number the blocks in order",
        )
    return start, np.diff(np.append(start, values.size))
