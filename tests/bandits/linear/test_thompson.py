"""Thompson sampling: the covariance of draws, and greed without them."""

import numpy as np
import pytest
from instances import BARE, learnt, small

import noisewise as nw
from noisewise.bandits.linear.linear_thompson import draw
from noisewise.regression.ftrl.sets import curvature_inverse

RNG = np.random.default_rng


def test_draws_have_the_covariance_asked_for():
    """40,000 draws: every entry within six standard errors, false alarm below 1e-7."""
    P = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]])
    rng, n = RNG(6), 40_000
    sample = np.array([draw(rng, np.ones(3), P, 0.5) for _ in range(n)]) - 1
    variance = np.outer(np.diag(P), np.diag(P)) + P**2
    error = np.abs(sample.T @ sample / n - 0.25 * P)
    assert (error < 6 * 0.25 * np.sqrt(variance / n)).all()
    assert (np.abs(sample.mean(axis=0)) < 6 * 0.5 * np.sqrt(np.diag(P) / n)).all()


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_thompson_of_scale_zero_is_greedy(link):
    glm, rounds = nw.GLM(link), small(2)
    greedy = nw.choices(nw.Greedy(glm), rounds, RNG(0))
    np.testing.assert_array_equal(greedy, nw.choices(nw.LaplaceThompson(glm, 0.0), rounds, RNG(0)))
    if link == "identity":
        np.testing.assert_array_equal(greedy, nw.choices(nw.LinearThompson(0.0), rounds, RNG(0)))


def test_on_the_identity_link_laplace_is_exact():
    rounds = small(3)
    linear = nw.choices(nw.LinearThompson(), rounds, RNG(7))
    np.testing.assert_array_equal(linear, nw.choices(nw.LaplaceThompson(), rounds, RNG(7)))


@pytest.mark.parametrize("link", ["logistic", "exponential", BARE], ids=str)
def test_laplace_uses_the_hessian_at_the_estimate(link):
    """Against second differences of the objective, once the estimate is exact."""
    glm = nw.GLM(link, 1.0, 3.0)
    policy = nw.LaplaceThompson(glm, ridge=0.4)
    state, x, y, s = learnt(policy)
    policy.ftrl.solve(state)

    def gradient(theta):
        return 0.8 * theta + x.T @ ((glm.mean(x @ theta) - y) / s**2)

    h, centre = 1e-5, state.theta
    assert np.abs(gradient(centre)).max() < 1e-8
    H = [(gradient(centre + h * e) - gradient(centre - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(
        np.linalg.inv(curvature_inverse(policy.glm, state)), H, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("link", ["identity", "logistic", BARE], ids=str)
def test_laplace_without_data_draws_from_the_prior(link):
    policy = nw.LaplaceThompson(nw.GLM(link), ridge=2.0)
    state = policy.start(3)
    np.testing.assert_allclose(curvature_inverse(policy.glm, state), np.eye(3) / 4, atol=1e-15)
    assert not state.theta.any()
