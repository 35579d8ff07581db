"""Policies for generalised linear rewards: identities, sets that hold each other, coverage."""

import dataclasses

import numpy as np
import pytest
from instances import CAUCHIT, sphere
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

import noisewise as nw
from noisewise import linalg
from noisewise.bandits.glb_omd import spread_factor
from noisewise.bandits.gloc import closed_score_error, score_error

RNG = np.random.default_rng
FAMILIES = ("identity", "logistic", "exponential", "tanh", "probit")


def reward(glm, z, rng):
    mean = float(glm.mean(z))
    if glm.linear:
        return mean + rng.normal()
    return float(rng.poisson(mean) if glm.link.name == "exponential" else rng.random() < mean)


def learnt(policy, count=40, dim=3, seed=0, size=1.0):
    """A state, and the rows it has learnt; the truth has ``size`` times the largest norm."""
    rng, glm = RNG([seed, 9]), policy.glm
    theta = size * glm.parameter_bound * sphere(rng, 1, dim)[0]
    x = glm.feature_bound * rng.uniform(0.3, 1.0, size=(count, 1)) * sphere(rng, count, dim)
    y = np.array([reward(glm, row @ theta, rng) for row in x])
    state = policy.start(dim)
    for row, r in zip(x, y, strict=True):
        policy.update(state, row, r)
    return state, x, y


# UCBGLM


def test_ucb_glm_on_the_identity_link_is_least_squares_with_one_width():
    """Once warm: OLS and its unregularised widths written out, to the tiny ridge."""
    policy = nw.UCBGLM(sigma=0.3, horizon=500, delta=0.1)
    state, x, y = learnt(policy)
    assert state.warm
    arms, V = sphere(RNG(1), 200, 3), x.T @ x
    alpha = 0.3 * np.sqrt(1.5 * np.log1p(1000 / 3) + np.log(10))
    index = arms @ np.linalg.lstsq(x, y, rcond=None)[0]
    index += alpha * np.sqrt(np.einsum("ij,ij->i", arms @ np.linalg.inv(V), arms))
    assert policy.select(state, arms, RNG(0)) == np.argmax(index)
    np.testing.assert_allclose(state.theta, np.linalg.lstsq(x, y, rcond=None)[0], rtol=1e-5)
    assert policy.radius(state) == pytest.approx(alpha)


def test_ucb_glm_ranks_by_score():
    """Where the width is nothing the choice is that of the estimated score, whatever the link."""
    policy = nw.UCBGLM(nw.GLM(CAUCHIT), radius_scale=0.0)
    state, *_ = learnt(policy)
    arms = sphere(RNG(2), 50, 3)
    assert policy.select(state, arms, RNG(0)) == np.argmax(arms @ state.theta)


def test_ucb_glm_plays_at_random_until_the_arms_span():
    """A policy that never sees the second axis stops after ``warmup`` rounds, and says so."""
    policy = nw.UCBGLM(nw.GLM("logistic", 2.0, 1.0), warmup=7)
    state, arms = policy.start(2), np.tile([[2.0, 0.0]], (50, 1))
    for t in range(9):
        k = policy.select(state, arms, RNG(t))
        assert k == (RNG(t).integers(50) if t < 7 else 0)
        policy.update(state, arms[k], 1.0)
    assert not state.warm
    policy.update(state, [0.0, 1.9], 1.0)
    assert not state.warm  # the least eigenvalue is 3.61, below A^2 = 4
    policy.update(state, [0.0, 0.7], 1.0)
    assert state.warm


def test_ucb_glm_on_a_curved_link_written_out():
    """The slope divides alpha, and widths are added to scores, not to means."""
    policy = nw.UCBGLM(nw.GLM("logistic", 1.0, 2.0), 0.4, 500, delta=0.1, radius_scale=0.5)
    state, x, _ = learnt(policy)
    kappa = np.exp(-2) / (1 + np.exp(-2)) ** 2
    alpha = 0.5 * 0.4 / kappa * np.sqrt(1.5 * np.log1p(1000 / 3) + np.log(10))
    assert policy.radius(state) == pytest.approx(alpha)
    other = 0
    for seed in range(20):
        arms = RNG([seed, 2]).uniform(0.2, 1, size=(9, 1)) * sphere(RNG(seed), 9, 3)
        wide = np.sqrt(np.einsum("ij,ij->i", arms @ np.linalg.inv(x.T @ x), arms))
        z = arms @ state.theta
        assert policy.select(state, arms, RNG(0)) == np.argmax(z + alpha * wide)
        other += np.argmax(z + alpha * wide) != np.argmax(policy.glm.mean(z) + alpha * wide)
    assert other > 0


