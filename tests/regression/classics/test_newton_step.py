"""NewtonStep: Ridge where nothing is projected, its inverse, and projection on the ball."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import close, quick, sphere, streams

import noisewise as nw
from noisewise.numerics import linalg


@quick
@given(streams(), st.floats(0.01, 10), st.floats(0.1, 3))
def test_newton_step_without_projection_is_ridge(stream, initial, weight):
    x, y = stream
    w = weight * np.linspace(0.5, 1.5, len(x))
    wide = nw.NewtonStep(nw.GLM("identity", 1.0, 1e4), initial)
    close(nw.predictions(wide, x, y, w), nw.predictions(nw.Ridge(initial / 2), x, y, w))


def test_newton_step_keeps_its_inverse():
    rng = np.random.default_rng(9)
    x, y = sphere(rng, 600, 3), rng.normal(size=600)
    method = nw.NewtonStep(nw.GLM("logistic"))
    state = method.start(3)
    method.update(state, x, y)
    close(state.metric, np.eye(3) + x.T @ x)
    close(state.inverse @ state.metric, np.eye(3))


def test_newton_step_keeps_its_inverse_where_it_began_next_to_nothing():
    """A first row that grows V a million million times would cancel in a rank-one change."""
    x = sphere(np.random.default_rng(9), 40, 3)
    method = nw.NewtonStep(nw.GLM("logistic"), initial=1e-12)
    state = method.start(3)
    method.update(state, x, np.ones(40))
    close(state.inverse @ x.T @ x, np.eye(3))


@quick
@given(
    d=st.integers(1, 6),
    seed=st.integers(0, 2**32),
    condition=st.floats(0, 8),
    far=st.floats(-12, 6),
    tilt=st.sampled_from([0.0, 1e-12, 1e-8, 1e-4, 2.0]),
    radius=st.floats(0.01, 100),
)
def test_projection_on_the_ball(d, seed, condition, far, tilt, radius):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    V = (Q * 10 ** rng.uniform(-condition / 2, condition / 2, d)) @ Q.T
    V = (V + V.T) / 2
    v = Q[:, 0] + tilt * sphere(rng, 1, d)[0]  # near an eigenvector if the tilt is small
    v *= radius * (1 + 10**far) / np.linalg.norm(v)
    u = linalg.project_ball(V, v, radius)
    close(np.linalg.norm(u), radius, 1e-12)
    pull = V @ (v - u)
    nu = pull @ u / (u @ u)
    scale = np.linalg.norm(V, 2) * np.linalg.norm(v)
    assert nu * radius >= -1e-14 * scale
    assert np.linalg.norm(pull - nu * u) <= 1e-13 * scale
    radial = v * radius / np.linalg.norm(v)
    rounding = 1e-14 * np.linalg.norm(V) * np.linalg.norm(v) * np.linalg.norm(radial - v)
    assert (u - v) @ V @ (u - v) <= (radial - v) @ V @ (radial - v) + rounding


@pytest.mark.parametrize("far", 10.0 ** np.arange(-14, 3, 2))
@pytest.mark.parametrize("condition", [1e-8, 1.0, 1e8])
def test_projection_of_an_eigenvector_is_on_the_same_ray(condition, far):
    u = linalg.project_ball(np.diag([1.0, condition]), np.array([1 + far, 0.0]), 1.0)
    close(u, [1, 0], 1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_newton_step_projects_in_the_norm_of_its_metric(seed):
    """The estimate is the argmin of |u - v|_V on the ball after every row, and v/|v| is not."""
    rng = np.random.default_rng(seed)
    B, d = 0.7, 3
    glm = nw.GLM("logistic", 1.0, B)
    x = sphere(rng, 80, d) * np.array([1.0, 0.3, 0.05])
    y = (x @ [1.0, -3.0, 9.0] > 0).astype(float)
    method = nw.NewtonStep(glm, 0.01)
    state, V, far = method.start(d), 0.01 * np.eye(d), []
    for row, label in zip(x, y, strict=True):
        theta = state.theta
        V += np.outer(row, row)
        v = theta - (glm.mean(row @ theta) - label) / glm.min_slope * np.linalg.solve(V, row)
        method.update(state, row, label)
        u = state.theta
        if np.linalg.norm(v) <= B:
            close(u, v)
            continue
        close(np.linalg.norm(u), B, 1e-12)
        pull = V @ (v - u)
        assert pull @ u >= 0
        residual = pull - (pull @ u) / B**2 * u
        assert np.linalg.norm(residual) <= 1e-10 * np.linalg.norm(V) * np.linalg.norm(v)
        far.append(np.linalg.norm(u - B * v / np.linalg.norm(v)))
    assert len(far) > 20
    assert np.max(far) > 0.1


def test_projection_differs_from_rescaling_and_leaves_the_inside_alone():
    V, v = np.diag([1.0, 9.0]), np.array([3.0, 3.0])
    u, radial = linalg.project_ball(V, v, 1.0), v / np.linalg.norm(v)
    assert (u - v) @ V @ (u - v) < 0.9 * (radial - v) @ V @ (radial - v)
    np.testing.assert_array_equal(linalg.project_ball(V, v, 5.0), v)
