"""The order of evidence: records from before the registration, and what rests on them."""

from __future__ import annotations

import hashlib
import itertools
import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from kvstats.prereg import amend, verify
from kvstats.prereg.plan import load_plan

REGISTERED = datetime(2026, 10, 31, 12, tzinfo=UTC)
EARLY, LATE = REGISTERED - timedelta(days=1), REGISTERED + timedelta(days=1)

PLAN = """\
study: toy
registered_at: 2026-10-31T12:00:00Z
data: {runs: [logs/*.jsonl]}
claims:
  - {id: harm, statement: a, estimator: delta, arguments: {arm: evict},
     where: "budget = 0.5 AND task = 'qa'", supported: high < 0, killed: low > 0}
  - {id: code, statement: b, estimator: delta, arguments: {arm: evict},
     where: "budget = 0.5 AND task = 'code'", supported: high < 0.5}
  - {id: coverage, statement: c, estimator: certificate_coverage, supported: low > 0.5}
  - {id: nobody, statement: d, estimator: delta, arguments: {arm: evict}, where: budget = 7,
     supported: low > 0}
"""


@pytest.fixture
def dated(write_log, toy_records):
    """Write the toy log with the times that a function of each record gives, None for no time."""

    def write(time_of, name="logs/a.jsonl", begun=EARLY):
        records = [
            record
            if not hasattr(record, "recorded_at")
            else msgspec.structs.replace(record, recorded_at=time_of(record))
            for record in toy_records
        ]
        path = write_log(records, name)
        first, rest = path.read_text().split("\n", 1)
        study = json.loads(first) | {"started_at": begun.isoformat()}
        path.write_text(json.dumps(study) + "\n" + rest)
        return path

    return write


def verdicts(report):
    return {claim.id: claim.verdict for claim in report.claims}


def early_pilot(record):
    return EARLY if record.task == "qa" and record.input_id == "i000" else LATE


def late(record):
    return LATE


@pytest.fixture
def plan(register):
    def write(evidence=None):
        text = "" if evidence is None else f"evidence: {evidence}\n"
        return register(base=PLAN.replace("claims:\n", f"{text}claims:\n"))

    return write


def test_records_after_the_registration_confirm(dated, plan):
    dated(late)
    report = verify(plan())
    assert verdicts(report) == {
        **dict.fromkeys(("harm", "code", "coverage"), "supported"),
        "nobody": "undefined",
    }
    (event,) = report.order.events
    # The replays have no time, and their file was begun before the registration.
    assert (event.what, event.before, event.after, event.unknown) == ("registration", 0, 100, 10)
    assert report.claims[0].evidence.before == report.claims[0].evidence.unknown == 0
    assert report.claims[2].evidence.unknown == 10


def test_a_claim_on_early_records_is_exploratory_and_shows_its_estimate(dated, plan):
    dated(early_pilot)
    report = verify(plan())
    assert verdicts(report) == {
        "harm": "exploratory",
        "code": "supported",
        "coverage": "exploratory",
        "nobody": "undefined",
    }
    claim = report.claims[0]
    assert claim.reason == (
        # One full-cache run, three of the evicting arm, and the input's record.
        "5 of its 50 records are from before its registration, the first of 2026-10-30T12:00:00Z; by its "
        "rules it would be supported: high < 0 holds"
    )
    assert claim.rows[0]["estimate"] == -0.4
    assert (claim.rows[0]["verdict"], claim.fired) == ("exploratory", "supported")
    assert (report.order.first_before, report.order.last_before) == ("2026-10-30T12:00:00Z",) * 2
    assert (report.exit_code, report.intact, report.data.runs) == (0, True, 80)


def test_only_records_of_arms_that_a_claim_names_count(dated, plan, register, toy_records, write_log):
    others = [
        msgspec.structs.replace(record, arm="other", recorded_at=EARLY)
        for record in toy_records
        if hasattr(record, "arm") and hasattr(record, "score") and record.arm == "evict"
    ]
    dated(late)
    path = write_log(others, "logs/b.jsonl")
    assert path.exists()
    assert verdicts(verify(plan()))["harm"] == "supported"
    whole = register(
        base=PLAN.replace("arguments: {arm: evict}, where: budget = 7", "arguments: {arm: other}")
    )
    assert verdicts(verify(whole))["nobody"] == "exploratory"


