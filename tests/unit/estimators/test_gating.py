import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.estimators import delta, kept_fraction, mean_drop
from kvstats.inference import Design
from kvstats.log import log_from_records

PLAIN = [0, 0, 1, 1, 0.5, 0, 1, 0]
GATE = [1, 0, 1, 0, 1, 1, 1, 0]


def only(result):
    assert result.frame.height == 1
    return result.frame.row(0, named=True)


def test_delta_is_the_paired_t_test(make_log):
    result = delta(make_log({"plain": {0.5: PLAIN}, "gate": {0.5: GATE}}), arm="gate", baseline="plain")
    test = stats.ttest_rel(GATE, PLAIN)
    row = only(result)
    assert row["estimate"] == pytest.approx(1.5 / 8)
    assert (row["low"], row["high"]) == pytest.approx(tuple(test.confidence_interval()))
    assert result.null == 0
    assert result.p_value()["p_value"].item() == pytest.approx(test.pvalue)


def test_delta_of_successes(make_log):
    log = make_log({"full": {1.0: [1, 1, 0.5, 0]}, "a": {0.5: [0.5, 1, 1, 0.9]}})
    assert only(delta(log, arm="a"))["estimate"] == pytest.approx(0.9 / 4)
    row = only(delta(log, arm="a", outcome="success"))
    assert (row["estimate"], row["status"]) == (0, "ok")


def test_budgets_of_an_input_are_one_cluster(make_log):
    log = make_log({"plain": {0.5: PLAIN, 0.25: PLAIN}, "gate": {0.5: GATE, 0.25: GATE}})
    once = only(delta(log, arm="gate", baseline="plain", where="budget = 0.5"))
    twice = only(delta(log, arm="gate", baseline="plain"))
    assert (twice["n"], twice["clusters"]) == (16, 8)
    assert (twice["low"], twice["high"]) == pytest.approx((once["low"], once["high"]))


@pytest.mark.parametrize("interval", ["auto", "percentile"])
def test_identical_arms_have_no_discordant_pairs(make_log, interval):
    log = make_log({"plain": {0.5: PLAIN}, "gate": {0.5: PLAIN}})
    result = delta(log, arm="gate", baseline="plain", design=Design(interval=interval))
    row = only(result)
    assert (row["estimate"], row["low"], row["high"], row["se"]) == (0, None, None, None)
    assert row["status"] == "no discordant pairs"
    assert result.p_value()["p_value"].item() == 1


def test_delta_refuses_unknown_outcomes_and_missing_ones(make_records):
    records = [*make_records({"full": {1.0: [1]}}, success=None), *make_records({"a": {0.5: [1]}})]
    log = log_from_records(records)
    with pytest.raises(InputError, match="delta: outcome='sucess' is not known; did you mean 'success'"):
        delta(log, arm="a", outcome="sucess")
    with pytest.raises(InputError, match="delta: baseline_success is null in 1 of 1 rows"):
        delta(log, arm="a", outcome="success")


def test_intervals_for_rates_are_refused(make_log):
    log = make_log({"full": {1.0: [1, 1]}, "a": {0.5: [0, 1]}})
    with pytest.raises(
        InputError, match=r"delta: design.interval='wilson' is for rates, whose values are all"
    ):
        delta(log, arm="a", design=Design(interval="wilson"))


def test_mean_drop_is_over_inputs_not_runs(make_log):
    drop = [0.05, 0.07, 0.10, 0.02]
    log = make_log({"full": {1.0: [1] * 4}, "a": {0.5: [1] * 4}}, drop=drop)
    row = only(mean_drop(log))
    assert (row["estimate"], row["n"]) == (pytest.approx(0.06), 4)
    assert (row["low"], row["high"]) == pytest.approx(tuple(stats.ttest_1samp(drop, 0).confidence_interval()))
    assert only(mean_drop(log, where="drop > 0.06"))["n"] == 2


def test_mean_drop_of_another_column(make_log):
    log = make_log({"full": {1.0: [1] * 2}}, drop=[0.05, None])
    with pytest.raises(InputError, match=r"mean_drop: drop is null in 1 of 2 rows, such as .*input_id=i001"):
        mean_drop(log)
    with pytest.raises(
        InputError, match="mean_drop: column='drops' is not a numeric column; did you mean 'drop'"
    ):
        mean_drop(log, column="drops")
    with pytest.raises(InputError, match="mean_drop: column='task' is not a numeric column"):
        mean_drop(log, column="task")
    with pytest.raises(InputError, match="mean_drop: drop_interior is null in 2 of 2 rows"):
        mean_drop(log, column="drop_interior")
    assert only(mean_drop(log, where="drop IS NOT NULL"))["status"] == "one cluster"


def test_kept_fraction_as_measured_or_from_the_counts(make_records):
    records = [
        *make_records({"a": {0.5: [1, 1]}}, kept_fraction=0.55),
        *make_records({"a": {0.5: [1, 1]}}, task="vt"),
    ]
    log = log_from_records(records)
    assert kept_fraction(log, by="task").frame["estimate"].to_list() == pytest.approx([0.55, 0.5])
    assert only(kept_fraction(log))["estimate"] == pytest.approx(0.525)


def test_a_cache_kept_whole_is_no_rate(make_log):
    row = only(kept_fraction(make_log({"full": {1.0: [1, 1, 0]}})))
    assert (row["estimate"], row["low"], row["status"]) == (1, None, "zero variance")


def test_runs_that_do_not_tell_what_they_kept_are_refused(make_records):
    log = log_from_records(make_records({"a": {0.5: [1, 1]}}, n_kept=None))
    with pytest.raises(InputError, match="kept_fraction: kept_fraction is null in 2 of 2 rows"):
        kept_fraction(log)
