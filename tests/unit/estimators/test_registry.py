import importlib
import inspect
import re

import polars as pl
import pytest

from kvstats import estimators
from kvstats.estimators import ESTIMATORS, estimator, registry
from kvstats.estimators.registry import table_estimator
from kvstats.inference import DEFAULT_DESIGN


def test_every_public_estimator_is_registered_under_its_name():
    public = set(estimators.__all__) - {"ESTIMATORS", "estimator"}
    assert set(ESTIMATORS) <= public
    assert all(function is getattr(estimators, name) for name, function in ESTIMATORS.items())


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_signatures_are_alike(name):
    signature = inspect.signature(ESTIMATORS[name])
    first, *rest = signature.parameters.values()
    assert first.name == "log"
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in rest)
    assert [(p.name, p.default) for p in rest[-3:]] == [
        ("where", None),
        ("by", None),
        ("design", DEFAULT_DESIGN),
    ]
    assert signature.return_annotation == "Result"


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_docstrings_are_complete(name):
    text = inspect.getdoc(ESTIMATORS[name])
    assert "Formula" in text or ".. math::" in text
    for section in ("Parameters\n---", "Returns\n---", "Raises\n---", "Examples\n---", ">>> "):
        assert section in text
    for parameter in inspect.signature(ESTIMATORS[name]).parameters:
        assert re.search(rf"^(\w+, )*{parameter}\b.* : ", text, re.M), parameter


def test_other_signatures_are_refused():
    def positional(log, where=None, by=None, design=None): ...
    def disordered(log, *, by=None, where=None, design=None): ...
    def without_log(frame, *, where=None, by=None, design=None): ...
    def required(log, *, where, by=None, design=None): ...

    for function in (positional, disordered, without_log, required):
        with pytest.raises(TypeError, match=f"estimator: {function.__name__} must have the signature"):
            estimator(function)
        assert function.__name__ not in ESTIMATORS


def test_a_name_is_registered_once():
    def accuracy(log, *, where=None, by=None, design=None): ...

    with pytest.raises(TypeError, match="estimator: the name accuracy is taken"):
        estimator(accuracy)
    assert ESTIMATORS["accuracy"] is estimators.accuracy


def test_columns_of_its_own_are_known_to_registrations(monkeypatch):
    monkeypatch.setattr(registry, "ESTIMATORS", {})
    monkeypatch.setattr(registry, "ESTIMATOR_COLUMNS", {})

    @table_estimator(signal=pl.String())
    def panel(log, *, where=None, by=None, design=None): ...

    assert list(registry.ESTIMATORS) == ["panel"]
    assert registry.ESTIMATOR_COLUMNS["panel"] == {"signal": pl.String()}


def test_a_module_that_is_executed_again_registers_again():
    importlib.reload(importlib.import_module("kvstats.estimators.discordance"))
    assert ESTIMATORS["discordant_harm_share"].__module__ == "kvstats.estimators.discordance"
    estimator(estimators.discordant_harm_share)