def test_a_virtual_arm_rests_on_the_arms_behind_it(dated, register):
    policy = """\
policies:
  - {policy: gate, arguments: {tau: 0.07, base: evict}}
claims:
"""
    text = PLAN.replace("claims:\n", policy).replace("{arm: evict}", "{arm: gate}", 1)
    dated(lambda record: EARLY if getattr(record, "arm", "") == "full" else LATE)
    report = verify(register(base=text))
    assert verdicts(report)["harm"] == "exploratory"
    assert report.claims[0].evidence.before == 10


def test_early_records_may_be_allowed(dated, plan):
    dated(early_pilot)
    report = verify(plan("{before_registration: allow}"))
    assert verdicts(report)["harm"] == "supported"
    assert report.claims[0].evidence.before == 5
    assert report.order.events[0].before == 5


def test_inputs_with_early_records_may_be_left_out(dated, plan):
    dated(early_pilot)
    path = plan("{before_registration: exclude}")
    report = verify(path)
    # Three harms of nine inputs are no evidence, four of ten were.
    assert verdicts(report)["harm"] == "inconclusive"
    assert (report.data.runs, report.data.inputs, report.data.replays) == (76, 19, 9)
    assert (report.order.inputs_left_out, report.claims[0].rows[0]["n"]) == (1, 9)
    assert report.claims[0].rows[0]["estimate"] == pytest.approx(-3 / 9)
    path.write_text(
        path.read_text().replace("{runs: [logs/*.jsonl]}", "{runs: [logs/*.jsonl], expected: {runs: 76}}")
    )
    assert verify(path).exit_code == 0
    names = [variant.name for variant in verify(path, sensitivity=True).claims[0].sensitivity]
    assert names[-1] == "no input left out for its time"
    kept = verify(path, sensitivity=True).claims[0].sensitivity[-1]
    assert (kept.verdict, kept.rows[0]["estimate"]) == ("supported", -0.4)


@pytest.mark.parametrize(
    ("begun", "rule", "verdict"),
    [
        (LATE, "exploratory", "supported"),
        (EARLY, "exploratory", "exploratory"),
        (EARLY, "allow", "supported"),
        (EARLY, "exclude", "undefined"),
    ],
)
def test_records_without_a_time_are_as_late_as_their_file(dated, plan, begun, rule, verdict):
    dated(lambda record: None, begun=begun)
    report = verify(plan(f"{{without_time: {rule}}}"))
    assert verdicts(report)["harm"] == verdict
    assert report.order.events[0].unknown == (0 if begun == LATE else 110)
    if verdict == "exploratory":
        assert report.claims[0].reason.startswith(
            "50 of its 50 records have no time; by its rules it would be"
        )


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (None, "have no time that shows them to be later than the amendment of 2026-11-02T12:00:00Z;"),
        (LATE, "are from before the amendment of 2026-11-02T12:00:00Z, the first of 2026-11-01T12:00:00Z;"),
    ],
)
def test_the_amendment_that_makes_a_claim_exploratory_is_named(dated, plan, time, words):
    dated(lambda record: time, begun=LATE)
    path = plan("{before_registration: allow, without_time: allow}")
    assert verdicts(verify(path))["harm"] == "supported"
    amend(path, "Why.", changes={"harm": {"supported": "high < 1"}}, at=LATE + timedelta(days=1))
    report = verify(path)
    assert verdicts(report)["harm"] == "exploratory"
    assert report.claim("harm").reason.startswith(f"50 of its 50 records {words}")


def test_each_file_is_listed_with_its_hash_and_times(dated, plan, register):
    path = dated(early_pilot)
    (file,) = verify(plan()).files
    assert file.name == "logs/a.jsonl"
    assert file.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (file.as_registered, file.runs, file.inputs, file.replays) == (None, 80, 20, 10)
    assert (file.begun, file.first, file.last) == (
        "2026-10-30T12:00:00Z",
        "2026-10-30T12:00:00Z",
        "2026-11-01T12:00:00Z",
    )
    assert (file.before_registration, file.without_time) == (5, 10)
    listed = PLAN.replace("[logs/*.jsonl]", f"[logs/*.jsonl], sha256: {{logs/a.jsonl: {file.sha256}}}")
    assert verify(register(base=listed)).files[0].as_registered is True


