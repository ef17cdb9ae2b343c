"""What is drawn for a simulated log: outcomes, signals and attention cells."""

from __future__ import annotations

import math
import zlib

import numpy as np
import polars as pl
from scipy import special

from kvstats.planning.scenario import Cell, Scenario
from kvstats.planning.truth import DROP_CENTRE, DROP_SCALE, separation
from kvstats.statistics.designs.sampling_design import BoolArray
from kvstats.statistics.statistic import FloatArray

__all__ = ["Draws"]


class Draws:
    """The inputs of one task under one model and condition, and the draws that their runs share."""

    def __init__(self, scenario: Scenario, model: str, task: str, condition: str | None) -> None:
        self.scenario = scenario
        self.task = task
        self.place = (model, task, condition)
        self.keys = {
            "suite": scenario.suite,
            "model": model,
            "task": task,
            "input_id": np.char.mod("%06d", np.arange(scenario.inputs)).astype(object),
            "condition": condition,
        }
        accuracy = scenario.accuracy_at(*self.place)
        self.full_success = self.events("full", (), accuracy)

    def generator(self, *label: object) -> np.random.Generator:
        """Return the generator of a part of the log."""
        return np.random.default_rng([self.scenario.seed, zlib.crc32(repr(label).encode())])

    def shared(self, what: str) -> FloatArray:
        """Return the uniform numbers of the task's inputs, the same for all models and conditions."""
        return self.generator("shared", what, self.task).random(self.scenario.inputs)

    def events(self, what: str, place: tuple[object, ...], chance: float) -> BoolArray:
        """Draw one event for each input, correlated with the others of its kind; see `any_event`."""
        draws = self.generator(what, *self.place, *place).random((self.scenario.inputs, 2))
        takes_shared = draws[:, 0] < math.sqrt(self.scenario.intraclass_correlation)
        happened: BoolArray = np.where(takes_shared, self.shared(what), draws[:, 1]) < chance
        return happened

    def normals(self, what: str, place: tuple[object, ...], size: int = 1) -> FloatArray:
        """Draw standard normal numbers, shape [inputs, size], correlated within inputs."""
        rho, n = self.scenario.intraclass_correlation, self.scenario.inputs
        common = self.generator("shared", what, self.task).standard_normal((n, 1))
        own = self.generator(what, *self.place, *place).standard_normal((n, size))
        return math.sqrt(rho) * common + math.sqrt(1 - rho) * own

    def present(self, arm: str) -> BoolArray:
        """Return which inputs an arm was run on."""
        share = self.scenario.missing_at(*self.place, arm)
        drawn = self.generator("missing", *self.place, arm).random(self.scenario.inputs)
        there: BoolArray = drawn >= share
        return there

    def inputs(self) -> pl.DataFrame:
        """Return the input records."""
        fragile = self.shared("induced") < self.scenario.fragile
        noise = self.normals("drop", ())[:, 0]
        drop = DROP_CENTRE + DROP_SCALE * (self.scenario.drop_separation * fragile + noise)
        return pl.DataFrame({**self.keys, "context_tokens": self.scenario.context_tokens, "drop": drop})

    def full_runs(self) -> pl.DataFrame:
        """Return the full-cache runs."""
        nothing = np.zeros(self.scenario.inputs, dtype=np.bool_)
        runs = self.runs("full", 1.0, self.full_success, nothing, ~self.full_success)
        if "certificate" in self.scenario.signals:
            runs = runs.with_columns(certificate=pl.lit(None, dtype=pl.Float64))
        return runs.filter(self.present("full"))

    def arm_runs(self, cell: Cell) -> pl.DataFrame:
        """Return the runs of an arm at a budget."""
        place = (cell.arm, cell.budget)
        failed = self.full_success & self.events("induced", place, cell.induced)
        recovered = ~self.full_success & self.events("recovered", place, cell.recovered)
        success = (self.full_success & ~failed) | recovered
        return self.runs(cell.arm, cell.budget, success, failed, ~success & ~failed)

    def runs(
        self, arm: str, budget: float, success: BoolArray, induced: BoolArray, inherent: BoolArray
    ) -> pl.DataFrame:
        """Return the runs of an arm at a budget, from their outcomes."""
        signals = {}
        for name, (for_induced, for_inherent) in self.scenario.signals.items():
            z = self.normals(f"signal {name}", (arm, budget))[:, 0]
            z += separation(for_induced) * induced + separation(for_inherent) * inherent
            signals[name] = -np.exp(-z) if name == "logprob" else np.exp(z)
        tokens = self.scenario.context_tokens
        kept = round(budget * tokens)
        return pl.DataFrame(
            {
                **self.keys,
                "arm": arm,
                "budget": budget,
                "seed": 0,
                "score": success.astype(np.float64),
                "success": success,
                "n_prompt": tokens,
                "n_kept": kept,
                "kept_fraction": kept / tokens,
                **signals,
            }
        )

    def replays(self, cell: Cell) -> pl.DataFrame:
        """Return the replayed attention cells of the runs of an arm at a budget."""
        n, size = self.scenario.inputs, self.scenario.cells
        r = 2 * math.sin(math.pi / 6 * self.scenario.rank_correlation)
        error, rest = (self.normals(what, (cell.arm, cell.budget), size) for what in ("error", "radius"))
        # The radius exceeds the error with probability Phi(shift / sd of the difference of both logarithms).
        shift = math.sqrt(2 * (1 - r)) * float(special.ndtri(self.scenario.coverage))
        log_radius = shift + r * error + math.sqrt(1 - r**2) * rest
        radius = 0.05 * np.exp(log_radius.ravel())
        repeated = {
            name: np.repeat(value, size) if isinstance(value, np.ndarray) else value
            for name, value in self.keys.items()
        }
        return pl.DataFrame(
            {
                **repeated,
                "arm": cell.arm,
                "design": "poisson",
                "budget": cell.budget,
                "seed": 0,
                "layer": np.tile(np.arange(size), n),
                "head": 0,
                "step": 0,
                # The variance whose Gaussian bound alone would make the radius.
                "variance_estimate": radius**2 / (2 * math.log(1 / self.scenario.delta)),
                "radius": radius,
                "true_error": 0.05 * np.exp(error.ravel()),
                "delta": self.scenario.delta,
                "permutation": 0,
            }
        )