def test_ucb_glm_warms_up_no_longer_than_it_must():
    """At most 10 d rounds by default; none once warm; its ridge does not count as arms."""
    policy = nw.UCBGLM(ridge=0.3)
    state, arms = policy.start(2), np.tile([[1.0, 0.0]], (1000, 1))
    for t in range(21):
        k = policy.select(state, arms, RNG(t))
        assert k == (RNG(t).integers(1000) if t < 20 else 0)
        policy.update(state, arms[0], 0.5)
    state = policy.start(2)
    for arm in ([1.0, 0.0], [0.0, 0.9]):
        policy.update(state, arm, 0.5)
    assert not state.warm  # 0.81 < 1
    policy.update(state, [0.0, 0.9], 0.5)
    assert state.warm
    assert all(policy.select(state, arms, RNG(t)) == 0 for t in range(5))


# GLOC


def test_gloc_root_is_below_the_closed_form():
    """Two thousand random settings; the root solves its equation and saves what is stated."""
    rng, saved = RNG(3), []
    for b, R, kappa, delta in zip(
        10 ** rng.uniform(-3, 4, 2000),
        10 ** rng.uniform(-2, 1, 2000),
        10 ** rng.uniform(-2, 0.5, 2000),
        10 ** rng.uniform(-6, -0.05, 2000),
        strict=True,
    ):
        q = score_error(b, R, kappa, delta)
        right = 2 * b / kappa
        right += 2 * R / kappa * np.sqrt(2 * (1 + q) * np.log(np.sqrt(1 + q) / delta))
        assert q == pytest.approx(right, rel=1e-9)
        saved.append(closed_score_error(b, R, kappa, delta) / q)
    assert min(saved) >= 1
    low, high = np.quantile(saved, [0.05, 0.95])
    assert 1.3 < low < high < 2.2


def test_gloc_on_the_identity_link_learns_ridge_predictions():
    """Slope 1 and a ball never left: the learner is ridge regression, and V its matrix."""
    policy = nw.GLOC(nw.GLM("identity", 1.0, 50.0), ridge=0.7)
    state, x, y = learnt(policy, size=0.02)
    z = nw.predictions(nw.Ridge(0.7), x, y)
    V = 1.4 * np.eye(3) + x.T @ x
    centre = np.linalg.solve(V, x.T @ z)
    np.testing.assert_allclose(state.theta, centre, atol=1e-10)
    h = [
        r @ np.linalg.inv(1.4 * np.eye(3) + x[: i + 1].T @ x[: i + 1]) @ r for i, r in enumerate(x)
    ]
    b = 0.7 * 50**2 + 0.5 * np.sum((z - y) ** 2 * h)
    left = np.sum((z - x @ centre) ** 2) + 1.4 * centre @ centre  # the least penalised squares
    square = 1.4 * 50**2 + score_error(b, 1.0, 1.0, 0.05) - left
    assert policy.radius(state) == pytest.approx(np.sqrt(square), rel=1e-9)


@pytest.mark.parametrize("A", [1.0, 2.0])
def test_gloc_on_a_curved_link_written_out(A):
    """The learner, its regret and the set from their formulas; the learner leaves the ball."""
    policy = nw.GLOC(nw.GLM("logistic", A, 1.2), 0.5, ridge=0.4, delta=0.1)
    state, x, y = learnt(policy, count=80)
    glm, B, kappa = policy.glm, 1.2, float(policy.glm.slope(1.2 * A))
    V, theta, b, z, outside = 0.8 * np.eye(3), np.zeros(3), kappa * 0.8 / 2 * B**2, [], 0
    for row, r in zip(x, y, strict=True):
        V = V + np.outer(row, row)
        z.append(row @ theta)
        miss = glm.mean(z[-1]) - r
        b += miss**2 * (row @ np.linalg.solve(V, row)) / (2 * kappa)
        free = theta - miss / kappa * np.linalg.solve(V, row)
        theta = linalg.project_ball(V, free, B)
        outside += np.linalg.norm(free) > B
    centre = np.linalg.solve(V, x.T @ z)
    np.testing.assert_allclose(state.learner.theta, theta, atol=1e-9)
    np.testing.assert_allclose(state.theta, centre, atol=1e-9)
    assert state.regret == pytest.approx(b, rel=1e-9)
    assert outside > 3
    left = np.sum((z - x @ centre) ** 2) + 0.8 * centre @ centre
    square = 0.8 * B**2 + score_error(b, 0.5, kappa, 0.1) - left
    assert policy.radius(state) == pytest.approx(np.sqrt(square), rel=1e-9)
    assert policy.radius(state, 0.3) == pytest.approx(0.3 * np.sqrt(square), rel=1e-9)


