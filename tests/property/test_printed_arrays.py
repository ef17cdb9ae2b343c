"""Whatever texts numpy or Python print, they are read back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kvstats.log.adapters.printed_arrays import parse_printed_array

TEXTS = st.lists(
    st.one_of(st.text(), st.text(alphabet="ab '\"\\\n\r\t[],. \x00\x85\xa0\u2028é")), max_size=30
)


@given(TEXTS)
def test_lists_come_back(texts):
    assert parse_printed_array(str(texts)) == texts


@given(TEXTS, st.integers(20, 200))
def test_arrays_come_back_whatever_the_width_of_lines(texts, width):
    array = np.array([*texts, None], dtype=object)[:-1]
    assert parse_printed_array(np.array2string(array, max_line_width=width)) == texts
    assert parse_printed_array(str(array)) == texts
