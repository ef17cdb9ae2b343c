"""Areas under many vectors of weights: one sort, then one row of weights at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kvstats.statistics.statistic import FloatArray, IntArray, group_sums

__all__ = ["SortedPairs"]

LARGEST_WHOLE = 2**31
"""Total weight below which twice the product of two class weights fits 64 bits."""


@dataclass(frozen=True)
class SortedPairs:
    """Rows of two classes in sorted order: the larger class is summed up, the smaller one looks up the sums.

    Attributes
    ----------
    summed, looking : array of int
        The rows of the two classes, in ascending order.
    below, through : array of int
        For each looking row, how many summed rows lie below its level, and through its level; `through` is
        None where no level has both classes.
    summed_ends, looking_ends : array of int, shape [S + 1]
        Where the rows of each stratum begin, and where the last one's end.
    looking_positive : bool
        Whether the smaller class is the positive one.
    """

    summed: IntArray
    looking: IntArray
    below: IntArray
    through: IntArray | None
    summed_ends: IntArray
    looking_ends: IntArray
    looking_positive: bool

    @classmethod
    def of(
        cls, order: IntArray, codes: IntArray, positive: npt.NDArray[np.bool_], stratum: IntArray
    ) -> SortedPairs:
        """Sort out the rows of a sample.

        Parameters
        ----------
        order : array of int, shape [n]
            Rows sorted by stratum, then score.
        codes : array of int, shape [n]
            Level of each row.
        positive : array of bool, shape [n]
            Class of each row.
        stratum : array of int, shape [L]
            Stratum of each level, in ascending order.
        """
        few_positives = bool(np.count_nonzero(positive) <= positive.size / 2)
        looks = positive[order] if few_positives else ~positive[order]
        summed, looking = order[~looks], order[looks]
        sizes = np.bincount(codes[summed], minlength=stratum.size)
        through = np.cumsum(sizes)[codes[looking]]
        below = through - sizes[codes[looking]]
        n_strata = int(stratum.max(initial=-1)) + 1
        ends = [
            np.concatenate([[0], np.cumsum(np.bincount(stratum[codes[rows]], minlength=n_strata))])
            for rows in (summed, looking)
        ]
        tied = bool((below != through).any())
        return cls(summed, looking, below, through if tied else None, ends[0], ends[1], few_positives)

    def areas(self, counts: FloatArray, codes: IntArray, weights: FloatArray) -> FloatArray:
        """Return the stratified area for each row of cluster counts.

        All arrays but the counts stay in the processor's cache. Where weights are whole numbers the sums are
        taken in integers: these are exact, and faster, since each addition waits for the last.

        Parameters
        ----------
        counts : array of float, shape [B, C]
            How often each cluster was drawn in each replicate.
        codes : array of int, shape [n]
            Cluster of each row.
        weights : array of float, shape [n]
            Row weights, which the counts multiply.

        Returns
        -------
        array of float, shape [B]
            NaN where no stratum has both classes.
        """
        constant = weights.size == 0 or bool((weights == weights[0]).all() and weights[0] > 0)
        base = None if constant else weights
        largest = float(counts.max(initial=0)) * (weights.size if constant else float(weights.sum()))
        if largest < LARGEST_WHOLE and is_whole(counts) and (constant or is_whole(weights)):
            drawn: Any = counts.astype(np.int64)
            base = None if base is None else base.astype(np.int64)
        else:
            drawn = np.ascontiguousarray(counts)
        share = self._evaluator(drawn.dtype, codes, base)
        areas = np.array([share(row) for row in drawn])
        return areas if self.looking_positive else 1 - areas

    def _evaluator(self, dtype: npt.DTypeLike, codes: IntArray, base: Any) -> Callable[[Any], float]:
        """Return a function of one replicate's counts: the share of pairs whose looking row lies above."""
        summed_codes, looking_codes = codes[self.summed], codes[self.looking]
        summed_base = None if base is None else base[self.summed]
        looking_base = None if base is None else base[self.looking]
        n_strata = self.summed_ends.size - 1
        stratum = np.repeat(np.arange(n_strata), np.diff(self.looking_ends))
        if summed_base is not None and looking_base is not None and n_strata > 1 and dtype == np.float64:
            # Each stratum of summed rows is given a sum of 1, and its looking rows what keeps the weights of
            # its pairs: running sums of raw weights would drown a light stratum in a heavy one.
            group = np.repeat(np.arange(n_strata), np.diff(self.summed_ends))
            totals = group_sums(group, summed_base, n_strata)
            summed_base = summed_base / np.where(totals > 0, totals, 1.0)[group]
            heaviest = totals.max() or 1.0
            looking_base = looking_base * (totals / heaviest)[stratum]
        sums = np.zeros(self.summed.size + 1, dtype)
        summed = np.empty(self.summed.size, dtype)
        looking, under, level = (np.empty(self.looking.size, dtype) for _ in range(3))

        def share(counts: Any) -> float:
            # All indices are valid: "clip" only spares numpy the copy that it makes to check them first.
            counts.take(summed_codes, out=summed, mode="clip")
            counts.take(looking_codes, out=looking, mode="clip")
            if summed_base is not None and looking_base is not None:
                np.multiply(summed, summed_base, out=summed)
                np.multiply(looking, looking_base, out=looking)
            np.cumsum(summed, out=sums[1:])
            sums.take(self.below, out=under, mode="clip")
            if self.through is not None:
                np.add(under, sums.take(self.through, out=level, mode="clip"), out=under)
            if n_strata == 1:
                pairs = float(sums[-1]) * float(looking.sum())
            else:
                bounds = sums[self.summed_ends]
                before = bounds[:-1] if self.through is None else 2 * bounds[:-1]
                np.subtract(under, before.take(stratum, out=level, mode="clip"), out=under)
                pairs = float((looking * np.diff(bounds).take(stratum, out=level, mode="clip")).sum())
            # No inner product: threads would split a long one, as many as there are, and round differently.
            total = float(np.multiply(looking, under, out=under).sum())
            found = total / pairs if pairs > 0 else float("nan")
            return found if self.through is None else found / 2

        return share


def is_whole(values: FloatArray) -> bool:
    """Return whether all values are whole numbers."""
    return bool((values == np.rint(values)).all())
