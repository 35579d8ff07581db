"""The streaming solver: its certificate against the exact minimiser, everywhere."""

import copy
import itertools
import warnings

import numpy as np
import pytest
from instances import CAUCHIT, CURVED, LINKS, exact, sphere
from scipy.optimize import brentq

import noisewise as nw
from noisewise.regression.ftrl.newton import minimise
from noisewise.regression.ftrl.sets import uniform


def overshoot(glm, state):
    """True distance less the certificate, and the distance; the first must never be positive."""
    point, slack, inverse = exact(glm, state)
    away = state.theta - point.theta
    distance = np.sqrt(away @ np.linalg.solve(inverse, away))
    return distance - slack - state.gap, distance


# Streams: each yields (x, y, w) and may look at the state before every row.


def isotropic(rng, glm, d, T):
    truth = glm.parameter_bound * sphere(rng, 1, d)[0]
    for x in sphere(rng, T, d):
        yield x, glm.mean(x @ truth) + 0.3 * rng.normal(), 1.0


def drifting(rng, glm, d, T):
    """A spectrum from 1 to 1/100 in a frame that turns over the horizon."""
    scale = np.geomspace(1, 0.01, d)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    truth = glm.parameter_bound * sphere(rng, 1, d)[0]
    for t in range(T):
        frame, angle = turn.copy(), np.pi * t / T
        if d > 1:
            frame[0] = np.cos(angle) * turn[0] + np.sin(angle) * turn[-1]
            frame[-1] = np.cos(angle) * turn[-1] - np.sin(angle) * turn[0]
        x = (sphere(rng, 1, d)[0] * scale) @ frame
        yield x, glm.mean(x @ truth) + 0.3 * rng.normal(), 1.0


