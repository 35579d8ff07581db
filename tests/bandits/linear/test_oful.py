"""OFUL, LinUCB and their weighted kin: closed forms, identities, coverage."""

import numpy as np
import pytest
from instances import learnt, small, sphere

import noisewise as nw
from noisewise.bandits.linear import linear_state
from noisewise.theory import radii

RNG = np.random.default_rng


def test_ridge_state_equals_the_matrices_written_out():
    """Across two renewals of the factor: inverse, estimate and log det to 1e-10."""
    rng, state = RNG(0), linear_state.start(4, 0.3)
    x, y, w = sphere(rng, 450, 4), rng.normal(size=450), rng.uniform(0.1, 100, size=450)
    for row in zip(x, y, w, strict=True):
        linear_state.learn(state, *row)
    V = 0.6 * np.eye(4) + x.T @ (w[:, None] * x)
    np.testing.assert_allclose(state.V, V, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(state.inverse @ V, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(state.theta, np.linalg.solve(V, x.T @ (w * y)), rtol=1e-10)
    assert state.log_det == pytest.approx(np.linalg.slogdet(V / 0.6)[1], rel=1e-10)
    assert state.count == 450


@pytest.mark.parametrize("n", [0, 1, 7])
def test_oful_in_one_dimension(n):
    """The bonus is [R sqrt(2 log(1/delta) + log(1 + n/lam)) + sqrt(lam) S] / sqrt(n + lam)."""
    R, S, lam, delta = 0.7, 2.0, 3.0, 0.1
    policy = nw.OFUL(R, S, ridge=lam / 2, delta=delta)
    state = policy.start(1)
    for _ in range(n):
        policy.update(state, [1.0], 0.5)
    bonus = R * np.sqrt(2 * np.log(1 / delta) + np.log(1 + n / lam)) + np.sqrt(lam) * S
    (disc,) = policy.confidence(state)
    assert disc.width([1.0]) == pytest.approx(bonus / np.sqrt(n + lam), rel=1e-12)


def test_oful_does_not_depend_on_the_unit_of_reward():
    rounds = small()
    scaled = nw.BanditRounds(rounds.arms, 7 * rounds.means, 7 * rounds.rewards, rounds.sigma)
    one = nw.choices(nw.OFUL(0.5, 1.0), rounds, RNG(0))
    np.testing.assert_array_equal(one, nw.choices(nw.OFUL(3.5, 7.0), scaled, RNG(0)))


def test_radii_agree_with_those_of_ftrl():
    """Written independently in `theory.radii`, for the identity link."""
    state, *_ = learnt(nw.OFUL(0.7, 2.0))
    glm = nw.GLM("identity", 1.5, 2.0)
    assert nw.OFUL(0.7, 2.0).radius(state) == pytest.approx(
        radii.self_normalised(
            glm, nw.SubGaussian(0.7), log_det=state.log_det, ridge=0.5, delta=0.05
        )
    )
    R, d = 0.9, 3
    noise = nw.Bounded(bound=R, sigma=1.0, max_weight=d / R**2)
    assert nw.WeightedOFUL(R, 1.5, 2.0).radius(state) == pytest.approx(
        radii.printed(glm, noise, dim=d, count=30, ridge=0.5, delta=0.05)
    )


@pytest.mark.parametrize(
    "policy", [nw.OFUL(1.0, delta=0.1), nw.WeightedLeastSquaresUCB(delta=0.1)], ids=repr
)
def test_sets_hold_the_parameter(policy):
    """100 runs of 80 rounds with arms chosen by the policy, delta 0.1.

    At most 28 runs may miss: P(Bin(100, 0.1) > 28) < 1e-7. The test has power: in a tenth of the
    runs the truth comes nearer to the border than half the radius.
    """
    weighted = isinstance(policy, nw.WeightedLeastSquaresUCB)
    largest = []
    for seed in range(100):
        rng = RNG([seed, 5])
        theta, state, ratio = sphere(rng, 1, 3)[0], policy.start(3), 0.0
        for _ in range(80):
            arms, sd = sphere(rng, 5, 3), rng.choice([0.1, 1.0])
            x = arms[policy.select(state, arms, rng)]
            policy.update(state, x, x @ theta + (sd if weighted else 1.0) * rng.normal(), sd)
            away = state.theta - theta
            ratio = max(ratio, np.sqrt(away @ state.V @ away) / policy.radius(state))
        largest.append(ratio)
        assert policy.confidence(state)[0].distance(theta) == pytest.approx(
            np.sqrt(away @ state.V @ away)
        )
    assert np.sum(np.array(largest) > 1) <= 28
    assert np.quantile(largest, 0.9) > 0.5


def test_constant_noise_makes_weighted_least_squares_oful():
    """Index for index: OFUL with sigma = rho and ridge times rho^2."""
    rho = 0.3
    weighted = nw.WeightedLeastSquaresUCB(2.0, ridge=0.7)
    plain = nw.OFUL(rho, 2.0, ridge=0.7 * rho**2)
    a, x, *_ = learnt(weighted, sigma=rho)
    b, *_ = learnt(plain, sigma=rho)
    bounds = [p.confidence(s)[0].upper(x) for p, s in ((weighted, a), (plain, b))]
    np.testing.assert_allclose(*bounds, rtol=1e-12)


def test_disjoint_linucb_is_linucb_on_block_one_hot_features():
    rng, K, d = RNG(3), 4, 3
    policy, state = nw.LinUCB(ridge=0.5), nw.LinUCB().start(12)
    V, b = np.tile(np.eye(d), (K, 1, 1)), np.zeros((K, d))
    theta = rng.normal(size=(K, d))
    for _ in range(60):
        x = rng.normal(size=d)
        own = [x @ np.linalg.solve(V[k], b[k]) for k in range(K)]
        wide = [np.sqrt(x @ np.linalg.solve(V[k], x)) for k in range(K)]
        best = int(np.argmax(np.array(own) + (1 + np.sqrt(np.log(40) / 2)) * np.array(wide)))
        arms = np.kron(np.eye(K), x)
        assert policy.select(state, arms, rng) == best
        reward = x @ theta[best] + rng.normal()
        policy.update(state, arms[best], reward)
        V[best] += np.outer(x, x)
        b[best] += reward * x


@pytest.mark.parametrize("s", [0.6, 1.0])
def test_weighted_oful_with_equal_noise_is_ridge(s):
    policy = nw.WeightedOFUL(ridge=0.4)
    state, x, y, _ = learnt(policy, sigma=s)  # 0.6 > R / sqrt(3)
    exact = np.linalg.solve(0.8 * s * s * np.eye(3) + x.T @ x, x.T @ y)
    np.testing.assert_allclose(state.theta, exact, rtol=1e-11)


def test_weighted_oful_never_weighs_more_than_d_over_r_squared():
    policy = nw.WeightedOFUL(noise_bound=2.0)
    state = policy.start(3)
    policy.update(state, [1.0, 0.0, 0.0], 1.0, sigma=0.0)
    assert state.V[0, 0] == pytest.approx(1 + 3 / 4)


@pytest.mark.parametrize("policy", [nw.WeightedOFUL(0.5), nw.WeightedOFULPlus(0.5)], ids=repr)
def test_noise_above_the_bound_is_cut_with_one_warning(policy):
    state, honest = policy.start(2), policy.start(2)
    with pytest.warns(UserWarning, match="noise_bound"):
        policy.update(state, [1.0, 0.0], 1.0, sigma=0.8)
    policy.update(state, [0.0, 1.0], 1.0, sigma=0.9)  # warnings are errors here
    policy.update(honest, [1.0, 0.0], 1.0, sigma=0.5)
    policy.update(honest, [0.0, 1.0], 1.0, sigma=0.5)
    assert (state.clipped, honest.clipped) == (2, 0)
    np.testing.assert_array_equal(state.V, honest.V)
    fresh = policy.start(2)
    with pytest.raises(UserWarning):
        policy.update(fresh, [1.0, 0.0], 1.0, sigma=0.8)
    assert (fresh.clipped, fresh.count) == (0, 0)


def test_weighted_oful_plus_keeps_its_norm_invariant():
    r"""||x / sd||^2 <= ||x|| / gamma^2 in the norm of V^-1, and sd is at least sigma."""
    policy, rng = nw.WeightedOFULPlus(noise_bound=0.8), RNG(4)
    state = policy.start(3)
    for x in sphere(rng, 100, 3):
        sigma = rng.choice([0.0, 0.1, 0.8])
        width = linear_state.widths(state, x[None])[0]
        sd = policy.effective_sd(state, x, sigma)
        assert sd >= max(sigma, 0.01)
        assert (width / sd) ** 2 <= width * np.sqrt(3) / 0.8 * (1 + 1e-12)
        before = state.V.copy()
        policy.update(state, x, rng.normal(), sigma)
        np.testing.assert_allclose(state.V - before, np.outer(x, x) / sd**2, atol=1e-9)


def test_weighted_oful_plus_with_the_largest_noise_is_ridge():
    """sigma = R = 1 and ridge 1/2: no arm is so unknown that its weight falls."""
    state, x, y, _ = learnt(nw.WeightedOFULPlus(), sigma=1.0)
    np.testing.assert_allclose(state.theta, np.linalg.solve(np.eye(3) + x.T @ x, x.T @ y))
    assert nw.WeightedOFULPlus().radius(state) > 20 * nw.OFUL().radius(state)
