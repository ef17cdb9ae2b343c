import pandas as pd
import polars as pl
import pytest

from kvstats.inference import TitledTable
from kvstats.titled_table import DisplayedTables

TABLE = TitledTable(
    "bounds of x_1, 90% sure",
    pl.DataFrame(
        {
            "arm": ["a_b", None],
            "rate": [0.18688, 0.5],
            "rate_low": [0.15469, None],
            "rate_high": [0.22063, None],
            "tokens": pl.Series([512, None], dtype=pl.Int32),
            "passes": [True, None],
            "change": [-0.25, 0.5],
            "share": [0.1, None],
        }
    ),
)


def test_digits_follow_the_interval_of_each_figure():
    assert repr(TABLE) == (
        "bounds of x_1, 90% sure\n"
        "arm   rate  rate_low  rate_high  tokens  passes  change  share\n"
        "a_b  0.187     0.155      0.221     512  True     -0.25    0.1\n"
        "–    0.500         –          –       –  –          0.5      –"
    )
    assert TABLE._repr_html_().count("<td ") == 16


def test_markdown():
    assert TABLE.to_markdown() == (
        "bounds of x\\_1, 90% sure\n\n"
        "| arm | rate | rate\\_low | rate\\_high | tokens | passes | change | share |\n"
        "| --- | ---: | ---: | ---: | ---: | --- | ---: | ---: |\n"
        "| a\\_b | 0.187 | 0.155 | 0.221 | 512 | True | -0.25 | 0.1 |\n"
        "| – | 0.500 | – | – | – | – | 0.5 | – |\n"
    )


def test_latex():
    assert TABLE.to_latex() == "\n".join(
        [
            "% bounds of x_1, 90% sure",
            r"\begin{tabular}{lrrrrlrr}",
            r"\toprule",
            r"arm & rate & rate\_low & rate\_high & tokens & passes & change & share \\",
            r"\midrule",
            r"a\_b & 0.187 & 0.155 & 0.221 & 512 & True & $-$0.25 & 0.1 \\",
            r"-- & 0.500 & -- & -- & -- & -- & 0.5 & -- \\",
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


@pytest.mark.parametrize(
    ("text", "markdown", "latex"),
    [
        ("a|b\n*c*", "a\\|b \\*c\\*", "a|b *c*"),
        ("<b>&", "&lt;b&gt;&amp;", r"\textless{}b\textgreater{}\&"),
        ("\\x{y}", "\\\\x{y}", r"\textbackslash{}x\{y\}"),
        ("50% of $5~^", "50% of \\$5\\~^", r"50\% of \$5\textasciitilde{}\textasciicircum{}"),
        ("-1", "-1", "-1"),
    ],
)
def test_texts_are_shown_and_never_obeyed(text, markdown, latex):
    table = TitledTable("t", pl.DataFrame({"x": [text]}))
    assert table.to_markdown().splitlines()[-1] == f"| {markdown} |"
    assert table.to_latex().splitlines()[5] == rf"{latex} \\"


def test_a_title_of_several_lines_is_one_comment():
    latex = TitledTable("a\n\\input{b}", pl.DataFrame({"x": [1]})).to_latex()
    assert latex.splitlines()[0] == "% a \\input{b}"


def test_pandas_keeps_whole_numbers_booleans_and_null():
    frame = TABLE.to_pandas()
    assert [str(kind) for kind in frame.dtypes[["rate", "rate_low", "tokens", "passes"]]] == [
        "float64",
        "float64",
        "Int64",
        "boolean",
    ]
    assert frame.isna().sum().tolist() == [1, 0, 1, 1, 1, 1, 0, 1]
    assert frame["tokens"][0] == 512
    whole = TitledTable("t", pl.DataFrame({"n": [1, 2], "ok": [True, False]})).to_pandas()
    assert whole.dtypes.tolist() == [pd.Series([1]).dtype, pd.Series([True]).dtype]


def test_a_line_break_in_a_cell_parts_no_row():
    broken = TitledTable("t", pl.DataFrame({"task": ["a\nb", "c"], "n": [1, 2]}))
    assert repr(broken) == "t\ntask  n\na b   1\nc     2"
    assert '<td style="text-align: left">a b</td>' in broken._repr_html_()


def test_an_empty_table_has_its_header():
    empty = TitledTable("t", pl.DataFrame(schema={"n": pl.Int64, "task": pl.String}))
    assert repr(empty) == "t\nn  task"
    assert empty.to_markdown() == "t\n\n| n | task |\n| ---: | --- |\n"
    assert list(empty.to_pandas().columns) == ["n", "task"]


def test_several_tables_stand_below_each_other():
    class Two(DisplayedTables):
        @property
        def tables(self):
            return TABLE, TitledTable("other", pl.DataFrame({"x": [1]}))

    two = Two()
    assert repr(two) == f"{TABLE!r}\nother\nx\n1"
    assert two._repr_html_().count("<table>") == 2
    assert two.to_markdown() == TABLE.to_markdown() + "\n" + two.tables[1].to_markdown()
    assert two.to_latex().count(r"\toprule") == 2
