"""Manifests of PRML 0.1: the published test vectors, strict reading, and exchange in both directions."""

import hashlib
import random
from datetime import UTC, datetime

import pytest
import yaml

from kvstats.errors import InputError
from kvstats.prereg import verify
from kvstats.prereg.plan import load_plan
from kvstats.prereg.prml import canonical_bytes, read_manifest
from kvstats.prereg.prml_exchange import claim_uuid, decimal, export_claim, import_manifest

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
UUID = "01900000-0000-7000-8000-00000000000"
FIRST_HASH = "1a3466cc08ee7fb60a726ea1c4db6ecf48a9f847b9b7523bfb54b2ffaefee546"
FIRST = {
    "version": "prml/0.1",
    "claim_id": f"{UUID}0",
    "created_at": "2026-05-01T12:00:00Z",
    "metric": "accuracy",
    "comparator": ">=",
    "threshold": 0.85,
    "dataset": {"id": "imagenet-val-2012", "hash": EMPTY},
    "seed": 42,
    "producer": {"id": "studio-11.co"},
}
ZEROS = {"id": "test-dataset", "hash": "0" * 64}
VECTORS = {
    # The published test vectors (PRML 0.1, of 2026-05-01): what differs from the first, and the hash. The
    # second has the first's keys in another order.
    "TV-001": ({}, FIRST_HASH),
    "TV-003": ({"threshold": 0.86}, "b96b5b8d613e29d8c28c1cf91c03821b02224c41188c6128743fa2d55639d4bb"),
    "TV-004": (
        {
            "claim_id": f"{UUID}1",
            "created_at": "2026-06-15T09:30:00Z",
            "metric": "f1",
            "threshold": 0.78,
            "dataset": {
                "id": "glue-mrpc",
                "hash": "9b9a7c5e7d6c5f4e3d2c1b0a9f8e7d6c5b4a3928171615141312111009080706",
                "uri": "https://gluebenchmark.com/tasks/mrpc",
            },
            "model": {
                "id": "bert-base-uncased",
                "hash": "1f3c8a9d2b4e5c6f7a8b9c0d1e2f3a4b5c6d7e8f9a0b1c2d3e4f5a6b7c8d9e0f",
            },
            "seed": 1337,
        },
        "609308e259dc3e75909b6c81a6bf0230a34a0b9af6726e46675a66817a80d304",
    ),
    "TV-005": (
        {"claim_id": f"{UUID}2", "producer": {"id": "üniversite.edu.tr"}},
        "6cf48a868f8f2fec59647d4b8327a27aba7dc219c14ab799ad85398a5aa9e1b6",
    ),
    "TV-006": (
        {
            "claim_id": f"{UUID}3",
            "threshold": 0.5,
            "dataset": ZEROS,
            "seed": 2**64 - 1,
            "producer": {"id": "edge.example"},
        },
        "57c71c567e0c4d86c691e311634730cd1ff0c65308f3a917d62d89d36d31c81d",
    ),
    "TV-007": (
        {
            "claim_id": f"{UUID}4",
            "threshold": 0.5,
            "dataset": ZEROS,
            "seed": 0,
            "producer": {"id": "edge.example"},
        },
        "766d6ca6ee06b619bf4e49f586eff0e979adcd034abae31d2c52b93d00ef7b92",
    ),
    "TV-008": (
        {
            "claim_id": f"{UUID}5",
            "metric": "exact_match",
            "comparator": "==",
            "threshold": 1.0,
            "dataset": {"id": "synth-100", "hash": "abcdef0123456789" * 4},
            "seed": 7,
        },
        "fc2bf632dfb10bac8cf88b0c0756af2b53175c9b3078ae34aaf6ce63102c1b56",
    ),
    "TV-009": (
        {
            "claim_id": f"{UUID}6",
            "created_at": "2026-05-15T14:00:00Z",
            "threshold": 0.87,
            "prior_hash": FIRST_HASH,
            "notes": "Threshold raised after dataset re-curation found 12 mislabeled examples.",
        },
        "29c60f7ccfb1f12777127785be25e3b2ca121b9b85b020f7bbd8e89a65ff1a04",
    ),
    "TV-010": (
        {
            "claim_id": f"{UUID}7",
            "created_at": "2026-07-01T08:00:00Z",
            "metric": "pass@1",
            "threshold": 0.65,
            "dataset": {
                "id": "humaneval",
                "hash": "fedcba9876543210" * 4,
                "uri": "https://github.com/openai/human-eval",
            },
            "model": {"id": "claude-opus-4-7", "hash": "1234567890abcdef" * 4},
            "seed": 314159,
            "producer": {"id": "anthropic.com"},
        },
        "60f8eb35dd21c364811549b8a45ea50dc70a01ef7210cfcc43b6aa9915fc88c6",
    ),
    "TV-011": (
        {
            "claim_id": f"{UUID}8",
            "created_at": "2026-08-12T10:00:00Z",
            "metric": "auroc",
            "comparator": ">",
            "threshold": 0.55,
            "dataset": {"id": "chestx-ray-14", "hash": "10" * 32},
            "seed": 2718,
            "producer": {"id": "research-hospital.example"},
        },
        "91104f15ee95b7a61869e30bd1539abfd718652288daa6bb7418337a8ffc32de",
    ),
    "TV-012": (
        {
            "claim_id": f"{UUID}9",
            "created_at": "2026-09-01T15:00:00Z",
            "metric": "mae",
            "comparator": "<=",
            "threshold": 2.5,
            "dataset": {
                "id": "boston-housing",
                "hash": "9999888877776666555544443333222211110000aaaaffffeeeeddddccccbbbb",
            },
            "seed": 1,
        },
        "ec1d18427451f0bd7886c6ac4027f07a779f899035c27ea52cb2765212866424",
    ),
    "TV-013": (
        {
            "claim_id": f"{UUID}a",
            "created_at": "2026-06-01T12:00:00Z",
            "metric": "accuracy_pct",
            "threshold": 90,
            "dataset": {"id": "eval-2k", "hash": "abcd1234" * 8 + "a"},
            "producer": {"id": "falsify.dev"},
        },
        "08c3af639228e49d42fc49c47ccce7acdfef6a34398628c3ce5b2faff3f399a5",
    ),
}

