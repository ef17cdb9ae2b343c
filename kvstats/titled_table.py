"""Tables with a title: how each displays, and in what other forms it can be had."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import polars as pl

from kvstats.table_layout import html_table, latex_table, markdown_table, text_table

__all__ = ["DisplayedTable", "DisplayedTables", "TitledTable"]

NULLABLE = {"Boolean": "boolean"} | dict.fromkeys(("Int64", "Int32", "UInt32", "UInt64"), "Int64")
"""Types of pandas that can hold a null, by those of polars whose nulls would turn them into others."""


class DisplayedTable(ABC):
    """What has a title and a frame; digits follow the width of intervals, and null is shown as a dash."""

    frame: pl.DataFrame

    @property
    @abstractmethod
    def title(self) -> str:
        """What the table shows."""

    def __repr__(self) -> str:
        return text_table(self.title, self.frame)

    def _repr_html_(self) -> str:
        return html_table(self.title, self.frame)

    def to_markdown(self) -> str:
        """Return the table as Markdown, below its title."""
        return markdown_table(self.title, self.frame)

    def to_latex(self) -> str:
        """Return the table as a LaTeX ``tabular`` with the rules of the package booktabs.

        The title stands above it as a comment. What LaTeX would take for a command is escaped.
        """
        return latex_table(self.title, self.frame)

    def to_pandas(self) -> Any:
        """Return the frame as a `pandas.DataFrame`.

        A null number becomes NaN. Whole numbers and booleans stay such: with a null among them their columns
        have pandas' types ``Int64`` and ``boolean``.

        Raises
        ------
        ImportError
            When pandas is not installed.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise ImportError(
                f"{type(self).__name__}.to_pandas: needs pandas; install it, or use .frame"
            ) from error
        columns = {
            column.name: pandas.array(column.to_list(), dtype=NULLABLE[str(column.dtype)])
            if column.null_count() and str(column.dtype) in NULLABLE
            else column.to_list()
            for column in self.frame
        }
        return pandas.DataFrame(columns)


@dataclass(frozen=True, eq=False, repr=False)
class TitledTable(DisplayedTable):
    """A table that is no estimate with an interval.

    Attributes
    ----------
    name : str
        What it shows.
    frame : polars.DataFrame
        The table.

    Examples
    --------
    >>> TitledTable("thresholds", pl.DataFrame({"tau": [0.05, 0.1], "passes": [True, None]}))
    thresholds
     tau  passes
    0.05  True
     0.1  –
    """

    name: str
    frame: pl.DataFrame

    @property
    def title(self) -> str:
        """The name."""
        return self.name


class DisplayedTables(ABC):
    """What consists of several tables, shown below each other."""

    @property
    @abstractmethod
    def tables(self) -> tuple[DisplayedTable, ...]:
        """The tables."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.tables))

    def _repr_html_(self) -> str:
        return "\n".join(table._repr_html_() for table in self.tables)

    def to_markdown(self) -> str:
        """Return the tables as Markdown, each below its title."""
        return "\n".join(table.to_markdown() for table in self.tables)

    def to_latex(self) -> str:
        """Return the tables as LaTeX, each as `DisplayedTable.to_latex` does."""
        return "\n".join(table.to_latex() for table in self.tables)
