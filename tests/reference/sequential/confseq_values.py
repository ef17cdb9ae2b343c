"""Write confseq.json: confidence sequences and capitals computed by the package confseq.

Made with confseq 0.0.11 (Howard and Waudby-Smith), numpy 2.4, on Python 3.11. Its compiled part is not
needed: unpack the source distribution and run ``PYTHONPATH=confseq-0.0.11/src python confseq_values.py``;
numpy, scipy, matplotlib and multiprocess must be installed.
"""

import json
from pathlib import Path

import numpy as np

vars(np)["float_"] = np.float64  # confseq 0.0.11 uses the name that numpy 2 removed.

# ruff: noqa: E402  these imports need the name above
from confseq.betting import betting_cs, betting_mart
from confseq.betting_strategies import lambda_predmix_eb
from confseq.predmix import predmix_lower_cs

ALPHA = 0.05
MEANS = [0.001, 0.01, 0.1, 0.3, 0.5, 0.9]


def outcomes():
    rng = np.random.default_rng(20260101)
    return {
        "rare": (rng.random(300) < 0.02).astype(float),
        "even": (rng.random(120) < 0.5).astype(float),
        "beta": rng.beta(2, 5, 150).round(6),
    }


def empirical_bernstein(x, population):
    """The paper's form: the mean before each outcome is the regularised one, on both sides."""
    mean = (0.5 + np.cumsum(x)) / (np.arange(1, len(x) + 1) + 1)
    squares = (x - np.concatenate([[0.5], mean[:-1]])) ** 2
    settings = {
        "v": squares,
        "lambdas_fn": lambda y: lambda_predmix_eb(y, truncation=0.5, alpha=ALPHA / 2),
        "psi_fn": lambda bet: -np.log(1 - bet) - bet,
        "alpha": ALPHA / 2,
        "N": population,
    }
    return predmix_lower_cs(x, **settings), 1 - predmix_lower_cs(1 - x, **settings)


def main():
    found = {}
    for name, x in outcomes().items():
        for population in (None, 2 * len(x)):
            low, high = empirical_bernstein(x, population)
            betting_low, betting_high = betting_cs(x, alpha=ALPHA, N=population, breaks=2000)
            capital = {"greater": {}, "less": {}}
            for mean in MEANS:
                for side, theta in (("greater", 1), ("less", 0)):
                    # The share of alpha on this side, which tunes the bets, is set through `alpha`.
                    path = betting_mart(
                        x,
                        mean,
                        lambdas_fn_positive=lambda y, m: lambda_predmix_eb(y, alpha=ALPHA / 2),
                        lambdas_fn_negative=lambda y, m: lambda_predmix_eb(y, alpha=ALPHA / 2),
                        N=population,
                        theta=theta,
                    )
                    capital[side][str(mean)] = [v if np.isfinite(v) else None for v in path[9::10].tolist()]
            found[f"{name} {population}"] = {
                "outcomes": x.tolist(),
                "population": population,
                "bernstein_low": low[9::10].tolist(),
                "bernstein_high": np.minimum(high, 1)[9::10].tolist(),
                "betting_low": betting_low[9::10].tolist(),
                "betting_high": betting_high[9::10].tolist(),
                "capital": capital,
            }
    Path(__file__).with_name("confseq.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
