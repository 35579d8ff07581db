"""GLBOMD: steps, ridge and radius against what they solve and are."""

import copy
import dataclasses
from importlib import import_module

import mpmath
import numpy as np
import pytest
from instances import family_learnt, family_reward, sphere
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

import noisewise as nw
from noisewise.bandits.glm.glb_omd import spread_factor

RNG = np.random.default_rng


FAMILIES = ("identity", "logistic", "exponential", "tanh", "probit")


@pytest.mark.parametrize("loss", ["linear", "exact"])
def test_gaussian_glb_omd_is_ridge(loss):
    """In a ball never left, with any dispersion: estimate, matrix and (M = 0) radius."""
    g = 0.3
    policy = nw.GLBOMD(nw.GLM("identity", 1.0, 50.0), loss, dispersion=g, ridge=0.7, delta=0.1)
    state, x, y = family_learnt(policy, size=0.02)
    H = 1.4 * np.eye(3) + x.T @ x / g
    np.testing.assert_allclose(state.theta, np.linalg.solve(H, x.T @ y / g), atol=1e-10)
    np.testing.assert_allclose(state.inverse @ H, np.eye(3), atol=1e-10)
    square = 1.4 * 2500 + 2 * np.log(10) + np.linalg.slogdet(H / 1.4)[1]
    assert policy.radius(state) == pytest.approx(np.sqrt(square), rel=1e-10)


@pytest.mark.parametrize("loss", ["linear", "exact"])
@pytest.mark.parametrize("corruption", [0.0, 60.0])
def test_gaussian_glb_omd_with_weights_is_weighted_ridge(loss, corruption):
    """Weights by noise and, with corruption, by the arm's length, computed anew from the rows."""
    policy = nw.GLBOMD(
        nw.GLM("identity", 1.0, 50.0), loss, dispersion=2.0, ridge=0.7, delta=0.1, noise_floor=0.3,
        corruption=corruption,
    )  # fmt: skip
    rng, state, first = RNG(1), policy.start(3), 1.4 * 2500 + 2 * np.log(10)
    x, y, sd = sphere(rng, 40, 3), rng.normal(size=40), rng.uniform(0.1, 1.5, 40)
    H, b, weights = 1.4 * np.eye(3), np.zeros(3), []
    for row, label, s in zip(x, y, sd, strict=True):
        g = 2.0 * max(s, 0.3) ** 2
        length = np.sqrt(row @ np.linalg.solve(H, row))
        beta = np.sqrt(first + np.linalg.slogdet(H / 1.4)[1])
        w = min(1.0, beta * g / (corruption * length)) if corruption else 1.0
        policy.update(state, row, label, s)
        H, b = H + w / g * np.outer(row, row), b + w / g * label * row
        weights.append(w)
    assert (min(weights) < 0.9) == bool(corruption)
    np.testing.assert_allclose(state.theta, np.linalg.solve(H, b), atol=1e-9)
    np.testing.assert_allclose(state.inverse @ H, np.eye(3), atol=1e-9)
    radius = np.sqrt(first + np.linalg.slogdet(H / 1.4)[1])
    if corruption:  # the root D of D^2 = radius^2 + 2 radius D
        radius = max(np.roots([1, -2 * radius, -(radius**2)]))
    assert policy.radius(state) == pytest.approx(radius, rel=1e-10)


@pytest.mark.parametrize("link", FAMILIES)
@pytest.mark.parametrize("loss", ["linear", "exact"])
def test_a_noisy_reward_is_one_of_larger_dispersion(link, loss):
    """A step with sd s is that of a policy of s^2 times the dispersion, at the same ridge."""
    glm = nw.GLM(link, 1.0, 1.5)
    ridge = nw.GLBOMD(glm, loss).prescribed(3)
    one = nw.GLBOMD(glm, loss, ridge=ridge)
    other = nw.GLBOMD(glm, loss, dispersion=2.25, ridge=ridge)
    a, b, rng = one.start(3), other.start(3), RNG(2)
    for x in sphere(rng, 30, 3):
        y = family_reward(glm, x @ [0.9, 0.0, 0.0], rng)
        one.update(a, x, y, 1.5)
        other.update(b, x, y, 0.2)  # below the floor
    np.testing.assert_allclose(a.theta, b.theta, atol=1e-12)
    np.testing.assert_allclose(a.inverse, b.inverse, atol=1e-12)


