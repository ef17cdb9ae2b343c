"""The registered claims of the certificate study: on its printed figures, and on logs of known truth."""

from importlib import resources

import numpy as np
import polars as pl
import pytest

from kvstats.log import ReplayRecord, RunRecord
from kvstats.prereg import verify
from kvstats.prereg.plan import load_plan
from kvstats.prereg.verdict import decide

PATH = resources.files("kvstats.prereg").joinpath("examples/error_certificates.yaml")
PLAN = load_plan(PATH)
CLAIMS = {plan.claim.id: plan for plan in PLAN.claims}

PRINTED = {
    # Pooled area of the certificate for the run's own failure, with its interval.
    "R1": [
        {"suite": "6k", "estimate": 0.555, "low": 0.543, "high": 0.568},
        {"suite": "16k", "estimate": 0.572, "low": 0.562, "high": 0.582},
    ],
    # The best deterministic signal, against the certificate's lower bound.
    "R2": [
        {"arm": "topk", "signal": "margin", "estimate": 0.73, "low": 0.70, "high": 0.76},
        {"arm": "poisson", "signal": "certificate", "estimate": 0.855, "low": 0.84, "high": 0.87},
    ],
    "R3": [
        {"suite": "6k", "estimate": -0.004, "low": -0.031, "high": 0.025},
        {"suite": "16k", "estimate": -0.038, "low": -0.065, "high": -0.010},
    ],
    # 4.0% at 16k less 5.6% at 6k; its interval is not printed.
    "S1": [{"estimate": -0.016, "low": -0.05, "high": 0.02}],
    "S2": [{"estimate": 0.572, "low": 0.562, "high": 0.582}],
    "S3": [{"estimate": 0.003, "low": -0.03, "high": 0.03}],
}


def verdict_on(rows, plan):
    """Return what the rules of a claim say of rows of figures."""
    frame = pl.DataFrame(
        [{"se": 0.01, "df": 100.0, "n": 1000, "clusters": 500, "status": "ok", **r} for r in rows]
    )
    return decide(
        labels=[str(row) for row in rows],
        statuses=["ok"] * len(rows),
        supported=(plan.supported.text, plan.supported.values(frame)),
        killed=None if plan.killed is None else (plan.killed.text, plan.killed.values(frame)),
        quantifier=plan.claim.quantifier,
        family=None,
    ).verdict


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("R1", "killed"),
        ("R2", "supported"),
        ("R3", "not met"),
        ("S1", "killed"),
        ("S2", "killed"),
        ("S3", "killed"),
    ],
)
def test_the_rules_return_the_published_verdicts(claim, expected):
    assert verdict_on(PRINTED[claim], CLAIMS[claim]) == expected


def test_a_signal_at_the_lower_bound_kills():
    rows = [{**PRINTED["R2"][0], "estimate": 0.84}, PRINTED["R2"][1]]
    assert verdict_on(rows, CLAIMS["R2"]) == "killed"


def test_intervals_that_exclude_one_half_do_not_save_a_claim_about_six_tenths():
    by_model = [(0.581, 0.555, 0.609), (0.558, 0.535, 0.581), (0.565, 0.545, 0.587), (0.552, 0.532, 0.574)]
    assert all(low > 0.5 for _, low, _ in by_model)
    assert verdict_on(PRINTED["R1"][:1], CLAIMS["R1"]) == "killed"


def shaped(seed, own, channel, n=150):
    """Return a log of the study's shape; `own` and `channel` say what the certificate knows."""
    rng = np.random.default_rng(seed)
    records = []
    for suite in ("6k", "16k"):
        for condition in ("aware", "stream"):
            for i in range(n):
                key = {
                    "suite": suite,
                    "model": "m",
                    "task": "t",
                    "input_id": f"{i:03}",
                    "condition": condition,
                }
                full = bool(rng.random() < 0.6)
                records.append(RunRecord(**key, arm="full", budget=1.0, score=float(full), success=full))
                damage = rng.random()
                for budget in (0.125, 0.25, 0.5):
                    for arm in ("topk", "poisson"):
                        harmed = bool(damage + 0.1 * rng.normal() > 0.5 + budget)
                        ok = full and not harmed
                        certificate = channel * harmed - own * ok + rng.normal()
                        signals = {
                            "certificate": certificate if arm == "poisson" else None,
                            "retained_entropy": rng.normal(),
                            "evicted_mass": 0.3 * harmed + rng.normal(),
                            "margin": rng.normal(),
                            "logprob": -abs(rng.normal()) - (0.5 if full else 1.5),
                        }
                        records.append(
                            RunRecord(
                                **key, arm=arm, budget=budget, score=float(ok), success=ok, signals=signals
                            )
                        )
                error = float(rng.exponential())
                records.append(
                    ReplayRecord(
                        **key,
                        arm="poisson",
                        design="poisson",
                        budget=0.25,
                        layer=0,
                        head=0,
                        step=0,
                        variance_estimate=0.1,
                        radius=float(error * np.exp(0.5 * rng.normal() + 0.8)),
                        true_error=error,
                        delta=0.1,
                    )
                )
    return records


def test_the_claims_run_on_any_log_of_the_shape(tmp_path, write_log):
    write_log(shaped(1, own=0.0, channel=2.5), "logs.jsonl")
    path = tmp_path / "claims.yaml"
    path.write_text(PATH.read_text().replace("2026-11-29T00:00:00Z", "2026-10-01T00:00:00Z"))
    report = verify(path)
    found = {claim.id: claim.verdict for claim in report.claims}
    # It knows the channel, and here eviction makes enough of the failures for that to foretell them.
    assert found == {
        "R1": "supported",
        "R2": "supported",
        "R3": "supported",
        "R4": "supported",
        "S1": "killed",
        "S2": "supported",
        "S3": "killed",
        "coverage": "supported",
        "correlation": "supported",
    }


def test_a_certificate_that_knows_nothing_is_killed(tmp_path, write_log):
    write_log(shaped(2, own=0.0, channel=0.0), "logs.jsonl")
    path = tmp_path / "claims.yaml"
    path.write_text(PATH.read_text().replace("2026-11-29T00:00:00Z", "2026-10-01T00:00:00Z"))
    found = {claim.id: claim.verdict for claim in verify(path).claims}
    assert (found["R1"], found["R2"], found["R3"], found["S2"]) == ("killed", "killed", "not met", "killed")
