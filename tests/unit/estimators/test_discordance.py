import re

import pytest
from scipy import stats

from kvstats.errors import InputError
from kvstats.estimators import discordant_harm_share
from kvstats.inference import Design, mcnemar_test

FULL = [1] * 12 + [0] * 8
ARM = [0] * 7 + [1] * 5 + [1] * 2 + [0] * 6
EXACT = Design(interval="clopper_pearson")


def only(result):
    assert result.frame.height == 1
    return result.frame.row(0, named=True)


def test_it_is_the_share_of_losses_with_mcnemars_test(make_log):
    log = make_log({"full": {1.0: FULL}, "a": {0.5: ARM}})
    result = discordant_harm_share(log, arm="a", design=EXACT)
    row = only(result)
    assert (row["estimate"], row["n"], row["status"]) == (pytest.approx(7 / 9), 9, "ok")
    assert (row["low"], row["high"]) == pytest.approx(tuple(stats.binomtest(7, 9).proportion_ci()))
    assert result.p_value()["p_value"].item() == pytest.approx(mcnemar_test(7, 2))
    greater = result.p_value(alternative="greater")["p_value"].item()
    assert greater == pytest.approx(mcnemar_test(7, 2, alternative="greater"))


def test_pairs_that_share_an_input_need_the_clustered_interval(make_log):
    log = make_log({"full": {1.0: FULL}, "a": {0.25: ARM, 0.5: ARM}})
    with pytest.raises(InputError, match=re.escape("ignores clusters, and 18 rows are in 9")):
        discordant_harm_share(log, arm="a", design=EXACT)
    once = only(discordant_harm_share(log, arm="a", where="budget = 0.5"))
    twice = discordant_harm_share(log, arm="a")
    row = only(twice)
    assert (row["estimate"], row["n"], row["clusters"]) == (pytest.approx(7 / 9), 18, 9)
    assert (row["low"], row["high"]) == pytest.approx((once["low"], once["high"]), abs=0.05)
    assert twice.p_value()["p_value"].item() > 2 * mcnemar_test(14, 4)


def test_parts_without_discordant_pairs_are_shown(make_log):
    log = make_log({"full": {1.0: FULL}, "a": {0.5: ARM, 1.0: FULL}})
    result = discordant_harm_share(log, arm="a", by="budget", design=EXACT)
    assert result.frame["status"].to_list() == ["ok", "no discordant pairs"]
    assert result.frame.row(1)[1:6] == (None,) * 5
    assert result.frame["n"].to_list() == [9, 0]
    assert result.p_value()["p_value"].to_list() == pytest.approx([mcnemar_test(7, 2), 1.0])


def test_without_any_discordant_pair(make_log):
    log = make_log({"full": {1.0: FULL}, "a": {0.5: FULL}})
    for design in (EXACT, Design(), Design(interval="bca")):
        result = discordant_harm_share(log, arm="a", design=design)
        assert only(result)["status"] == "no discordant pairs"
        assert result.p_value()["p_value"].item() == 1


def test_an_unknown_success_is_refused(make_log):
    log = make_log({"full": {1.0: FULL}, "a": {0.5: ARM}}, success=None)
    with pytest.raises(
        InputError, match=re.escape("discordant_harm_share: success is null in 20 of 20 rows")
    ):
        discordant_harm_share(log, arm="a")
