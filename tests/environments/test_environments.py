"""Worlds: norms, moments, and the adversary's expectation over all label paths."""

import dataclasses
import itertools

import numpy as np
import pytest
from instances import sphere
from scipy.special import jv

import noisewise as nw
from noisewise import environments as env
from noisewise.numerics.bessel import bessel_zero
from noisewise.numerics.linalg import minimax_directions
from noisewise.theory import adversarial_regret

FEATURES = [
    env.Sphere(2.0),
    env.Ball(2.0),
    env.GaussianRows(2.0),
    env.CyclicBasis(2.0),
    env.Correlated(0.8, 2.0),
    env.Drifting(0.01, 2.0),
    env.Given(sphere(np.random.default_rng(0), 200, 4, 2.0)),
]


@pytest.mark.parametrize("features", FEATURES, ids=lambda f: type(f).__name__)
def test_features_keep_their_radius_and_their_seed(features):
    x = features.draw(np.random.default_rng(1), 200, 4)
    assert x.shape == (200, 4)
    assert np.linalg.norm(x, axis=1).max() <= 2.0 * (1 + 1e-12)
    np.testing.assert_array_equal(x, features.draw(np.random.default_rng(1), 200, 4))


def test_features_have_their_shape():
    rng = np.random.default_rng(2)
    np.testing.assert_allclose(np.linalg.norm(env.Sphere(3.0).draw(rng, 50, 5), axis=1), 3.0)
    length = np.linalg.norm(env.Ball().draw(rng, 20_000, 3), axis=1)
    assert (length**3).mean() == pytest.approx(0.5, abs=0.012)  # uniform on [0, 1], six sigma
    x = env.Correlated(0.9, 100.0).draw(rng, 20_000, 3)
    assert np.corrcoef(x.T)[0, 1] == pytest.approx(0.9, abs=0.01)
    drift = env.Drifting().draw(rng, 4000, 6)
    early, middle = drift[:200].std(axis=0), drift[1900:2100].std(axis=0)
    assert early[0] > 5 * early[-1]
    assert middle[-1] > 3 * middle[0]


NOISES = [
    env.Gaussian(),
    env.Uniform(),
    env.Rademacher(),
    env.Sparse(1.0),
    env.ClippedGaussian(9.0),
    env.StudentT(9.0),
]


@pytest.mark.parametrize("noise", NOISES, ids=lambda n: type(n).__name__)
def test_noise_has_mean_zero_and_the_sd_asked_for(noise):
    """100,000 draws of sd 0.3: mean and variance within six standard errors."""
    e = noise.draw(np.random.default_rng(3), np.full(100_000, 0.3))
    assert abs(e.mean()) < 6 * 0.3 / np.sqrt(len(e))
    assert (e**2).mean() == pytest.approx(0.09, abs=6 * np.std(e**2) / np.sqrt(len(e)) + 1e-12)


@pytest.mark.parametrize(("sd", "effective"), [(1.0, 0.9999), (2.0, 1.9189), (4.0, 2.8735)])
def test_clipped_noise_has_the_effective_sd(sd, effective):
    e = env.ClippedGaussian(4.0).draw(np.random.default_rng(4), np.full(400_000, sd))
    assert np.abs(e).max() <= 4.0
    assert e.std() == pytest.approx(effective, abs=0.01)


@pytest.mark.parametrize("link", ["logistic", "probit", "tanh", "exponential"])
def test_families_have_the_mean_of_the_link(link):
    rng = np.random.default_rng(5)
    glm, theta = nw.GLM(link), np.array([0.6, -0.5])
    rounds = env.Family(glm, most=20).label(rng, env.Sphere().draw(rng, 40_000, 2), theta)
    assert rounds.weight.min() >= 1
    assert rounds.weight.max() <= 20
    away = (rounds.y - rounds.mean) * np.sqrt(rounds.weight)
    assert abs(away.mean()) < 6 * away.std() / 200
    slope = glm.slope(rounds.x @ theta)
    variance = rounds.mean * (1 - rounds.mean) if link == "probit" else slope
    assert (away**2).mean() == pytest.approx(variance.mean(), rel=0.05)


def test_noisy_worlds_tell_the_weight_of_each_label():
    rng = np.random.default_rng(6)
    world = env.Noisy(nw.GLM(), scales=env.Levels((0.1, 1.0)))
    rounds = world.label(rng, env.Sphere().draw(rng, 20_000, 3), env.OnSphere().draw(rng, 3))
    away = (rounds.y - rounds.mean) * np.sqrt(rounds.weight)
    assert away.std() == pytest.approx(1.0, abs=0.03)
    np.testing.assert_allclose(np.unique(rounds.weight), [1.0, 100.0])


