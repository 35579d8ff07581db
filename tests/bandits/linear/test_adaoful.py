"""AdaOFUL: the robust minimum on the ball, and what outliers do to it."""

import numpy as np
import pytest
from instances import learnt
from scipy.optimize import minimize

import noisewise as nw
from noisewise.bandits.linear.adaoful import _model, robust
from noisewise.numerics import linalg

RNG = np.random.default_rng


def ball_minimum(x, y, sd, tau, lam, bound):
    """The pseudo-Huber minimiser by a general solver without derivatives."""

    def loss(theta):
        z = (y - x @ theta) / sd
        return lam / 2 * theta @ theta + np.sum(z**2 / (1 + np.sqrt(1 + (z / tau) ** 2)))

    inside = {"type": "ineq", "fun": lambda t: bound**2 - t @ t}
    return minimize(
        loss,
        np.zeros(x.shape[1]),
        constraints=inside,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    ).x


def by_hand(policy, x, s):
    """The standard deviations and thresholds of AdaOFUL, from their formulas."""
    d, T, lam = x.shape[1], policy.horizon, 2 * policy.ridge
    A, S, iota = policy.feature_bound, policy.parameter_bound, np.log(2 * T**2 / policy.delta)
    k = d * np.log(1 + T**2 * A**2 / (lam * d))
    tau0 = policy.threshold_scale * max(np.sqrt(2 * k), 2 * np.sqrt(d)) / np.sqrt(iota)
    H, sd, tau = lam * np.eye(d), [], []
    for row, nu in zip(x, s, strict=True):
        v = np.sqrt(row @ np.linalg.solve(H, row))
        c0, c1 = 1 / 6 / np.sqrt(iota), 1 / (42 * iota)
        doubt = max(v / c0, np.sqrt(A * S * v) / (c1 * d) ** 0.25)
        sd.append(max(nu, T**-0.5, policy.doubt_scale * doubt))
        u = v / sd[-1]
        tau.append(tau0 * np.sqrt(1 + u * u) / u)
        H = H + np.outer(row, row) / sd[-1] ** 2
    return np.array(sd), np.array(tau), H


@pytest.mark.parametrize("bound", [5.0, 0.02])
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_adaoful_minimises_its_loss_on_the_ball(scale, bound):
    """Against a general solver to 1e-5, and by the conditions of optimality to 1e-7."""
    policy = nw.AdaOFUL(1.0, bound, horizon=50, threshold_scale=scale, doubt_scale=0.05)
    state, x, y, s = learnt(policy)
    sd, tau, H = by_hand(policy, x, s)
    np.testing.assert_allclose(state.V, H, rtol=1e-9)
    expected = ball_minimum(x, y, sd, tau, 2 * policy.ridge, bound)
    np.testing.assert_allclose(state.theta, expected, atol=1e-5)
    _, gradient, _ = _model(state.rows, state.theta, 2 * policy.ridge, 3)
    length = np.linalg.norm(state.theta)
    if bound < 1:
        assert length == pytest.approx(bound)
        along = state.theta / length
        assert gradient @ along < 0
        gradient = gradient - (gradient @ along) * along
    assert np.abs(gradient).max() < 1e-7


@pytest.mark.parametrize(("bound", "doubt"), [(5.0, 1.0), (5.0, 0.05), (0.02, 0.05)])
def test_adaoful_with_an_infinite_threshold_is_weighted_ridge(bound, doubt):
    """In the ball the solution of the normal equations, else its projection in the norm of V."""
    policy = nw.AdaOFUL(1.0, bound, horizon=50, threshold_scale=1e9, doubt_scale=doubt)
    state, x, y, s = learnt(policy)
    sd, _, H = by_hand(policy, x, s)
    theta = np.linalg.solve(H, x.T @ (y / sd**2))
    np.testing.assert_allclose(state.theta, linalg.project_ball(H, theta, bound), rtol=1e-7)
    assert (np.linalg.norm(theta) > bound) == (bound < 1)


def test_an_outlier_moves_adaoful_a_bounded_way():
    """Strong convexity: by at most tau |x| / (2 ridge sd), and 1e12 moves it no more than 1e6."""
    policy = nw.AdaOFUL(parameter_bound=1e3, horizon=50, doubt_scale=0.05)
    moved = []
    for outlier in (1e6, 1e12):
        state, x, *_ = learnt(policy)
        before = state.theta
        sd = policy.effective_sd(3, linalg.norm(x[0], state.inverse), 1.0)
        policy.update(state, x[0], outlier, 1.0)
        tau = state.rows.weights[30]
        away = np.linalg.norm(state.theta - before)
        assert away <= tau / sd
        moved.append(away)
    assert moved[1] == pytest.approx(moved[0], rel=1e-3)
    plain, *_ = learnt(nw.WeightedLeastSquaresUCB())
    before = plain.theta
    nw.WeightedLeastSquaresUCB().update(plain, x[0], 1e6)
    assert np.linalg.norm(plain.theta - before) > 1e3 * moved[0]


def test_the_robust_solver_does_not_need_a_good_start():
    """Newton overshoots from afar where thresholds are small; the same minimum is found."""
    state, *_ = learnt(nw.AdaOFUL(horizon=50, threshold_scale=1e-3, parameter_bound=1e6))
    rng = RNG(2)
    for _ in range(20):
        far = 1e3 * rng.normal(size=3)
        np.testing.assert_allclose(robust(state.rows, far, 1.0, 1e6), state.theta, atol=1e-8)


def test_the_radius_of_adaoful_written_out():
    policy = nw.AdaOFUL(2.0, 3.0, horizon=100, ridge=0.25, delta=0.1)
    iota, k = np.log(2e5), 3 * np.log(1 + 1e4 * 4 / 1.5)
    tau0 = max(np.sqrt(2 * k), np.sqrt(12)) / np.sqrt(iota)
    radius = 32 * (k / tau0 + np.sqrt(k * iota) + tau0 * iota) + 5 * np.sqrt(0.5) * 3
    assert policy.radius(policy.start(3)) == pytest.approx(radius, rel=1e-12)


def test_the_sd_of_adaoful_term_by_term():
    """A = 2, S = 3, d = 4, T = 100, delta = 0.1: iota = log 200000 = 12.206."""
    policy = nw.AdaOFUL(2.0, 3.0, horizon=100, delta=0.1)
    assert policy.effective_sd(4, 0.0, 0.0) == pytest.approx(0.1)
    assert policy.effective_sd(4, 0.0, 0.7) == 0.7
    assert policy.effective_sd(4, 1.0, 0.0) == pytest.approx(6 * np.sqrt(np.log(2e5)))
    steep = np.sqrt(6e-3) * (42 * np.log(2e5) / 4) ** 0.25  # 0.26; the other doubt is 0.02
    assert policy.effective_sd(4, 1e-3, 0.0) == pytest.approx(steep)