@pytest.mark.parametrize("link", FAMILIES)
@pytest.mark.parametrize("loss", ["linear", "exact"])
def test_a_budget_is_a_dispersion_that_grows_with_the_arm(link, loss):
    """A step is that of a policy without budget of dispersion eta C |x|/beta, if that is larger."""
    glm = nw.GLM(link, 1.0, 1.5)
    ridge = nw.GLBOMD(glm, loss, noise_floor=0.3).prescribed(3)
    policy = nw.GLBOMD(glm, loss, ridge=ridge, noise_floor=0.3, corruption=6 * ridge)
    without = dataclasses.replace(policy, corruption=0.0)
    state, rng, larger = policy.start(3), RNG(3), []
    for length in np.geomspace(0.02, 1.0, 40):
        x = length * sphere(rng, 1, 3)[0]
        s, far = rng.uniform(0.1, 1.5), np.sqrt(x @ np.linalg.solve(state.design.V, x))
        g = [max(s, 0.3) ** 2, policy.eta * 6 * ridge * far / without.radius(state)]
        larger.append(bool(g[1] > g[0]))
        wanted, y = copy.deepcopy(state), family_reward(glm, x @ [0.9, 0.0, 0.0], rng)
        without.update(wanted, x, y, max(g) ** 0.5)
        policy.update(state, x, y, s)
        np.testing.assert_allclose(state.theta, wanted.theta, atol=1e-12)
        np.testing.assert_allclose(state.design.V, wanted.design.V, rtol=1e-10)
    assert {*larger} == {True, False}


def misled(policy, budget, runs, rounds):
    """The largest error/radius of every run, first rewards as far from the truth as they can be.

    Rewards have an sd of 0.3 to 1, or are means of 1 to 10 draws. The adversary mirrors the means,
    or gives the less likely outcome, while its budget lasts.
    """
    glm, largest = policy.glm, np.zeros(runs)
    for seed in range(runs):
        rng, left = RNG([31, seed]), budget
        theta, state = glm.parameter_bound * sphere(rng, 1, 3)[0], policy.start(3)
        for x in sphere(rng, rounds, 3):
            n, mean = rng.integers(1, 11), float(glm.mean(x @ theta))
            if glm.linear:
                drawn = mean + rng.normal() / np.sqrt(n)
                given = drawn - 2 * mean
            else:
                drawn, given = rng.binomial(n, mean) / n, float(mean < 0.5)
            if abs(given - drawn) <= left:
                left -= abs(given - drawn)
                drawn = given
            policy.update(state, x, drawn, n**-0.5)
            (ellipsoid,) = policy.confidence(state)
            largest[seed] = max(largest[seed], ellipsoid.distance(theta) / ellipsoid.radius)
    return largest


MISLED = [
    nw.GLBOMD(nw.GLM(link), loss, delta=0.1, noise_floor=0.3, ridge=ridge, corruption=10.0)
    for link, loss, ridge in (
        ("identity", "linear", 0.5), ("logistic", "linear", None), ("logistic", "exact", 0.5)
    )
]  # fmt: skip


@pytest.mark.parametrize("policy", MISLED, ids=repr)
def test_sets_hold_the_parameter_under_corruption(policy):
    """60 runs of 60 rounds at delta 0.1: at most 22 may miss, P(Bin(60, 0.1) > 22) < 1e-7."""
    assert np.sum(misled(policy, 10.0, 60, 60) > 1) <= 22


@pytest.mark.slow
@pytest.mark.parametrize("policy", MISLED, ids=repr)
def test_sets_hold_the_parameter_under_corruption_at_length(policy):
    """300 runs of 300 rounds: at most 62 may miss, P(Bin(300, 0.1) > 62) < 1e-7.

    A policy that is not told of the budget misses more often on the same rewards.
    """
    found = misled(policy, 10.0, 300, 300)
    untold = misled(dataclasses.replace(policy, corruption=0.0), 10.0, 300, 300)
    print(f"{policy}: {np.sum(found > 1)} missed, 0.9-quantile {np.quantile(found, 0.9):.2f}")
    assert np.sum(found > 1) <= 62 < np.sum(untold > 1)


def test_both_losses_are_one_for_the_identity_link():
    """With projections too: the loss is quadratic."""
    glm = nw.GLM("identity", 1.0, 0.6)
    one, *_ = family_learnt(nw.GLBOMD(glm, ridge=0.1))
    other, *_ = family_learnt(nw.GLBOMD(glm, "exact", ridge=0.1))
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
        y = family_reward(glm, x @ [1.4, 0.0, 0.0], rng) if t < 60 else ends[int(x[0] > 0)]
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
def test_pulls_are_roots(link):
    """Where Newton's method alone would go astray too: scores up to 8, steps up to 1e4."""
    glm, rng, kernels = (
        nw.GLM(link, 1.0, 8.0),
        RNG(6),
        import_module("noisewise.kernels.policies.mirror"),
    )
    for _ in range(300):
        a, y, g, q = (
            rng.uniform(-9, 9),
            rng.uniform(-1, 2),
            rng.uniform(0.1, 2),
            10 ** rng.uniform(-4, 4),
        )

        def miss(z, a=a, y=y, g=g, q=q):
            return z - a + q * (float(glm.mean(z)) - y) / g

        reach = abs(miss(a)) + 1e-9
        z = brentq(miss, a - reach, a + reach, xtol=1e-15, rtol=1e-15)
        found = kernels.pull(glm.link.compiled.code, 8.0, g, a, q, y)
        assert q * found == pytest.approx(a - z, rel=1e-9, abs=1e-9)