def test_parameters():
    rng = np.random.default_rng(7)
    draws = np.array([env.Cube(2.0).draw(rng, 4) for _ in range(4000)])
    assert np.abs(draws).max() <= 1.0
    assert (draws**2).sum(axis=1).mean() == pytest.approx(4 / 3, rel=0.05)
    assert np.linalg.norm(env.OnSphere(2.0).draw(rng, 4)) == pytest.approx(2.0)


def test_scales():
    rng = np.random.default_rng(8)
    assert set(env.geometric(0.25, 1.0, 3).draw(rng, 500)) == {0.25, 0.5, 1.0}
    sd = env.LogUniform(0.1, 10.0).draw(rng, 20_000)
    assert 0.1 <= sd.min() <= sd.max() <= 10.0
    assert (sd < 1).mean() == pytest.approx(0.5, abs=6 * 0.5 / np.sqrt(20_000))
    calm = env.MostlyHigh(0.1, 2.0, 0.2).draw(rng, 20_000) == 0.1
    assert calm.mean() == pytest.approx(0.2, abs=6 * 0.4 / np.sqrt(20_000))


@pytest.mark.parametrize("d", [1, 2, 3, 7])
@pytest.mark.parametrize("prior", ["ball", "cube", "gaussian"])
def test_hard_priors_have_the_moments_of_their_density(prior, d):
    """Mean square length against quadrature of the density; 3000 draws, six standard errors."""
    B, rng = 1.7, np.random.default_rng(d)
    draws = np.array([env.HardPrior(B, prior).draw(rng, d) for _ in range(3000)])
    square = (draws**2).sum(axis=1)
    if prior == "gaussian":
        exact = B * B
    elif prior == "cube":
        u = (np.arange(4000) + 0.5) / 4000
        exact = B * B * (u**2 * np.cos(np.pi * u / 2) ** 2).mean() * 2
    else:
        r = (np.arange(4000) + 0.5) / 4000
        density = r * jv(d / 2 - 1, bessel_zero(d / 2 - 1) * r) ** 2
        exact = B * B * (density @ r**2) / density.sum()
        assert np.sqrt(square.max()) <= B
    assert square.mean() == pytest.approx(exact, abs=6 * square.std() / np.sqrt(3000))
    assert np.abs(draws.mean(axis=0)).max() <= 6 * draws.std() / np.sqrt(3000)


def test_minimax_recursion_against_its_definition():
    """P_t^-1 = sum_{s<=t} x x' + sum_{s>t} q/(1+q) x x', the implicit formula, to 1e-12."""
    x = sphere(np.random.default_rng(8), 12, 3)
    directions, q = minimax_directions(x)
    for t in range(11, -1, -1):
        P = np.linalg.inv(
            x[: t + 1].T @ x[: t + 1]
            + x[t + 1 :].T @ ((q[t + 1 :] / (1 + q[t + 1 :]))[:, None] * x[t + 1 :])
        )
        np.testing.assert_allclose(directions[t], P @ x[t], atol=1e-12 * np.abs(P).max())
        assert q[t] == pytest.approx(x[t] @ P @ x[t], rel=1e-12)


def legal_design(T, d):
    """Rows for which every label path has probabilities in [0, 1]."""
    rng = np.random.default_rng(9)
    while True:
        x = sphere(rng, T, d)
        if env.Adversary().legal(x):
            return x


@pytest.mark.parametrize("d", [1, 2])
def test_adversary_expectation_over_all_label_paths(d):
    """E Radv = 1/2 Y^2 sum q + 1/2 E sum (yhat - x'P s)^2, for a learner, by enumeration."""
    T, Y = 6, 3.0
    x = legal_design(T, d)
    adversary, q = env.Adversary(Y), minimax_directions(x)[1]
    ftrl = nw.FTRL(nw.GLM("identity", 1.0, 10.0), ridge=0.7)
    regret = formula = total = 0.0
    for path in itertools.product([-Y, Y], repeat=T):
        y = np.array(path)
        up = adversary.chances(x, y)
        assert ((up >= -1e-12) & (up <= 1 + 1e-12)).all()
        chance = np.where(y > 0, up, 1 - up).prod()
        lean = Y * (2 * up - 1)
        yhat = nw.predictions(ftrl, x, y)
        regret += chance * adversarial_regret(x, y, yhat)[-1]
        formula += chance * 0.5 * ((yhat - lean) ** 2).sum()
        total += chance
    assert total == pytest.approx(1.0, abs=1e-12)
    value = adversary.value(x)
    assert value == pytest.approx(0.5 * Y * Y * q.sum())
    assert regret == pytest.approx(value + formula, rel=1e-10)
    assert adversary.label(np.random.default_rng(0), x)[1] == 0


