"""The log contract: one JSON object a line, its field ``record`` names its kind.

Four kinds of record make a log. A file begins with one `StudyRecord`; then follow, in any order, an
`InputRecord` for each prefilled input, a `RunRecord` for each scored generation and a `ReplayRecord` for
each attention cell whose certificate was held against the truth. Fields that the contract does not know
are kept under ``extra``. What is undefined is null; NaN and infinities are not JSON and are refused, with
one declared exception: readers accept ``-Infinity`` for the signal ``logprob``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

__all__ = [
    "INPUT_KEY",
    "RECORD_TYPES",
    "REPLAY_KEY",
    "RUN_KEY",
    "SCHEMA_VERSION",
    "InputRecord",
    "Record",
    "ReplayRecord",
    "RunRecord",
    "StudyRecord",
    "log_schema",
]

SCHEMA_VERSION = 1

Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Budget = Annotated[float, Meta(gt=0.0, le=1.0)]
Name = Annotated[str, Meta(min_length=1)]
Time = Annotated[datetime, Meta(tz=True)]

INPUT_KEY = ("suite", "model", "task", "input_id", "condition")
"""What identifies a prefilled input; a run shares it with its full-cache twin."""

RUN_KEY = (*INPUT_KEY, "arm", "budget", "budget_tokens", "seed")
"""What identifies a scored generation; two runs with the same key are duplicates."""


REPLAY_KEY = (
    *INPUT_KEY,
    *("arm", "design", "budget", "seed", "layer", "head", "step", "delta", "permutation"),
)
"""What identifies an attention cell; two replays with the same key are duplicates."""


class StudyRecord(msgspec.Struct, kw_only=True, tag_field="record", tag="study", forbid_unknown_fields=True):
    """How a file of logs was made: its first line.

    Attributes
    ----------
    schema_version : int
        Version of this contract, `SCHEMA_VERSION`.
    suite : str
        Name of the set of tasks and inputs.
    model, model_revision : str
        Name as given to the collector, and the hash or commit of the weights (null when unknown).
    dtype, attention : str
        Floating-point type of the weights and name of the attention implementation.
    versions : dict of str to str
        Versions of Python and of the libraries that shape the numbers.
    host : str
        Kind of machine: processor architecture and accelerator, never a host name.
    settings : dict
        Everything else that the collector was told: evictors, budgets, lengths, window, thresholds.
    template_hash : str
        SHA-256 of the prompt templates.
    started_at : datetime
        When the file was begun, with its time zone.
    git_revision : str
        Commit of the collecting code, null outside a checkout.
    extra : dict
        Fields of the line that the contract does not know.

    Examples
    --------
    >>> from datetime import UTC
    >>> StudyRecord(schema_version=1, suite="s", model="m", dtype="float32", attention="sdpa", versions={},
    ...     host="x86_64", settings={}, template_hash="0", started_at=datetime(2026, 1, 1, tzinfo=UTC)).suite
    's'
    """

    schema_version: Whole
    suite: Name
    model: Name
    dtype: str
    attention: str
    versions: dict[str, str]
    host: str
    settings: dict[str, Any]
    template_hash: str
    started_at: Time
    model_revision: str | None = None
    git_revision: str | None = None
    extra: dict[str, Any] = {}


class InputRecord(msgspec.Struct, kw_only=True, tag_field="record", tag="input", forbid_unknown_fields=True):
    """One prefilled input and what its prefill attention showed.

    Attributes
    ----------
    suite, model, task, input_id, condition : str
        The key. `input_id` is text, never a number. `condition` says where the question stood at
        eviction: ``aware`` (before it) or ``stream`` (after it); null when a log knows only one.
    context_tokens : int
        Tokens that were prefilled and could be evicted.
    prompt_hash : str
        SHA-256 of the token ids of the whole prompt.
    agreement_window, agreement_top_k, agreement_bin_layers : int
        Parameters of the head agreement: queries averaged, keys per head, layers in each bin.
    head_agreement_per_layer : list of float, length L
        Mean pairwise Jaccard index of the heads' top-k key sets, in [0, 1], by layer.
    drop : float
        D, the mean agreement of the early bin minus that of the late bin, in [-1, 1].
    head_agreement_interior_per_layer, drop_interior
        The same with the protected sinks and most recent positions left out.
    head_agreement_per_pair : list of list of float, shape [L][H(H - 1)/2]
        The Jaccard index of each pair of heads, by layer; the pairs in the order (0, 1), (0, 2), ...,
        (1, 2), ....
    signals : dict of str to float
        Other prefill signals, by name; null where undefined.
    recorded_at : datetime
        When the record was written.
    extra : dict
        Fields of the line that the contract does not know.

    Examples
    --------
    >>> InputRecord(suite="s", model="m", task="t", input_id="1", drop=0.05).drop
    0.05
    """

    suite: Name
    model: Name
    task: Name
    input_id: Name
    condition: str | None = None
    context_tokens: Count | None = None
    prompt_hash: str | None = None
    agreement_window: Count | None = None
    agreement_top_k: Count | None = None
    agreement_bin_layers: Count | None = None
    head_agreement_per_layer: list[float] | None = None
    drop: float | None = None
    head_agreement_interior_per_layer: list[float] | None = None
    drop_interior: float | None = None
    head_agreement_per_pair: list[list[float]] | None = None
    signals: dict[str, float | None] = {}
    recorded_at: Time | None = None
    extra: dict[str, Any] = {}


class RunRecord(msgspec.Struct, kw_only=True, tag_field="record", tag="run", forbid_unknown_fields=True):
    """One scored generation.

    Attributes
    ----------
    suite, model, task, input_id, condition : str
        The key of the input.
    arm : str
        How the cache was compressed; ``full`` is the uncompressed cache.
    budget : float
        Fraction of the cache that was to be KEPT, in (0, 1]; null when only `budget_tokens` is known.
    budget_tokens : int
        The budget in tokens, when it was given so.
    seed : int
        Which draw of a random arm; 0 for arms without chance.
    score : float
        The task's score, higher is better; null when the run failed or was not scored.
    success : bool
        Whether the score reached the task's threshold.
    n_prompt, n_kept : int
        Tokens in the evictable cache, and how many of them were kept.
    kept_fraction : float
        Fraction kept as measured, averaged over layers and heads.
    gate_open : bool
        For an arm that decides by a gate whether to evict: whether it did; null for other arms.
    signals : dict of str to float
        Signals of the run by name (``certificate``, ``retained_entropy``, ``evicted_mass``, ``margin``,
        ``logprob``, and any other); null where undefined.
    certificate_per_head : list of list of float, shape [L][H]
        The certificate of each layer and sampled head.
    prediction, references : str, list of str
        What was generated and what was looked for.
    seconds, memory_bytes : dict of str to float, dict of str to int
        Time of each phase in seconds, and memory in bytes.
    error : str
        Why the run has no score, null when it has one.
    recorded_at : datetime
        When the record was written.
    extra : dict
        Fields of the line that the contract does not know.

    Examples
    --------
    >>> RunRecord(suite="s", model="m", task="t", input_id="1", arm="full", budget=1.0, score=1.0).seed
    0
    """

    suite: Name
    model: Name
    task: Name
    input_id: Name
    arm: Name
    condition: str | None = None
    budget: Budget | None = None
    budget_tokens: Count | None = None
    seed: Whole = 0
    score: float | None = None
    success: bool | None = None
    n_prompt: Count | None = None
    n_kept: Count | None = None
    kept_fraction: Share | None = None
    gate_open: bool | None = None
    signals: dict[str, float | None] = {}
    certificate_per_head: list[list[float]] | None = None
    prediction: str | None = None
    references: list[str] | None = None
    seconds: dict[str, float] = {}
    memory_bytes: dict[str, int] = {}
    error: str | None = None
    recorded_at: Time | None = None
    extra: dict[str, Any] = {}


class ReplayRecord(
    msgspec.Struct, kw_only=True, tag_field="record", tag="replay", forbid_unknown_fields=True
):
    """One attention cell: the certificate of one read held against its true error.

    Attributes
    ----------
    suite, model, task, input_id, condition, arm, budget, seed
        The key of the run.
    design : str
        How the kept tail was chosen and read: ``poisson``, ``poisson_without_offset``, ``deterministic``, ...
    layer, head, step : int
        The cell: layer, query head, and decode step of the query.
    variance_estimate : float
        Estimated variance of the attention output, in squared units of the values; null without a design.
    radius : float
        Certified error relative to the norm of the estimated output; null where nothing is certified.
    true_error : float
        Norm of estimated minus full attention output, relative to the norm of the estimated output.
    delta : float
        Nominal failure probability of the radius, in (0, 1); null without a radius.
    permutation : int
        Which permutation of the evicted values among themselves; 0 is their true order. What is retained is
        the same in all of them.
    retained_hash : str
        SHA-256 of what is retained and computed from it: kept weights and values, estimate and radius.
    extra : dict
        Fields of the line that the contract does not know.

    Examples
    --------
    >>> ReplayRecord(suite="s", model="m", task="t", input_id="1", arm="poisson", design="poisson",
    ...     budget=0.5, layer=0, head=0, step=0, variance_estimate=0.01, radius=0.3, true_error=0.1,
    ...     delta=0.1).permutation
    0
    """

    suite: Name
    model: Name
    task: Name
    input_id: Name
    arm: Name
    design: Name
    budget: Budget
    layer: Count
    head: Count
    step: Count
    variance_estimate: float | None
    radius: float | None
    true_error: float | None
    delta: Share | None
    condition: str | None = None
    seed: Whole = 0
    permutation: Count = 0
    retained_hash: str | None = None
    extra: dict[str, Any] = {}


Record = StudyRecord | InputRecord | RunRecord | ReplayRecord
RECORD_TYPES: dict[str, type[StudyRecord] | type[InputRecord] | type[RunRecord] | type[ReplayRecord]] = {
    "study": StudyRecord,
    "input": InputRecord,
    "run": RunRecord,
    "replay": ReplayRecord,
}


def log_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of a log.

    Returns
    -------
    dict
        JSON Schema (draft 2020-12) of the union of the four records, with the contract's version under
        ``$comment``.

    Examples
    --------
    >>> sorted(log_schema()["$defs"])
    ['InputRecord', 'ReplayRecord', 'RunRecord', 'StudyRecord']
    """
    schema = msgspec.json.schema(Record)
    for record in schema["$defs"].values():
        record["description"] = record["description"].partition("\n\nExamples\n")[0]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": f"kvstats log contract, version {SCHEMA_VERSION}",
        **schema,
    }
