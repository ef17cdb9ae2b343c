import re

import numpy as np
import pytest

from kvstats.errors import InputError
from kvstats.estimators.block_ranking import block_ranking
from kvstats.log import RunRecord, log_from_records


def made(ranks, blocks, **fields):
    return log_from_records(
        [
            RunRecord(
                suite="s",
                model="m",
                task="t",
                input_id=f"{i}",
                arm="poisson",
                budget=0.5,
                score=1.0,
                signals={"true_block_rank": rank, "candidate_blocks": total},
                **fields,
            )
            for i, (rank, total) in enumerate(zip(ranks, blocks, strict=True))
        ]
    )


def test_shares_and_chance():
    rng = np.random.default_rng(1)
    blocks = rng.integers(1, 9, size=60)
    ranks = [int(rng.integers(1, total + 1)) for total in blocks]
    found = {
        r["quantity"]: r
        for r in block_ranking(made(ranks, blocks), arm="poisson", top=(1, 2)).frame.to_dicts()
    }
    several = [(r, b) for r, b in zip(ranks, blocks, strict=True) if b > 1]
    expected = {
        "top_1": np.mean([r <= 1 for r in ranks]),
        "top_2": np.mean([r <= 2 for r in ranks]),
        "chance_top_1": np.mean([1 / b for b in blocks]),
        "chance_top_2": np.mean([min(2 / b, 1) for b in blocks]),
        "relative_rank": np.mean([(r - 1) / (b - 1) for r, b in several]),
    }
    assert {quantity: row["estimate"] for quantity, row in found.items()} == pytest.approx(expected)
    assert found["relative_rank"]["n"] == len(several) < 60


def test_degenerate_blocks():
    alone = block_ranking(made([1, 1, 1], [1, 1, 1]), arm="poisson").frame
    assert alone.filter(quantity="relative_rank").select("n", "status").row(0) == (0, "no rows")
    assert alone.filter(quantity="top_1")["estimate"].item() == 1
    for log, options, message in (
        (made([1, None], [4, 4]), {}, "block_ranking: true_block_rank is null in 1 of 2 rows"),
        (made([5], [4]), {}, "block_ranking: true_block_rank=5.0 is no rank among 4 blocks, in 1 runs"),
        (made([1], [4]), {"top": (0,)}, "block_ranking: top=(0,) holds no positive whole numbers"),
        (made([1], [4]), {"top": ()}, "block_ranking: top=() holds no positive whole numbers"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            block_ranking(log, arm="poisson", **options)
