"""Aggregating: Forward as a mixture of lines, the formula, and what experts refuse."""

import dataclasses

import numpy as np
import pytest
from instances import close, sphere
from scipy.integrate import quad_vec

import noisewise as nw


def gaussian_aggregating(x, y, ridge, Y):
    """Vovk's algorithm with all lines as experts and a Gaussian prior, by quadrature in 1-d."""
    eta = 1 / (2 * Y * Y)
    predictions = []
    for t, row in enumerate(x):
        past, labels = x[:t], y[:t]
        V = 2 * ridge + past @ past
        centre, spread = past @ labels / V, 1 / np.sqrt(2 * eta * V)

        def mix(u, past=past, labels=labels, row=row, centre=centre):
            loss = np.sum((labels - u * past) ** 2) + 2 * ridge * u**2
            floor = np.sum((labels - centre * past) ** 2) + 2 * ridge * centre**2
            ends = np.array([-Y, Y]) - u * row
            return np.exp(-eta * (loss - floor + ends**2))

        grid = np.linspace(centre - 12 * spread, centre + 12 * spread, 41)
        mass = quad_vec(mix, grid[0], grid[-1], points=grid, epsabs=0, epsrel=1e-13)[0]
        low, high = -np.log(mass) / eta
        predictions.append((low - high) / (4 * Y))
    return np.array(predictions)


@pytest.mark.parametrize("Y", [0.7, 3.0])
def test_aggregating_all_lines_is_forward(Y):
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-1, 1, 12), rng.uniform(-0.7, 0.7, 12)
    close(gaussian_aggregating(x, y, 0.4, Y), nw.predictions(nw.Forward(0.4), x[:, None], y))


@dataclasses.dataclass(frozen=True)
class Line:
    """An expert that never learns: x -> slope x."""

    slope: float

    def start(self, dim):
        return None

    def predict(self, state, x):
        return self.slope * np.asarray(x)[..., 0]

    def update(self, state, x, y, weight=1.0):
        return self.predict(state, x)


def test_aggregating_lines_with_gaussian_weights_is_forward():
    """201 lines with Gaussian prior weights: the trapezoidal rule, exact to rounding here.

    Rows are short, so that no line leaves [-Y, Y] where it has weight.
    """
    rng = np.random.default_rng(12)
    x, y, Y, ridge = rng.uniform(-0.1, 0.1, (12, 1)), rng.uniform(-0.7, 0.7, 12), 1.0, 0.4
    sd = Y / np.sqrt(2 * ridge)  # prior proportional to exp(-eta 2 ridge u^2), eta = 1/(2 Y^2)
    lines = np.linspace(-8.5 * sd, 8.5 * sd, 201)
    prior = np.exp(-((lines / sd) ** 2) / 2)
    method = nw.Aggregating(
        tuple(map(Line, lines.tolist())), Y, tuple((prior / prior.sum()).tolist())
    )
    z = nw.predictions(method, x, y)
    assert np.abs(z).max() > 1e-3
    close(z, nw.predictions(nw.Forward(ridge), x, y))


def test_one_expert_is_returned_and_clipped():
    rng = np.random.default_rng(4)
    x, y = sphere(rng, 30, 2), rng.uniform(-1, 1, 30)
    alone = nw.predictions(nw.Ridge(1e-3), x, y)
    close(nw.predictions(nw.Aggregating((nw.Ridge(1e-3),), 9.0), x, y), alone, 1e-12)
    clipped = nw.predictions(nw.Aggregating((nw.Ridge(1e-3, clip=1.0),), 1.0), x, y)
    close(clipped, np.clip(alone, -1, 1), 1e-12)
    assert np.abs(alone).max() > 1


def test_aggregating_by_the_formula():
    rng = np.random.default_rng(5)
    x, y = sphere(rng, 20, 2), rng.uniform(-1, 1, 20)
    experts, prior, Y = (nw.Ridge(0.1), nw.Forward(2.0)), (0.3, 0.7), 1.0
    xi = np.clip([nw.predictions(e, x, y) for e in experts], -Y, Y)
    p, expected, eta = np.array(prior), [], 1 / (2 * Y * Y)
    for t in range(20):
        G = [-np.log(np.sum(p * np.exp(-eta * (end - xi[:, t]) ** 2))) / eta for end in (-Y, Y)]
        expected.append((G[0] - G[1]) / (4 * Y))
        p = p * np.exp(-eta * (y[t] - xi[:, t]) ** 2)
        p /= p.sum()
    method = nw.Aggregating(experts, Y, prior)
    close(nw.predictions(method, x, y), expected)
    state = method.start(2)
    method.update(state, x, y)
    close(state.weights, p)


def test_aggregating_warns_of_a_label_out_of_bounds():
    method = nw.Aggregating((nw.Ridge(), nw.Forward()), label_bound=1.0)
    state, inside = method.start(1), method.start(1)
    with pytest.warns(UserWarning, match=r"y is 3 at row 1.*label_bound"):
        method.update(state, [[1.0], [1.0]], [1.0, 3.0])
    method.update(inside, [[1.0], [1.0]], [1.0, 1.0])
    close(state.weights, inside.weights)  # weighed as the nearer end


def test_no_expert_learns_a_row_that_another_refuses():
    method = nw.Aggregating((nw.Ridge(), nw.GradientDescent(feature_bound=0.5)), label_bound=1.0)
    state = method.start(1)
    with pytest.raises(ValueError, match="feature_bound"):
        method.update(state, [1.0], 1.0)
    assert state.states[0].count == 0
