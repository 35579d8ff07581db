"""Verdicts with a stated error, and whether the default runs of studies have the power for them."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from noisewise.experiments import verdicts
from noisewise.experiments.ingredients import fixed_settings
from noisewise.experiments.studies import agents, classification, real_data, unknown_variance
from noisewise.experiments.verdicts import ERROR, POWER, decide, more_often


def counted(*counts, runs):
    """A table in which columns happened so often."""
    return pd.DataFrame({f"c{i}": np.arange(runs) < n for i, n in enumerate(counts)})


def test_a_verdict_needs_its_error():
    assert decide(ERROR, 1.0, "m").held is True
    assert decide(0.5, ERROR, "m").held is False
    unsure = decide(0.2, 0.8, "m")
    assert unsure.held is None
    assert unsure.measured.startswith("m; undecided, since")
    assert "20.0 %" in unsure.measured
    assert "more trials" in unsure.measured


@pytest.mark.parametrize(("count", "held"), [(20, True), (13, None), (2, False)])
def test_counts_are_judged_as_by_the_binomial_test(count, held):
    found = more_often(counted(count, runs=24), 0.5)
    assert found.held is held
    side = "less" if held is False else "greater"
    chance = stats.binomtest(count, 24, 0.5, side).pvalue
    shown = f"{100 * chance:.1f} %" if held is None else f"chance {chance:.1g} if"
    assert shown in found.measured


def test_the_column_with_the_fewest_decides():
    assert more_often(counted(20, 24, runs=24), 0.5)
    assert more_often(counted(20, 13, runs=24), 0.5).held is None
    assert more_often(counted(20, 2, runs=24), 0.5).held is False
    assert "2 of 24 runs at least (c1)" in more_often(counted(20, 2, runs=24), 0.5).measured


def counts(chances):
    """The distribution of a sum of independent indicators, by convolution."""
    found = np.ones(1)
    for p in chances:
        found = np.convolve(found, [1 - p, p])
    return found


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.75])
def test_the_error_of_counts_is_at_most_what_is_stated(share):
    """Exactly, for runs that are alike and for runs whose chances differ."""
    runs = 40
    held = [more_often(counted(n, runs=runs), share).held for n in range(runs + 1)]
    apart = np.where(np.arange(runs) % 2, 0.5, 1.5) * min(share, 1 - share)
    apart += share - apart.mean()
    assert apart.std() > 0.04
    for chances in (np.full(runs, share), apart):
        mass = counts(chances)
        for verdict in (True, False):
            wrong = sum(p for p, v in zip(mass, held, strict=True) if v is verdict)
            assert wrong <= ERROR


def test_power_of_shares_by_enumeration():
    runs, share = 40, 0.5
    held = [bool(more_often(counted(n, runs=runs), share)) for n in range(runs + 1)]
    one, two = (counts(np.full(runs, p)) @ held for p in (0.75, 0.8))
    assert verdicts.share_power({"a": 0.75}, runs, share) == pytest.approx(one)
    assert verdicts.share_power({"a": 0.75, "b": 0.8}, runs, share) == pytest.approx(one + two - 1)


def test_ranks_by_enumeration():
    """Four against four that do not overlap: one of 70 orders."""
    low, high = np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 6.0, 7.0, 8.0])
    both = np.concatenate([low, high])
    below = [sum(chosen) <= low.sum() for chosen in combinations(both, 4)]
    assert np.mean(below) == 1 / 70 <= ERROR
    assert verdicts.less({"a": (low, high)}, "").measured == "; chance 0.01 if it were not so"
    assert verdicts.less({"a": (low, high), "b": (low, high)}, "")
    assert verdicts.less({"a": (high, low)}, "").held is False
    mixed = verdicts.less({"a": (low, high), "b": (low, low + 0.5)}, "")
    assert mixed.held is None


def test_groups_of_two_are_welch():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=5), rng.normal(0.5, 3.0, size=8)
    index = pd.MultiIndex.from_tuples([("a", i) for i in range(5)] + [("b", i) for i in range(8)])
    mean = verdicts.grouped_mean(pd.Series([*a, *-b], index))
    welch = stats.ttest_ind(a, b, equal_var=False, alternative="less")
    assert mean.value == pytest.approx((a.mean() - b.mean()) / 2)
    assert mean.freedom == pytest.approx(welch.df)
    assert mean.chance(0.0) == pytest.approx(welch.pvalue)


@pytest.mark.parametrize("freedom", [1.0, 3.5])
def test_power_of_means_by_quadrature(freedom):
    gap, spread, trials = 0.5, 0.4, 6
    nu = freedom * (trials - 1)
    limit, away = stats.t.isf(ERROR, nu), np.sqrt(trials) * gap / spread
    root = np.sqrt(nu)
    found, _ = integrate.quad(
        lambda s: stats.norm.sf(limit * s - away) * stats.chi.pdf(s * root, nu) * root, 0, 10
    )
    assert verdicts.mean_power(gap, spread, trials, freedom) == pytest.approx(found, abs=1e-7)


def test_default_runs_have_the_power_for_their_claims():
    assert min(agents.powers(agents.TRIALS).values()) >= POWER
    assert min(classification.powers(classification.TRIALS)) >= POWER
    unknown, trials = unknown_variance, unknown_variance.TRIALS
    for who in (unknown.KNOWN, unknown.RUNNING, unknown.ESTIMATED):
        assert unknown.power(who, trials) >= POWER
    assert verdicts.mean_power(*real_data.WEIGHTED, real_data.TRIALS) >= POWER


def test_sharper_claims_wait_for_their_trials():
    assert agents.TRIALS < agents.ENOUGH
    assert classification.TRIALS < classification.ENOUGH
    unknown, trials = unknown_variance, unknown_variance.TRIALS
    sure, found = unknown.SURE[unknown.LIKELIHOOD], unknown.ESTIMATED
    assert unknown.power(sure, trials) < POWER <= unknown.power(sure, 14)
    assert unknown.power(found, trials, 0.75) < POWER <= unknown.power(found, 9, 0.75)
    lost = verdicts.mean_power
    assert lost(*real_data.SHARED, real_data.TRIALS) < POWER <= lost(*real_data.SHARED, 56)


def test_pilots_are_about_players():
    names = {name for each in agents.COUNTED.values() for name in each.pilot}
    assert names == {*fixed_settings.SETTINGS, agents.EARLIER}
    assert tuple(classification.PILOT[0]) == classification.BEHIND


def test_few_trials_of_labelled_data_are_counted():
    rows = [
        {"data": d, "trial": t, "player": p, "reward": 0.5 if p == agents.OURS else 0.45}
        for d in "abcdefgh"
        for t in range(3)
        for p in (agents.OURS, *fixed_settings.SETTINGS)
    ]
    table = pd.DataFrame(rows)
    assert [v.held for v in classification.holds(table).values()] == [True, True]
    worse = table.assign(reward=1 - table["reward"] * (1 + (table["player"] == agents.OURS)))
    assert [v.held for v in classification.holds(worse).values()] == [False, False]
