"""Policies: closed forms, identities between algorithms, coverage; and the loop that plays them."""

from importlib import import_module

import numpy as np
import pytest
from instances import BARE, learnt, sphere
from instances import POLICIES as INSTANCES

import noisewise as nw
from noisewise import environments as env
from noisewise.bandits import POLICIES, ridge
from noisewise.bandits.arms import candidates, observation
from noisewise.bandits.linear_thompson import draw
from noisewise.regression.sets import curvature_inverse
from noisewise.theory import bandit_regret, radii

RNG = np.random.default_rng


def small(seed=0, **kwargs):
    return env.NoisyBandit(**{"dim": 4, "arms": 6, "rounds": 150, **kwargs}).draw(RNG(seed))


def test_ridge_state_equals_the_matrices_written_out():
    """Across two renewals of the factor: inverse, estimate and log det to 1e-10."""
    rng, state = RNG(0), ridge.start(4, 0.3)
    x, y, w = sphere(rng, 450, 4), rng.normal(size=450), rng.uniform(0.1, 100, size=450)
    for row in zip(x, y, w, strict=True):
        ridge.learn(state, *row)
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
    """300 runs of 80 rounds with arms chosen by the policy, delta 0.1.

    At most 62 runs may miss: P(Bin(300, 0.1) > 62) < 1e-7. The test has power: in a tenth of the
    runs the truth comes nearer to the border than half the radius.
    """
    weighted = isinstance(policy, nw.WeightedLeastSquaresUCB)
    largest = []
    for seed in range(300):
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
    assert np.sum(np.array(largest) > 1) <= 62
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
        width = ridge.widths(state, x[None])[0]
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


def test_glm_ucb_on_the_identity_link_is_linucb():
    rounds = small(1)
    policy = nw.GLMUCB(radius_scale=0.01)
    state, other = policy.start(4), nw.LinUCB().start(4)
    for arms, rewards in zip(rounds.arms, rounds.rewards, strict=True):
        k = policy.select(state, arms, RNG(0))
        assert k == nw.LinUCB(width=policy.radius(state)).select(other, arms, RNG(0))
        policy.update(state, arms[k], rewards[k])
        nw.LinUCB().update(other, arms[k], rewards[k])
    np.testing.assert_allclose(state.theta, other.theta, atol=1e-10)


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


def test_the_registry_finds_every_policy():
    for name, target in POLICIES.items():
        module, _, attribute = target.partition(":")
        assert getattr(import_module(module), attribute) is getattr(nw, name)
    assert {type(policy).__name__ for policy in INSTANCES} == set(POLICIES)


LEARNERS = [
    nw.OFUL(0.3, radius_scale=0.3),
    nw.LinUCB(0.3),
    nw.WeightedLeastSquaresUCB(),
    nw.WeightedOFUL(radius_scale=0.01),
    nw.WeightedOFULPlus(radius_scale=0.001),
    nw.GLMUCB(radius_scale=0.01),
    nw.LinearThompson(),
    nw.LaplaceThompson(),
]


@pytest.mark.parametrize("policy", LEARNERS, ids=repr)
def test_learners_learn(policy):
    """On fixed arms, mean of five worlds: less than a fifth of the regret of random play."""
    regret, random = 0.0, 0.0
    for seed in range(5):
        rounds = small(seed, fixed=True, rounds=800)
        regret += bandit_regret(rounds, nw.choices(policy, rounds, RNG(seed)))[-1]
        random += bandit_regret(rounds, nw.choices(nw.Uniform(), rounds, RNG(seed)))[-1]
    assert regret < 0.2 * random


class Recorder:
    """Plays arm 1 and keeps what it was shown."""

    def start(self, dim):
        return []

    def select(self, state, arms, rng, sigma=None):
        state.append(sigma)
        return 1

    def update(self, state, arm, reward, sigma=1.0):
        state.append((arm, reward, sigma))


class Player(Recorder):
    def play(self, state, rounds, rng):
        return np.full(len(rounds.means), 2)


