"""New registrations: from the template or an example, at the present time, and never over a file."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from kvstats.errors import InputError
from kvstats.prereg.plan import load_plan
from kvstats.prereg.schema import Registration
from kvstats.prereg.template import example_names, example_text, new_registration

NOW = datetime(2026, 5, 1, 14, 30, 5, 999, tzinfo=UTC)


@pytest.mark.parametrize("name", example_names())
def test_every_example_becomes_a_registration_of_the_present(name, tmp_path):
    path = tmp_path / "plan.yaml"
    new_registration(path, example=name, now=NOW)
    plan = load_plan(path)
    assert plan.registration.registered_at == NOW.replace(microsecond=0)
    given = example_text(name).splitlines()
    written = path.read_text().splitlines()
    changed = [line for line, before in zip(written, given, strict=True) if line != before]
    assert changed == ["registered_at: 2026-05-01T14:30:05Z"]


def test_the_time_is_the_present_one_unless_given(tmp_path):
    before = datetime.now(UTC).replace(microsecond=0)
    new_registration(tmp_path / "plan.yaml")
    registered = load_plan(tmp_path / "plan.yaml").registration.registered_at
    assert before <= registered <= datetime.now(UTC)
    other = datetime(2026, 5, 1, 16, 0, tzinfo=UTC).astimezone(None)
    new_registration(tmp_path / "other.yaml", now=other)
    assert load_plan(tmp_path / "other.yaml").registration.registered_at - other == timedelta(0)


def test_the_template_has_and_explains_every_block():
    text = example_text("template")
    written_later = {"deviations", "amendments"}
    for field in msgspec.structs.fields(Registration):
        if field.name not in written_later:
            assert f"\n{field.name}:" in text, field.name
    for word in ("deviation", "amendment", "sha256", "quantifier", "prevalence"):
        assert word in text


def test_no_file_is_written_over(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("mine")
    with pytest.raises(InputError, match=r"new_registration: path='.*plan\.yaml' is there already; name"):
        new_registration(path)
    assert path.read_text() == "mine"
    link = tmp_path / "link.yaml"
    link.symlink_to(tmp_path / "nowhere.yaml")
    with pytest.raises(InputError, match="is there already"):
        new_registration(link)
    with pytest.raises(InputError, match=r"path='.*' cannot be written \(No such file or directory\)"):
        new_registration(tmp_path / "none" / "plan.yaml")
    with pytest.raises(InputError, match=r"example='tempalte' is no example; did you mean 'template'\?"):
        new_registration(tmp_path / "new.yaml", example="tempalte")
    with pytest.raises(InputError, match=r"example='\.\./schema' is no example"):
        new_registration(tmp_path / "new.yaml", example="../schema")
    assert not (tmp_path / "new.yaml").exists()