# GLBOMD


@pytest.mark.parametrize("loss", ["linear", "exact"])
def test_gaussian_glb_omd_is_ridge(loss):
    """In a ball never left, with any dispersion: estimate, matrix and (M = 0) radius."""
    g = 0.3
    policy = nw.GLBOMD(nw.GLM("identity", 1.0, 50.0), loss, dispersion=g, ridge=0.7, delta=0.1)
    state, x, y = learnt(policy, size=0.02)
    H = 1.4 * np.eye(3) + x.T @ x / g
    np.testing.assert_allclose(state.theta, np.linalg.solve(H, x.T @ y / g), atol=1e-10)
    np.testing.assert_allclose(state.inverse @ H, np.eye(3), atol=1e-10)
    square = 1.4 * 2500 + 2 * np.log(10) + np.linalg.slogdet(H / 1.4)[1]
    assert policy.radius(state) == pytest.approx(np.sqrt(square), rel=1e-10)


def test_both_losses_are_one_for_the_identity_link():
    """With projections too: the loss is quadratic."""
    glm = nw.GLM("identity", 1.0, 0.6)
    one, *_ = learnt(nw.GLBOMD(glm, ridge=0.1))
    other, *_ = learnt(nw.GLBOMD(glm, "exact", ridge=0.1))
    np.testing.assert_allclose(one.theta, other.theta, atol=1e-9)
    assert nw.GLBOMD(glm, ridge=0.1).radius(one) == pytest.approx(
        nw.GLBOMD(glm, "exact", ridge=0.1).radius(other)
    )


@pytest.mark.parametrize("link", FAMILIES)
@pytest.mark.parametrize("loss", ["linear", "exact"])
def test_every_step_is_the_minimiser_of_its_program(link, loss):
    """Stationarity in the interior, and on the sphere the gradient along the outer normal."""
    glm, g = nw.GLM(link, 1.0, 1.5), 0.5
    least = nw.GLBOMD(glm, loss, dispersion=g)._share(1.0)
    policy = nw.GLBOMD(glm, loss, dispersion=g, ridge=0.05 + 1.2 * least)
    rng, eta, ends = RNG(4), policy.eta, np.clip(policy.reward_range, -30, 30)
    state, sides = policy.start(3), set()
    for t, x in enumerate(sphere(rng, 120 if loss == "exact" else 300, 3)):
        before, H = state.theta.copy(), state.design.V.copy()
        y = reward(glm, x @ [1.4, 0.0, 0.0], rng) if t < 60 else ends[int(x[0] > 0)]
        policy.update(state, x, y)
        z, move = x @ state.theta, state.theta - before
        at = z if loss == "exact" else x @ before
        slope = 0.0 if loss == "exact" else glm.slope(at) * (x @ move)
        gradient = (glm.mean(at) + slope - y) / g * x + H @ move / eta
        nu = -(gradient @ state.theta) / 1.5**2 if np.linalg.norm(state.theta) > 1.5 - 1e-9 else 0
        sides.add(nu > 1e-6)
        assert nu >= -1e-8
        assert np.linalg.norm(gradient + nu * state.theta) < 1e-8 * max(1, abs(y))
        np.testing.assert_allclose(state.design.V - H, glm.slope(z) / g * np.outer(x, x), atol=1e-9)
    assert sides == {True, False}


@pytest.mark.parametrize("link", FAMILIES)
def test_self_concordance_holds_the_loss_between_two_curves(link):
    """phi' u^2/(2 + M|u|) <= Bregman gap <= phi' (e^{M|u|} - 1 - M|u|)/M^2 on the scores in use."""
    glm = nw.GLM(link, 1.0, 2.0)
    rng, M = RNG(5), glm.self_concordance
    z, v = rng.uniform(-2, 2, size=(2, 4000))
    u = v - z
    gap = glm.potential(v) - glm.potential(z) - glm.mean(z) * u
    a = M * np.abs(u)
    low = glm.slope(z) * u**2 / (2 + a)
    high = glm.slope(z) * (np.expm1(a) - a) / M**2 if M else glm.slope(z) * u**2 / 2
    assert (low <= gap + 1e-12).all()
    assert (gap <= high + 1e-12).all()


