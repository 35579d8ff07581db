"""Minimax and HorizonFreeMinimax: constant regret, golden numbers, and one from the other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import close, least, quick, sphere, streams

import noisewise as nw
from noisewise import theory
from noisewise.numerics import linalg


@quick
@given(streams())
def test_minimax_regret_is_the_same_for_every_label_sequence(stream):
    x, y = stream
    z = nw.predictions(nw.Minimax(), x, y)
    regret = 0.5 * np.sum((z - y) ** 2) - least(x, y, 0 * np.eye(x.shape[1]))[0]
    close(regret, theory.minimax_value(x, y))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("redundant", [False, True])
def test_minimax_does_not_see_the_units(seed, redundant):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    if redundant:
        x[:, 2] = x[:, 0] - 2 * x[:, 1]
    scaled = x * np.array([1e-6, 1.0, 1e6])
    z = nw.predictions(nw.Minimax(), scaled, y)
    close(z, nw.predictions(nw.Minimax(), x, y))
    best = 0.5 * np.sum((y - x @ np.linalg.lstsq(x, y)[0]) ** 2)
    close(0.5 * np.sum((z - y) ** 2) - best, theory.minimax_value(scaled, y))
    adversary = nw.environments.Adversary()
    close(adversary.value(scaled), adversary.value(x))
    close(adversary.chances(scaled, np.sign(y)), adversary.chances(x, np.sign(y)))


def test_minimax_golden_numbers():
    method, x = nw.Minimax(), np.ones((2, 1))
    close(linalg.minimax_directions(x)[1], [3 / 4, 1 / 2], 1e-14)
    state = method.start(1, design=x)
    close(state.covariance, 3 / 4, 1e-14)
    assert method.update(state, x[0], 0.8) == 0
    close(state.covariance, 1 / 2, 1e-14)
    close(method.update(state, x[1], -1.0), 0.4, 1e-14)
    close(2 * theory.minimax_value(x), 5 / 4, 1e-14)
    close(nw.environments.Adversary().value(x), theory.minimax_value(x), 1e-14)


def test_after_the_design_minimax_is_least_squares():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    state = nw.Minimax().start(3, design=x)
    nw.Minimax().update(state, x, y)
    close(nw.Minimax().predict(state, x), x @ np.linalg.lstsq(x, y)[0])


def test_rows_of_weight_zero_are_no_part_of_the_design():
    rng = np.random.default_rng(7)
    x, y, w = rng.normal(size=(9, 2)), rng.normal(size=9), np.ones(9)
    w[[0, 4, 8]] = 0
    z = nw.predictions(nw.Minimax(), x, y, w)
    close(z[w > 0], nw.predictions(nw.Minimax(), x[w > 0], y[w > 0]), 1e-14)


def test_minimax_wants_the_design_as_it_will_count():
    state = nw.Minimax().start(1, design=[[2.0]])
    with pytest.raises(ValueError, match="root of their weight"):
        nw.Minimax().update(state, [2.0], 1.0, 4.0)
    nw.Minimax().update(state, [1.0], 1.0, 4.0)
    assert nw.Minimax().predict(state, [1.0]) == 1.0


def test_minimax_sees_whether_a_row_to_come_is_one_of_weight_two_or_two():
    heavy = nw.predictions(nw.Minimax(), np.ones((3, 1)), np.ones(3), [1.0, 1.0, 2.0])
    twice = nw.predictions(nw.Minimax(), np.ones((4, 1)), np.ones(4))
    assert abs(heavy[1] - twice[1]) > 1e-3  # so that it is not promised
    close(heavy, [0, 3 / 8, 1 / 2], 1e-14)  # P_2 is 1/4 + 2/16, P_3 is 1/4


@quick
@given(streams())
def test_horizon_free_reproduces_minimax(stream):
    """To 1e-9; more where the design is bad: going from P_0 to P_T multiplies what rounding did
    to P_0 by the ratio of their largest and least eigenvalue, 1e-14 of which is allowed.
    """
    x, y = stream
    if not x.any():
        return
    directions, _ = linalg.minimax_directions(x)
    P = linalg.scaled_inverse(x.T @ x) + directions.T @ directions
    method = nw.HorizonFreeMinimax()
    state = method.start(x.shape[1], covariance=P)
    z = method.update(state, x, y)
    growth = np.linalg.norm(P, 2) * np.linalg.norm(x, 2) ** 2
    close(z, nw.predictions(nw.Minimax(), x, y), max(1e-9, 1e-14 * growth))
    assert abs(state.budget_left) < 1e-6  # spent exactly: the end is least squares


@pytest.mark.parametrize("seed", range(5))
def test_horizon_free_reproduces_minimax_closely_on_a_good_design(seed):
    rng = np.random.default_rng(seed)
    x, y = sphere(rng, 200, 4), rng.normal(size=200)
    state = nw.Minimax().start(4, design=x)
    first = linalg.minimax_directions(x)[0][0]  # P_0 is P_1 + P_1 x x' P_1
    method = nw.HorizonFreeMinimax()
    other = method.start(4, covariance=state.covariance + np.outer(first, first))
    close(method.update(other, x, y), nw.Minimax().update(state, x, y))


@quick
@given(streams(), st.floats(0.05, 20))
def test_horizon_free_identity(stream, budget):
    x, y = stream
    method = nw.HorizonFreeMinimax(budget)
    state = method.start(x.shape[1])
    close(state.budget_left, budget)
    paid = 0.0
    regret = 0.0
    for row, label in zip(x, y, strict=True):
        regret += 0.5 * (method.update(state, row, label) - label) ** 2
        paid += 0.5 * label**2 * row @ state.covariance @ row
    P = state.covariance
    close(state.budget_left, np.linalg.eigvalsh(np.linalg.inv(P) - x.T @ x)[0], 1e-7)
    best = 0.5 * y @ y - 0.5 * state.moment @ P @ state.moment
    close(regret - best, paid)
    close(best, least(x, y, np.linalg.inv(P) - x.T @ x)[0], 1e-7)


def test_minimax_refuses_rows_that_are_not_the_design():
    method, x = nw.Minimax(), np.array([[1.0, 0.0], [0.0, 2.0]])
    state = method.start(2, design=x)
    with pytest.raises(ValueError, match=r"design at row 0.*row 0"):
        method.update(state, x[1], 1.0)
    with pytest.raises(ValueError, match=r"design at row 1.*row 1"):
        method.update(state, x[[0, 0]], [1.0, 1.0])
    assert state.count == 0
    method.update(state, x[0], 1.0)
    with pytest.raises(ValueError, match="1 of the 2 rows"):
        method.update(state, x, [1.0, 1.0])
    method.update(state, x[1], 1.0)
    with pytest.raises(ValueError, match="0 of the 2 rows"):
        method.update(state, x[1], 1.0)
    assert state.count == 2