def test_adversary_draws_by_its_chances_and_counts_the_illegal_ones():
    """Twelve equal rows and one long one: the long one's probability leaves [0, 1]."""
    x = np.append(np.ones((12, 1)), [[4.0]], axis=0)
    adversary, seen = env.Adversary(3.0), []
    assert not adversary.legal(x)
    for seed in range(60):
        y, clipped = adversary.label(np.random.default_rng(seed), x)
        chances = adversary.chances(x, y)
        u = np.random.default_rng(seed).random(len(x))
        np.testing.assert_array_equal(y, np.where(u < chances, 3.0, -3.0))
        assert clipped == ((chances < -1e-9) | (chances > 1 + 1e-9)).sum()
        seen.append(clipped)
    assert 0 in seen
    assert max(seen) > 0
    # the last round: P = 1/28, so a sum of labels s leans by 4 s / 28 / (2 * 3)
    assert chances[12] == pytest.approx(0.5 + y[:12].sum() / 42)


def test_bad_worlds_are_refused():
    rng = np.random.default_rng(0)
    for call, word in (
        (lambda: env.Sphere(0.0).draw(rng, 3, 2), "radius"),
        (lambda: env.Correlated(1.5).draw(rng, 3, 2), "correlation"),
        (lambda: env.Given(np.ones((2, 2))).draw(rng, 3, 2), "rows"),
        (lambda: env.Sparse(0.1).draw(rng, np.ones(3)), "bound"),
        (lambda: env.Adversary(-1.0).label(rng, np.eye(2)), "label_bound"),
        (lambda: env.Family(nw.GLM()).label(rng, np.eye(2), np.ones(2)), "identity"),
        (lambda: env.Levels((0.0,)).draw(rng, 3), "sds"),
        (lambda: env.Levels(()).draw(rng, 3), "sds"),
        (lambda: env.MostlyHigh(share=2.0).draw(rng, 3), "share"),
        (lambda: env.LogUniform(low=-1.0).draw(rng, 3), "low"),
        (lambda: env.HardPrior(prior="flat").draw(rng, 3), "prior"),
        (lambda: env.Stream().draw(rng, 0, 3), "rounds"),
        (lambda: env.NoisyBandit(misreported=1.5).draw(rng), "misreported"),
        (lambda: env.NoisyBandit(arms=0).draw(rng), "arms"),
        (lambda: env.FamilyBandit(most=0).draw(rng), "most"),
        (lambda: env.FamilyBandit(nw.GLM(), rounds=5).draw(rng), "identity"),
    ):
        with pytest.raises(ValueError, match=word):
            call()


@pytest.mark.parametrize("name", env.WORLDS)
def test_named_worlds_are_tables_of_their_own_model(name):
    """Shapes, norms, and that some parameter of norm B explains every mean."""
    world = dataclasses.replace(env.WORLDS[name], rounds=300)
    rounds = world.draw(np.random.default_rng(10))
    assert rounds.means.shape == rounds.rewards.shape == (300, 20)
    assert rounds.arms.shape == ((20, 10) if world.fixed else (300, 20, 10))
    assert rounds.sigma.shape == ((300, 20) if name.startswith(("tied", "explained")) else (300,))
    np.testing.assert_allclose(np.linalg.norm(rounds.arms, axis=-1), 1.0)
    x = np.broadcast_to(rounds.arms, (300, 20, 10)).reshape(-1, 10)
    theta = np.linalg.lstsq(x, world.glm.score(rounds.means).ravel(), rcond=None)[0]
    assert np.linalg.norm(theta) == pytest.approx(world.glm.parameter_bound, rel=1e-6)
    np.testing.assert_allclose(world.glm.mean(x @ theta), rounds.means.ravel(), atol=1e-8)
    best = np.argmax(rounds.arms @ theta, axis=-1)
    np.testing.assert_array_equal(np.argmax(rounds.means, axis=1), np.broadcast_to(best, 300))
    again = world.draw(np.random.default_rng(10))
    np.testing.assert_array_equal(rounds.rewards, again.rewards)