@pytest.mark.parametrize("r", [1e-5, 9e-4, 1.1e-3, 0.3, 2.0, 6.0])
def test_spread_factor_is_the_expectation(r):
    def term(n):
        return 2 * norm.pdf(n) * (np.expm1(r * n) - r * n)

    exact = 1.0 if r < 1e-4 else 2 * quad(term, 0, 40, epsabs=0, epsrel=1e-10)[0] / r**2
    assert spread_factor(r) == pytest.approx(exact, rel=1e-4 if r < 1e-4 else 1e-8)


@pytest.mark.parametrize("link", FAMILIES)
def test_the_prescribed_ridge_keeps_the_factors_small(link):
    """With it the expansion eats at most a third of a step, and the spread factor is <= 1.21."""
    for bound, g in ((0.5, 1.0), (2.0, 0.1), (3.0, 5.0)):
        policy = nw.GLBOMD(nw.GLM(link, 1.0, bound), dispersion=g)
        lam = policy.prescribed(1)
        assert policy._share(lam) <= 1 / 3 + 1e-12
        assert spread_factor(policy._reach(lam)) <= 1.21


def test_the_ridge_of_glb_omd_written_out():
    """Logistic, A = 2, B = 3/4, so S = 3/2, M = tanh(3/4), eta = 1 + MS, K = 1/4."""
    M = np.tanh(0.75)
    eta = 1 + 1.5 * M
    glm = nw.GLM("logistic", 2.0, 0.75)
    assert nw.GLBOMD(glm).prescribed(5) == pytest.approx(2 * 14 * 5 * eta * M**2)
    assert nw.GLBOMD(glm, "exact").prescribed(5) == pytest.approx(2 * 8 * 5 * eta * M**2)
    few = nw.GLBOMD(glm, dispersion=0.01)  # then the expansion's error decides
    assert few.prescribed(5) == pytest.approx(2 * 6 * eta * M * 1.5 * 0.25 / 0.01)
    assert nw.GLBOMD(glm, "exact", dispersion=0.01).prescribed(5) == pytest.approx(
        2 * 8 * 5 * eta * M**2
    )
    for loss in ("linear", "exact"):
        assert nw.GLBOMD(nw.GLM("identity", 2.0, 0.75), loss).prescribed(5) == pytest.approx(
            2 / 1.5**2
        )


@pytest.mark.parametrize(("loss", "ridge"), [("linear", None), ("linear", 9.0), ("exact", 0.2)])
def test_the_radius_of_glb_omd_written_out(loss, ridge):
    """Logistic as above, g = 1/2; the factor f by quadrature."""
    M, g = np.tanh(0.75), 0.5
    eta = 1 + 1.5 * M
    policy = nw.GLBOMD(nw.GLM("logistic", 2.0, 0.75), loss, dispersion=g, ridge=ridge, delta=0.1)
    state, *_ = learnt(policy)
    lam = ridge or 2 * 14 * 3 * eta * M**2
    rho = eta * M * 1.5 * 0.25 * 4 / (lam * g) if loss == "linear" else 0.0
    assert loss == "exact" or 0.05 < rho < 0.9
    c = eta / (1 - rho)
    r = M * 2 * np.sqrt(c / (2 * lam))

    def term(n):
        return 2 * norm.pdf(n) * (np.expm1(r * n) - r * n)

    f = 2 * quad(term, 0, 40, epsabs=0, epsrel=1e-10)[0] / r**2
    growth = -np.linalg.slogdet(2 * lam * state.inverse)[1]
    square = 2 * lam * 0.75**2 + 2 * eta * np.log(10) + eta * c * f * growth
    assert policy.radius(state) == pytest.approx(np.sqrt(square), rel=1e-7)


def test_scaling_the_features_changes_nothing():
    """Arms twice as long and a ball half as wide are the same problem, for all four."""
    for make in (
        lambda glm: nw.GLBOMD(glm),
        lambda glm: nw.GLBOMD(glm, "exact"),
        lambda glm: nw.OFUGLB(glm),
        lambda glm: nw.GLOC(glm, 0.5, ridge=0.5 * glm.feature_bound**2),
        lambda glm: nw.UCBGLM(glm, 0.5, ridge=1e-6 * glm.feature_bound**2),
    ):
        one, two = make(nw.GLM("logistic", 1.0, 2.0)), make(nw.GLM("logistic", 2.0, 1.0))
        a, x, y = learnt(one, seed=1)
        b = two.start(3)
        for row, r in zip(2 * x, y, strict=True):
            two.update(b, row, r)
        np.testing.assert_allclose(a.theta, 2 * b.theta, atol=1e-6)
        assert one.radius(a) == pytest.approx(two.radius(b), rel=1e-9)


