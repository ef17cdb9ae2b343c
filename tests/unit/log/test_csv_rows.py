"""Rows of CSV: texts as they are, lines of rows, and rows that cannot be used."""

from __future__ import annotations

import csv

import pytest

from kvstats.errors import InputError
from kvstats.log.adapters.csv_rows import csv_columns, csv_rows
from kvstats.log.lines import Reject


@pytest.fixture
def table(tmp_path):
    def write(content):
        path = tmp_path / "table.csv"
        path.write_bytes(content)
        return path

    return write


def test_fields_are_text_and_rows_have_the_line_that_they_begin_in(table):
    path = table(b'\xef\xbb\xbfid,text\n0012,"two\nlines"\n\n1344800117571260417,"a ""b"", c"\r\n,\n')
    assert csv_columns(path) == ["id", "text"]
    assert list(csv_rows(path)) == [
        (2, {"id": "0012", "text": "two\nlines"}),
        (5, {"id": "1344800117571260417", "text": 'a "b", c'}),
        (6, {"id": "", "text": ""}),
    ]


def test_long_fields_are_read_and_the_limit_of_the_module_stays(table):
    before = csv.field_size_limit()
    ((_, row),) = csv_rows(table(b"a\n" + b"x" * (before + 1) + b"\n"))
    assert len(row["a"]) == before + 1
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("content", "line", "fault"),
    [
        (b"a,b\n1,2\n3\n4,5\n", 3, "has 1 fields for 2 columns"),
        (b"a,b\n1,2\n3,4,5\n4,5\n", 3, "has 3 fields for 2 columns"),
        (b"a,b\n1,2\n\xff,4\n4,5\n", 3, "has bytes that are no UTF-8 text"),
        (b'a,b\n1,2\n"3"4,5\n4,5\n', 3, "is no row of CSV"),
        (b"a,b\n1,2\n4,5\n6,7", 4, "is cut: the file ends in it"),
        (b'a,b\n1,2\n4,5\n6,"7\n', 4, "is no row of CSV"),
    ],
)
def test_a_row_that_cannot_be_used_leaves_the_others(table, content, line, fault):
    rows = list(csv_rows(table(content)))
    (bad,) = [row for row in rows if isinstance(row, Reject)]
    assert bad.line == line
    assert bad.error.startswith(fault)
    good = [row[1] for row in rows if not isinstance(row, Reject)]
    assert good == [{"a": "1", "b": "2"}, {"a": "4", "b": "5"}]


def test_a_last_line_without_end_may_be_whole_and_says_what_to_do_then(table):
    *_, last = csv_rows(table(b"a,b\n1,2\n4,5"))
    assert last.remedy == "restore the file, or end the line with a line break if it is whole"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", r"table\.csv: is empty; remove the file"),
        (b"a,b,a\n1,2,3\n", r"table\.csv:1: has two columns 'a'; rename one of them"),
        (b'"a,b\n', r"table\.csv:1: is no row of CSV"),
        (b"\xff,b\n1,2\n", r"table\.csv:1: has bytes that are no UTF-8 text; write the file as UTF-8"),
    ],
)
def test_a_header_that_cannot_be_used_is_an_error(table, content, fault):
    with pytest.raises(InputError, match=fault):
        list(csv_rows(table(content)))


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv: cannot be read"):
        list(csv_rows(tmp_path / "none.csv"))
