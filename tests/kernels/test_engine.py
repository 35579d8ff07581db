"""The learner of a history: against numpy row by row, against its minimiser to 50 digits."""

import math

import mpmath as mp
import numpy as np
import pytest

from noisewise.kernels.glm import history_passes, learner_rounds
from noisewise.kernels.glm.numbers import Learners, start
from noisewise.model.families import FAMILIES, model

RNG = np.random.default_rng


def stream(family, n, d, seed=0):
    """Features of different units, labels, weights and penalties of two learners."""
    rng = RNG([seed, n, d])
    x, w = rng.normal(size=(n, d)) * np.geomspace(0.01, 100, d), rng.uniform(0.3, 3.0, n)
    low, high = FAMILIES[family].label_range
    y = rng.poisson(1.0, n) * 1.0 if high > 1e3 else rng.choice([low, high], n)
    return x, y, w, rng.uniform(0.2, 5.0, (2, d)) * np.geomspace(0.01, 100, d) ** 2


class History:
    """Learners with the arrays that kernels share."""

    def __init__(self, family, x, y, w, penalty, tolerance=0.1, calibrated=False):
        glm, (k, d) = model(family), penalty.shape
        self.glm, self.penalty, self.n = glm, penalty, 0
        self.memory = start(
            k, d, code=glm.link.compiled.code, bound=glm.score_bound, calibrated=calibrated,
            concordance=glm.self_concordance, third=glm.third_derivative,
            spread=math.sqrt(glm.max_slope / glm.min_slope), tolerance=tolerance * math.sqrt(d),
        )  # fmt: skip
        self.x, self.labels, self.curvature = x, np.array([w, w * y]), np.empty((k, len(x)))
        self.learners = Learners(self.memory, d)
        self.s, self.learners.unit[:] = self.learners.numbers, penalty**-0.5

    def learn(self, last, again=False):
        scores = np.empty((len(self.memory), last - self.n))
        learner_rounds.learn(
            self.memory, self.x, self.labels, self.curvature, self.n, last, scores, again
        )  # fmt: skip
        self.n = last
        return scores

    def call(self, kernel, *more):
        kernel(self.memory, self.x, self.labels, self.curvature, self.n, *more)

    def hessian(self, e):
        """In the coordinates of a learner, with the curvatures that it uses."""
        z = self.x[: self.n] * self.learners.unit[e]
        return np.eye(z.shape[1]) + z.T @ (self.curvature[e, : self.n, None] * z)

    def distance(self, e, theta):
        """How far the estimate is from a point, in the norm in which gaps are measured."""
        z, off = self.x[: self.n] * self.learners.unit[e], self.learners.theta[e] - theta
        off = off / self.learners.unit[e]
        kappa = self.glm.min_slope
        return math.sqrt(off @ off + kappa * (self.labels[0, : self.n] @ (z @ off) ** 2))


def numpy_rounds(glm, x, y, w, unit):
    """Scores of a learner whose anchor is always 0, and its estimate: least squares."""
    d = x.shape[1]
    P, u, scores = np.eye(d), np.zeros(d), []
    mean, slope = float(glm.mean(0.0)), float(glm.slope(0.0))
    for row, label, weight in zip(x * unit, y, w, strict=True):
        scores.append(row @ u)
        k = P @ row
        shrink = 1 / (1 + weight * slope * (row @ k))
        u = u - (weight * (mean - label) + weight * slope * scores[-1]) * shrink * k
        P = P - weight * slope * shrink * np.outer(k, k)
    return np.array(scores), unit * u


