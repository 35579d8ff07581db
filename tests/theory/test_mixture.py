"""The mixture behind the adaptive radius, against direct integration and closed forms."""

import math

import mpmath as mp
import numpy as np
import pytest
from instances import sphere
from scipy.integrate import quad
from scipy.special import logsumexp

import noisewise as nw
from noisewise.confidence import score_bounds
from noisewise.theory import radii

RNG = np.random.default_rng
LINKS = ["identity", "logistic", "probit", "tanh", "exponential"]


def rows(glm, d, n, seed):
    """Rows in the ball, labels of the family, weights over two orders."""
    rng = RNG(seed)
    x = rng.normal(size=(n, d))
    x *= rng.uniform(0.2, 1, n)[:, None] / np.linalg.norm(x, axis=1)[:, None]
    truth = np.full(d, 0.7 * glm.parameter_bound / math.sqrt(d))
    mean, w = glm.mean(x @ truth), 10 ** rng.uniform(-1, 1, n)
    family = glm.link.family.name
    if family == "gaussian":
        y = mean + rng.normal(size=n) / np.sqrt(w)
    elif family == "poisson":
        y = rng.poisson(mean).astype(float)
    else:
        low, high = glm.link.ends
        y = np.where(rng.random(n) < (mean - low) / (high - low), high, low)
    return x, y, w


def loss(glm, theta, x, y, w):
    """The true loss without ridge at each row of ``theta``; counts are not extended."""
    z = theta @ x.T
    potential = np.expm1(z) if glm.link.name == "exponential" else glm.potential(z)
    return (w * (potential - y * z)).sum(axis=1)


def integral(glm, constant, x, y, w, points=241, reach=6.0):
    """-C log of the prior's mean of exp(-L/C), on a grid; d = 1 or 2."""
    d = x.shape[1]
    sd = glm.parameter_bound / math.sqrt(d)
    one = np.linspace(-reach * sd, reach * sd, points)
    grid = np.stack(np.meshgrid(*[one] * d, indexing="ij"), axis=-1).reshape(-1, d)
    log_prior = -0.5 * (grid**2).sum(axis=1) / sd**2 - d * math.log(sd * math.sqrt(2 * math.pi))
    volume = d * math.log(one[1] - one[0])
    terms = log_prior - loss(glm, grid, x, y, w) / constant
    return -constant * (logsumexp(terms) + volume)


def mixture(ftrl, state, constant):
    """Mix_t itself: with the lower bound of the minimum given back."""
    glm = ftrl.glm
    state.solver.uniform(glm, state)
    found = state.solver.mixture(glm, state, constant)
    h = state.head
    if glm.linear:  # its minimum, without the labels' own squares
        return found + 0.5 * float(state.theta @ state.views.gradient)
    return found + h.played - state.solver.excess(state)


@pytest.mark.parametrize("tolerance", [0.1, 0.0])
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("link", LINKS)
def test_it_is_no_less_than_the_integral(link, d, tolerance):
    """Equal for the identity link, where the integral is Gaussian, and close for the others."""
    glm = nw.GLM(link, 1.0, 1.5)
    for constant, ridge, n in ((1.0, 0.3, 30), (0.5, 2.0, 8), (1.0, 2.0, 60)):
        ftrl = nw.FTRL(glm, ridge, tolerance)
        x, y, w = rows(glm, d, n, 10 * n + d)
        if link == "exponential":
            w = np.minimum(w, 1.0)
        state = ftrl.start(d)
        ftrl.update(state, x, y, w)
        wanted, found = integral(glm, constant, x, y, w), mixture(ftrl, state, constant)
        slack = 1e-6 * (1 + abs(wanted))
        assert found >= wanted - slack
        if link == "identity":
            assert found == pytest.approx(wanted, abs=slack)
        else:  # what the bound of the curvature costs
            assert found <= wanted + constant * d * (1.5 + math.log(ridge + 1 / ridge))


def test_in_one_dimension_by_adaptive_quadrature():
    """A second way to integrate, for the logistic link and one column."""
    glm, constant = nw.GLM("logistic", 1.0, 1.5), 1.0
    x, y, w = rows(glm, 1, 30, 3)

    def integrand(t):
        prior = math.exp(-0.5 * (t / 1.5) ** 2) / (1.5 * math.sqrt(2 * math.pi))
        return prior * math.exp(-loss(glm, np.array([[t]]), x, y, w)[0] / constant)

    value, _ = quad(integrand, -12, 12, epsabs=0, epsrel=1e-10, limit=200)
    assert integral(glm, constant, x, y, w) == pytest.approx(-math.log(value), rel=1e-8)