CLAIM = """\
study: toy
registered_at: 2026-10-31T14:00:00+02:00
data: {runs: [logs/a.jsonl], sha256: {logs/a.jsonl: HASH}}
design: {seed: 7}
evidence: {without_time: exclude, before_registration: allow}
policies:
  - policy: gate
    arguments: {tau: 0.03, base: evict, name: gated}
claims:
  - id: gain
    statement: "The gate gains: it never loses."
    estimator: delta
    arguments: {arm: gated, baseline: evict}
    where: budget < 1 AND task <> 'it''s'
    by: [task, budget]
    quantifier: {at_least: 2}
    supported: low > -0.05
    killed: high < 0.0
"""


@pytest.fixture
def manifest(tmp_path):
    """Write a manifest: the first test vector with other fields, or text."""

    def write(fields=None, text=None):
        path = tmp_path / "claim.prml.yaml"
        changed = {**FIRST, **(fields or {})}
        kept = {name: value for name, value in changed.items() if value is not None}
        path.write_text(text or yaml.safe_dump(kept, sort_keys=False, allow_unicode=True), "utf-8")
        return path

    return write


@pytest.mark.parametrize("name", VECTORS)
def test_published_vectors(name, manifest):
    changed, expected = VECTORS[name]
    fields = {**FIRST, **changed}
    assert hashlib.sha256(canonical_bytes(fields)).hexdigest() == expected
    if name == "TV-013":
        # Its dataset hash is printed with 65 digits, which the format itself refuses.
        with pytest.raises(InputError, match=r"dataset\.hash is .*; write the 64 hexadecimal digits"):
            read_manifest(manifest(changed))
        changed = {**changed, "dataset": ZEROS}
        expected = hashlib.sha256(canonical_bytes({**fields, "dataset": ZEROS})).hexdigest()
    assert read_manifest(manifest(changed)).sha256 == expected


def test_the_order_of_keys_does_not_matter_and_a_changed_threshold_does():
    # The second published vector is the first with its keys in another order.
    items = list(FIRST.items())
    for seed in range(5):
        random.Random(seed).shuffle(items)
        shuffled = {**dict(items), "dataset": dict(reversed(FIRST["dataset"].items()))}
        assert hashlib.sha256(canonical_bytes(shuffled)).hexdigest() == FIRST_HASH
    assert VECTORS["TV-003"][1] != FIRST_HASH == VECTORS["TV-009"][0]["prior_hash"]


