"""Rows of a result: as a figure, some of them, the first ones, a single value."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Self

from kvstats.errors import InputError, nearest_name
from kvstats.titled_table import DisplayedTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kvstats.report.plots import CaptionedFigure
    from kvstats.report.plots.result_plot import PlotKind

__all__ = ["SelectableRows"]


class SelectableRows(DisplayedTable):
    """A table of estimates, to be plotted, and to choose rows of; a choice is a result of the same kind."""

    by: tuple[str, ...]

    @abstractmethod
    def at(self, positions: Sequence[int]) -> Self:
        """Return the rows at some positions, in their order."""

    def plot(
        self,
        ax: Axes | Sequence[Axes] | None = None,
        *,
        kind: PlotKind | None = None,
        along: str | None = None,
        reference: float | Literal["null"] | None = "null",
    ) -> CaptionedFigure:
        """Plot the estimates with their intervals.

        Quantities of different units share no axis: they get panels. What is undefined is a hollow mark at
        the edge of the axes with its status, never a value; an estimate without interval is a hollow mark.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or sequence of them, optional
            Where to draw, one for each panel. Default: a new figure of one column of a paper.
        kind : {"forest", "lines", "bars"}, optional
            ``forest``: a row for each estimate; ``lines``: a line with its band along a by-column of
            numbers, one for each combination of the others; ``bars``: for shares only. Default: lines where a
            by-column of numbers has at least three values and there are at most seven lines, bars for shares
            of discordant pairs, else a forest.
        along : str, optional
            The by-column that lines go along; default: the one with the most values.
        reference : float, "null" or None
            Where a dotted line stands; default: the null value of the estimator, if it has one.

        Returns
        -------
        kvstats.report.plots.CaptionedFigure
            ``figure``, ``axes`` and a ``caption`` that says what is drawn, of how many rows and clusters, and
            the kind and level of the intervals.

        Raises
        ------
        InputError
            When the result has no rows or too many for a forest, it does not fit the kind, or an argument is
            not known.
        ImportError
            When matplotlib is not installed.

        Examples
        --------
        >>> from kvstats.log import RunRecord, log_from_records
        >>> from kvstats.estimators import accuracy
        >>> log = log_from_records([
        ...     RunRecord(suite="s", model="m", task=task, input_id=str(i), arm="full", budget=1.0,
        ...               score=float(i < hits))
        ...     for i in range(8) for task, hits in (("qa", 6), ("code", 2))
        ... ])
        >>> print(accuracy(log, by="task").plot().caption)
        accuracy by task. Points are estimates, lines 95% Korn-Graubard intervals. n = 8 rows in 8 clusters
        (same suite, task, input_id) for each estimate.
        """
        # Looked up when asked for: figures lie above results, and importing matplotlib takes its time.
        plots = importlib.import_module("kvstats.report.plots.result_plot")
        figure: CaptionedFigure = plots.result_plot(self, ax, kind=kind, along=along, reference=reference)
        return figure

    @property
    def value(self) -> float | None:
        """The estimate of the only row, None where it is undefined; `InputError` where there are several."""
        return only_estimate(self, "Result.value")

    def item(self, **by: Any) -> float | None:
        """Return the estimate of the one row with some values of the by-columns.

        Parameters
        ----------
        **by : value
            As for `part`.

        Returns
        -------
        float or None
            None where the estimate is undefined.

        Raises
        ------
        InputError
            When several rows have these values, or none, or a name is no by-column.

        Examples
        --------
        >>> from kvstats.log import RunRecord, log_from_records
        >>> from kvstats.estimators import accuracy
        >>> log = log_from_records([
        ...     RunRecord(suite="s", model="m", task=task, input_id=str(i), arm="full", budget=1.0,
        ...               score=float(i < hits))
        ...     for i in range(8) for task, hits in (("qa", 6), ("code", 2))
        ... ])
        >>> result = accuracy(log, by="task")
        >>> result.item(task="qa"), result.sort("estimate").head(1).part(task="code").value
        (0.75, 0.25)
        """
        return only_estimate(self.part(**by) if by else self, "Result.item")

    def part(self, **by: Any) -> Self:
        """Return the rows with some values of the by-columns.

        Parameters
        ----------
        **by : value
            ``arm="gate", budget=0.5`` selects the rows of that arm at that budget; None those where the
            column is null.

        Raises
        ------
        InputError
            When a name is no by-column, a value not among its values, or no row has all of them.
        """
        function = "Result.part"
        known = {name: self.frame[name].to_list() for name in self.by}
        for name, value in by.items():
            if name not in known:
                remedy = nearest_name(name, self.by) if self.by else "pass `by` to the estimator"
                raise InputError.argument(function, name, value, "is no by-column of this result", remedy)
            if value not in known[name]:
                raise InputError.argument(
                    function,
                    name,
                    value,
                    "is not among the values of this result",
                    nearest_name(str(value), [str(other) for other in dict.fromkeys(known[name])]),
                )
        rows = [i for i in range(self.frame.height) if all(known[name][i] == by[name] for name in by)]
        if not rows:
            raise InputError(f"{function}: no row has all of {by!r}; ask for fewer")
        return self.at(rows)

    def sort(self, *columns: str, descending: bool = False) -> Self:
        """Return the rows sorted by columns of the frame, undefined values last.

        Raises
        ------
        InputError
            When no column is named, or one is not in the frame.
        """
        function = "Result.sort"
        if not columns:
            raise InputError(f"{function}: no column is named; pass one such as 'estimate'")
        for name in columns:
            if name not in self.frame.columns:
                raise InputError.argument(
                    function, "columns", name, "is not a column", nearest_name(str(name), self.frame.columns)
                )
        order = self.frame.select(*columns).with_row_index("__position__")
        order = order.sort(*columns, descending=descending, nulls_last=True, maintain_order=True)
        return self.at(order["__position__"].to_list())

    def head(self, n: int = 5) -> Self:
        """Return the first n rows.

        Raises
        ------
        InputError
            When n is not a whole number of at least 1.
        """
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
            raise InputError.argument(
                "Result.head", "n", n, "is not a whole number of at least 1", "pass one such as 5"
            )
        return self.at(range(min(int(n), self.frame.height)))


def only_estimate(rows: SelectableRows, function: str) -> float | None:
    """Return the estimate of the only row."""
    if rows.frame.height != 1:
        split = [name for name in rows.by if rows.frame[name].n_unique() > 1]
        remedy = f"name {' and '.join(split)}, as in result.item({split[0]}=...)" if split else "select some"
        raise InputError(f"{function}: {rows.frame.height} rows match, not one; {remedy}")
    estimate: float | None = rows.frame["estimate"].item()
    return estimate