# OFUGLB


@pytest.mark.parametrize("link", FAMILIES)
@pytest.mark.parametrize("size", [0.3, 1.0])
def test_ofuglb_estimate_is_the_constrained_minimum(link, size):
    """Gradient 0 inside, or along the outer normal; scipy finds nothing lower."""
    policy = nw.OFUGLB(nw.GLM(link, 1.0, 1.5), dispersion=0.7)
    state, x, y = learnt(policy, size=size)
    glm, B = policy.glm, 1.5

    def loss(theta):
        z = x @ theta
        return np.sum(glm.potential(z) - y * z) / 0.7

    gradient = x.T @ (glm.mean(x @ state.theta) - y) / 0.7
    on = np.linalg.norm(state.theta) > B - 1e-9
    nu = -(gradient @ state.theta) / B**2 if on else 0.0
    assert nu >= 0
    assert np.linalg.norm(gradient + nu * state.theta) < 1e-7
    ball = {"type": "ineq", "fun": lambda u: B**2 - u @ u}
    other = minimize(loss, np.zeros(3), constraints=ball, method="SLSQP")
    assert loss(state.theta) <= other.fun + 1e-6
    assert 0 < state.slack < 1e-8


@pytest.mark.parametrize("link", ["identity", "logistic", "exponential"])
def test_ofuglb_ellipsoid_holds_its_set(link):
    """Points of the ball, in the end most of them on the set's border: none is outside."""
    policy, rng = nw.OFUGLB(nw.GLM(link, 1.0, 2.0), delta=0.5), RNG(6)
    for count in (1, 8, 600):
        state, *_ = learnt(policy, count)
        (ellipsoid,), b, inside = policy.confidence(state), policy.level(state), 0
        for direction in sphere(rng, 60, 3):
            far = state.theta + 4 * direction
            far *= min(1.0, 2.0 / np.linalg.norm(far))
            low, high = 0.0, 1.0  # along the segment the loss is convex, so the set is an interval
            for _ in range(20):
                mid = (low + high) / 2
                there = state.theta + mid * (far - state.theta)
                low, high = (mid, high) if policy.excess(state, there) <= b else (low, mid)
            theta = state.theta + low * (far - state.theta)
            inside += low < 0.99
            assert ellipsoid.contains(theta)
        assert inside > 30 or count < 600


def test_ofuglb_begins_at_log_one_over_delta_plus_d():
    policy = nw.OFUGLB(nw.GLM("logistic"), delta=0.1)
    assert policy.level(policy.start(4)) == pytest.approx(np.log(10) + 4)
    state, x, y = learnt(policy)
    p = policy.glm.mean(np.linalg.norm(x, axis=1))
    steep = np.linalg.norm(x, axis=1) @ np.maximum(np.abs(y - p), np.abs(y - 1 + p))
    wanted = np.log(10) + 3 * np.log(2 * np.e * steep / 3)
    assert policy.level(state) == pytest.approx(wanted)


@pytest.mark.parametrize("ridge", [None, 0.3])
def test_the_ellipsoid_of_ofuglb_written_out(ridge):
    """Logistic, A = 2, B = 3/4, g = 1/2: H = Hessian + 2 ridge I, 2 eta b + 8 ridge B^2."""
    policy = nw.OFUGLB(nw.GLM("logistic", 2.0, 0.75), dispersion=0.5, ridge=ridge, delta=0.1)
    state, x, y = learnt(policy)
    eta = 1 + 1.5 * np.tanh(0.75)
    lam = eta / (4 * 0.75**2) if ridge is None else ridge
    long = np.linalg.norm(x, axis=1)
    p = policy.glm.mean(0.75 * long)
    steep = 2 * long @ np.maximum(np.abs(y - p), np.abs(y - 1 + p))
    b = np.log(10) + 3 * np.log(2 * np.e * 0.75 * steep / 3)
    H = 2 * x.T @ (policy.glm.slope(x @ state.theta)[:, None] * x) + 2 * lam * np.eye(3)
    (ellipsoid,) = dataclasses.replace(policy, radius_scale=0.3).confidence(state)
    np.testing.assert_allclose(ellipsoid.inverse @ H, np.eye(3), atol=1e-9)
    assert ellipsoid.radius == pytest.approx(np.sqrt(2 * eta * b + 8 * lam * 0.75**2), rel=1e-9)
    before, state.slack = state.slack, 3.0
    unsolved = policy.radius(state)
    assert unsolved**2 == pytest.approx(ellipsoid.radius**2 + 6 * eta, rel=1e-9)
    state.slack = before
    half = dataclasses.replace(policy, radius_scale=0.5)
    index = x @ state.theta + 0.5 * ellipsoid.radius * np.sqrt(
        np.einsum("ij,ij->i", x @ ellipsoid.inverse, x)
    )
    np.testing.assert_allclose(half.index(state, x), index, rtol=1e-9)