def test_the_printed_canonical_form():
    assert canonical_bytes(FIRST).decode() == (
        f"claim_id: {UUID}0\ncomparator: '>='\ncreated_at: '2026-05-01T12:00:00Z'\n"
        f"dataset:\n  hash: {EMPTY}\n  id: imagenet-val-2012\nmetric: accuracy\n"
        "producer:\n  id: studio-11.co\nseed: 42\nthreshold: 0.85\nversion: prml/0.1\n"
    )


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"version": "prml/0.2"}, r"version is 'prml/0\.2', which is unknown"),
        ({"claim_id": "01900000-0000-4000-8000-000000000000"}, "claim_id is .* write a UUID of version 7"),
        ({"created_at": "yesterday"}, "created_at is 'yesterday'.*; write a time such as"),
        ({"comparator": "!="}, "comparator is '!=', which is unknown"),
        ({"threshold": "high"}, "threshold is 'high': expected a number"),
        ({"seed": -1}, "seed is -1: expected a whole number >= 0"),
        ({"seed": 2**64}, "seed is 18446744073709551616, which is too large for a number"),
        ({"seed": 1.5}, r"seed is 1\.5"),
        ({"dataset": {"id": "a"}}, "dataset has no key 'hash'; add it"),
        ({"dataset": {"id": "a", "hash": "A" * 64}}, "dataset.hash is .* in lower case"),
        ({"producer": {}}, "producer has no key 'id'"),
        ({"producer": {"id": "a", "name": "b"}}, "producer has the unknown key 'name'"),
        ({"treshold": 1}, "the file has the unknown key 'treshold'; did you mean 'threshold'?"),
        ({"notes": "n" * 4097}, "notes is 'n.*length"),
        ({"metric": "m" * 257}, "metric is 'm.*length"),
        ({"metric": None}, "the file has no key 'metric'; add it"),
        ({"notes": "O\u0308zturk"}, "notes is not in Unicode's form NFC; normalise it"),
        ({"notes": "a\nb"}, r"notes has the character '\\n'; remove it"),
        ({"metric_args": {"a": ["x", "a\u2028b"]}}, r"metric_args\.a\[1\] has the character '\\u2028'"),
    ],
)
def test_what_is_no_manifest_is_refused(manifest, fields, fault):
    with pytest.raises(InputError, match=rf"claim\.prml\.yaml:[0-9]+: {fault}"):
        read_manifest(manifest(fields))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("version: prml/0.1\nversion: prml/0.1\n", ":2: has the key 'version' again"),
        ("a: &x 1\n", ":1: has an anchor"),
        ("threshold: .inf\n", ":1: threshold is .inf"),
        ("threshold: 5e-2\n", ":1: threshold is 5e-2, which is a number in some versions of YAML"),
        ("metric: yes\n", ":1: metric is yes, which YAML may read as a truth value"),
    ],
)
def test_reading_is_strict(manifest, text, fault):
    with pytest.raises(InputError) as error:
        read_manifest(manifest(text=text))
    assert fault in str(error.value)


@pytest.fixture
def registered(tmp_path, toy):
    """Write a registration of one claim about the toy log, with its hash."""

    def write(*replacements):
        text = CLAIM.replace("HASH", hashlib.sha256(toy.read_bytes()).hexdigest())
        for old, new in replacements:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        path = tmp_path / "plan.yaml"
        path.write_text(text)
        return path

    return write


def test_a_claim_goes_out_and_comes_back(registered, tmp_path):
    path = registered()
    sent = export_claim(path, "gain", producer="example.org")
    assert sent == export_claim(path, "gain", producer="example.org")
    file = tmp_path / "gain.prml.yaml"
    file.write_bytes(sent)
    manifest = read_manifest(file)
    assert manifest.canonical == sent
    fields, plan = manifest.fields, load_plan(path)
    assert (fields.metric, fields.comparator, fields.threshold) == ("kvstats.delta.low", ">", -0.05)
    assert fields.created_at == "2026-10-31T12:00:00Z"
    assert (fields.seed, fields.producer.id, fields.dataset.id) == (7, "example.org", "logs/a.jsonl")
    assert fields.metric_args["registration"] == plan.document.sha256
    back = tmp_path / "back.yaml"
    back.write_text(import_manifest(file))
    assert back.read_text().startswith(
        f"# From the PRML manifest {fields.claim_id}, SHA-256 {manifest.sha256}\n"
    )
    again = load_plan(back)
    assert again.claims[0].claim == plan.claims[0].claim
    assert again.design == plan.design
    assert again.registration.policies == plan.registration.policies
    assert again.registration.data == plan.registration.data
    assert again.registration.evidence == plan.registration.evidence
    assert again.registration.registered_at == plan.registration.registered_at
    first, second = verify(path).claims[0], verify(back).claims[0]
    assert (first.verdict, first.rows) == (second.verdict, second.rows)
    assert first.verdict == "supported"


