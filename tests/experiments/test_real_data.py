"""Real data: what is read, that nobody looks ahead, and what the studies of them judge."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.stats import poisson

from noisewise import predictions
from noisewise.cli import main
from noisewise.experiments import EXPERIMENTS
from noisewise.experiments.ingredients import datasets, offline_evaluation, schools
from noisewise.experiments.studies import real_data, replay
from noisewise.regression.ftrl.ftrl import FTRL


def test_the_districts_are_those_of_statsmodels():
    from statsmodels.datasets import star98

    source, found = star98.load_pandas(), datasets.star98()
    assert found.features.shape == (303, 12)
    assert (found.tested.min(), found.tested.max(), found.tested.sum()) == (33, 38852, 267611)
    assert np.array_equal(found.above, source.endog["NABOVE"])
    assert np.array_equal(found.features, source.exog.to_numpy()[:, :12])
    products = source.exog["PERMINTE"] * source.exog["AVYRSEXP"]  # why the others are left out
    assert np.allclose(products, source.exog["PERMINTE_AVYRSEXP"], rtol=1e-4)


@pytest.mark.parametrize(
    ("campaign", "items", "clicks", "shop_clicks"),
    [("men", 34, 46, 69), ("women", 46, 46, 46), ("all", 80, 38, 42)],
)
def test_the_logs_are_those_of_the_shop(campaign, items, clicks, shop_clicks):
    even, shop = (datasets.open_bandit(campaign, by) for by in ("random", "bts"))
    for log, count in ((even, clicks), (shop, shop_clicks)):
        assert len(log.item) == 10_000
        assert len(log.features) == items
        assert set(log.item) <= set(range(items))
        assert set(log.position) == {0, 1, 2}
        assert log.click.sum() == count
        assert set(log.click) == {0.0, 1.0}
        assert log.propensity.min() > 0
    assert np.allclose(even.propensity, 1 / items)
    kinds = even.features[:, 2:]
    assert set(np.unique(kinds)) == {0.0, 1.0}
    assert (kinds.sum(axis=1) == 2).all()


def test_a_missing_package_is_named_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "find_spec", lambda name: None)
    out = ["--out", str(tmp_path)]
    remedies = {
        "real-data": "pip install '.[data]'",
        "replay": "--no-deps obp==",
        "classification": "pip install '.[sklearn]'",
    }
    for study, words in remedies.items():
        done = CliRunner().invoke(main, ["reproduce", study, *out])
        assert done.exit_code == 2
        assert words in done.output
    for name in set(EXPERIMENTS) - set(remedies):
        monkeypatch.delitem(EXPERIMENTS, name)
    done = CliRunner().invoke(main, ["reproduce", *out])
    assert done.exit_code == 0, done.output
    for study in remedies:
        assert f"{study}: left out" in done.output


def test_standardising_looks_at_the_first_rows_only():
    x = datasets.star98().features
    first = np.arange(20)
    rows = schools.standardised(x, first)
    assert np.linalg.norm(rows, axis=1).max() <= schools.LENGTH * (1 + 1e-12)
    changed = x.copy()
    changed[200:] *= 3.0
    assert schools.standardised(changed, first)[:200] == pytest.approx(rows[:200], abs=1e-12)
    constant = np.column_stack([x, np.ones(len(x))])
    assert np.isfinite(schools.standardised(constant, first)).all()


@pytest.fixture(scope="module")
def fits():
    """Both weightings on all districts, beside statsmodels: weights n are its binomial counts."""
    import statsmodels.api as sm

    data = datasets.star98()
    x = schools.standardised(data.features, np.arange(20))
    return data, x, sm.GLM, sm.families.Binomial()


@pytest.mark.parametrize("weighting", ["weight n", "equal weights"])
def test_the_best_fit_and_textbook_intervals_are_those_of_statsmodels(fits, weighting):
    data, x, glm, family = fits
    w = schools.weightings(data)[weighting]
    fit = glm(data.rate, x, family=family, var_weights=w).fit(tol=1e-12)
    assert schools.best_fit(x, data.rate, w) == pytest.approx(fit.params, abs=1e-5)
    ftrl = FTRL(schools.LOGISTIC, 1e-6)
    state = ftrl.start(x.shape[1])
    ftrl.update(state, x, data.rate, w)
    ftrl.solve(state)
    far = state.theta + 0.0
    far[0] += 0.05  # so that coverage is neither 0 nor 1 throughout
    found = schools._textbook(x, data.rate, w, np.arange(len(x)), state, far)
    pearson = fit.pearson_chi2 / fit.df_resid
    assert found["binomial"]["dispersion"] == pytest.approx(pearson, rel=1e-4)
    robust = glm(data.rate, x, family=family, var_weights=w).fit(cov_type="HC0").cov_params()
    plain = fit.cov_params() / fit.scale
    for kind, C in (("binomial", plain), ("Pearson", pearson * plain), ("sandwich", robust)):
        half = schools.NORMAL * np.sqrt(np.einsum("ij,jk,ik->i", x, C, x))
        low, high = (schools.LOGISTIC.mean(x @ fit.params + s * half) for s in (-1, 1))
        assert found[kind]["width"] == pytest.approx(np.median(high - low), rel=1e-3)
        covered = (np.abs(x @ (fit.params - far)) <= half).mean()
        assert found[kind]["coverage"] == pytest.approx(covered, abs=2 / 303)


def test_weights_with_a_spread_are_inverse_to_the_variance():
    n = np.array([1.0, 10.0, 1000.0])
    variance = 0.03 + 1 / n
    assert schools.spread_weights(n, 0.03) * variance == pytest.approx(0.03)


def test_with_endless_counts_the_estimated_spread_weighs_equally():
    data = datasets.star98()
    x = schools.standardised(data.features, np.arange(20))
    ftrl = FTRL(schools.LOGISTIC, 0.5, tolerance=0)
    made = schools._estimating(ftrl, x, data.rate, np.full(len(x), 1e15))
    assert made == pytest.approx(predictions(ftrl, x, data.rate), abs=1e-9)


def test_no_policy_loses_less_than_nothing_and_an_even_draw_loses_the_mean():
    """The mean over 400 rounds, judged at 6 standard errors: false alarm below 1e-8."""
    lost = schools.bandit(400, np.random.default_rng(0))
    assert set(lost) == {*schools.policies(), real_data.FITTED} == set(real_data.STYLES)
    assert min(each.min() for each in lost.values()) >= 0
    rate = datasets.star98().rate
    rng = np.random.default_rng(1)
    offers = np.array([rng.choice(rate, schools.ARMS, replace=False) for _ in range(4000)])
    usual = offers.max(axis=1) - offers[:, 0]
    error = usual.std() * np.sqrt(1 / 400 + 1 / 4000)
    assert lost["uniform"].mean() == pytest.approx(usual.mean(), abs=6 * error)


def played(study, rounds, trials):
    rows = []
    for place, cell in enumerate(study.cells(rounds)):
        for trial in range(trials):
            made = study.data(cell, np.random.default_rng([5, place, trial]))
            rows += [{**row, "trial": trial} for row in made]
    return pd.DataFrame(rows)


def claim(study, table, words):
    (found,) = [v for text, v in study.holds(table).items() if words in text]
    return found.held


def test_the_districts_are_judged_by_what_was_measured():
    """The first claims are far from their limits; none is random beyond order and draws."""
    table = played(real_data, 300, 3)
    for words in ("over ten times", "cover less than half", "at all times"):
        assert claim(real_data, table, words), words
    binomial = (table["kind"] == "binomial") & (table["player"] == "weight n")
    better = table.assign(coverage=table["coverage"].mask(binomial, 0.95))
    assert not claim(real_data, better, "cover less than half")
    missing = table.assign(critical=table["critical"].mask(table["kind"] == "at all times", 1.1))
    often = pd.concat([missing.assign(trial=missing["trial"] + 3 * i) for i in range(3)])
    assert not claim(real_data, often, "at all times")
    assert len(real_data.numbers(table)) == 6 + 8 + len(real_data.STYLES)


@pytest.mark.parametrize(("values", "held"), [([9, 10, 11], True), ([-9, -10, -11], False)])
def test_a_difference_is_judged_or_left_open(values, held):
    sure = real_data._more(pd.Series(values, dtype=float), "points")
    assert sure.held == held
    assert real_data._more(pd.Series([1.0, -1.0, 0.5]), "points").held is None
    assert real_data._more(pd.Series([1.0]), "points").held is None


class Stubborn:
    """Shows one item always, and remembers what it was told."""

    def start(self, dim):
        return SimpleNamespace(told=[])

    def select(self, state, arms, rng):
        return 2

    def update(self, state, arm, reward, sigma=1.0):
        state.told.append((int(arm[0]), reward))


def test_a_policy_that_shows_one_item_has_that_items_clicks():
    item = np.array([0, 2, 1, 2, 2, 0])
    click = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0])
    x, rng = np.arange(3.0)[:, None], np.random.default_rng(0)
    one, all_of_them = offline_evaluation.judged(
        Stubborn(), x, item, click, rng, np.array([0.1, 0.2, 0.3])
    )
    assert (one["matched"], one["clicks"], one["rate"]) == (3, 2, pytest.approx(2 / 3))
    assert all_of_them["rate"] == pytest.approx(2 * 3 / 6)
    assert one["truth"] == all_of_them["truth"] == pytest.approx(0.3)


@pytest.mark.parametrize(("whole", "told"), [(False, [(2, 1.0)]), (True, [(0, 1.0), (2, 1.0)])])
def test_replay_learns_matched_events_only(whole, told):
    policy, states = Stubborn(), []
    policy.start = lambda dim: states.append(SimpleNamespace(told=[])) or states[0]
    x, rng = np.arange(3.0)[:, None], np.random.default_rng(0)
    offline_evaluation.ask(policy, x, np.array([0, 2]), np.ones(2), rng, whole)
    assert states[0].told == told


@pytest.mark.parametrize("count", [0, 1, 7])
def test_the_interval_of_a_count_has_the_tails_it_says(count):
    low, high = offline_evaluation.poisson_interval(count, 0.9)
    assert poisson.cdf(count, high) == pytest.approx(0.05)
    assert low == 0 if count == 0 else poisson.sf(count - 1, low) == pytest.approx(0.05)


def test_drawn_rates_have_the_level_that_is_asked_for():
    x = offline_evaluation.catalogue(datasets.open_bandit("all"))
    assert np.linalg.norm(x, axis=1).max() <= replay.GLM_BOUNDS[0] + 1e-12
    rates = offline_evaluation.drawn_rates(x, 20, np.random.default_rng(0))
    assert rates.mean() == pytest.approx(20 * offline_evaluation.BASE)
    assert 0.4 < np.log(rates / (1 - rates)).std() < 1.0


def test_the_value_from_another_log_weighs_by_propensities():
    rows = {(row["policy"], row["way"]): row for row in offline_evaluation.across("women")}
    shop, K = datasets.open_bandit("women", "bts"), 46
    clicked = np.flatnonzero(shop.click)
    by_hand = sum(1 / (K * shop.propensity[t]) for t in clicked) / 10_000
    assert rows[offline_evaluation.EVEN, "other log"]["rate"] == pytest.approx(by_hand)
    assert (
        rows[offline_evaluation.EVEN, "other log"]["matched"] == 2
    )  # one event of chance 1e-6 outweighs all
    assert rows[offline_evaluation.EVEN, "own log"]["rate"] == 46 / 10_000


def test_a_log_is_judged_by_what_it_can_tell():
    table = played(replay, 1500, 2)
    words = "shows a difference between a policy that learns"
    assert claim(replay, table, words) is None
    many = table.assign(clicks=table["clicks"].mask(table["error"].isna(), 200))
    assert claim(replay, many, words)
    assert claim(replay, table, "hold the known value")
    assert not claim(replay, table.assign(truth=2.0), "hold the known value")
    assert len(replay.numbers(table)) == 3 * 8 + 2 * 2
