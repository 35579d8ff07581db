"""Variances nobody tells: the model against other optimisers, weights that do not look ahead,
sets that hold all the same, and the largest sd of a family."""

import copy
import math
import pickle

import numpy as np
import pytest
from instances import sphere
from scipy.optimize import brentq, minimize
from scipy.stats import binom

import noisewise as nw
from noisewise import environments as env
from noisewise import theory
from noisewise.bandits.optimistic.variance import INFLATION, RIDGE
from noisewise.confidence import score_bounds

MODEL = nw.VarianceModel(noise_bound=1.0, noise_floor=0.02)


def taught(model, x, residuals):
    state = model.start(x.shape[1])
    for row, residual in zip(x, residuals, strict=True):
        model.update(state, row, residual)
    return state


def log_linear(rng, rounds, gamma, level):
    """Rows, and residuals whose log variance is linear in them."""
    x = sphere(rng, rounds, len(gamma))
    return x, np.exp(0.5 * (x @ gamma + level)) * rng.normal(size=rounds)


def test_the_fit_is_the_minimum_of_the_gamma_deviance():
    """Another optimiser, on the deviance as it is written, in gamma and not in its negative."""
    rng = np.random.default_rng(0)
    model = nw.VarianceModel(noise_bound=1.5, noise_floor=0.02, feature_bound=2.0)
    x, e = log_linear(rng, 300, np.array([1.0, -1.5, 0.5]), -3.0)
    rows = np.column_stack([x, np.ones(300)])

    def deviance(gamma):
        z = 2 * math.log(1.5) + rows @ gamma
        return RIDGE * gamma @ gamma + np.sum(e**2 * np.exp(-z) + z)

    best = minimize(deviance, np.zeros(4), method="BFGS", options={"gtol": 1e-7})
    state = taught(model, 2 * x, e)
    fitted = model.variance(state, 2 * x)
    np.testing.assert_allclose(np.log(fitted), 2 * math.log(1.5) + rows @ best.x, atol=0.02)
    model._ftrl.solve(state)  # exactly, not to the tolerance of the stream
    np.testing.assert_allclose(-state.theta, best.x, atol=1e-5)
    assert model.variance(state, 2 * x[0]) == pytest.approx(fitted[0], rel=0.02)


def test_without_features_it_is_the_mean_of_squared_residuals():
    """At x = 0 only the level is left: n - sum e^2/v = 2 ridge log(R^2/v), the ridge fading."""
    rng = np.random.default_rng(1)
    e = 0.2 * rng.normal(size=4000)
    for count in (5, 100, 4000):
        state = taught(MODEL, np.zeros((count, 2)), e[:count])
        MODEL._ftrl.solve(state)
        total = np.sum(e[:count] ** 2)
        exact = brentq(lambda u, n, s: n - s * np.exp(u) - 2 * RIDGE * u, -20, 20, (count, total))
        v = MODEL.variance(state, np.zeros(2))
        assert -math.log(v) == pytest.approx(exact, abs=1e-8)
    assert v == pytest.approx(np.mean(e**2), rel=2e-3)


def test_units_do_not_matter():
    """Residuals, floor and bound times c: sds times c; features times c: the same sds."""
    x, e = log_linear(np.random.default_rng(2), 80, np.array([1.0, 0.0]), -3.0)
    one = MODEL.sigma(taught(MODEL, x, e), x[0])
    loud = nw.VarianceModel(7.0, 0.14)
    assert loud.sigma(taught(loud, x, 7 * e), x[0]) == pytest.approx(7 * one)
    long = nw.VarianceModel(1.0, 0.02, feature_bound=7.0)
    assert long.sigma(taught(long, 7 * x, e), 7 * x[0]) == pytest.approx(one)


def test_long_streams_give_back_gamma():
    """Errors have variances of at most 2 (X'X)^-1; six of them in 5 numbers: false alarm 1e-8."""
    gamma, level, T = np.array([2.0, -1.0, 0.0, 1.0]), -3.5, 20_000
    x, e = log_linear(np.random.default_rng(3), T, gamma, level)
    state = taught(MODEL, x, e)
    rows = np.column_stack([x, np.ones(T)])
    error = np.sqrt(2 * np.diag(np.linalg.inv(rows.T @ rows)))
    assert (np.abs(-state.theta - [*gamma, level]) <= 6 * error + 0.005).all()  # ridge, tolerance


