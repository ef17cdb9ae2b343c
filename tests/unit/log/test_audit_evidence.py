"""Checks against a reference log, a registration, and the names and folders of files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from kvstats.errors import InputError
from kvstats.log import InputRecord, LogWriter, RunRecord, log_from_records, read_log
from kvstats.log.audit import audit_log
from kvstats.log.audits.names import bad_names, numbered_twins, stubs

KEY = {"suite": "s", "model": "m", "task": "qa"}
MOMENT = datetime(2026, 11, 2, tzinfo=UTC)
QUIET = ("no study record", "one cluster")


def findings(records, **options):
    found = audit_log(log_from_records(records), **options).findings
    return {item.check: item for item in found if item.check not in QUIET}


def prefilled(tokens=0, moved=0.0, flips=0, start="aa"):
    """400 inputs with a gated run, all of them with so many more tokens and so much more D."""
    records = []
    for number in range(400):
        key = KEY | {"input_id": f"{number:03}"}
        length = 500 + number + tokens
        records += [
            InputRecord(
                **key,
                context_tokens=length,
                prompt_hash=start + key["input_id"],
                drop=0.07 + number / 1000 + moved,
            ),
            RunRecord(
                **key,
                arm="full",
                budget=1.0,
                score=1.0,
                n_prompt=length,
                gate_open=number >= flips,
                n_kept=length,
            ),
        ]
    return records


def test_a_second_first_token_is_found_by_the_reference():
    """It moved D by 0.011 and flipped 18 of 400 gate calls."""
    reference = log_from_records(prefilled())
    assert findings(prefilled(), reference=reference) == {}
    found = audit_log(log_from_records(prefilled(1, 0.011, 18, "bb")), reference=reference).findings
    told = [
        (item.check, item.severity, item.count, item.message) for item in found if item.check not in QUIET
    ]
    assert told == [
        ("prompt length drift", "error", 400, "prompt length is not the reference's in 400 inputs of 400"),
        ("prompt drift", "error", 400, "prompt is not the reference's in 400 inputs of 400"),
        (
            "prompt length drift",
            "error",
            400,
            "prompt length of the run is not the reference's in 400 runs of 400",
        ),
        (
            *("D drift", "warning", 400),
            "drop is not the reference's in 400 inputs of 400, by 0.011 on average and 0.011 at most",
        ),
        ("gate flips", "warning", 18, "gate of the run is not the reference's in 18 runs of 400"),
    ]
    assert found[0].examples[0] == "input_id=000: 500 there, 501 here"
    assert len(found[0].examples) == 3


def test_a_reference_of_other_inputs_shows_nothing_and_says_so(make_log):
    found = findings(prefilled(), reference=make_log({"full": {1.0: [1.0]}}))
    assert set(found) == {"no common input"}
    assert (found["no common input"].severity, found["no common input"].count) == ("warning", 400)


def test_duplicates_do_not_hide_drift():
    records = prefilled(1)
    found = findings([*records, records[1]], reference=log_from_records(prefilled()))
    assert set(found) == {"duplicates", "prompt length drift"}


def dated(*times):
    return [
        RunRecord(**KEY, input_id=str(number), arm="full", budget=1.0, score=1.0, recorded_at=time)
        for number, time in enumerate(times)
    ]


def test_records_from_before_the_registration():
    early, late = MOMENT - timedelta(microseconds=1), MOMENT
    found = findings(dated(early, late, late), registered=MOMENT)
    assert set(found) == {"older than the registration"}
    assert (found["older than the registration"].severity, found["older than the registration"].count) == (
        "error",
        1,
    )
    assert found["older than the registration"].examples == ("suite=s, model=m, task=qa, input_id=0",)
    assert findings(dated(late, late), registered=MOMENT) == {}
    assert findings(dated(early, early)) == {}


def test_records_without_a_time(study):
    found = findings(dated(None, MOMENT), registered=MOMENT)
    assert (found["no time"].severity, found["no time"].count) == ("note", 1)
    later = msgspec.structs.replace(study, started_at=MOMENT)
    assert findings([later, *dated(None, MOMENT)], registered=MOMENT) == {}
    earlier = msgspec.structs.replace(study, started_at=MOMENT - timedelta(seconds=1))
    assert "no time" in findings([earlier, *dated(None, MOMENT)], registered=MOMENT)


@pytest.mark.parametrize("time", [datetime(2026, 11, 2), "2026-11-02"])
def test_a_time_without_a_zone_is_refused(time):
    with pytest.raises(InputError, match=r"audit: registered=.* is no time with a zone; pass one in UTC"):
        log_from_records([]).audit(registered=time)


@pytest.mark.parametrize(
    ("path", "bad"),
    [
        ("results/4k_INVALID/a.jsonl", True),
        ("INVALID_16k/a.jsonl", True),
        ("runs/a.partial.jsonl", True),
        ("runs/partial-2/a.jsonl", True),
        ("runs/impartial/a.jsonl", False),
        ("runs/partially_kept/a.jsonl", False),
        ("runs/validated/a.jsonl", False),
        ("runs/a.jsonl", False),
    ],
)
def test_files_that_were_set_aside_are_told_by_their_names(path, bad):
    found = list(bad_names([path, "other.jsonl"]))
    assert [item.examples for item in found] == ([(path,)] if bad else [])


@pytest.mark.parametrize(
    ("paths", "twins"),
    [
        (["ruler__snapkv__0.50/p.csv", "ruler__snapkv__0.50__1/p.csv"], ("ruler__snapkv__0.50__1",)),
        (["a.jsonl", "a (1).jsonl"], ("a (1)",)),
        (["a.jsonl.gz", "a_v2.jsonl"], ("a_v2",)),
        (["r/a.jsonl", "r/a-copy.jsonl"], ("r/a-copy",)),
        (["r/a.jsonl", "q/a_2.jsonl"], ()),
        (["niah_single_1.jsonl", "niah_single_2.jsonl"], ()),
        (["gated_4k.jsonl", "gated_16k.jsonl"], ()),
        (["a__0.25/p.csv", "a__0.50/p.csv", "a__0.875/p.csv"], ()),
        (["a.jsonl", "a_512.jsonl"], ()),
    ],
)
def test_a_number_after_the_name_of_another(paths, twins):
    found = list(numbered_twins(paths))
    assert [text.split(" beside ")[0] for item in found for text in item.examples] == list(twins)


def test_a_stub_beside_a_large_file_of_nearly_the_same_name():
    """A nine-row stub shifted a published table when it was pooled."""
    (found,) = stubs({"r/gated_4k_qwen15b.jsonl": 3600, "r/gated_4k_qwen15.jsonl": 9, "r/other.jsonl": 40})
    assert (found.check, found.severity, found.count) == ("stub beside a large file", "warning", 1)
    assert found.examples == ("r/gated_4k_qwen15.jsonl has 9 records, r/gated_4k_qwen15b.jsonl has 3,600",)
    assert list(stubs({"r/gated_4k_qwen15b.jsonl": 180, "r/gated_4k_qwen15.jsonl": 9})) == []
    assert len(list(stubs({"r/gated_4k_qwen15b.jsonl": 181, "r/gated_4k_qwen15.jsonl": 9}))) == 1
    assert list(stubs({"r/gated_4k.jsonl": 3600, "q/gated_4k_.jsonl": 9})) == []
    assert list(stubs({"r/trec.jsonl": 3600, "r/hotpotqa.jsonl": 9})) == []


def kvpress_like(folder, config="press_name: snap\n", metrics="{}", rows=True):
    folder.mkdir(parents=True)
    for name, text in (
        ("config.yaml", config),
        ("metrics.json", metrics),
        ("predictions.csv", "x\n" if rows else None),
    ):
        if text is not None:
            (folder / name).write_text(text)


def test_folders_are_looked_through(tmp_path):
    """A killed run without its configuration, a numbered twin, a score of no samples."""
    kvpress_like(tmp_path / "r" / "snap__0.50")
    kvpress_like(tmp_path / "r" / "snap__0.50__1", config=None)
    kvpress_like(tmp_path / "r" / "broken", config="[")
    kvpress_like(tmp_path / "r" / "screen", metrics='{"qa": {"string_match": 98.5}}', rows=False)
    kvpress_like(tmp_path / "r" / "INVALID", metrics='{"qa": {"num_samples": 0, "accuracy": 0.05}}')
    kvpress_like(tmp_path / "r" / "unscored", metrics=None)
    kvpress_like(tmp_path / "r" / "torn", metrics="{")
    found = findings([], folders=[tmp_path / "r"])
    assert {check: (item.severity, item.count) for check, item in found.items()} == {
        "name of a bad file": ("warning", 2),
        "numbered twin": ("warning", 1),
        "config missing": ("warning", 1),
        "config unreadable": ("warning", 1),
        "scores of no samples": ("warning", 1),
        "scores unreadable": ("warning", 1),
        "scores missing": ("note", 1),
        "aggregates only": ("note", 1),
    }
    (example,) = found["config missing"].examples
    assert example.startswith(f"{tmp_path / 'r' / 'snap__0.50__1'}: has no config.yaml")
    (example,) = found["scores of no samples"].examples
    assert example.endswith("metrics.json: qa: accuracy is 0.05, of num_samples=0")
    assert findings([]) == {}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("score.json", '{"samples": 0, "accuracy": 0.05}', True),
        ("results_4k.json", '{"samples": 0, "accuracy": 0.05}', True),
        ("resultset.json", '{"samples": 0, "accuracy": 0.05}', False),
        ("score.json", '{"samples": 0, "accuracy": 0.0}', False),
        ("score.json", '{"samples": 3, "accuracy": 0.05}', False),
        ("score.json", '{"samples": 0, "tasks": {"accuracy": 0.5}}', False),
        ("score.json", "{", False),
        ("score.json", "[1]", False),
        ("score.json", "[" * 100_000, False),
    ],
)
def test_only_a_score_above_zero_of_no_samples_contradicts(tmp_path, name, text, told):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / name).write_text(text)
    assert ("scores of no samples" in findings([], folders=[tmp_path / "r"])) == told


def test_the_folders_of_files_that_were_read_are_looked_at(tmp_path, study):
    folder = tmp_path / "partial"
    folder.mkdir()
    for name, size in (("runs_all.jsonl", 60), ("runs_al.jsonl", 1)):
        with LogWriter(folder / name, study) as writer:
            writer.append(
                [
                    RunRecord(**KEY, input_id=f"{name}{number}", arm="full", score=1.0)
                    for number in range(size)
                ]
            )
    (folder / "score.json").write_text('{"samples": 0, "accuracy": 0.1}')
    checks = {item.check for item in read_log(str(folder / "*.jsonl")).audit().findings}
    assert checks >= {"name of a bad file", "stub beside a large file", "scores of no samples"}
