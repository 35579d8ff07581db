"""GradientDescent, ExponentiatedGradient and SimplexFTRL against closed forms and each other."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from instances import close, quick, streams
from scipy.optimize import minimize

import noisewise as nw


def test_gradient_descent_steps():
    close(nw.predictions(nw.GradientDescent(rate=0.3, feature_bound=2.0), [[2.0]] * 3, [1.0] * 3),
          [0, 0.3, 0.3 + 0.7 * 0.3])  # fmt: skip
    glm = nw.GLM("logistic", 1.0, 0.1)
    method = nw.GradientDescent(glm)
    state = method.start(2)
    method.update(state, [0.6, 0.8], 1.0)  # the first step is B/|g| times g, of length B
    close(state.theta, [0.06, 0.08])
    method.update(state, [0.6, 0.8], 1.0)
    close(state.theta, [0.06, 0.08])  # projected


@quick
@given(streams())
def test_normalised_descent_of_rate_one_interpolates(stream):
    x, y = stream
    method = nw.GradientDescent(rate=1.0, normalised=True)
    state = method.start(x.shape[1])
    for row, label in zip(7 * x, y, strict=True):
        method.update(state, row, label)
        if row.any():
            close(method.predict(state, row), label)


@quick
@given(streams(), st.floats(-3, 3))
def test_exponentiated_gradient_does_not_see_a_shift(stream, c):
    x, y = stream
    method = nw.ExponentiatedGradient(2.0)
    states = method.start(x.shape[1]), method.start(x.shape[1])
    method.update(states[0], x, y)
    method.update(states[1], x + c, y + c)
    close(states[0].theta, states[1].theta)
    close(states[0].theta.sum(), 1)


@quick
@given(streams(), st.floats(0.1, 5))
def test_exponentiated_gradient_of_both_signs_is_that_on_doubled_features(stream, U):
    x, y = stream
    both = nw.ExponentiatedGradient(2.0, bound=U)
    z = nw.predictions(both, x, y)
    doubled = nw.predictions(nw.ExponentiatedGradient(2.0 * U), np.hstack([U * x, -U * x]), y)
    close(z, doubled)
    assert np.all(np.abs(z) <= U * np.abs(x).max(axis=1) * (1 + 1e-12))


def test_exponentiated_gradient_survives_huge_steps():
    method = nw.ExponentiatedGradient(1.0)
    state = method.start(3)
    method.update(state, [1.0, 0.0, 0.5], 1e9)
    close(state.theta, [1, 0, 0])
    method.update(state, [1.0, 0.0, 0.5], -1e12)
    close(state.theta, [0, 1, 0])


@quick
@given(streams())
def test_simplex_minimum_is_one(stream):
    """Stationarity, feasibility and complementarity of the solution, after every row."""
    x, y = stream
    x, y = 5 * x, 5 * y
    method, d = nw.SimplexFTRL(), x.shape[1]
    state = method.start(d)
    for t, (row, label) in enumerate(zip(x, y, strict=True), 1):
        z = method.update(state, row, label)
        assert row.min() - 1e-12 <= z <= row.max() + 1e-12
        w = state.theta
        assert w.min() >= 0
        close(w.sum(), 1, 1e-14)
        gradient = w - 1 / d + x[:t].T @ (x[:t] @ w - y[:t])
        assert np.all((gradient - gradient.min()) * w <= 1e-10 * (1 + np.abs(gradient).max()))


def test_simplex_minimum_equals_a_general_solver():
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(20, 5)), rng.normal(size=20)
    state = nw.SimplexFTRL().start(5)
    nw.SimplexFTRL().update(state, x, y)
    found = minimize(
        lambda w: np.sum((w - 0.2) ** 2) + np.sum((y - x @ w) ** 2),
        np.full(5, 0.2),
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-15},
    )
    np.testing.assert_allclose(state.theta, found.x, atol=1e-6)