@pytest.mark.parametrize(
    ("replacements", "fault"),
    [
        (
            [("low > -0.05", "low > 0 AND estimate > 0.1")],
            "not one comparison such as 'low > 0', which is all",
        ),
        ([("low > -0.05", "estimate = 0")], "'estimate = 0' is not one comparison"),
        (
            [("design:", "family: {}\ndesign:"), ("    killed", "    null: 0\n    killed")],
            "claim 'gain' is of a family, whose adjusted p-value decides too",
        ),
        (
            [("it never loses", "n" * 5000)],
            "claim 'gain' makes no manifest (Expected `str` of length <= 4096",
        ),
        ([("it never loses", "O\u0308")], "is not in Unicode's form NFC"),
    ],
)
def test_claims_that_a_manifest_cannot_hold(registered, replacements, fault):
    with pytest.raises(InputError) as error:
        export_claim(registered(*replacements), "gain", producer="example.org")
    assert fault in str(error.value)


def test_the_data_of_an_export(registered, tmp_path):
    path = registered(("runs: [logs/a.jsonl], sha256: {logs/a.jsonl: ", "runs: [logs/a.jsonl] #"))
    path.write_text(path.read_text().replace("#", "}\n#"))
    with pytest.raises(
        InputError, match=r"plan\.yaml:3: .* does not name the SHA-256 of one file.*; pass the id"
    ):
        export_claim(path, "gain", producer="example.org")
    with pytest.raises(InputError, match="does not name the SHA-256 of one file"):
        export_claim(path, "gain", producer="example.org", dataset_id="a")
    file = tmp_path / "gain.prml.yaml"
    file.write_bytes(
        export_claim(path, "gain", producer="example.org", dataset_id="needles", dataset_sha256=EMPTY)
    )
    assert read_manifest(file).fields.dataset.hash == EMPTY
    with pytest.raises(InputError, match="makes no manifest"):
        export_claim(path, "gain", producer="example.org", dataset_id="needles", dataset_sha256="0")
    with pytest.raises(InputError, match="claim='gian' is no claim of the registration; did you mean 'gain'"):
        export_claim(path, "gian", producer="example.org")


def test_manifests_of_others(manifest, tmp_path):
    path = tmp_path / "plan.yaml"
    arguments = {"arm": "full", "outcome": "success", "tolerance": 0.001}
    path.write_text(
        import_manifest(manifest({"metric_args": arguments, "comparator": "=="}), data="logs/*.jsonl")
    )
    plan = load_plan(path)
    assert plan.claims[0].query.arguments == {"arm": "full", "outcome": "success"}
    assert plan.claims[0].supported.text == "ABS(estimate - (0.85)) < 0.001"
    assert plan.registration.data.sha256 == {}
    path.write_text(import_manifest(manifest({"notes": 'Reads "no": yes.', "threshold": 1e-7})))
    plan = load_plan(path)
    assert plan.claims[0].claim.statement == 'Reads "no": yes.'
    assert plan.claims[0].supported.text == "estimate >= 0.0000001"
    assert plan.registration.data.sha256 == {"imagenet-val-2012": EMPTY}
    assert plan.registration.authors == ["studio-11.co"]
    assert plan.design.seed == 42
    with pytest.raises(
        InputError, match=r"metric is 'acuracy', which is no estimator; did you mean 'accuracy'\?"
    ):
        import_manifest(manifest({"metric": "acuracy"}))
    own = {"metric": "kvstats.delta.low", "metric_args": {"query": "{"}}
    with pytest.raises(InputError, match=r"metric_args\.query is not JSON .*; export the claim again"):
        import_manifest(manifest(own))
    with pytest.raises(InputError, match=r"metric_args\.query is no mapping"):
        import_manifest(manifest({**own, "metric_args": {"query": "[1]"}}))


def test_identifiers_are_of_version_7_and_of_their_time():
    time = datetime(2026, 5, 1, 12, 0, 0, 123000, tzinfo=UTC)
    found = claim_uuid(time, "a")
    assert (found.version, found.variant) == (7, "specified in RFC 4122")
    assert found.int >> 80 == int(time.timestamp() * 1000)
    assert found == claim_uuid(time, "a") != claim_uuid(time, "b")


@pytest.mark.parametrize("value", [0.0, 1.0, -0.05, 1e-7, 1.5e-9, 0.1 + 0.2, 1e20, 2.5e17, 123456.789])
def test_numbers_are_written_without_exponent(value):
    text = decimal(value)
    assert "e" not in text
    assert float(text) == value
