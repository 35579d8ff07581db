"""A state moved to another ridge, weights or units is as if they had been there from the start."""

import numpy as np
import pytest
from instances import BARE, CAUCHIT, exact, sphere

import noisewise as nw
from noisewise.kernels.layout import EXACT
from noisewise.regression.moving import move_ridge, rescaled, reweigh, stretch, transformed
from noisewise.regression.sets import uniform


@pytest.mark.parametrize("link", ["identity", "logistic", "tanh", CAUCHIT, BARE], ids=repr)
def test_another_ridge_is_as_if_it_had_been_there_from_the_start(link):
    rng, glm = np.random.default_rng(4), nw.GLM(link, 1.0, 2.0)
    x, w = sphere(rng, 300, 4), rng.uniform(0.5, 3.0, 300)
    y = glm.mean(x @ np.array([1.0, -1.0, 0.5, 0.0])) + 0.3 * rng.normal(size=300)
    moved, fresh = nw.FTRL(glm, 2.0).start(4), nw.FTRL(glm, 0.7).start(4)
    learner = nw.FTRL(glm)
    learner.update(moved, x[:200], y[:200], w[:200])
    learner.solve(moved)
    before = moved.solver.excess(moved)
    least = [nw.FTRL(glm, ridge, 0.0).start(4) for ridge in (2.0, 0.7)]
    for each in least:
        learner.update(each, x[:200], y[:200], w[:200])
        learner.solve(each)
    move_ridge(glm, moved, 0.7)
    assert moved.ridge == pytest.approx(0.7)
    assert moved.gap <= 0.2 * (1 + 1e-9)
    learner.solve(moved)
    minimum = [
        each.ridge * each.theta @ each.theta
        + w[:200] @ (glm.potential(x[:200] @ each.theta) - y[:200] * (x[:200] @ each.theta))
        for each in least
    ]
    # the played loss stays, so what it costs above the minimum changes by that of the minimum
    assert moved.solver.excess(moved) - before == pytest.approx(minimum[0] - minimum[1], rel=1e-9)
    learner.update(moved, x[200:], y[200:], w[200:])
    learner.update(fresh, x, y, w)
    for each in (moved, fresh):
        learner.solve(each)
    np.testing.assert_allclose(moved.theta, fresh.theta, atol=1e-8)
    np.testing.assert_allclose(uniform(glm, moved)[0], uniform(glm, fresh)[0], rtol=1e-8)
    empty, other = nw.FTRL(glm, 2.0).start(4), nw.FTRL(glm, 0.7).start(4)
    move_ridge(glm, empty, 0.7)  # before any row
    for each in (empty, other):
        learner.update(each, x[:1], y[:1], w[:1])
        learner.solve(each)
    np.testing.assert_allclose(empty.theta, other.theta, atol=1e-8)
    np.testing.assert_allclose(empty.inverse(), other.inverse(), atol=1e-8)


def test_other_weights_are_as_if_they_had_been_there_from_the_start():
    """Estimate and inverse are those of a learner of these weights; what was played costs more."""
    rng, glm = np.random.default_rng(5), nw.GLM()
    x, y, w = sphere(rng, 600, 3), rng.normal(size=600), rng.uniform(0.5, 3.0, 600)
    learner = nw.FTRL(glm, 0.7)
    first, second = learner.start(3), learner.start(3)
    z = np.array([learner.update(first, *row) for row in zip(x, y, w, strict=True)])
    learner.update(second, x, y, 4 * w)
    reweigh(glm, first, 4.0)
    np.testing.assert_allclose(first.theta, second.theta, rtol=1e-10)
    np.testing.assert_allclose(first.inverse(), second.inverse(), rtol=1e-9)
    assert first.gap <= 1e-9
    least = 0.7 * first.theta @ first.theta + 4 * w @ (
        0.5 * (x @ first.theta) ** 2 - y * (x @ first.theta)
    )
    played = 4 * w @ (0.5 * np.clip(z, -1, 1) ** 2 - y * np.clip(z, -1, 1))
    assert first.solver.excess(first) == pytest.approx(played - least, rel=1e-9)
    with pytest.raises(ValueError, match="identity"):
        nw.FTRLUCB(nw.GLM("logistic")).reweigh(nw.FTRLUCB(nw.GLM("logistic")).start(2), 2.0)