def test_ofuglb_set_of_the_identity_link_is_an_ellipsoid():
    """In a wide ball: x.theta + sqrt(2b) ||x|| in the norm of the inverse of sum xx'/g."""
    g = 0.25
    policy = nw.OFUGLB(nw.GLM("identity", 1.0, 9.0), "set", dispersion=g)
    state, x, y = learnt(policy, 60, size=0.1)
    G = x.T @ x / g
    for arm in sphere(RNG(7), 5, 3):
        wide = np.sqrt(2 * policy.level(state) * (arm @ np.linalg.solve(G, arm)))
        centre = np.linalg.solve(G, x.T @ y / g)
        assert policy.upper(state, arm) == pytest.approx(arm @ centre + wide, rel=1e-6)
        half = dataclasses.replace(policy, radius_scale=0.5)
        assert half.upper(state, arm) == pytest.approx(arm @ centre + wide / 2, rel=1e-6)


def test_ofuglb_set_form_equals_the_border_traced():
    """In the plane: the largest score over a grid of the set, and the choice by it."""
    policy = nw.OFUGLB(nw.GLM("logistic", 1.0, 2.0), "set", delta=0.5)
    state, *_ = learnt(policy, 60, dim=2)
    b = policy.level(state)
    angle = np.linspace(0, 2 * np.pi, 500)
    grid = np.linspace(0, 2, 101)[:, None, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    theta = grid.reshape(-1, 2)
    x, n = state.rows.x[0], len(state.rows.x[0]) - state.rows.free
    w, wy = state.rows.numbers[0][:2, :n]
    z = theta @ x[:n].T
    value = policy.glm.potential(z) @ w - z @ wy
    inside = theta[value - policy._visit(state, state.theta).value <= b]
    arms = sphere(RNG(8), 12, 2)
    scores = (arms @ inside.T).max(axis=1)
    uppers = np.array([policy.upper(state, arm) for arm in arms])
    assert (uppers >= scores - 1e-6).all()
    np.testing.assert_allclose(uppers, scores, atol=0.05)
    assert policy.select(state, arms, RNG(0)) == np.argmax(uppers)


def test_ofuglb_looks_at_every_arm_that_its_set_could_prefer():
    """The arm of the largest bound over the set, also where the ellipsoid prefers another."""
    policy, other, near = nw.OFUGLB(nw.GLM("logistic", 1.0, 2.0), "set", delta=0.5), 0, 0
    state, *_ = learnt(policy, 40, dim=2)
    ellipsoid = policy.ellipsoid(state)
    for seed in range(40):
        arms = RNG([seed, 4]).uniform(0.1, 1.0, size=(8, 1)) * sphere(RNG(seed), 8, 2)
        outer = ellipsoid.upper(arms)  # which also counts where the program found no optimum
        uppers = np.minimum([policy.upper(state, arm) for arm in arms], outer)
        assert policy.select(state, arms, RNG(0)) == np.argmax(uppers)
        other += np.argmax(uppers) != np.argmax(outer)
        reach = outer - max(uppers)
        assert np.array_equal(np.isfinite(policy.index(state, arms)), reach >= 0)
        near += np.sum((reach >= 0) & (reach < 0.1))
    assert other > 0
    assert near > 0


# coverage


def ratios(policy, runs, rounds):
    """The largest error/radius of each run; for OFUGLB also the root of that of its set."""
    largest = np.zeros((runs, 2))
    for seed in range(runs):
        rng = RNG([seed, 5])
        theta, state = policy.glm.parameter_bound * sphere(rng, 1, 3)[0], policy.start(3)
        for _ in range(rounds):
            arms = sphere(rng, 5, 3)
            x = arms[policy.select(state, arms, rng)]
            policy.update(state, x, reward(policy.glm, x @ theta, rng))
            (ellipsoid,) = policy.confidence(state)
            ratio = ellipsoid.distance(theta) / ellipsoid.radius
            square = 0.0
            if isinstance(policy, nw.OFUGLB):
                square = policy.excess(state, theta) / policy.level(state)
            largest[seed] = np.maximum(largest[seed], [ratio, np.sqrt(max(square, 0.0))])
    return largest.T


LOGISTIC = nw.GLM("logistic")
# policy, and the critical scale its docstring states: the 0.9-quantile of error/radius
COVERED = [
    (nw.GLBOMD(LOGISTIC, delta=0.1), 0.94),
    (nw.GLBOMD(LOGISTIC, "exact", delta=0.1), 0.93),
    (nw.OFUGLB(LOGISTIC, delta=0.1), 0.44),
    (nw.GLOC(LOGISTIC, 0.5, delta=0.1), 0.28),
]
OF_THE_SET = 0.56  # that of OFUGLB's set


@pytest.mark.parametrize(("policy", "critical"), COVERED, ids=repr)
def test_sets_hold_the_parameter(policy, critical):
    """60 runs of 60 rounds, arms chosen by the policy, delta 0.1.

    At most 22 runs may miss: P(Bin(60, 0.1) > 22) < 1e-7. The critical scale is of the long run
    below, met here to 0.1. OFUGLB's sets must miss at a third of their radius in more than a tenth
    of the runs: half of them do, P(Bin(60, 0.5) <= 6) < 1e-10.
    """
    found, inner = ratios(policy, 60, 60)
    assert np.sum(found > 1) <= 22
    assert np.quantile(found, 0.9) == pytest.approx(critical, abs=0.1)
    assert f" {critical:.2f}" in policy.__doc__
    if isinstance(policy, nw.OFUGLB):
        assert np.quantile(inner, 0.9) == pytest.approx(OF_THE_SET, abs=0.1)
        assert f" {OF_THE_SET:.2f} (set" in policy.__doc__
        assert np.sum(inner > 1) <= 22
        assert np.sum(found > 1 / 3) > 6
        assert np.sum(inner > 1 / 3) > 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "critical", "link"),
    [
        (*case, link)
        for case in COVERED
        for link in ("identity", "logistic", "exponential")
        if link != "exponential" or not isinstance(case[0], nw.GLOC)  # counts: not sub-Gaussian
    ],
    ids=repr,
)
def test_sets_hold_the_parameter_of_every_family(policy, critical, link):
    """300 runs of 200 rounds: at most 62 may miss, P(Bin(300, 0.1) > 62) < 1e-7.

    On the logistic link the critical scale is met to 0.02.
    """
    policy = dataclasses.replace(policy, glm=nw.GLM(link))
    if isinstance(policy, nw.GLOC) and link == "identity":
        policy = dataclasses.replace(policy, sigma=1.0)
    found, inner = ratios(policy, 300, 200)
    assert np.sum(found > 1) <= 62
    assert np.sum(inner > 1) <= 62
    if link == "logistic":
        assert np.quantile(found, 0.9) == pytest.approx(critical, abs=0.02)
        if isinstance(policy, nw.OFUGLB):
            assert np.quantile(inner, 0.9) == pytest.approx(OF_THE_SET, abs=0.02)