def test_a_file_that_is_added_later_is_an_integrity_failure(dated, register, write_log, make_records):
    path = dated(late)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    listed = register(
        base=PLAN.replace("[logs/*.jsonl]", f"[logs/*.jsonl], sha256: {{logs/a.jsonl: {digest}}}")
    )
    assert verify(listed).exit_code == 0
    write_log(make_records({"full": {1.0: [1.0]}}, task="added"), "logs/b.jsonl")
    report = verify(listed)
    assert report.integrity == ("logs/b.jsonl is among the data, but not registered",)
    assert [file.as_registered for file in report.files] == [True, False]
    assert (set(verdicts(report).values()), report.exit_code) == ({"invalid"}, 3)
    unhashed = verify(register(base=PLAN))
    assert [file.name for file in unhashed.files] == ["logs/a.jsonl", "logs/b.jsonl"]
    assert unhashed.exit_code == 0


def test_deviations_are_placed_among_the_records(dated, register):
    moment = REGISTERED + timedelta(hours=12)
    dated(lambda record: LATE if record.task == "qa" else moment)
    deviation = f"deviations:\n  - {{at: {(moment + timedelta(hours=1)).isoformat()}, text: x}}\nclaims:\n"
    first, second = verify(register(base=PLAN.replace("claims:\n", deviation))).order.events
    assert (first.before, second.what, second.before, second.after) == (0, "deviation 1", 50, 50)


def test_an_amended_claim_is_registered_when_it_was_amended(dated, plan):
    path = plan()
    dated(late)
    link = load_plan(path).chain.links[-1]
    path.write_text(
        path.read_text()
        + f"amendments:\n  - {{at: 2026-11-02T00:00:00Z, text: x, previous_sha256: {link}, "
        + "changes: {code: {supported: high < 0.4}}}\n"
    )
    report = verify(path)
    assert verdicts(report)["code"] == "exploratory"
    assert verdicts(report)["harm"] == "supported"
    assert report.claims[1].evidence.registered_at == "2026-11-02T00:00:00Z"


def test_duplicates_do_not_hide_that_records_are_early(dated, plan, toy_records, write_log):
    dated(early_pilot)
    again = [record for record in toy_records if hasattr(record, "score")][:1]
    write_log(again, "logs/b.jsonl")
    report = verify(plan())
    assert "share their key" in report.claims[0].reason
    assert verdicts(report) == {
        "harm": "undefined",
        "code": "undefined",
        "coverage": "exploratory",
        "nobody": "undefined",
    }
    assert report.audit[0].check == "duplicates"


def test_every_combination_of_rules_is_decided(dated, plan):
    dated(early_pilot)
    choices = ("exploratory", "exclude", "allow")
    for before, without in itertools.product(choices, choices):
        verdict = verdicts(verify(plan(f"{{before_registration: {before}, without_time: {without}}}")))[
            "harm"
        ]
        # A replay of each input of the task has no time, so that none is left. No replay rests on the arm.
        if without == "exclude":
            assert verdict == "undefined"
        else:
            told = {"exploratory": "exploratory", "exclude": "inconclusive", "allow": "supported"}
            assert verdict == told[before]


@pytest.mark.parametrize(("minutes", "future"), [(5, False), (60, True)])
def test_a_record_of_the_future_is_an_integrity_failure(dated, plan, minutes, future):
    moment = datetime.now(UTC) + timedelta(minutes=minutes)
    dated(lambda record: moment if record.input_id == "i003" else LATE)
    report = verify(plan())
    time = moment.isoformat().replace("+00:00", "Z")
    expected = (f"logs/a.jsonl has records of {time}, which lies in the future",) if future else ()
    assert report.integrity == expected
    assert (report.exit_code, verdicts(report)["harm"]) == ((3, "invalid") if future else (0, "supported"))


def test_a_file_that_was_begun_in_the_future_is_an_integrity_failure(dated, plan):
    begun = datetime.now(UTC) + timedelta(days=1)
    dated(late, begun=begun)
    (finding,) = verify(plan()).integrity
    assert finding.startswith("logs/a.jsonl was begun at ")


def test_a_refused_claim_among_early_records_is_undefined_and_nothing_more(dated, register):
    dated(early_pilot)
    text = PLAN.replace("where: budget = 7", "where: task ~ '(('")
    report = verify(register(base=text))
    assert verdicts(report) == {
        **dict.fromkeys(("harm", "coverage"), "exploratory"),
        "code": "supported",
        "nobody": "undefined",
    }
    assert (report.claims[3].evidence, report.exit_code) == (None, 2)
