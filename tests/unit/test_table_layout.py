import polars as pl
import pytest

from kvstats.inference import RESULT_SCHEMA
from kvstats.table_layout import decimals, html_table, text_table


def frame_of(*rows, **columns):
    figures = pl.DataFrame(rows, schema=RESULT_SCHEMA, orient="row")
    return pl.concat([pl.DataFrame(columns), figures], how="horizontal") if columns else figures


@pytest.mark.parametrize(
    ("low", "high", "places"),
    [
        (0.154, 0.220, 3),
        (0.1, 0.9, 2),
        (0.0, 1.0, 1),
        (-3.0, 9.0, 0),
        (100.0, 2000.0, 0),
        (0.50001, 0.50003, 6),
        (None, None, 3),
        (0.5, 0.5, 3),
    ],
)
def test_two_significant_digits_of_the_width(low, high, places):
    assert decimals(low, high) == places


def test_text_is_aligned_and_undefined_is_a_dash():
    frame = frame_of(
        (0.18688, 0.15469, 0.22063, 0.01686, 399.0, 3200, 400, "ok"),
        (1.0, None, None, None, None, 5, 1, "one cluster"),
        budget=[0.0625, 0.5],
        task=["qa", None],
    )
    assert text_table("delta", frame) == (
        "delta\n"
        "budget  task  estimate    low   high      se   df     n  clusters  status\n"
        "0.0625  qa       0.187  0.155  0.221  0.0169  399  3200       400  ok\n"
        "   0.5  –        1.000      –      –       –    –     5         1  one cluster"
    )


def test_fractional_degrees_of_freedom_show_one_decimal():
    assert "  7.3  " in text_table("x", frame_of((1.0, 0.0, 2.0, 0.5, 7.31, 5, 5, "ok")))


def test_a_result_without_rows_shows_its_header():
    assert text_table("x", frame_of()).splitlines() == [
        "x",
        "estimate  low  high  se  df  n  clusters  status",
    ]


def test_html_escapes_text():
    frame = frame_of((1.0, None, None, None, None, 5, 1, "one cluster"), task=["<b>&"])
    html = html_table("a < b", frame)
    assert "&lt;b&gt;&amp;" in html
    assert "a &lt; b" in html
    assert "<b>" not in html
    assert html.count("<th ") == 9
    assert html.count("<td ") == 9
