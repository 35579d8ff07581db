"""Ridge and Forward: identities of their regret, and Forward without a ridge."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import close, least, quick, sphere, streams

import noisewise as nw


@quick
@given(streams(), st.floats(1e-3, 10))
def test_ridge_regret_equality(stream, ridge):
    x, y = stream
    r = y - nw.predictions(nw.Ridge(ridge), x, y)
    P = np.eye(x.shape[1]) / (2 * ridge)
    total = 0.0
    for row, residual in zip(x, r, strict=True):
        k = P @ row
        total += 0.5 * residual**2 / (1 + row @ k)
        P -= np.outer(k, k) / (1 + row @ k)
    close(total, least(x, y, 2 * ridge * np.eye(x.shape[1]))[0])


def test_ridge_clips_what_it_says_and_not_what_it_learns():
    rng = np.random.default_rng(0)
    x, y = sphere(rng, 50, 3, 4.0), 5 * rng.normal(size=50)
    free, clipped = (nw.predictions(nw.Ridge(0.1, clip), x, y) for clip in (None, 0.5))
    assert np.abs(free).max() > 0.5
    close(clipped, np.clip(free, -0.5, 0.5), 1e-14)


@quick
@given(streams(), st.floats(1e-3, 10))
def test_forward_identity_and_its_relation_to_ridge(stream, ridge):
    x, y = stream
    z, plain = nw.predictions(nw.Forward(ridge), x, y), nw.predictions(nw.Ridge(ridge), x, y)
    V = 2 * ridge * np.eye(x.shape[1])
    gain = 0.0
    for row, label, mean, other in zip(x, y, z, plain, strict=True):
        before = row @ np.linalg.solve(V, row)
        V += np.outer(row, row)
        close(mean, other / (1 + before))
        gain += 0.5 * label**2 * (row @ np.linalg.solve(V, row)) - 0.5 * mean**2 * before
    best = least(x, y, 2 * ridge * np.eye(x.shape[1]))[0]
    close(0.5 * np.sum((z - y) ** 2) - best, gain)


def test_two_rounds_of_forward_and_ridge():
    x, y = [[1.0], [1.0]], [1.0, 0.0]
    close(nw.predictions(nw.Forward(0.5), x, y), [0, 1 / 3], 1e-15)
    close(nw.predictions(nw.Ridge(0.5), x, y), [0, 1 / 2], 1e-15)


def test_a_weighted_row_to_come_counts_once():
    """The prediction takes the row to come at weight 1, the update at its own weight."""
    forward, x = nw.Forward(0.5), np.array([1.0])
    state = forward.start(1)
    forward.update(state, x, 1.0, 3.0)  # V = 1 + 3, b = 3
    close(forward.predict(state, x), 3 / 5, 1e-15)


def test_forward_without_ridge_is_the_limit_of_forward():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(40, 4)), rng.normal(size=40)
    free = nw.predictions(nw.Forward(0.0), x, y)
    small = nw.predictions(nw.Forward(1e-9), x, y)
    np.testing.assert_allclose(free, small, atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_forward_without_ridge_does_not_see_the_coordinates(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    plain = nw.predictions(nw.Forward(0.0), x, y)
    M = rng.normal(size=(4, 4))
    units = np.diag(10.0 ** np.array([-6, -2, 3, 6]))
    redundant = np.hstack([np.eye(4), rng.normal(size=(4, 2))])
    for change in (M, units, redundant):
        np.testing.assert_allclose(nw.predictions(nw.Forward(0.0), x @ change, y), plain, atol=1e-6)


def test_rounds_that_add_to_the_span_predict_nothing():
    rng = np.random.default_rng(2)
    basis = rng.normal(size=(3, 5))
    x = rng.normal(size=(12, 3)) @ basis  # rank 3 in five dimensions
    x[1] = 2 * x[0]
    y = 1 + rng.random(12)
    z = nw.predictions(nw.Forward(0.0), x, y)
    assert z[0] == z[2] == z[3] == 0
    assert np.all(z[[1, *range(4, 12)]] != 0)
    assert nw.Forward(0.0).predict(nw.Forward(0.0).start(2), [0.0, 0.0]) == 0


# DiscountedForward


def discounted(x, y, ridge, gamma):
    """Least squares of rows that count gamma^age, the ridge too: its minimum and minimiser."""
    t, d = x.shape
    root = np.sqrt(np.r_[np.full(d, 2 * ridge * gamma**t), gamma ** np.arange(t - 1.0, -1, -1)])
    A, b = root[:, None] * np.vstack([np.eye(d), x]), root * np.r_[np.zeros(d), y]
    u = np.linalg.lstsq(A, b, rcond=None)[0]
    return 0.5 * np.sum((A @ u - b) ** 2), u


@quick
@given(streams(), st.floats(0.01, 10), st.floats(0.5, 1))
def test_discounted_forward_is_least_squares_and_its_loss_an_identity(stream, ridge, gamma):
    """Each prediction minimises with the row to come labelled 0; losses sum up exactly."""
    x, y = stream
    z = nw.predictions(nw.DiscountedForward(ridge, gamma), x, y)
    V, least_loss, total = 2 * ridge * np.eye(x.shape[1]), 0.0, 0.0
    for t, (row, label, mean) in enumerate(zip(x, y, z, strict=True)):
        u = discounted(x[: t + 1], np.r_[y[:t], 0.0], ridge, gamma)[1]
        close(mean, row @ u, 1e-7)
        before = row @ np.linalg.solve(gamma * V, row)
        V = gamma * V + np.outer(row, row)
        here = discounted(x[: t + 1], y[: t + 1], ridge, gamma)[0]
        total += here - gamma * least_loss
        total += 0.5 * label**2 * (row @ np.linalg.solve(V, row)) - 0.5 * mean**2 * before
        least_loss = here
    close(0.5 * np.sum((z - y) ** 2), total, 1e-6)


@quick
@given(streams(), st.floats(1e-3, 10))
def test_discounted_forward_that_forgets_nothing_is_forward(stream, ridge):
    x, y = stream
    z = nw.predictions(nw.DiscountedForward(ridge, 1.0), x, y)
    close(z, nw.predictions(nw.Forward(ridge), x, y), 1e-7)


def test_discounted_forward_forgets_what_is_no_longer_seen():
    """A feature that is 0 for thousands of rows is predicted by the others, and stays finite."""
    x = np.tile([[1.0, 1.0]], (5, 1))
    x = np.vstack([x, np.tile([[1.0, 0.0]], (20_000, 1)), [[1.0, 1.0]]])
    state = (method := nw.DiscountedForward(0.5, 0.9)).start(2)
    method.update(state, x[:-1], np.where(x[:-1, 1] == 1, 3.0, 1.0))
    assert method.predict(state, x[-1]) == pytest.approx(0.0, abs=1e-9)  # adds to the span
    assert method.predict(state, [1.0, 0.0]) == pytest.approx(0.9, abs=0.02)


def test_a_discounted_forward_of_other_factors_is_refused():
    with pytest.raises(ValueError, match="forgetting"):
        nw.DiscountedForward(forgetting=(0.5, 1.5))
    with pytest.raises(ValueError, match="forgetting"):
        nw.DiscountedForward(forgetting=())
    method = nw.DiscountedForward()
    with pytest.raises(ValueError, match="4 forgetting factors"):
        nw.DiscountedForward(forgetting=0.9).check_state(method.start(2))