def test_the_loop_shows_noise_before_choosing_only_where_it_is_known(monkeypatch):
    rng = RNG(8)
    arms, means = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3))
    log = []
    monkeypatch.setattr(Recorder, "start", lambda self, dim: log)
    played = nw.choices(Recorder(), nw.BanditRounds(arms, means, 2 * means, [0.1, 0.2]), rng)
    assert played.dtype == np.int64
    assert played.tolist() == [1, 1]
    assert log[0] is None
    np.testing.assert_array_equal(log[1][0], arms[0, 1])
    assert log[1][1:] == (2 * means[0, 1], 0.1)
    log.clear()
    per_arm = np.arange(6.0).reshape(2, 3)
    nw.choices(Recorder(), nw.BanditRounds(arms[0], means, means, per_arm), rng)
    np.testing.assert_array_equal(log[2], per_arm[1])
    np.testing.assert_array_equal(log[3][0], arms[0, 1])
    assert log[3][2] == per_arm[1, 1]


def test_a_compiled_loop_is_used_where_there_is_one():
    assert nw.choices(Player(), small(rounds=3), RNG(0)).tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"arms": np.ones((2, 0, 2))}, "arms"),
        ({"arms": np.ones((4, 3, 2))}, "arms"),
        ({"arms": np.full((3, 2), np.nan)}, "arms"),
        ({"means": np.ones(3)}, "means"),
        ({"rewards": np.ones((2, 2))}, "rewards"),
        ({"rewards": np.full((2, 3), np.inf)}, "rewards"),
        ({"sigma": np.ones(3)}, "sigma"),
        ({"sigma": -np.ones(2)}, "sigma"),
    ],
)
def test_bad_rounds_are_refused(change, word):
    good = {
        "arms": np.ones((3, 2)),
        "means": np.ones((2, 3)),
        "rewards": np.ones((2, 3)),
        "sigma": np.ones(2),
    }
    nw.choices(nw.Uniform(), nw.BanditRounds(**good), RNG(0))
    with pytest.raises(ValueError, match=word):
        nw.choices(nw.Uniform(), nw.BanditRounds(**(good | change)), RNG(0))


def test_regret_of_choices():
    rounds = nw.BanditRounds(np.eye(2), np.array([[0.1, 0.7], [0.5, 0.2]]), np.eye(2), np.ones(2))
    np.testing.assert_allclose(bandit_regret(rounds, [0, 1]), [0.6, 0.9])
    for bad in ([0], [0, 2], [-1, 0], [0.0, 1.0]):
        with pytest.raises(ValueError, match="choices"):
            bandit_regret(rounds, bad)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: nw.OFUL(sigma=0.0), "sigma"),
        (lambda: nw.OFUL(delta=1.0), "delta"),
        (lambda: nw.OFUL(ridge=-1.0), "ridge"),
        (lambda: nw.LinUCB(width=-1.0), "width"),
        (lambda: nw.LinUCB(radius_scale=np.nan), "radius_scale"),
        (lambda: nw.WeightedLeastSquaresUCB(noise_floor=0.0), "noise_floor"),
        (lambda: nw.WeightedOFUL(noise_bound=np.inf), "noise_bound"),
        (lambda: nw.WeightedOFULPlus(horizon=0), "horizon"),
        (lambda: nw.GLMUCB("logistic"), "glm"),
        (lambda: nw.Greedy("logistic"), "glm"),
        (lambda: nw.LaplaceThompson(scale=-1.0), "scale"),
    ],
)
def test_bad_policies_are_refused(make, word):
    with pytest.raises(ValueError, match=word):
        make()


@pytest.mark.parametrize(
    "policy", [nw.WeightedOFUL(), nw.WeightedOFULPlus(), nw.GLMUCB(), nw.Greedy()], ids=repr
)
def test_arms_beyond_the_bound_are_refused(policy):
    state = policy.start(2)
    with pytest.raises(ValueError, match="feature_bound"):
        policy.select(state, [[1.1, 0.0]], RNG(0))
    with pytest.raises(ValueError, match="feature_bound"):
        policy.update(state, [1.1, 0.0], 1.0)
    assert state.count == 0


def test_numbers_too_large_to_compute_with_are_refused():
    policy = nw.OFUL()
    state = policy.start(1)
    with pytest.raises(ValueError, match="rescale"):
        policy.select(state, [[1e160]], RNG(0))
    with pytest.raises(ValueError, match="rescale"):
        policy.update(state, [1e51], 1.0)
    with pytest.raises(ValueError, match="rescale"):
        policy.update(state, [1.0], 1e51)
    assert state.count == 0