@pytest.mark.parametrize("link", ["logistic", "exponential", CAUCHIT, BARE], ids=repr)
@pytest.mark.parametrize("count", [40, 700])
@pytest.mark.parametrize("certificate", ["rigorous", "calibrated"])
def test_other_units_are_as_if_they_had_been_there_from_the_start(link, count, certificate):
    rng, glm = np.random.default_rng(4), nw.GLM(link, 9.0, 0.3)
    x, w = sphere(rng, count + 50, 4), rng.uniform(0.5, 3.0, count + 50)
    x[:, 3] = 0.0
    y = glm.mean(x @ np.array([1.0, -1.0, 0.5, 0.0])) + 0.3 * rng.normal(size=count + 50)
    factors = np.array([3.0, 1.0, 0.2, 0.0])
    learner = nw.FTRL(glm, 0.3, certificate=certificate)
    old, fresh = learner.start(4), learner.start(4)
    learner.update(old, x[:count], y[:count], w[:count])
    theta = old.theta
    moved = rescaled(glm, old, factors)
    assert np.array_equal(old.theta, theta)
    point, error, inverse = exact(glm, moved)
    off = moved.theta - point.theta
    assert np.sqrt(off @ np.linalg.solve(inverse, off)) <= moved.gap + error
    learner.update(moved, x[count:] * factors, y[count:], w[count:])
    learner.update(fresh, x * factors, y, w)
    for each in (moved, fresh):
        learner.solve(each)
    assert moved.theta == pytest.approx(fresh.theta, abs=1e-6)
    assert moved.count == fresh.count
    assert moved.head.longest == pytest.approx(fresh.head.longest)


@pytest.mark.parametrize("link", ["logistic", "exponential", CAUCHIT, BARE], ids=repr)
@pytest.mark.parametrize("factor", [0.5, 0.1, 0.001])
@pytest.mark.parametrize("certificate", ["rigorous", "calibrated"])
def test_stretched_rows_are_as_if_they_had_been_so_from_the_start(link, factor, certificate):
    """In place by two ranks, and as a copy by a matrix; other features stay."""
    rng, glm = np.random.default_rng(4), nw.GLM(link, 9.0, 0.3)
    x, w = sphere(rng, 700, 14), rng.uniform(0.5, 3.0, 700)
    y = glm.mean(x @ rng.normal(size=14)) + 0.3 * rng.normal(size=700)
    e = rng.normal(size=13)
    e /= np.linalg.norm(e)
    T = np.eye(13) + (factor - 1) * np.outer(e, e)
    back = np.eye(13) + (1 / factor - 1) * np.outer(e, e)
    learner = nw.FTRL(glm, 0.3, certificate=certificate)
    old, fresh = learner.start(14), learner.start(14)
    learner.update(old, x[:650], y[:650], w[:650])
    moved = transformed(learner, old, T, back)
    stretch(glm, old, e, factor)
    turned = np.column_stack([x[:, :13] @ T, x[:, 13]])
    learner.update(fresh, turned, y, w)
    learner.solve(fresh)
    for each in (old, moved):
        point, error, inverse = exact(glm, each)
        off = each.theta - point.theta
        assert np.sqrt(off @ np.linalg.solve(inverse, off)) <= each.gap + error
        if each.head.code != EXACT:
            product = each.inverse() @ each.solver.hessian(each)
            np.testing.assert_allclose(product, np.eye(14), atol=1e-6)
        learner.update(each, turned[650:], y[650:], w[650:])
        learner.solve(each)
        assert each.theta == pytest.approx(fresh.theta, abs=1e-6)
        assert each.count == fresh.count
        assert each.head.longest >= fresh.head.longest * (1 - 1e-9)
