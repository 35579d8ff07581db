"""A state moved to another ridge, weights or units is as if they had been there from the start."""

import numpy as np
import pytest
from instances import BARE, CAUCHIT, sphere

import noisewise as nw
from noisewise.regression.ftrl.moving import move_ridge, reweigh
from noisewise.regression.ftrl.sets import uniform


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
