"""Chinese answers where the package that cuts them into words is not installed, and where it is."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from kvstats.errors import InputError
from kvstats.metrics import chinese_rouge_l, chinese_token_f1


@pytest.mark.parametrize("metric", [chinese_token_f1, chinese_rouge_l])
def test_without_jieba(metric, monkeypatch):
    monkeypatch.setattr("kvstats.metrics.chinese.find_spec", lambda name: None)
    with pytest.raises(InputError, match=rf"{metric.__name__}: needs the package jieba .*; install it"):
        metric("北京", ["北京"])


def test_words_are_those_of_the_package(monkeypatch):
    # The real package takes a second to load its dictionary, and is optional.
    cutter = ModuleType("jieba")
    cutter.cut = lambda text, cut_all: text.split("|")
    monkeypatch.setitem(sys.modules, "jieba", cutter)
    monkeypatch.setattr("kvstats.metrics.chinese.find_spec", lambda name: cutter)
    assert chinese_token_f1("北京|，|大学", ["大学|。"]) == pytest.approx(2 / 3)
    assert chinese_rouge_l("北京|大学", ["大学|北京", "北京"]) == pytest.approx(2 / 3)
