"""The format: unknown keys, missing keys and wrong types are named with their line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kvstats.document import read_document
from kvstats.errors import InputError
from kvstats.prereg.schema import AtLeast, decode_registration

RUNS = "runs: [logs/*.jsonl]"
SHA = "\n  sha256: {a: abc}"
WHERE = "    where: budget = 0.5\n"
FULL = """\
study: needles
registered_at: 2026-11-29T20:00:00+01:00
authors: [A, B]
description: >
  What it is about.
data:
  runs: [logs/*.jsonl.gz, more/b.jsonl]
  sha256: {logs/a.jsonl.gz: %s}
  expected: {runs: 1234, inputs: 240, replays: 0}
exclusions: None.
stopping_rule: All inputs.
deviations:
  - {at: 2026-11-02T10:00:00Z, text: One input was run twice.}
design: {cluster: [suite], weight: w, level: 0.9, interval: linear, n_resamples: 500, seed: 3}
policies:
  - policy: gate
    arguments: {tau: 0.07, base: evict}
guards:
  - id: identity
    statement: All is well.
    estimator: delta
    arguments: {arm: evict}
    where: budget = 1.0
    by: task
    holds: estimate = 0
family: {method: holm, level: 0.1, claims: [c-1]}
claims:
  - id: c-1
    statement: It is so.
    estimator: delta
    arguments: {arm: evict}
    where: budget < 1
    by: [task]
    contrast: {condition: [stream, aware]}
    null: 0
    alternative: greater
    quantifier: {at_least: 2}
    supported: low > 0
    killed: high < 0
""" % ("a" * 64)


def decode(path):
    return decode_registration(read_document(path))


def test_every_field_is_read(register):
    registration = decode(register(base=FULL))
    assert registration.registered_at == datetime(2026, 11, 29, 20, tzinfo=timezone(timedelta(hours=1)))
    assert registration.description == "What it is about.\n"
    assert registration.data.sha256 == {"logs/a.jsonl.gz": "a" * 64}
    assert (registration.data.expected.runs, registration.data.expected.replays) == (1234, 0)
    (deviation,) = registration.deviations
    assert deviation.at == datetime(2026, 11, 2, 10, tzinfo=UTC)
    assert deviation.text == "One input was run twice."
    assert registration.design.cluster == ["suite"]
    assert registration.policies[0].arguments == {"tau": 0.07, "base": "evict"}
    assert registration.guards[0].holds == "estimate = 0"
    assert (registration.family.method, registration.family.level) == ("holm", 0.1)
    (claim,) = registration.claims
    assert claim.quantifier == AtLeast(2)
    assert claim.contrast == {"condition": ["stream", "aware"]}
    assert (claim.null, claim.alternative) == (0.0, "greater")


def test_optional_fields_have_defaults(register):
    registration = decode(register())
    assert registration.registered_at == datetime(2026, 10, 31, 12, tzinfo=UTC)
    assert (registration.family, registration.guards, registration.policies) == (None, [], [])
    (claim,) = registration.claims
    assert (claim.quantifier, claim.killed, claim.null, claim.alternative) == ("all", None, None, "two-sided")


@pytest.mark.parametrize(
    "text", ["2026-10-31 12:00:00Z", '"2026-10-31T12:00:00Z"', "2026-10-31T13:00:00+01:00"]
)
def test_times_quoted_or_not(register, text):
    registration = decode(register(("2026-10-31T12:00:00Z", text)))
    assert registration.registered_at == datetime(2026, 10, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("old", "new", "line", "fault"),
    [
        ("study:", "stdy:", 1, "the file has the unknown key 'stdy'; did you mean 'study'?"),
        ("study: toy\n", "", 1, "the file has no key 'study'; add it"),
        ("study: toy", "study: 7", 1, "study is 7: expected text, got a whole number; write text; a number"),
        ("study: toy", 'study: ""', 1, "study is '': expected text of length >= 1"),
        ("claims:\n", "claims: 3\nx:\n", 5, "claims is 3: expected a list, got a whole number"),
        ("claims:", "polices: []\nclaims:", 5, "has the unknown key 'polices'; did you mean 'policies'?"),
        ("registered_at: 2026-10-31T12:00:00Z\n", "", 1, "the file has no key 'registered_at'"),
        ("T12:00:00Z", "T12:00:00", 2, "expected a time with a timezone component; write a time with its"),
        ("T12:00:00Z", "", 2, "registered_at is the bare date 2026-10-31; quote it if it is text"),
        ("2026-10-31T12:00:00Z", "soon", 2, "registered_at is 'soon': expected a time; write a time with"),
        ("2026-10-31T12:00:00Z", "7", 2, "registered_at is 7: expected a time, got a whole number"),
        (RUNS, "runs: []", 4, "data.runs is a list: expected a list of length >= 1"),
        (RUNS, "runs: logs", 4, "data.runs is 'logs': expected a list, got text"),
        (RUNS, RUNS + SHA, 5, "data.sha256.a is 'abc': expected text of another form; write the 64 hexa"),
        (RUNS, RUNS + "\n  expected: {runs: 1.5}", 5, "data.expected.runs is 1.5: expected a whole number"),
        (RUNS, RUNS + "\n  expected: {run: 1}", 5, "data.expected has the unknown key 'run'; did you mean"),
        (
            "claims:",
            "design: {levl: 0.9}\nclaims:",
            5,
            "design has the unknown key 'levl'; did you mean 'lev",
        ),
        (
            "claims:",
            "design: {seed: '3'}\nclaims:",
            5,
            "design.seed is '3': expected a whole number, got text",
        ),
        ("claims:", "family: {method: bhh}\nclaims:", 5, "family.method is 'bhh', which is unknown; did you"),
        ("claims:", "family: {level: 1.0}\nclaims:", 5, "family.level is 1.0: expected a number < 1.0"),
        ("claims:", "policies: [{policy: x, tau: 1}]\nclaims:", 5, "policies[0] has the unknown key 'tau'"),
        ("id: harm", "id: 3", 6, "claims[0].id is 3: expected text, got a whole number"),
        ("id: harm", "id: a b", 6, "claims[0].id is 'a b': expected text of another form; an id has letters"),
        ("statement:", "statment:", 7, "claims[0] has the unknown key 'statment'; did you mean 'statement'?"),
        ("    supported: high < 0\n", "", 6, "claims[0] has no key 'supported'; add it"),
        ("{arm: evict}", "[evict]", 9, "claims[0].arguments is a list: expected a mapping, got a list"),
        (WHERE, "    where: 5\n", 10, "claims[0].where is 5: expected text, got a whole number"),
        (WHERE, "    where: no\n", 10, "claims[0].where is no, which YAML may read as a truth value"),
        (WHERE, "    by: [1]\n", 10, "claims[0].by[0] is 1: expected text"),
        (WHERE, "    by: {a: 1}\n", 10, "claims[0].by is a mapping: expected text or a list, got a mapping"),
        (WHERE, "    null: 5e-2\n", 10, "claims[0].null is 5e-2, which is a number in some versions of YAML"),
        (WHERE, "    null: '0'\n", 10, "claims[0].null is '0': expected a number, got text; write a number"),
        (WHERE, "    killed:\n", 10, "claims[0].killed is empty; give the value, or remove the key"),
        (
            WHERE,
            "    alternative: up\n",
            10,
            "claims[0].alternative is 'up', which is unknown; known: greater",
        ),
        (WHERE, "    quantifier: most\n", 10, "claims[0].quantifier is 'most', which is unknown; known: all"),
        (WHERE, "    quantifier: {at_least: 0}\n", 10, "at_least is 0: expected a whole number >= 1"),
        (WHERE, "    quantifier: {at_leest: 1}\n", 10, "claims[0].quantifier has the unknown key 'at_leest'"),
        (
            WHERE,
            "    contrast: {task: [a]}\n",
            10,
            "claims[0].contrast.task is a list: expected a list of len",
        ),
        (WHERE, WHERE + WHERE, 11, "has the key 'where' again, first on line 10; keep one of them"),
    ],
)
def test_faults_are_named_with_line_and_remedy(register, old, new, line, fault):
    with pytest.raises(InputError) as error:
        decode(register((old, new)))
    assert f"plan.yaml:{line}: " in str(error.value)
    assert fault in str(error.value)
    assert "`" not in str(error.value)