@pytest.mark.parametrize("family", FAMILIES)
def test_rounds_without_a_pass_are_least_squares(family):
    """Up to 2 d rows: then the factor is renewed, and the anchor moves."""
    x, y, w, penalty = stream(family, 23, 12)
    learners = History(family, x, y, w, penalty, tolerance=math.inf)
    scores = learners.learn(23)
    for e in range(2):
        found, theta = numpy_rounds(learners.glm, x, y, w, penalty[e] ** -0.5)
        np.testing.assert_allclose(scores[e], found, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(learners.learners.theta[e], theta, rtol=1e-9)
        P = learners.learners.inverse(e)
        np.testing.assert_allclose(P @ learners.hessian(e), np.eye(12), atol=1e-9)


def minimiser(family, x, y, w, penalty, theta):
    """Newton's method with 50 digits, from near by: scores inside the bound of the link."""
    d = len(theta)
    with mp.workdps(50):
        parts = {
            "binomial": lambda z: (1 / (1 + mp.e**-z), mp.e**-z / (1 + mp.e**-z) ** 2),
            "poisson": lambda z: (mp.e**z, mp.e**z),
            "tanh": lambda z: (mp.tanh(z), 1 - mp.tanh(z) ** 2),
        }[family]
        point = mp.matrix(theta.tolist())
        for _ in range(12):
            g = mp.matrix([mp.mpf(r) * t for r, t in zip(penalty, point, strict=True)])
            H = mp.diag([mp.mpf(r) for r in penalty])
            for row, label, weight in zip(x, y, w, strict=True):
                v = mp.matrix(row.tolist())
                mean, slope = parts((v.T * point)[0])
                g += mp.mpf(weight) * (mean - label) * v
                H += mp.mpf(weight) * slope * (v * v.T)
            step = mp.lu_solve(H, g)
            point -= step
            if mp.norm(step) < mp.mpf(10) ** -40:
                break
        return np.array([float(point[j]) for j in range(d)])


@pytest.mark.parametrize("family", ["binomial", "poisson", "tanh"])
@pytest.mark.parametrize(("n", "d"), [(5, 2), (40, 3), (120, 3)])
def test_the_gap_is_proved_with_a_penalty_for_each_feature(family, n, d):
    x, y, w, penalty = stream(family, n, d)
    learners = History(family, x, y, w, penalty)
    learners.learn(n)
    close = History(family, x, y, w, penalty)
    close.learn(n)
    close.call(history_passes.solve, True)
    for e in range(2):
        theta = minimiser(family, x, y, w, penalty[e], close.learners.theta[e])
        assert np.abs(x @ theta).max() < FAMILIES[family].score_bound
        assert learners.distance(e, theta) <= learners.s["gap"][e]
        assert learners.s["gap"][e] <= 0.1 * math.sqrt(d)
        assert close.distance(e, theta) <= min(close.s["gap"][e], 1e-6)
        assert close.s["gap"][e] < 1e-3  # rounding is overstated for slopes from e^-30 to e^30
        z = x * penalty[e] ** -0.5
        q = np.einsum("ij,jk,ik->i", z, learners.learners.inverse(e), z)
        assert learners.s["leverage"][e] >= q.max() * (1 - 1e-9)
        assert learners.s["longest"][e] == pytest.approx(np.linalg.norm(z, axis=1).max())
        H = learners.hessian(e)
        assert learners.s["smallest"][e] <= np.linalg.eigvalsh(H)[0] * (1 + 1e-9)
        np.testing.assert_allclose(learners.learners.inverse(e) @ H, np.eye(d), atol=1e-8)


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("d", [4, 14, 70])
def test_other_penalties_are_as_if_they_had_been_there_from_the_start(calibrated, d):
    x, y, w, penalty = stream("binomial", 200, d)
    moved, fresh = (
        History("binomial", x, y, w, each, calibrated=calibrated)
        for each in (penalty[::-1] * RNG(1).uniform(0.3, 3.0, d), penalty)
    )
    moved.learn(150)
    moved.learners.move(moved.learners.theta, penalty**-0.5)
    moved.learn(150, again=True)
    fresh.learn(200)
    moved.learn(200)
    for each in (moved, fresh):
        each.call(history_passes.solve, True)
    for name in ("longest", "count", "value"):
        np.testing.assert_allclose(moved.s[name], fresh.s[name], rtol=1e-8)
    unit = moved.learners.unit
    np.testing.assert_allclose(moved.learners.theta / unit, fresh.learners.theta / unit, atol=1e-6)


@pytest.mark.parametrize("factor", [0.5, 0.1, 0.001])
def test_stretched_rows_are_as_if_they_had_been_so_from_the_start(factor):
    x, y, w, penalty = stream("poisson", 200, 14)
    x, penalty = x / np.geomspace(0.01, 100, 14) / 4, np.ones((2, 14))
    e = RNG(4).normal(size=14)
    e /= np.linalg.norm(e)
    stretched = x + (factor - 1) * np.outer(x @ e, e)
    moved = History("poisson", x.copy(), y, w, penalty)
    fresh = History("poisson", stretched, y, w, penalty)
    moved.learn(150)
    moved.x[:] = stretched
    moved.call(history_passes.stretch, e, factor)
    for i in range(2):
        product = moved.learners.inverse(i) @ moved.hessian(i)
        np.testing.assert_allclose(product, np.eye(14), atol=1e-6)
    assert (moved.s["gap"] <= 0.1 * math.sqrt(14)).all()
    moved.learn(200)
    fresh.learn(200)
    for each in (moved, fresh):
        each.call(history_passes.solve, True)
    np.testing.assert_allclose(moved.learners.theta, fresh.learners.theta, atol=1e-6)
    np.testing.assert_allclose(moved.s["value"], fresh.s["value"], rtol=1e-9)


def test_learners_of_one_history_do_not_see_each_other():
    x, y, w, penalty = stream("binomial", 90, 3)
    both = History("binomial", x, y, w, penalty)
    scores = both.learn(90)
    for e in range(2):
        alone = History("binomial", x, y, w, penalty[e : e + 1])
        np.testing.assert_array_equal(alone.learn(90)[0], scores[e])
        np.testing.assert_array_equal(alone.memory[0], both.memory[e])
