"""Radii: closed forms, honest coverage over all rounds, and the power to fail when shrunk."""

import functools

import numpy as np
import pytest
from instances import BARE, cauchit_mean, cauchit_slope, sphere
from scipy.stats import binom

import noisewise as nw
from noisewise.regression.ftrl.sets import uniform
from noisewise.theory import radii

DELTA = 0.1


def test_reference_radii():
    glm, noise = nw.GLM(), nw.Bounded(1.0, 0.1)
    at = {"dim": 5, "count": 1000, "ridge": 4.0, "delta": 0.05}
    assert radii.printed(glm, noise, **at) == pytest.approx(89.4, abs=0.05)
    assert radii.freedman(glm, noise, **at) == pytest.approx(8.10, abs=0.005)
    growth = radii.growth_bound(glm, dim=5, count=1000, ridge=4.0)
    found = radii.self_normalised(glm, noise, log_det=growth, ridge=4.0, delta=0.05)
    assert found == pytest.approx(7.55, abs=0.005)


def test_adaptive_radius_is_smaller_than_the_others_for_quiet_bounded_noise():
    """d = 5, t = 1000, sd 0.1, bound 1: about 4.5 against 8.1 (freedman) and 89 (printed)."""
    rng = np.random.default_rng(3)
    noise, ftrl = nw.Bounded(1.0, 0.1), nw.FTRL(nw.GLM(), tolerance=0)
    x, theta = sphere(rng, 1000, 5), sphere(rng, 1, 5)[0]
    y = x @ theta + np.where(rng.random(1000) < 0.01, rng.choice([-1.0, 1.0], 1000), 0.0)
    state = ftrl.start(5)
    ftrl.update(state, x, y)
    size = {name: ftrl.ellipsoid(state, noise, 0.05, name).radius for name in radii.RADII}
    assert 4.0 < size["adaptive"] < 5.0
    assert size["adaptive"] < size["self-normalised"] < size["freedman"] < size["printed"]


@pytest.mark.parametrize("link", ["identity", "logistic", "exponential", "tanh"])
def test_level_from_its_definition(link):
    """b against played losses and a minimum recomputed from the rows."""
    rng = np.random.default_rng(2)
    glm = nw.GLM(link, 1.0, 1.5)
    x, w = sphere(rng, 50, 3), rng.uniform(0.5, 4.0, 50)
    y = np.clip(glm.mean(x @ np.array([1.0, -0.5, 0.3])) + 3 * rng.normal(size=50), *glm.ends)
    ftrl = nw.FTRL(glm, ridge=0.7, tolerance=0)
    scores = np.clip(nw.predictions(ftrl, x, y, w, scores=True), -1.5, 1.5)
    state = ftrl.start(3)
    ftrl.update(state, x, y, w)

    def loss(z):
        return w @ (glm.potential(z) - y * z)

    least = 0.7 * state.theta @ state.theta + loss(x @ state.theta)
    noise = nw.Likelihood()
    b = 0.7 * 1.5**2 + loss(scores) - least + np.log(20.0)
    set_ = ftrl.ellipsoid(state, noise, 0.05, "played")
    assert set_.radius == pytest.approx(np.sqrt(2 * b), rel=1e-9)
    kappa = glm.min_slope
    H = 1.4 * np.eye(3) + kappa * x.T @ (w[:, None] * x)
    np.testing.assert_allclose(set_.inverse @ H, np.eye(3), atol=1e-12)
    sign, log_det = np.linalg.slogdet(H / 1.4)
    assert sign > 0
    assert uniform(glm, state)[1] == pytest.approx(log_det, abs=1e-11)


def _weights(rng, rounds):
    return 10 ** rng.uniform(0, 2, size=rounds)


def gaussian(link, rng, T, theta):
    glm = nw.GLM(link, 1.0, 1.5)
    x, w = sphere(rng, T, len(theta)), _weights(rng, T)
    y = glm.mean(x @ theta) + rng.normal(size=T) / np.sqrt(w)
    return glm, nw.SubGaussian(1.0), x, y, w


def sparse(link, rng, T, theta):
    """Noise 0 or +-1 with variance exactly sigma^2 / w."""
    glm = nw.GLM(link, 1.0, 1.5)
    x, w = sphere(rng, T, len(theta)), rng.uniform(0.25, 1.0, size=T)
    hit = rng.random(T) < 0.04 / w
    y = glm.mean(x @ theta) + np.where(hit, rng.choice([-1.0, 1.0], T), 0.0)
    return glm, nw.Bounded(1.0, 0.2, 1.0), x, y, w