@pytest.mark.parametrize("d", [1, 5, 20])
def test_least_squares_with_the_interval_ridge_pay_the_log_determinant(d):
    """Mix - min L = (C/2) log det(H/2 lam), to 1e-10."""
    noise = nw.SubGaussian(0.3)
    glm = nw.GLM("identity", 1.0, 2.0)
    ridge = radii.interval_ridge(glm, noise, d)
    ftrl = nw.FTRL(glm, ridge)
    x, y, w = rows(glm, d, 700, d)
    state = ftrl.start(d)
    ftrl.update(state, x, y, w)
    C = radii.conversion_constant(glm, noise)
    H = 2 * ridge * np.eye(d) + x.T @ (w[:, None] * x)
    growth = np.linalg.slogdet(H / (2 * ridge))[1]
    assert state.solver.mixture(glm, state, C) == pytest.approx(0.5 * C * growth, rel=1e-10)
    # hence a set below the self-normalised one
    assert ftrl.ellipsoid(state, noise, radius="self-normalised").radius ** 2 > 0.04 * (
        growth + 2 * math.log(20)
    )


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("ridge", [1e-4, 0.5, 8.0])
def test_it_costs_at_most_a_logarithm_of_two(link, ridge):
    """b <= b(played) + C log 2, round by round."""
    glm = nw.GLM(link, 1.0, 1.0)
    noise = nw.Likelihood() if link != "identity" else nw.SubGaussian(0.3)
    C = radii.conversion_constant(glm, noise)
    ftrl = nw.FTRL(glm, ridge)
    x, y, w = rows(glm, 3, 300, 5)
    state = ftrl.start(3)
    for t in range(300):
        ftrl.update(state, x[t], y[t], w[t])
        slack = state.solver.slack(state)
        new, old = (
            0.5 * (ftrl.ellipsoid(state, noise, radius=name).radius - slack) ** 2
            for name in ("adaptive", "played")
        )
        assert new <= old + C * math.log(2) + 1e-9 * (1 + old)


def test_bounded_noise_keeps_the_played_loss():
    glm, noise = nw.GLM("logistic"), nw.Bounded(1.0, 0.3)
    ftrl = nw.FTRL(glm, 0.5)
    x, y, _ = rows(glm, 3, 100, 2)
    state = ftrl.start(3)
    ftrl.update(state, x, y)
    one, other = (ftrl.ellipsoid(state, noise, radius=name) for name in ("adaptive", "played"))
    assert one.radius == other.radius


CELLS = {  # kind: dim, largest ratio of the median width to the oracle's pointwise one
    "plain": (5, 2.9),
    "early heavy": (5, 3.1),
    "weights over 1e4": (20, 5.5),
    "shares of 1 to 1e4 trials": (5, 4.8),
}


@pytest.mark.parametrize("kind", CELLS)
def test_widths_over_the_pointwise_interval(kind):
    """At T = 1000 with the interval ridge; the oracle knows the parameter and the noise."""
    d, most = CELLS[kind]
    ratios = [_ratio(kind, d, RNG([16, seed])) for seed in range(9)]
    assert np.median(ratios) <= most


def _ratio(kind, d, rng, T=1000):
    x = rng.normal(size=(T, d))
    x /= np.linalg.norm(x, axis=1)[:, None]
    truth = rng.normal(size=d)
    truth *= rng.uniform(0.3, 0.95) / np.linalg.norm(truth)
    shares = kind.startswith("shares")
    glm = nw.GLM("logistic" if shares else "identity")
    noise = nw.Likelihood() if shares else nw.SubGaussian(1.0)
    w = np.ones(T)
    if kind == "early heavy":
        w[:10] = 100.0
    elif kind == "weights over 1e4":
        w = 10 ** rng.uniform(-2, 2, T)
    elif shares:
        w = np.floor(1e4 ** rng.random(T))
    mean = glm.mean(x @ truth)
    y = rng.binomial(w.astype(int), mean) / w if shares else mean + rng.normal(size=T) / np.sqrt(w)
    ftrl = nw.FTRL(glm, radii.interval_ridge(glm, noise, d))
    state = ftrl.start(d)
    ftrl.update(state, x, y, w)
    information = x.T @ ((w * glm.slope(x @ truth))[:, None] * x)
    a = rng.normal(size=(50, d))
    a /= np.linalg.norm(a, axis=1)[:, None]
    lower, upper = score_bounds(ftrl.confidence(state, noise), a, glm.parameter_bound)
    pointwise = 1.96 * np.sqrt(np.einsum("ij,ij->i", a @ np.linalg.inv(information), a))
    return np.median((upper - lower) / (2 * pointwise))