# bad input


@pytest.mark.parametrize(("size", "link"), [(1e3, "exponential"), (-1e40, "identity")])
def test_an_absurd_reward_does_no_harm(size, link):
    """Also where the link may not be extended: the estimate stays in the ball, the set finite."""
    glm = nw.GLM(link, extend=False)
    for policy in (nw.GLBOMD(glm), nw.GLBOMD(glm, "exact"), nw.OFUGLB(glm), nw.GLOC(glm)):
        state = policy.start(2)
        for x in ([1.0, 0.0], [0.6, 0.8]):
            policy.update(state, x, size)
        (ellipsoid,) = policy.confidence(state)
        assert np.isfinite(ellipsoid.upper(np.eye(2))).all()
        assert isinstance(policy, nw.GLOC) or np.linalg.norm(state.theta) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("link", "low", "high"),
    [
        ("logistic", 0, 1),
        ("probit", 0, 1),
        ("tanh", -1, 1),
        ("exponential", 0, np.inf),
        ("identity", -np.inf, np.inf),
    ],
)
def test_rewards_outside_the_family_are_refused(link, low, high):
    """Before the state is touched; both ends belong to it."""
    glm = nw.GLM(link)
    for policy in (
        nw.GLBOMD(glm), nw.GLBOMD(glm, "exact"), nw.OFUGLB(glm), nw.FTRLUCB(glm, "likelihood"),
        nw.FTRLUCB(glm, "likelihood", radius="practical"),
    ):  # fmt: skip
        assert policy.reward_range == (low, high)
        state = policy.start(2)
        for bad in (low - 1e-6, high + 1e-6):
            if np.isfinite(bad):
                for arm in ([1.0, 0.0], np.array([1.0, 0.0])):
                    with pytest.raises(ValueError, match=f"rewards of the {link} family lie in"):
                        policy.update(state, arm, bad)
        assert state.count == 0
        assert not state.theta.any()
        for good in np.clip((low, high), -9, 9):
            policy.update(state, [1.0, 0.0], good)
        assert state.count == 2