def binomial(link, rng, T, theta):
    glm = nw.GLM(link, 1.0, 1.5)
    x, n = sphere(rng, T, len(theta)), np.floor(_weights(rng, T))
    return glm, nw.Likelihood(), x, rng.binomial(n.astype(int), glm.mean(x @ theta)) / n, n


def poisson(link, rng, T, theta):
    glm = nw.GLM(link, 1.0, 1.5)
    x, n = sphere(rng, T, len(theta)), np.floor(_weights(rng, T))
    return glm, nw.Likelihood(), x, rng.poisson(n * glm.mean(x @ theta)) / n, n


def signs(link, rng, T, theta):
    glm = nw.GLM(link, 1.0, 1.5)
    x = sphere(rng, T, len(theta))
    y = 2.0 * rng.binomial(1, (1 + glm.mean(x @ theta)) / 2) - 1
    return glm, nw.Likelihood(), x, y, np.ones(T)


WORLDS = [
    (gaussian, "identity"),
    (gaussian, "logistic"),
    (sparse, "identity"),
    (sparse, "logistic"),
    (binomial, "logistic"),
    (poisson, "exponential"),
]
MORE_WORLDS = [
    *WORLDS,
    (gaussian, "tanh"),
    (gaussian, "algebraic"),
    (sparse, "tanh"),
    (binomial, "probit"),
    (signs, "tanh"),
]


@functools.cache
def ratios(world, link, runs, rounds, seed):
    """Largest error / radius over all rounds, a column a set: {name: (runs,)}."""
    found = {}
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        theta = 1.5 * sphere(rng, 1, 2)[0]
        glm, noise, x, y, w = world(link, rng, rounds, theta)
        ftrl = nw.FTRL(glm, ridge=0.05, tolerance=0)
        names = ["adaptive"]
        if world is not poisson:
            names.append("self-normalised")
        if world is sparse:
            names += ["freedman", "printed"]
        state, worst = ftrl.start(2), {}
        for t in range(rounds):
            ftrl.update(state, x[t], y[t], w[t])
            for name in names:
                sets = ftrl.confidence(state, noise, DELTA, name)
                for form, each in zip((name, f"{name}, local"), sets, strict=False):
                    ratio = each.distance(theta) / each.radius
                    worst[form] = max(worst.get(form, 0.0), ratio)
        for form, ratio in worst.items():
            found.setdefault(form, []).append(ratio)
    return {form: np.array(values) for form, values in found.items()}


def _check_coverage(worlds, runs, rounds, seed, alarm):
    """If every set covers with 1 - DELTA, each form fails here with probability below ``alarm``."""
    allowed = int(binom.isf(alarm, runs, DELTA))
    power = {}
    for world, link in worlds:
        found = ratios(world, link, runs, rounds, seed)
        for form, ratio in found.items():
            missed = int((ratio > 1).sum())
            assert missed <= allowed, f"{world.__name__} {link} {form}: {missed} of {runs} missed"
            power.setdefault(form, []).append(float((3 * ratio > 1).mean()))
    # at a third of its size the adaptive radius must miss too often somewhere, in both forms
    assert max(power["adaptive"]) > DELTA
    assert max(power["adaptive, local"]) > DELTA


@pytest.mark.slow
def test_coverage_and_power():
    """Twenty forms at 1e-8 each: false alarm below 1e-6."""
    _check_coverage(WORLDS, runs=40, rounds=100, seed=1, alarm=1e-8)


@pytest.mark.slow
def test_coverage_and_power_at_length():
    """Forty forms at 1e-8 each: false alarm below 1e-6."""
    _check_coverage(MORE_WORLDS, runs=300, rounds=200, seed=2, alarm=1e-8)


def test_interval_contains_estimate_and_respects_the_parameter_bound():
    rng = np.random.default_rng(0)
    glm, noise, x, y, w = binomial("logistic", rng, 60, np.array([1.0, 0.5]))
    ftrl = nw.FTRL(glm, tolerance=0)
    state = ftrl.start(2)
    lower, upper = ftrl.interval(state, x[0], noise)
    assert lower == pytest.approx(float(glm.mean(-1.5)))
    assert upper == pytest.approx(float(glm.mean(1.5)))
    ftrl.update(state, x, y, w)
    lower, upper = ftrl.interval(state, x, noise)
    assert lower.shape == upper.shape == (60,)
    assert ((lower <= ftrl.predict(state, x)) & (ftrl.predict(state, x) <= upper)).all()
    whole, near = ftrl.confidence(state, noise)
    for each in (whole, near):
        assert (glm.mean(each.upper(x)) >= upper - 1e-12).all()
    wide = ftrl.interval(state, x, noise, delta=0.001)
    assert (wide[0] <= lower).all()
    assert (wide[1] >= upper).all()


