"""The cache that a batch keeps when it is compressed only if all of its inputs may be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvstats.errors import InputError
from kvstats.statistics.statistic import FloatArray, as_column, as_numbers
from kvstats.statistics.totals import TotalsFunction, quotient

__all__ = ["BatchKept"]


class BatchKept(TotalsFunction):
    r"""Expected kept fraction of a batch that is compressed only where all of its gates are open.

    With p the share of inputs with an open gate and k the mean fraction that these keep, a batch of B keeps

    .. math:: 1 - P_B\, (1 - k),

    where :math:`P_B` is the probability that all gates are open: :math:`p^B` for inputs drawn independently;
    for B of the n inputs at hand drawn without replacement, m of them open,
    :math:`\prod_{j<B} (m - j) / (n - j)` (hypergeometric), which is also the unbiased estimate of the former
    from a simple random sample. Members of an open batch are then any open inputs, so that k is their plain
    mean. For B = 1 both are the mean kept fraction of the gate, when a closed one keeps all.

    Undefined (NaN) without weight and, without replacement, for a batch larger than the log; 1 where
    :math:`P_B` is 0.

    Parameters
    ----------
    kept : array-like of float, shape [n]
        Fraction that an input keeps when compressed, in [0, 1]; of closed inputs any number.
    is_open : array-like of bool, shape [n]
        Whether the input's gate is open.
    batch : int
        Size of the batch, at least 1.
    replacement : bool, default True
        Whether inputs are drawn independently. Otherwise the total weight counts the inputs.

    Raises
    ------
    InputError
        When a value is out of its range.

    Examples
    --------
    >>> kept, is_open = [0.25, 0.25, 0.25, 1.0], [1, 1, 1, 0]
    >>> [BatchKept(kept, is_open, size).value(np.ones(4)) for size in (1, 2)]
    [0.4375, 0.578125]
    >>> BatchKept(kept, is_open, 2, replacement=False).value(np.ones(4))  # 3 of 6 pairs are open
    0.625
    """

    def __init__(
        self, kept: npt.ArrayLike, is_open: npt.ArrayLike, batch: int, *, replacement: bool = True
    ) -> None:
        fraction = as_column("BatchKept", "kept", kept)
        flags = as_numbers("BatchKept", "is_open", is_open)
        if flags.shape != fraction.shape or not np.isin(flags, (0, 1)).all():
            raise InputError.argument(
                "BatchKept",
                "is_open",
                f"array of shape {flags.shape}",
                f"is not true or false for {fraction.size} rows",
                "pass one Boolean a row",
            )
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise InputError.argument(
                "BatchKept", "batch", batch, "is not a whole number of at least 1", "pass one such as 8"
            )
        self.batch, self.replacement = batch, replacement
        super().__init__(np.stack([np.ones(fraction.size), flags, flags * fraction], axis=1))

    def of_totals(self, totals: FloatArray) -> FloatArray:
        """Return the expected kept fraction for totals of shape [..., 3]."""
        size, opened, kept = np.moveaxis(totals, -1, 0)
        closed = 1 - quotient(kept, opened)
        lost = np.where(opened > 0, self._all_open(size, opened) * closed, 0.0)
        impossible = size <= 0 if self.replacement else size < self.batch
        return np.where(impossible, np.nan, 1 - lost)

    def gradient(self, totals: FloatArray) -> FloatArray:
        """Return its derivatives with respect to the totals."""
        size, opened, kept = totals
        probability = float(self._all_open(size, opened))
        if probability == 0:
            return np.zeros(3)
        steps = np.zeros(self.batch) if self.replacement else np.arange(self.batch, dtype=np.float64)
        saved = 1 - kept / opened
        return np.array(
            [
                probability * saved * np.sum(1 / (size - steps)),
                -probability * (saved * np.sum(1 / (opened - steps)) + kept / opened**2),
                probability / opened,
            ]
        )

    def _all_open(self, size: FloatArray, opened: FloatArray) -> FloatArray:
        """Return the probability that all gates of a batch are open; 0 where too few are."""
        if self.replacement:
            return np.asarray(np.nan_to_num(quotient(opened, size)) ** self.batch)
        probability = np.ones(np.shape(size))
        for step in range(self.batch):
            probability = probability * np.nan_to_num(quotient(np.maximum(opened - step, 0.0), size - step))
        return np.asarray(probability)