@pytest.mark.parametrize("policy", [nw.OFUGLB(LOGISTIC), nw.GLBOMD(LOGISTIC, "exact")], ids=repr)
def test_arms_too_short_to_curve_a_loss_are_legal(policy):
    """Squares of 1e-160 are nothing: the curvature is 0, the estimate stays in the ball."""
    state = policy.start(2)
    for x in ([1e-160, 0.0], [0.0, 1e-160], [0.6, 0.8]):
        policy.update(state, x, 1.0)
        assert np.linalg.norm(state.theta) <= 1 + 1e-9


TINY = 1e-18


@pytest.mark.parametrize(
    "policy",
    [
        nw.IDS(ridge=TINY),
        nw.LOSAN(ridge=TINY),
        nw.AdaOFUL(ridge=TINY, doubt_scale=0.0, threshold_scale=1e-3),
        nw.UCBGLM(LOGISTIC, ridge=TINY),
        nw.GLOC(LOGISTIC, 0.5, ridge=TINY),
        nw.GLBOMD(ridge=TINY),
        nw.GLBOMD(loss="exact", ridge=TINY),
        nw.OFUGLB(LOGISTIC, ridge=TINY),
        nw.OFUGLB(LOGISTIC, "set", ridge=TINY),
    ],
    ids=repr,
)
@pytest.mark.parametrize("apart", [0.3, 1e-6, 1e-12, 0.0])
def test_nearly_equal_arms_and_a_ridge_next_to_nothing_do_no_harm(policy, apart):
    """Matrices singular to working precision: no warning, all numbers finite."""
    rng, state = RNG(0), policy.start(4)
    for _ in range(20):
        arms = np.array([0.5, 0.5, 0.1, 0.1]) + apart * sphere(rng, 3, 4)
        arms *= 1 / np.maximum(1.0, np.linalg.norm(arms, axis=1, keepdims=True))
        k = policy.select(state, arms, rng, np.full(3, 0.1))
        policy.update(state, arms[k], float(rng.random() < 0.5), 0.1)
    assert np.isfinite(state.theta).all()
    for each in policy.confidence(state) if hasattr(policy, "confidence") else ():
        assert np.isfinite(each.upper(np.eye(4))).all()
        assert (np.diag(each.inverse) > 0).all()


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: nw.UCBGLM("logistic"), "glm"),
        (lambda: nw.UCBGLM(sigma=0.0), "sigma"),
        (lambda: nw.UCBGLM(horizon=0), "horizon"),
        (lambda: nw.UCBGLM(warmup=-1), "warmup"),
        (lambda: nw.GLOC("logistic"), "glm"),
        (lambda: nw.GLOC(sigma=-1.0), "sigma"),
        (lambda: nw.GLOC(ridge=0.0), "ridge"),
        (lambda: nw.GLBOMD("logistic"), "glm"),
        (lambda: nw.GLBOMD(loss="square"), "loss"),
        (lambda: nw.GLBOMD(dispersion=0.0), "dispersion"),
        (lambda: nw.GLBOMD(delta=1.0), "delta"),
        (lambda: nw.GLBOMD(nw.GLM("logistic"), ridge=1e-3), "ridge"),
        (lambda: nw.GLBOMD(nw.GLM("logistic"), "exact", ridge=1e-6), "ridge"),
        (lambda: nw.GLBOMD(nw.GLM(CAUCHIT)), "Likelihood"),
        (lambda: nw.OFUGLB(nw.GLM("algebraic")), "Likelihood"),
        (lambda: nw.OFUGLB(form="ball"), "form"),
        (lambda: nw.OFUGLB(radius_scale=-1.0), "radius_scale"),
    ],
)
def test_bad_policies_are_refused(make, word):
    with pytest.raises(ValueError, match=word):
        make()