def switching(rng, glm, d, T):
    """Long stretches on one axis, then another, with labels far outside the range."""
    for t in range(T):
        x = np.zeros(d)
        x[(t // 25) % d] = 1.0
        yield x + 0.01 * sphere(rng, 1, d)[0] - 0.01 * x, 10 * rng.normal(), 1.0


def weighted(rng, glm, d, T):
    """Weights over four decades."""
    truth = glm.parameter_bound * sphere(rng, 1, d)[0]
    for x in sphere(rng, T, d):
        w = 10 ** rng.uniform(-2, 2)
        yield x * rng.uniform(0.2, 1), glm.mean(x @ truth) + rng.normal() / np.sqrt(w), w


def adversarial(rng, glm, d, T, state):
    """Every row lies along the step and its label drives the estimate further from the anchor."""
    for _ in range(T):
        step = state.views.step + 1e-3 * rng.normal(size=d)
        x = 0.999 * step / np.linalg.norm(step)
        z = x @ state.theta
        yield x, glm.mean(z) + 2 * np.sign(z + 1e-9), 1.0


STREAMS = [isotropic, drifting, switching, weighted, adversarial]


def worst_overshoot(link, stream, d, T, tolerance, certificate="rigorous", seed=0, ridge=0.3):
    rng = np.random.default_rng([seed, d, LINKS.index(link), STREAMS.index(stream)])
    glm = nw.GLM(link, 1.0, 2.0)
    ftrl = nw.FTRL(glm, ridge, tolerance, certificate)
    state = ftrl.start(d)
    rows = stream(rng, glm, d, T, state) if stream is adversarial else stream(rng, glm, d, T)
    worst, closest = -np.inf, 0.0
    for x, y, w in rows:
        ftrl.update(state, x, y, w)
        over, distance = overshoot(glm, state)
        worst = max(worst, over)
        closest = max(closest, distance / state.gap)
        if certificate == "rigorous":
            assert state.gap <= tolerance * np.sqrt(d) * (1 + 1e-12)
    return worst, closest, state


@pytest.mark.parametrize("stream", STREAMS, ids=lambda s: s.__name__)
@pytest.mark.parametrize("link", CURVED, ids=repr)
def test_certificate_is_never_below_the_true_gap(link, stream):
    for d, tolerance in ((2, 0.5), (13, 1.0)):
        worst, closest, state = worst_overshoot(link, stream, d, 60, tolerance)
        assert worst <= 0, f"d = {d}: the true gap was {worst:.3g} above the certificate"
        assert closest > 1e-4, "the stream never moved the estimate"
        assert state.passes > 0


@pytest.mark.slow
@pytest.mark.parametrize("link", CURVED, ids=repr)
def test_certificate_over_many_rounds(link):
    """More than 10^5 rounds over all links, checked one by one; stale factors from d = 12 on."""
    rounds, stale = 0, 0
    cases = itertools.product(STREAMS, (1, 3, 13), (0.1, 1.0, 5.0), ("rigorous", "calibrated"))
    for seed, (stream, d, tolerance, certificate) in enumerate(cases):
        worst, _, state = worst_overshoot(
            link, stream, d, 200, tolerance, certificate, seed, 10.0 ** -(seed % 3)
        )
        assert worst <= 0, (stream.__name__, d, tolerance, certificate, worst)
        rounds += state.count
        stale += d == 13 and state.passes > state.factors
    assert rounds >= 100_000 / len(CURVED)
    assert stale >= 10, "no stale factor was met"


@pytest.mark.parametrize("link", CURVED, ids=repr)
def test_streaming_equals_the_readable_path_within_its_gap(link):
    """Two runs side by side, one exact every round; across blocks and buffers, 1300 rows."""
    rng = np.random.default_rng(5)
    glm, d, T = nw.GLM(link, 1.0, 2.0), 4, 1300
    truth = 2 * sphere(rng, 1, d)[0]
    x, w = sphere(rng, T, d), rng.uniform(0.1, 10, T)
    y = glm.mean(x @ truth) + rng.normal(size=T)
    fast, slow = nw.FTRL(glm, 0.5), nw.FTRL(glm, 0.5, 0.0)
    a, b = fast.start(d), slow.start(d)
    for first in range(0, T, 100):
        part = slice(first, first + 100)
        fast.update(a, x[part], y[part], w[part])
        if first < 500 or first == T - 100:
            b = slow.start(d)
            for block in a.blocks():
                b.rows.extend(block.x, np.array([block.weight, block.pull]), block.curvature[None])
            b.views.inverse[:] = uniform(glm, a)[0]
            slow.solve(b)
            away = a.theta - b.theta
            assert np.sqrt(away @ np.linalg.solve(b.views.inverse, away)) <= a.gap + b.gap
    fast.solve(a)
    np.testing.assert_allclose(a.theta, b.theta, atol=1e-9)
    assert a.gap < 1e-8


X = np.array([[1, 0], [0.6, 0.8], [-0.8, 0.6], [0, 1.0]])
Y = np.array([1, -2, 3, 0.5])


def test_golden_vectors_after_solve():
    ftrl = nw.FTRL(nw.GLM("logistic"), tolerance=5.0)
    state = ftrl.start(2)
    for t, theta in enumerate(
        [
            (0.179056490868, 0),
            (-0.318659636917, -0.728447061897),
            (-0.995274896551, -0.179923109636),
            (-0.995267156450, -0.165026590020),
        ]
    ):
        ftrl.update(state, X[t], Y[t])
        other = copy.deepcopy(state)
        ftrl.solve(other)
        np.testing.assert_allclose(other.theta, theta, atol=1e-10)
        assert other.gap < 1e-12
    ftrl = nw.FTRL(nw.GLM("logistic"), tolerance=5.0)
    state = ftrl.start(1)
    ftrl.update(state, np.ones((3, 1)), [10.0, 12.0, 9.0])
    ftrl.solve(state)
    np.testing.assert_allclose(state.theta, 9.383161242267, atol=1e-10)


@pytest.mark.parametrize("link", [link for link in CURVED if link.third_derivative], ids=repr)
def test_third_derivatives_stay_below_their_constant(link):
    for S in (0.3, 1.0, 3.0):
        glm = nw.GLM(link, 1.0, S)
        z, h = np.linspace(-S, S, 4001), 1e-3
        third = (link.slope(z + h) - 2 * link.slope(z) + link.slope(z - h)) / h**2
        assert (np.abs(third) <= glm.third_derivative * link.slope(z) * (1 + 1e-3)).all()


@pytest.mark.parametrize("link", [nw.LINKS["logistic"], nw.LINKS["identity"], CAUCHIT], ids=repr)
def test_merged_rows_give_the_same_and_stop_growing(link):
    rng = np.random.default_rng(8)
    glm = nw.GLM(link, 1.0, 2.0)
    arms = np.vstack([sphere(rng, 9, 3), np.zeros(3)])
    pick = rng.integers(0, 10, 3000)
    y, w = rng.normal(size=3000), rng.uniform(0.5, 2, 3000)
    plain, merged = nw.FTRL(glm, 0.5), nw.FTRL(glm, 0.5, aggregate=True)
    a, b = plain.start(3), merged.start(3)
    plain.update(a, arms[pick], y, w)
    merged.update(b, np.where(arms[pick] == 0, -0.0, arms[pick]), y, w)
    assert b.count == 3000
    assert sum(len(block.x) for block in b.rows) <= 10
    noise = nw.SubGaussian()
    for ftrl, state in ((plain, a), (merged, b)):
        ftrl.solve(state)
    np.testing.assert_allclose(a.theta, b.theta, atol=1e-10)
    for one, two in zip(plain.confidence(a, noise), merged.confidence(b, noise), strict=True):
        assert one.radius == pytest.approx(two.radius, rel=1e-8)
        np.testing.assert_allclose(one.inverse, two.inverse, rtol=1e-8, atol=1e-14)


def test_rows_in_any_form_give_the_same_numbers():
    """A list, a strided view, a read-only or single-precision row take the general way."""
    rng = np.random.default_rng(3)
    x, y = sphere(rng, 40, 3), rng.random(40)
    ftrl = nw.FTRL(nw.GLM("logistic"))
    states = [ftrl.start(3) for _ in range(4)]
    for t in range(40):
        wide = np.zeros((3, 2))
        wide[:, 0] = x[t]
        locked = x[t].copy()
        locked.flags.writeable = False
        forms = [x[t], x[t].tolist(), wide[:, 0], locked]
        means = [ftrl.update(s, form, y[t]) for s, form in zip(states, forms, strict=True)]
        np.testing.assert_allclose(means, means[0], rtol=1e-14)
    ftrl.update(states[0], 0.9 * x[0].astype(np.float32), np.float32(0.5), 1)
    assert states[0].count == 41


def test_long_rows_warn_once_asked():
    ftrl = nw.FTRL(nw.GLM("logistic"), oversize="warn")
    state = ftrl.start(2)
    with pytest.warns(UserWarning, match="feature_bound"):
        ftrl.update(state, np.array([3.0, 0.0]), 1.0)
    ftrl.update(state, np.array([0.5, 0.0]), 1.0)
    assert state.count == 2


def raw_minimiser(glm, ridge, x, y, w):
    """The minimiser from the stream itself, not from what a state has kept of it."""
    from noisewise.regression.history import Block

    rows = [Block(x, w, w * y, 0 * w)]
    H = 2 * ridge * np.eye(x.shape[1]) + glm.min_slope * x.T @ (w[:, None] * x)
    point, gap = minimise(glm, ridge, rows, np.zeros(x.shape[1]), np.linalg.inv(H))
    return point.theta, gap, H


@pytest.mark.parametrize("aggregate", [False, True])
@pytest.mark.parametrize("link", [*CURVED, nw.LINKS["identity"]], ids=repr)
def test_certificate_on_long_mixed_streams(link, aggregate, tmp_path):
    """Past the buffer, rows and blocks, saved and solved in between, repeated rows, long rows."""
    rng = np.random.default_rng([6, aggregate])
    glm, d, T, ridge = nw.GLM(link, 1.0, 2.0), 3, 1400, 0.05
    pool = np.vstack([sphere(rng, 30, d), 2 * sphere(rng, 2, d)])
    x = np.where(rng.random((T, 1)) < 0.5, pool[rng.integers(0, 32, T)], sphere(rng, T, d))
    w = 10 ** rng.uniform(-2, 2, T)
    y = glm.mean(x @ np.array([0.8, -0.5, 0.1])) + rng.normal(size=T) / np.sqrt(w)
    ftrl = nw.FTRL(glm, ridge, 0.5, oversize="warn", aggregate=aggregate)
    state, done = ftrl.start(d), 0
    while done < T:
        n = int(rng.integers(1, 200))
        part = slice(done, done + n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if n % 3 == 0:
                for row, label, weight in zip(x[part], y[part], w[part], strict=True):
                    ftrl.update(state, row, label, weight)
            else:
                ftrl.update(state, x[part], y[part], w[part])
        done = min(done + n, T)
        if n % 5 == 0:
            nw.save(tmp_path / "s.npz", ftrl, state)
            state = nw.load(tmp_path / "s.npz", link=link)[1]
        if n % 7 == 0:
            ftrl.solve(state)
        theta, slack, H = raw_minimiser(glm, ridge, x[:done], y[:done], w[:done])
        away = state.theta - theta
        assert np.sqrt(away @ H @ away) <= state.gap + slack
        np.testing.assert_allclose(np.linalg.inv(uniform(glm, state)[0]), H, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("link", ["logistic", "tanh", "identity"])
@pytest.mark.parametrize("stretch", [1e8, 1e12, 1e14, 1e16])
def test_certificate_when_the_inverse_is_hardly_known(link, stretch):
    """One heavy row over a tiny ridge: the distance solves a scalar equation along the row."""
    rng = np.random.default_rng(int(np.log10(stretch)))
    ridge = 1e-6
    glm = nw.GLM(link)
    for _ in range(30):
        x, y, w = sphere(rng, 1, 4)[0], float(rng.normal()), stretch * ridge
        ftrl = nw.FTRL(glm, ridge)
        state = ftrl.start(4)
        ftrl.update(state, x, y, w)

        def slope(s, y=y, w=w):
            return 2 * ridge * s + w * (float(glm.mean(s)) - y)

        z = brentq(slope, -1e3, 1e3, xtol=1e-15)
        along, across = state.theta @ x - z, state.theta - (state.theta @ x) * x
        distance = np.sqrt((2 * ridge + glm.min_slope * w) * along**2 + 2 * ridge * across @ across)
        assert distance <= state.gap * (1 + 1e-6) + 1e-9 * np.sqrt(w)


def test_an_interrupted_pass_leaves_a_state_that_goes_on():
    """A user's mean that fails once in the pass at a full buffer."""
    calls = {"fail": False}

    def mean(z):
        if calls["fail"] and np.ndim(z) == 1 and len(z) > 100:
            calls["fail"] = False
            raise RuntimeError("once")
        return np.tanh(z)

    link = nw.Link("fragile", mean, lambda z: np.cosh(z) ** -2.0, None, 2.0)
    rng = np.random.default_rng(0)
    x, y = sphere(rng, 700, 2), rng.normal(size=700)
    ftrl = nw.FTRL(nw.GLM(link), 0.5, tolerance=1e-7)
    state = ftrl.start(2)
    ftrl.update(state, x[:511], y[:511])
    calls["fail"] = True
    with pytest.raises(RuntimeError, match="once"):
        ftrl.update(state, x[511], y[511])
    ftrl.update(state, x[512:], y[512:])
    ftrl.solve(state)
    theta, _, _ = raw_minimiser(ftrl.glm, 0.5, x, y, np.ones(700))
    np.testing.assert_allclose(state.theta, theta, atol=1e-8)


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
@pytest.mark.parametrize("link", ["identity", "logistic", "exponential"])
@pytest.mark.parametrize(("y", "w"), [(1e160, 1.0), (1.0, 1e300), (1e300, 1e300)])
def test_numbers_too_large_are_refused(link, tolerance, y, w):
    ftrl = nw.FTRL(nw.GLM(link), tolerance=tolerance)
    state = ftrl.start(2)
    for x, label, weight in (([1.0, 0.0], y, w), (np.eye(2), [0.0, y], [1.0, w])):
        with pytest.raises(ValueError, match="rescale"):
            ftrl.update(state, x, label, weight)
    with pytest.raises(ValueError, match="rescale"):
        ftrl.update(state, np.array([1.0, 0.0]), y, w)
    assert state.count == 0
