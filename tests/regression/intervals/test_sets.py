"""Confidence sets from the state: whatever the event allows lies in them."""

import warnings

import numpy as np
import pytest
from instances import CURVED, LINKS, exact, sphere
from scipy.optimize import brentq

import noisewise as nw
from noisewise.regression.ftrl.newton import visit
from noisewise.regression.ftrl.sets import uniform


@pytest.mark.parametrize("tolerance", [0.0, 0.1, 3.0])
@pytest.mark.parametrize("link", CURVED, ids=repr)
def test_every_point_of_the_event_lies_in_both_sets(link, tolerance):
    """The adaptive sets must hold every mu with L(mu) <= lam B^2 + played + C log(1/delta).

    Points are taken on the border of that event along random rays from the exact minimiser.
    """
    rng = np.random.default_rng([3, LINKS.index(link)])
    B, lam, delta, noise, inside = 2.0, 0.2, 0.1, nw.SubGaussian(0.3), 0
    glm = nw.GLM(link, 1.0, B)
    C = noise.sigma**2 / glm.min_slope
    for d, T in ((2, 30), (3, 200), (13, 300)):
        ftrl = nw.FTRL(glm, lam, tolerance)
        state = ftrl.start(d)
        x, w = sphere(rng, T, d), 10 ** rng.uniform(0, 3, T)
        y = glm.mean(x @ (0.5 * sphere(rng, 1, d)[0])) + rng.normal(size=T) / np.sqrt(w)
        ftrl.update(state, x, y, w)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # counts are not sub-Gaussian; no coverage claimed here
            whole, near = ftrl.confidence(state, noise, delta, "played")
        point, _, _ = exact(glm, state)
        assert state.solver.excess(state) >= state.head.played - point.value - 1e-9
        border = lam * B * B + state.head.played + C * np.log(1 / delta)
        assert border >= point.value
        for _ in range(40):
            mu = _border_point(glm, state, point.theta, sphere(rng, 1, d)[0], border)
            assert whole.distance(mu) <= whole.radius * (1 + 1e-9)
            if np.linalg.norm(mu) <= B:  # the local form uses the parameter bound
                inside += 1
                assert near.distance(mu) <= near.radius * (1 + 1e-9)
    assert inside >= 20


def _border_point(glm, state, start, ray, border):
    """The point start + s ray at which the objective reaches ``border``."""

    def loss(s):
        return visit(glm, state.ridge, state.blocks(), start + s * ray).value - border

    reach = 1.0
    while loss(reach) < 0:
        reach *= 2
    return start + brentq(loss, 0.0, reach, xtol=1e-13) * ray


def test_intervals_every_round_fold_each_row_once():
    """Asking for a confidence set every round adds only new rows to the Gram matrix."""
    rng = np.random.default_rng(2)
    glm = nw.GLM("logistic")
    ftrl = nw.FTRL(glm, 0.5)
    often, once = ftrl.start(3), ftrl.start(3)
    x, y = sphere(rng, 1200, 3), rng.random(1200)
    for t in range(1200):
        ftrl.update(often, x[t], y[t])
        ftrl.update(once, x[t], y[t])
        ftrl.interval(often, x[0], nw.Likelihood())
    assert often.folded == 1200
    np.testing.assert_allclose(uniform(glm, often)[0], uniform(glm, once)[0], rtol=1e-10)


def test_looking_does_not_shrink_the_set():
    ftrl = nw.FTRL(nw.GLM("logistic"), 0.5, aggregate=True)
    state = ftrl.start(2)
    ftrl.update(state, [1.0, 0.0], 1.0)
    looks = [ftrl.ellipsoid(state, nw.SubGaussian()).inverse[0, 0] for _ in range(3)]
    assert looks[0] == looks[1] == looks[2]


def test_heavy_weights_do_not_make_sets_too_small():
    """One row of weight 1e20: the direction it says nothing of must stay wide."""
    ftrl = nw.FTRL(nw.GLM("logistic"), 0.5)
    state = ftrl.start(2)
    ftrl.update(state, [1.0, 0.0], 0.7, 1e20)
    ftrl.solve(state)
    for each in ftrl.confidence(state, nw.Likelihood()):
        assert each.inverse[1, 1] >= 0.99
    assert ftrl.interval(state, [0.0, 1.0], nw.Likelihood())[1] > 0.65