@pytest.mark.parametrize("name", [n for n in env.WORLDS if "misreported" not in n])
def test_named_worlds_tell_the_true_noise(name):
    """100,000 rewards: mean and variance over the told one, within six standard errors."""
    world = env.WORLDS[name]
    rounds = world.draw(np.random.default_rng(11))
    own = 1.0
    if isinstance(world, env.FamilyBandit):  # told relative to the family's own variance
        own = rounds.means * (1 - rounds.means)
        n = rounds.sigma**-2
        assert (n.min(), n.max()) == pytest.approx((1, 100))
    told = rounds.sigma if rounds.sigma.ndim == 2 else rounds.sigma[:, None]
    e = ((rounds.rewards - rounds.means) / (told * np.sqrt(own))).ravel()
    assert abs(e.mean()) < 6 / np.sqrt(e.size)
    assert (e**2).mean() == pytest.approx(1, abs=6 * np.std(e**2) / np.sqrt(e.size))
    if name.startswith("sparse"):
        assert set(np.round(np.unique(rounds.rewards - rounds.means), 9)) == {-1.0, 0.0, 1.0}


def test_misreported_rounds_tell_the_least_and_have_the_largest_noise():
    """A tenth of 5000 rounds, of variance (0.5/0.05)^2 times the told one; six standard errors."""
    rounds = env.NoisyBandit(misreported=0.1).draw(np.random.default_rng(12))
    loudest = env.NoisyBandit(env.Levels((0.05,)), misreported=0.1)
    assert rounds.sigma.min() == pytest.approx(0.05)
    share = (rounds.sigma == rounds.sigma.min()).mean()
    assert share == pytest.approx(0.1 + 0.9 / 7, abs=6 * 0.42 / np.sqrt(5000))
    e = (rounds.rewards - rounds.means) / rounds.sigma[:, None]
    wanted = 0.9 + 0.1 * 100
    assert (e**2).mean() == pytest.approx(wanted, abs=6 * np.std((e**2).mean(axis=1)) / 70)
    assert loudest.draw(np.random.default_rng(0)).sigma.max() == 0.05


def test_tied_noise_belongs_to_the_arm():
    rounds = env.WORLDS["tied-linear"].draw(np.random.default_rng(13))
    np.testing.assert_array_equal(rounds.sigma, np.tile(rounds.sigma[0], (5000, 1)))
    assert len(set(rounds.sigma[0])) > 1


def test_explained_noise_is_log_linear_in_the_features():
    """Where nothing is cut, the log of the sd is linear with slopes of norm ``strength``."""
    for fixed in (True, False):
        world = env.LogLinearBandit(fixed=fixed, rounds=200, glm=nw.GLM("identity", 2.0, 1.0))
        rounds = world.draw(np.random.default_rng(14))
        x = np.broadcast_to(rounds.arms, (200, 20, 10)).reshape(-1, 10)
        sd = rounds.sigma.ravel()
        free = (sd > 0.05) & (sd < 0.5)
        assert sd.min() == 0.05 or fixed
        assert sd.max() == 0.5 or fixed
        rows = np.column_stack([x[free], np.ones(free.sum())])
        g = np.linalg.lstsq(rows, np.log(sd[free]), rcond=None)[0]
        assert np.abs(rows @ g - np.log(sd[free])).max() < 1e-9
        assert 2 * np.linalg.norm(g[:-1]) == pytest.approx(2.0)
        assert np.exp(g[-1]) == pytest.approx(np.sqrt(0.05 * 0.5))


@pytest.mark.parametrize("name", ["fresh-linear", "tied-linear", "fixed-binomial"])
def test_a_corrupted_world_spends_its_budget_on_the_first_rounds(name):
    """Mirrored means: the best arm has the mean of the worst, and no more is spent than given."""
    world = dataclasses.replace(env.WORLDS[name], rounds=60)
    honest, bad = (w.draw(np.random.default_rng(9)) for w in (world, env.Corrupted(world, 5.0)))
    moved = np.abs(bad.rewards - honest.rewards).max(axis=1)
    rounds = np.flatnonzero(moved)
    assert 3.0 < moved.sum() <= 5.0 or "binomial" in name
    assert 0 < moved.sum() <= 5.0
    np.testing.assert_array_equal(rounds, np.arange(len(rounds)))
    np.testing.assert_array_equal(bad.means, honest.means)
    if "binomial" in name:
        assert bad.rewards.min() >= 0
        assert bad.rewards.max() <= 1
    else:
        t = np.arange(len(rounds))
        best, worst = honest.means[t].argmax(axis=1), honest.means[t].min(axis=1)
        noise = honest.rewards[t, best] - honest.means[t, best]
        np.testing.assert_allclose(bad.rewards[t, best], worst + noise, atol=1e-12)