def test_one_outlier_moves_the_log_variance_by_a_logarithm():
    x = np.tile([0.6, 0.8], (50, 1))
    quiet = taught(MODEL, x, np.full(50, 0.1))
    moved = []
    for size in (1.0, 10.0, 100.0):
        state = copy.deepcopy(quiet)
        MODEL.update(state, x[0], size)
        moved.append(np.log(MODEL.variance(state, x[0]) / MODEL.variance(quiet, x[0])))
    # the mean of the squares itself: (50 * 0.01 + size^2) / 51
    np.testing.assert_allclose(moved[:2], np.log([1.5 / 0.51, 100.5 / 0.51]), rtol=0.15)
    assert moved[2] < 1.05 * np.log(10_000.5 / 0.51)
    for size in (1e3, 1e9):  # beyond a thousand times the bound residuals count as just that
        state = copy.deepcopy(quiet)
        MODEL.update(state, x[0], size)
        moved.append(MODEL.variance(state, x[0]))
    assert moved[3] == moved[4]


def test_what_a_reward_counts_with_by_hand():
    model = nw.VarianceModel(noise_bound=0.8, noise_floor=0.1)
    state = model.start(2)
    a = np.array([0.6, 0.8])
    assert model.variance(state, a) == pytest.approx(0.64)
    assert model.sigma(state, a) == 0.8  # twice the bound's square, cut to it
    for _ in range(200):
        model.update(state, a, 0.3)
    v = model.variance(state, a)
    assert v == pytest.approx(0.09, rel=0.02)  # the ridge still shows
    assert model.sigma(state, a) == pytest.approx(math.sqrt(2 * v))
    for _ in range(3000):
        model.update(state, a, 0.01)
    assert model.variance(state, a) < 0.005
    assert model.sigma(state, a) == 0.1
    for _ in range(100):
        model.update(state, a, 0.0)  # no residual at all is legal
    assert model.sigma(state, a) == 0.1


def test_bad_arguments_of_the_model():
    with pytest.raises(ValueError, match="noise_floor"):
        nw.VarianceModel(0.1, 0.1)
    with pytest.raises(ValueError, match="noise_bound"):
        nw.VarianceModel(-1.0)
    state = MODEL.start(2)
    before = state.array.copy()
    for x, residual in (([2.0, 0.0], 1.0), ([1.0], 1.0), ([1.0, 0.0], np.nan),
                        ([1.0, 0.0], [1.0, 2.0]), ([[1.0, 0.0]] * 2, 1.0)):  # fmt: skip
        with pytest.raises(ValueError):
            MODEL.update(state, x, residual)
    np.testing.assert_array_equal(state.array, before)


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_the_policy_is_ftrl_weighed_by_the_model(link):
    """Step by step from the two learners alone: residual and weight of before the reward."""
    glm = nw.GLM(link)
    policy = nw.FTRLUCB(glm, "estimated", 1.0, radius="practical", ridge=0.5)
    rounds = env.WORLDS[f"explained-{'linear' if glm.linear else link}"].draw(
        np.random.default_rng(4)
    )
    state, model, ftrl = policy.start(10), policy.variances, nw.FTRL(glm, 0.5)
    own, v = ftrl.start(10), model.start(10)
    for t in range(300):
        arm, y = rounds.arms[t % 20], float(rounds.rewards[t, t % 20])
        weight = model.sigma(v, arm) ** -2
        assert policy.weights.of(state, arm, 0.0, 1.0) == pytest.approx(weight, rel=1e-9)
        model.update(v, arm, y - ftrl.update(own, arm, y, weight))
        policy.update(state, arm, y, float(rounds.sigma[t, t % 20]))
    np.testing.assert_allclose(state.theta, own.theta, atol=1e-9)
    np.testing.assert_allclose(state.variance.theta, v.theta, atol=1e-9)