def by_bisection(policy, state, x, y):
    """The exact step by nested roots of scipy: pull inside, multiplier of the sphere outside."""
    glm, g, B = policy.glm, policy.dispersion, policy.glm.parameter_bound
    H = state.design.V / policy.eta

    def point(nu):
        M = H + nu * np.eye(len(x))
        a, k = np.linalg.solve(M, H @ state.theta), np.linalg.solve(M, x)

        def miss(r):  # the pull r falls as its own effect on the score grows
            return (float(glm.mean(x @ (a - r * k))) - y) / g - r

        reach = abs(miss(0.0)) + 1e-9
        return a - brentq(miss, -reach, reach, xtol=1e-300, rtol=1e-14) * k

    if np.linalg.norm(point(0.0)) <= B:
        return point(0.0)
    high = 1.0
    while np.linalg.norm(point(high)) > B:
        high *= 2
    return point(brentq(lambda nu: np.linalg.norm(point(nu)) - B, 0.0, high, rtol=1e-14))


@pytest.mark.parametrize("link", FAMILIES)
@pytest.mark.parametrize("ridge", [0.03, 3.0])
def test_exact_steps_equal_nested_roots(link, ridge):
    """From within the ball and from the sphere, to within and to it, with arms of all sizes."""
    glm = nw.GLM(link, 2.0, 0.75)
    policy = nw.GLBOMD(glm, "exact", dispersion=0.2, ridge=ridge)
    state, rng, ends = policy.start(3), RNG(8), np.clip(policy.reward_range, -20, 20)
    sides = set()
    for t, x in enumerate(sphere(rng, 60, 3)):
        x = 10.0 ** rng.uniform(-3, np.log10(2)) * x
        y = family_reward(glm, x @ [0.7, 0.0, 0.0], rng) if t % 3 else ends[t % 2]
        wanted = by_bisection(policy, state, x, y)
        policy.update(state, x, y)
        sides.add(bool(np.linalg.norm(wanted) > 0.75 - 1e-9))
        np.testing.assert_allclose(state.theta, wanted, atol=1e-8)
        assert np.linalg.norm(state.theta) <= 0.75 * (1 + 1e-15)
    assert sides >= ({True, False} if ridge < 3 else {False})


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_steps_on_the_sphere_solve_their_equation_to_rounding(link):
    """Curvatures over twenty decades, in forty digits: no entry is off by more than rounding."""
    glm, rng = nw.GLM(link), RNG(9)
    kernels, u, sides = import_module("noisewise.kernels.policies.mirror"), np.empty(4), set()
    for _ in range(400):
        values = np.sort(10.0 ** rng.uniform(-20, 3, 4))
        p = sphere(rng, 1, 4)[0] * 10.0 ** rng.uniform(-18, 0, 4)
        theta = sphere(rng, 1, 4)[0] * rng.random() ** 0.1
        q, y = values * theta, float(rng.random() < 0.5)
        nu = kernels.on_sphere(glm.link.compiled.code, 1.0, 1.0, values, p, q, y, 1.0, u)
        with mpmath.workdps(40):
            z = mpmath.fdot(p.tolist(), u.tolist())
            mean = z if link == "identity" else 1 / (1 + mpmath.exp(-z))
            length = mpmath.norm(u.tolist())
            assert abs(length - 1) < 1e-14 if nu > 0 else length < 1 + 1e-14
            for v, pi, qi, ui in np.column_stack([values, p, q, u]).tolist():
                off = (v + mpmath.mpf(nu)) * ui - qi + (mean - y) * pi
                assert abs(off) < 1e-15 * ((v + nu) * abs(ui) + abs(qi) + 2 * abs(pi))
        sides.add(nu > 0)
    assert sides == {True, False}


@pytest.mark.parametrize("ridge", [1e-8, 1e-16, 1e-18, 1e-30, 1e-100])
def test_exact_steps_with_a_ridge_next_to_nothing_stay_in_the_ball(ridge):
    policy = nw.GLBOMD(loss="exact", ridge=ridge)
    for seed in range(40):
        rng, state = RNG(seed), policy.start(4)
        apart = (0.3, 1e-6, 1e-12, 0.0)[seed % 4]
        for _ in range(15):
            x = np.array([0.5, 0.5, 0.1, 0.1]) + apart * sphere(rng, 1, 4)[0]
            policy.update(state, x / max(1.0, np.linalg.norm(x)), float(rng.random() < 0.5))
            assert np.linalg.norm(state.theta) <= 1 + 1e-14


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
    state, *_ = family_learnt(policy)
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
        a, x, y = family_learnt(one, seed=1)
        b = two.start(3)
        for row, r in zip(2 * x, y, strict=True):
            two.update(b, row, r)
        np.testing.assert_allclose(a.theta, 2 * b.theta, atol=1e-6)
        assert one.radius(a) == pytest.approx(two.radius(b), rel=1e-9)
