"""OFUGLB: the constrained minimum, its set and the ellipsoid around it."""

import dataclasses

import numpy as np
import pytest
from instances import family_learnt, sphere
from scipy.optimize import OptimizeResult, minimize

import noisewise as nw

RNG = np.random.default_rng


FAMILIES = ("identity", "logistic", "exponential", "tanh", "probit")


@pytest.mark.parametrize("link", FAMILIES)
@pytest.mark.parametrize("size", [0.3, 1.0])
def test_ofuglb_estimate_is_the_constrained_minimum(link, size):
    """Gradient 0 inside, or along the outer normal; scipy finds nothing lower."""
    policy = nw.OFUGLB(nw.GLM(link, 1.0, 1.5), dispersion=0.7)
    state, x, y = family_learnt(policy, size=size)
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
        state, *_ = family_learnt(policy, count)
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
    state, x, y = family_learnt(policy)
    p = policy.glm.mean(np.linalg.norm(x, axis=1))
    steep = np.linalg.norm(x, axis=1) @ np.maximum(np.abs(y - p), np.abs(y - 1 + p))
    wanted = np.log(10) + 3 * np.log(2 * np.e * steep / 3)
    assert policy.level(state) == pytest.approx(wanted)


@pytest.mark.parametrize("ridge", [None, 0.3])
def test_the_ellipsoid_of_ofuglb_written_out(ridge):
    """Logistic, A = 2, B = 3/4, g = 1/2: H = Hessian + 2 ridge I, 2 eta b + 8 ridge B^2."""
    policy = nw.OFUGLB(nw.GLM("logistic", 2.0, 0.75), dispersion=0.5, ridge=ridge, delta=0.1)
    state, x, y = family_learnt(policy)
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
    state, x, y = family_learnt(policy, 60, size=0.1)
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
    state, *_ = family_learnt(policy, 60, dim=2)
    b = policy.level(state)
    angle = np.linspace(0, 2 * np.pi, 500)
    grid = np.linspace(0, 2, 101)[:, None, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    theta = grid.reshape(-1, 2)
    x, (w, wy) = state.rows.rows, state.rows.labels[:, : state.rows.count]
    z = theta @ x.T
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
    state, *_ = family_learnt(policy, 40, dim=2)
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


def test_a_program_without_an_optimum_leaves_the_ellipsoid(monkeypatch):
    """Where the solver gives up, the bound over the set is that of the ellipsoid around it."""
    policy = nw.OFUGLB(nw.GLM("logistic", 1.0, 2.0), "set")
    state, *_ = family_learnt(policy, dim=2)
    arms = sphere(RNG(1), 5, 2)
    given_up = OptimizeResult(success=False, fun=9.0)
    monkeypatch.setattr("scipy.optimize.minimize", lambda *_, **__: given_up)
    assert policy.upper(state, arms[0]) == np.inf
    assert policy.index(state, arms).max() == policy.ellipsoid(state).upper(arms).max()