def test_the_example_of_precise_readings():
    """Identity, d = 2, sd 0.01, 400 rows, ridge 1e-4: 0.0027 pointwise, 0.01 self-normalised."""
    widths = []
    for seed in range(9):
        rng = RNG([17, seed])
        x = rng.normal(size=(400, 2))
        x /= np.linalg.norm(x, axis=1)[:, None]
        y = x @ [0.6, -0.3] + 0.01 * rng.normal(size=400)
        ftrl = nw.FTRL(nw.GLM(), 1e-4)
        state = ftrl.start(2)
        ftrl.update(state, x, y)
        found = ftrl.interval(state, [1.0, 0.0], nw.SubGaussian(0.01))
        widths.append(found.upper - found.lower)
    assert np.median(widths) <= 0.0095


@pytest.mark.parametrize(("n", "most"), [(1000, 2.0), (100_000, 2.2)])
@pytest.mark.parametrize("noise", [nw.SubGaussian(0.5), "gaussian"], ids=["known", "unknown"])
def test_widths_for_a_row_fixed_in_advance(n, most, noise):
    rng, ftrl = RNG(n), nw.FTRL(nw.GLM())
    x = rng.normal(size=(n, 5))
    x /= np.linalg.norm(x, axis=1)[:, None]
    state = ftrl.start(5)
    ftrl.update(state, x, x @ np.full(5, 0.3) + 0.5 * rng.normal(size=n))
    ends = [
        ftrl.interval(state, np.eye(5), noise, anytime=anytime, simultaneous=False)
        for anytime in (True, False)
    ]
    wide, usual = (np.subtract(each.upper, each.lower) for each in ends)
    assert (wide / usual <= most).all()
    information = np.linalg.inv(x.T @ x)
    sd = 0.5 if isinstance(noise, nw.SubGaussian) else None
    if sd:
        np.testing.assert_allclose(usual, 2 * 1.959964 * sd * np.sqrt(np.diag(information)), 1e-6)


def _exact_set(x, y, w, ridge, scores):
    """Centre, inverse and level of the adaptive set for sigma = A = B = 1, in 60 digits."""
    d = x.shape[1]
    H, b, played = mp.eye(d) * 2 * mp.mpf(ridge), mp.zeros(d, 1), mp.mpf(0)
    for row, label, weight, score in zip(x, y, w, scores, strict=True):
        v, weight, label = mp.matrix(row.tolist()), mp.mpf(float(weight)), mp.mpf(float(label))
        H, b = H + weight * v * v.T, b + weight * label * v
        z = mp.mpf(float(np.clip(score, -1, 1)))
        played += weight * (z * z / 2 - label * z)
    P, mixed = H**-1, H + mp.eye(d) * (d - 2 * mp.mpf(ridge))
    least = -(b.T * P * b)[0] / 2
    mixture = mp.log(mp.det(mixed) / mp.mpf(d) ** d) / 2 - (b.T * mixed**-1 * b)[0] / 2
    soft = -mp.log(mp.exp(least - played) / 2 + mp.exp(least - mixture) / 2)
    return P * b, P, mp.mpf(ridge) + mp.log(20) + soft


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 330), marks=pytest.mark.slow)])
def test_rounding_never_makes_an_interval_too_narrow(seeds):
    """Weights over eight orders, nearly parallel rows, any ridge: against 60 digits."""
    mp.mp.dps = 60
    for seed in seeds:
        rng = RNG([18, seed])
        d, n = int(rng.integers(2, 5)), int(rng.integers(5, 40))
        x = rng.normal(size=d) + 10 ** rng.uniform(-6, -1) * rng.normal(size=(n, d))
        x /= np.linalg.norm(x, axis=1).max() * 1.0001
        w, ridge = 10 ** rng.uniform(0, 8, n), 10 ** rng.uniform(-8, 1)
        y = x @ sphere(rng, 1, d)[0] + rng.normal(size=n) / np.sqrt(w)
        ftrl = nw.FTRL(nw.GLM(), ridge)
        state = ftrl.start(d)
        scores = ftrl.update(state, x, y, w, scores=True)
        theta, P, level = _exact_set(x, y, w, ridge, scores)
        found = ftrl.ellipsoid(state, nw.SubGaussian(1.0))
        for a in [*x[-3:], *rng.normal(size=(3, d))]:
            v = mp.matrix(a.tolist())
            half, middle = mp.sqrt(2 * level * (v.T * P * v)[0]), (v.T * theta)[0]
            assert found.upper(a) >= middle + half
            assert found.lower(a) <= middle - half