def locked(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def strided(x):
    return np.repeat(x, 2, axis=-1)[..., ::2]


@pytest.mark.parametrize("policy", INSTANCES, ids=repr)
@pytest.mark.parametrize("seen", [np.asfortranarray, locked, np.ndarray.tolist, strided])
def test_memory_of_arms_does_not_matter(policy, seen):
    """Fortran blocks, read-only ones, lists and strided views serve as plain arrays do."""
    rng, plain, other = RNG(3), policy.start(4), policy.start(4)
    for t in range(12):
        arms = np.eye(4) if hasattr(policy, "one_hot") else sphere(rng, 5, 4)
        reward, sigma = float(rng.random() < 0.5), rng.uniform(0.2, 0.5, size=len(arms))
        k = policy.select(plain, arms, RNG(t), sigma)
        assert policy.select(other, seen(arms), RNG(t), sigma) == k
        policy.update(plain, arms[k], reward, float(sigma[k]))
        policy.update(other, seen(arms[k]), reward, float(sigma[k]))
    if hasattr(plain, "theta"):
        np.testing.assert_allclose(other.theta, plain.theta, rtol=1e-9, atol=1e-12)


def test_kernels_for_arms_written_out():
    kernels = import_module("noisewise.kernels.arms")
    rng = RNG(4)
    x, P = rng.normal(size=(300, 3)), np.diag([1.0, 2.0, 3.0])
    assert kernels.longest(x) == pytest.approx((x**2).sum(axis=1).max())
    for bad in (np.nan, np.inf, 1e200):
        worse = x.copy()
        worse[rng.integers(300), 1] = bad
        assert not kernels.longest(worse) < 1e300
    quads = np.empty(300)
    kernels.forms_of(x, P, quads)
    np.testing.assert_allclose(quads, (x**2) @ np.array([1.0, 2.0, 3.0]))
    V, inverse, b = 2 * np.eye(3), np.eye(3) / 2, np.zeros(3)
    growth = kernels.add_row(V, inverse, b, x[0], 0.5, 4.0, np.inf)
    assert growth == pytest.approx(2 * x[0] @ x[0])
    np.testing.assert_allclose(V, 2 * np.eye(3) + 4 * np.outer(x[0], x[0]))
    np.testing.assert_allclose(inverse @ V, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(b, 2 * x[0])
    before = inverse.copy()
    assert kernels.add_row(V, inverse, b, x[1], 0.5, 4.0, 1e-9) > 0  # too steep: left as it was
    np.testing.assert_array_equal(inverse, before)


@pytest.mark.parametrize("arms", [np.array(3.0), 3.0, np.empty(0), np.empty((0, 2)), np.ones(2)])
@pytest.mark.parametrize("policy", [nw.OFUL(), nw.FTRLUCB(radius="practical"), nw.Uniform()])
def test_what_is_no_table_of_arms_is_refused(policy, arms):
    with pytest.raises(ValueError, match="arms has shape"):
        policy.select(policy.start(2), arms, np.random.default_rng(0))


@pytest.mark.parametrize("kind", [np.array, np.ndarray.tolist], ids=["array", "list"])
def test_what_lies_just_beyond_is_refused(kind):
    """The bound passes with what single precision adds, a thousandth more does not."""
    for x in (np.array([1.0, 0.0]), np.array([1 + 5e-7, 0.0])):
        assert len(candidates(kind(x[None]), 2, 1.0)) == 1
        assert observation(kind(x), 1e50, 0.0, 2, 1.0)[1:] == (1e50, 0.0)
    long = np.array([1.001, 0.0])
    with pytest.raises(ValueError, match="arms holds a vector of norm"):
        candidates(kind(long[None]), 2, 1.0)
    with pytest.raises(ValueError, match="arm holds a vector of norm"):
        observation(kind(long), 1.0, 1.0, 2, 1.0)
    for reward, sigma, word in [
        (1.1e50, 1.0, "reward"),
        (1.0, np.inf, "sigma"),
        (1.0, -1.0, "sigma"),
    ]:
        with pytest.raises(ValueError, match=word):
            observation(kind(x), reward, sigma, 2, 1.0)
