import re

import msgspec
import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

from kvstats import Design, adjust
from kvstats.errors import InputError
from kvstats.estimators.units import best_unit_auc, unit_auc
from kvstats.log import RunRecord, log_from_records


def made(seed=0, n=80, shape=(3, 2), shift=0.0, model="m"):
    rng = np.random.default_rng(seed)
    records = []
    for i in range(n):
        key = {"suite": "s", "model": model, "task": "t", "input_id": f"{i:03}"}
        wrong = bool(rng.random() < 0.4)
        matrix = rng.normal(size=shape)
        matrix[0, 0] += shift * wrong
        records += [
            RunRecord(**key, arm="full", budget=1.0, score=1.0, success=True),
            RunRecord(
                **key,
                arm="poisson",
                budget=0.5,
                score=float(not wrong),
                success=not wrong,
                certificate_per_head=matrix.tolist(),
            ),
        ]
    return records


def test_areas_are_those_of_another_library():
    log = log_from_records(made(shift=1.5))
    rows = log.runs.filter(arm="poisson")
    label = ~rows["success"].to_numpy()
    matrix = np.array(rows["certificate_per_head"].to_list())
    result = unit_auc(log, arm="poisson")
    for row in result.frame.to_dicts():
        expected = roc_auc_score(label, matrix[:, row["layer"], row["head"]])
        assert row["estimate"] == pytest.approx(expected)
    assert result.frame.height == 6
    adjusted = adjust(result.p_value()["p_value"])
    assert (adjusted < 0.05).tolist() == [True, False, False, False, False, False]


def test_models_of_different_shapes_are_split():
    log = log_from_records([*made(model="m1"), *made(model="m2", shape=(2, 2))])
    result = unit_auc(log, arm="poisson", by="model").frame
    assert result.group_by("model").len().sort("model").rows() == [("m1", 6), ("m2", 4)]
    with pytest.raises(
        InputError, match="unit_auc: certificate_per_head has 2 shapes in one cell, the smallest of"
    ):
        unit_auc(log, arm="poisson")


def test_the_best_unit_is_judged_on_other_inputs():
    log = log_from_records(made(n=60))
    found = {r["quantity"]: r for r in best_unit_auc(log, arm="poisson", folds=4).frame.to_dicts()}
    areas = unit_auc(log, arm="poisson").frame["estimate"]
    assert found["apparent"]["estimate"] == areas.max()
    assert found["apparent"]["low"] is None
    assert found["apparent"]["status"] == "chosen on the same rows"
    # By hand: clusters dealt by the seed, the best unit of three quarters judged on the fourth.
    rows = log.runs.filter(arm="poisson").sort("input_id")
    label, matrix = (
        ~rows["success"].to_numpy(),
        np.array(rows["certificate_per_head"].to_list()).reshape(60, -1),
    )
    order = np.random.default_rng(0).permutation(60)
    concordant = pairs = 0.0
    for fold in range(4):
        inside = np.isin(np.arange(60), order[fold::4])
        scores = [roc_auc_score(label[~inside], unit[~inside]) for unit in matrix.T]
        best = matrix[inside][:, int(np.argmax(scores))]
        count = label[inside].sum() * (~label[inside]).sum()
        concordant += count * roc_auc_score(label[inside], best)
        pairs += count
    assert found["cross_fitted"]["estimate"] == pytest.approx(concordant / pairs)
    again = best_unit_auc(log, arm="poisson", folds=4, design=Design(seed=1)).frame
    assert again.filter(quantity="cross_fitted")["estimate"].item() != found["cross_fitted"]["estimate"]


def test_degenerate_units():
    log = log_from_records(made(n=3))
    with pytest.raises(
        InputError, match=re.escape("folds=5 exceeds the 3 clusters of a cell; pass fewer folds")
    ):
        best_unit_auc(log, arm="poisson")
    with pytest.raises(InputError, match=re.escape("best_unit_auc: folds=1 is no number of folds; pass 2")):
        best_unit_auc(log, arm="poisson", folds=1)
    with pytest.raises(InputError, match="unit_auc: certificate_per_head is null in 3 of 3 rows"):
        unit_auc(log, arm="full")
    records = made(n=6)
    records[1] = msgspec.structs.replace(records[1], certificate_per_head=[[1.0, None]] * 3)
    with pytest.raises(
        InputError, match="unit_auc: arm='certificate_per_head' has matrices with null inside"
    ):
        unit_auc(log_from_records(records), arm="poisson")
    none = best_unit_auc(log, arm="poisson", where="budget > 5").frame
    assert none.select("estimate", "status").unique().rows() == [(None, "no rows")]
    assert unit_auc(log, arm="poisson", where="budget > 5").frame.height == 0
    same = best_unit_auc(log_from_records(made(n=20)), arm="poisson", folds=2, where="failure").frame
    assert same.select(pl.col("estimate"), "status").unique().rows() == [(None, "one class")]


@pytest.mark.slow
def test_without_any_signal_the_cross_fitted_area_is_one_half():
    apparent, held_out, covered = [], [], 0
    for seed in range(100):
        found = best_unit_auc(log_from_records(made(seed, n=60, shape=(4, 4))), arm="poisson").frame
        rows = {r["quantity"]: r for r in found.to_dicts()}
        apparent.append(rows["apparent"]["estimate"])
        held_out.append(rows["cross_fitted"]["estimate"])
        covered += rows["cross_fitted"]["low"] <= 0.5 <= rows["cross_fitted"]["high"]
    assert np.mean(apparent) > 0.6
    assert abs(np.mean(held_out) - 0.5) < 0.03
    assert covered >= 88
