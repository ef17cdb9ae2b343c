import pytest

import kvstats as kv
from kvstats.errors import InputError
from kvstats.planning import pilot_correlation, simulate_log


@pytest.fixture(scope="module")
def pilot():
    return simulate_log(
        seed=9,
        tasks=["code", "qa"],
        inputs=3000,
        accuracy=1.0,
        harm={"code": 0.3, "qa": 0.05},
        recovery=0.0,
        intraclass_correlation=0.4,
    )


def test_the_correlation_of_events_is_found(pilot):
    found = pilot_correlation(kv.harm_rate(pilot.log, arm="plain", by="task"))
    assert found.columns == ["task", "inputs", "rows_per_input", "design_effect", "intraclass_correlation"]
    assert found["task"].to_list() == ["code", "qa"]
    assert found["inputs"].to_list() == [3000, 3000]
    assert found["rows_per_input"].to_list() == [3.0, 3.0]
    assert found["intraclass_correlation"].to_list() == pytest.approx([0.4, 0.4], abs=0.05)
    assert found["design_effect"].to_list() == pytest.approx([1.8, 1.8], abs=0.1)


def test_unequal_inputs(pilot):
    # Half of the inputs have one row: the mean size of a row's own input is 5/2.
    some = "task = 'code' AND (budget = 0.25 OR input_id < '001500')"
    found = pilot_correlation(kv.delta(pilot.log, arm="plain", where=some))
    assert found["rows_per_input"].item() == 2.0
    assert found["design_effect"].item() == pytest.approx(1 + 1.5 * 0.4, abs=0.08)
    assert found["intraclass_correlation"].item() == pytest.approx(0.4, abs=0.06)


def test_what_a_pilot_cannot_tell(pilot):
    single = pilot_correlation(kv.harm_rate(pilot.log, arm="plain", where="budget = 0.5"))
    assert single["design_effect"].item() == pytest.approx(1.0)
    assert single["intraclass_correlation"].item() is None
    alike = pilot_correlation(kv.accuracy(pilot.log, arm="full", where="task = 'qa'"))
    assert alike.row(0) == (3000, 1.0, None, None)
    nothing = pilot_correlation(kv.harm_rate(pilot.log, arm="plain", where="budget = 0.1"))
    assert nothing.row(0) == (0, 0.0, None, None)
    one_class = pilot_correlation(
        kv.auc(pilot.log, arm="full", signal="logprob", where="input_id < '000100'")
    )
    assert one_class["design_effect"].item() is None


def test_contrasts_are_refused(pilot):
    contrast = kv.harm_rate(pilot.log, arm="plain", by="task").contrast(task=("code", "qa"))
    with pytest.raises(InputError, match=r"pilot_correlation: result=.harm_rate difference .* is a contrast"):
        pilot_correlation(contrast)