def test_forms_of_the_confidence():
    noise = nw.SubGaussian()
    for link, forms in (("identity", 1), ("logistic", 2), (BARE, 1)):
        ftrl = nw.FTRL(nw.GLM(link), tolerance=0)
        state = ftrl.start(2)
        ftrl.update(state, [0.6, 0.8], 1.0)
        assert len(ftrl.confidence(state, noise)) == forms
        assert len(ftrl.confidence(state, noise, radius="self-normalised")) == 1


@pytest.mark.parametrize(
    ("link", "noise", "kwargs", "word"),
    [
        ("identity", nw.SubGaussian(), {"radius": "freedman"}, "Bounded"),
        ("identity", nw.SubGaussian(), {"radius": "printed"}, "Bounded"),
        ("identity", nw.SubGaussian(), {"radius": "small"}, "radius"),
        ("identity", nw.SubGaussian(), {"delta": 0.0}, "delta"),
        ("identity", nw.SubGaussian(), {"delta": 1.0}, "delta"),
        ("identity", 0.5, {}, "noise"),
        ("identity", nw.Bounded(max_weight=0.5), {}, "max_weight"),
        ("algebraic", nw.Likelihood(), {}, "algebraic"),
        (BARE, nw.Likelihood(), {}, "bare"),
        (nw.Link("logistic", cauchit_mean, cauchit_slope), nw.Likelihood(), {}, "logistic"),
        ("exponential", nw.Likelihood(), {"radius": "self-normalised"}, "exponential"),
    ],
)
def test_bad_requests_are_refused(link, noise, kwargs, word):
    ftrl = nw.FTRL(nw.GLM(link), tolerance=0)
    state = ftrl.start(1)
    ftrl.update(state, [1.0], 1.0)
    with pytest.raises(ValueError, match=word):
        ftrl.ellipsoid(state, noise, **kwargs)


def test_probit_family_only_to_score_three():
    for bound, fine in ((3.0, True), (3.5, False)):
        ftrl = nw.FTRL(nw.GLM("probit", 1.0, bound), tolerance=0)
        state = ftrl.start(1)
        if fine:
            ftrl.ellipsoid(state, nw.Likelihood())
        else:
            with pytest.raises(ValueError, match="probit"):
                ftrl.ellipsoid(state, nw.Likelihood())


def test_counts_with_sub_gaussian_noise_warn():
    ftrl = nw.FTRL(nw.GLM("exponential"), tolerance=0)
    with pytest.warns(UserWarning, match="Likelihood"):
        ftrl.ellipsoid(ftrl.start(1), nw.SubGaussian())


@pytest.mark.parametrize(
    ("kind", "kwargs"),
    [
        (nw.SubGaussian, {"sigma": 0}),
        (nw.SubGaussian, {"sigma": np.nan}),
        (nw.Bounded, {"bound": -1}),
        (nw.Bounded, {"max_weight": 0}),
        (nw.Likelihood, {"dispersion": 0}),
    ],
)
def test_bad_noise_is_refused(kind, kwargs):
    with pytest.raises(ValueError, match=next(iter(kwargs))):
        kind(**kwargs)


def test_ellipsoid_bounds_are_attained():
    rng = np.random.default_rng(4)
    root = rng.normal(size=(3, 3))
    H = root @ root.T + np.eye(3)
    set_ = nw.Ellipsoid(rng.normal(size=3), np.linalg.inv(H), 0.7)
    x = rng.normal(size=(5, 3))
    for row, upper in zip(x, set_.upper(x), strict=True):
        step = set_.inverse @ row
        edge = set_.centre + 0.7 * step / np.sqrt(row @ step)
        assert row @ edge == pytest.approx(upper)
        assert set_.contains(set_.centre + 0.9999 * (edge - set_.centre))
        assert not set_.contains(set_.centre + 1.0001 * (edge - set_.centre))
    with pytest.raises(ValueError, match="theta"):
        set_.contains([1.0, 2.0])