@pytest.mark.parametrize("compiled", [True, False])
def test_no_weight_looks_at_its_own_reward_or_at_a_sd_told(compiled):
    policy = nw.FTRLUCB(nw.GLM(), "estimated", 1.0, radius="practical", ridge=0.5)
    rng, states = np.random.default_rng(5), []
    x, y = sphere(rng, 40, 3), 0.1 * rng.normal(size=40)
    arm = np.array([0.6, 0.0, 0.8])
    for last, sigma in ((0.0, 0.3), (0.9, 1.0), (-50.0, 0.01)):
        state = policy.start(3)
        if not compiled:
            state.kernels = None
        for row, reward in zip(x, y, strict=True):
            policy.update(state, row, float(reward), sigma)
        before = state.curvature
        policy.update(state, arm, last, sigma)
        states.append((state.curvature - before, policy.weights.of(state, arm, 0.0, 1.0)))
    used, after = zip(*states, strict=True)
    assert 2 < used[0] < 399  # neither bound nor floor
    np.testing.assert_allclose(used, used[0], rtol=1e-12)
    assert after[0] > after[1] > after[2]  # but the next one does


def test_kernels_and_the_readable_way_agree():
    policy = nw.FTRLUCB(nw.GLM("logistic"), "estimated", 1.0, radius="practical")
    rounds = env.LogLinearBandit(glm=policy.glm, fixed=True, dim=4, arms=6, rounds=400).draw(
        np.random.default_rng(6)
    )
    slow = policy.start(4)
    slow.kernels = None
    for played in nw.choices(policy, rounds, np.random.default_rng(0)):
        k = policy.select(slow, rounds.arms, np.random.default_rng(0))
        assert k == played
        policy.update(slow, rounds.arms[k], float(rounds.rewards[slow.rounds, k]))
    assert slow.rounds == 400


def test_pickles_and_files_keep_the_variances(tmp_path):
    policy = nw.FTRLUCB(nw.GLM(), "estimated", 1.0, radius="practical")
    state, arm = policy.start(2), np.array([0.6, 0.8])
    for _ in range(20):
        policy.update(state, arm, 0.1)
    nw.save(tmp_path / "state.npz", policy, state)
    for other in (pickle.loads(pickle.dumps(state)), nw.load(tmp_path / "state.npz")[1]):
        policy.update(other, arm, 0.7)
        assert other.variance.count == 21
    assert nw.MORUCB().start(2).variance is None


def test_bad_arguments_of_the_policy():
    with pytest.raises(ValueError, match="noise_bound"):
        nw.FTRLUCB(noise="estimated", radius="practical")
    with pytest.raises(ValueError, match="radius='practical'"):
        nw.FTRLUCB(noise="estimated", noise_bound=1.0)
    with pytest.raises(ValueError, match="noise_floor"):
        nw.FTRLUCB(nw.GLM(), "estimated", 0.05, 0.05, radius="practical")


def test_an_agent_says_that_variances_are_estimated():
    policy = nw.FTRLUCB(nw.GLM(), "estimated", 1.0, radius="practical")
    agent = nw.Agent(policy, 2)
    agent.choose(np.eye(2))
    agent.learn(None, 0.4)
    assert all("variances are estimated" in each.note for each in agent.explain(np.eye(2)))
    with pytest.raises(ValueError, match="estimates variances itself"):
        nw.Agent(policy, 2, sigma="estimated")


def test_sets_pay_for_the_ratio_of_bound_and_floor():
    """Before any reward, b = ridge B^2 + (R/floor)^2 log(1/delta)/kappa, R/floor = 10."""
    glm = nw.GLM("logistic", 2.0, 1.0)
    policy = nw.FTRLUCB(glm, "estimated", 0.5, 0.05, delta=0.1, radius="practical")
    state = policy.start(2)
    b = state.layers[0].ridge + 100 * math.log(10) / glm.min_slope
    for ellipsoid in policy.confidence(state):
        assert ellipsoid.radius == pytest.approx(math.sqrt(2 * b))


def test_sets_hold_though_variances_are_estimated():
    """The sets rely on the bound alone; a run misses with at most 10 %: false alarm below 1e-8.

    Noise that nothing explains, so that estimated variances are often below the true ones.
    """
    policy = nw.FTRLUCB(nw.GLM(), "estimated", 0.5, 0.1, delta=0.1, radius="practical")
    world = env.NoisyBandit(env.MostlyHigh(0.05, 0.5, 0.8), fixed=True, dim=3, arms=6, rounds=150)
    missed = below = 0
    for run in range(20):
        rounds, state = world.draw(np.random.default_rng([7, run])), policy.start(3)
        inside = True
        for t in range(150):
            k = policy.select(state, rounds.arms, np.random.default_rng(0))
            below += policy.variances.sigma(state.variance, rounds.arms[k]) < rounds.sigma[t]
            policy.update(state, rounds.arms[k], float(rounds.rewards[t, k]))
            inside &= all(each.contains(rounds.theta) for each in policy.confidence(state))
        missed += not inside
    assert below > 300
    assert missed <= binom.isf(1e-8, 20, 0.1)


