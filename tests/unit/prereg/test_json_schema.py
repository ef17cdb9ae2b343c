"""The JSON Schema of registrations: committed, and true of the registrations that exist."""

import json
from importlib import resources
from pathlib import Path

import pytest

from kvstats.document import read_document
from kvstats.prereg.json_schema import registration_schema
from kvstats.prereg.schema import Registration
from kvstats.prereg.template import example_names

ROOT = Path(__file__).parents[3]
EXAMPLES = resources.files("kvstats.prereg").joinpath("examples")
FILES = [
    ROOT / "notebooks" / "needles" / "preregistration.yaml",
    ROOT / "notebooks" / "two-models" / "preregistration.yaml",
    ROOT / "tests" / "golden" / "toy" / "preregistration.yaml",
    *(Path(str(EXAMPLES.joinpath(f"{name}.yaml"))) for name in example_names()),
]


def test_the_committed_schema_is_that_of_the_format():
    committed = json.loads(resources.files("kvstats.prereg").joinpath("schema.json").read_text())
    assert committed == registration_schema(), (
        "the format has changed: write kvstats/prereg/schema.json with 'kvstats schema --registration'"
    )


def test_every_block_is_closed_and_described():
    definitions = registration_schema()["$defs"]
    assert set(Registration.__struct_fields__) == set(definitions["Registration"]["properties"])
    for name, block in definitions.items():
        assert block["additionalProperties"] is False, name
        assert block["description"], name


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_registrations_satisfy_the_schema(path):
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(registration_schema())
    value = read_document(path).value
    assert list(validator.iter_errors(value)) == []
    for faulty in ({**value, "nonsense": 1}, {**value, "claims": []}, {**value, "study": 1}):
        assert not validator.is_valid(faulty)