@pytest.mark.parametrize("link", ["identity", "logistic", "exponential", "tanh"])
def test_the_largest_sd_of_a_family_against_a_grid(link):
    glm, rng = nw.GLM(link, parameter_bound=2.0), np.random.default_rng(8)
    low = rng.uniform(-2.5, 2.0, 50)
    high = low + rng.uniform(0.0, 2.0, 50)
    found = theory.family_sigma(glm, low, high, dispersion=0.7)
    for a, b, sd in zip(low, high, found, strict=True):
        grid = np.clip(np.linspace(a, b, 4001), -2.0, 2.0)
        assert sd == pytest.approx(np.sqrt(0.7 * glm.slope(grid).max()), rel=1e-6)


def test_the_sd_of_a_family_by_hand_and_bad_arguments():
    logistic = nw.GLM("logistic", parameter_bound=5.0)
    assert theory.family_sigma(logistic, -1.0, 0.1) == 0.5
    assert theory.family_sigma(logistic, 2.0, 3.0) == pytest.approx(
        math.sqrt(float(logistic.mean(2.0) * logistic.mean(-2.0)))
    )
    poisson = nw.GLM("exponential", parameter_bound=5.0)
    assert theory.family_sigma(poisson, 0.0, 1.0) == pytest.approx(math.exp(0.5))
    with pytest.raises(ValueError, match="probit"):
        theory.family_sigma(nw.GLM("probit"), 0.0, 1.0)
    with pytest.raises(ValueError, match="lower"):
        theory.family_sigma(logistic, 1.0, 0.0)


def test_layers_told_the_sd_of_a_set_hold_the_parameter():
    """Set and layers of delta/2 each: together they miss in 10 % of runs at most; false alarm
    below 1e-8. Wherever the set holds, the sd told is at least the true one."""
    glm = nw.GLM("logistic", parameter_bound=3.0)
    known = nw.FTRLUCB(glm, "likelihood", delta=0.05)
    layers = nw.MORUCB(glm, 1.0, 0.1, delta=0.05)
    world = env.FamilyBandit(glm=glm, fixed=True, dim=3, arms=6, rounds=120, most=1)
    missed = 0
    for run in range(12):
        rounds, inside = world.draw(np.random.default_rng([9, run])), True
        a, b = known.start(3), layers.start(3)
        for t in range(120):
            k = layers.select(b, rounds.arms, np.random.default_rng(0))
            arm, y = rounds.arms[k], float(rounds.rewards[t, k])
            bounds = score_bounds(known.confidence(a), arm[None], glm.parameter_bound)
            inside &= all(each.contains(rounds.theta) for each in known.confidence(a))
            sd, p = float(theory.family_sigma(glm, *bounds)[0]), rounds.means[t, k]
            assert not inside or sd >= math.sqrt(p * (1 - p)) * (1 - 1e-12)
            known.update(a, arm, y)
            layers.update(b, arm, y, sd)
            inside &= all(each.contains(rounds.theta) for each in layers.confidence(b))
        missed += not inside
    assert missed <= binom.isf(1e-8, 12, 0.1)


def test_the_sd_of_many_rows_and_bad_ones():
    x, e = log_linear(np.random.default_rng(11), 40, np.array([1.0, -1.0]), -3.0)
    state = taught(MODEL, x, e)
    many = MODEL.sigma(state, x)
    assert many.tolist() == [MODEL.sigma(state, row) for row in x]
    np.testing.assert_allclose(
        many, np.clip(np.sqrt(INFLATION * MODEL.variance(state, x)), 0.02, 1.0), rtol=1e-12
    )
    with pytest.raises(ValueError, match="x holds nan"):
        MODEL.sigma(state, [np.nan, 0.0])
    with pytest.raises(ValueError, match="dim is -1"):
        MODEL.start(-1)
