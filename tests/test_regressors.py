"""Each regressor against its identity or closed form, and what its spec refuses."""

import copy
import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import close, least, sphere, streams
from scipy.integrate import quad_vec
from scipy.optimize import minimize

import noisewise as nw
from noisewise import checks, linalg, theory

quick = settings(deadline=None, max_examples=60)


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


@quick
@given(streams(), st.integers(0, 2**32))
def test_a_weight_is_a_row_and_label_times_its_root(stream, seed):
    x, y = stream
    w = np.random.default_rng(seed).choice([0.0, 0.1, 1.0, 4.0], size=len(x))
    root = np.sqrt(w)
    for method in (
        nw.Minimax(),
        nw.Ridge(),
        nw.SimplexFTRL(),
        nw.NewtonStep(nw.GLM("identity", 2.0)),
    ):
        if isinstance(method, nw.Minimax) and not w.any():
            continue
        z = root * nw.predictions(method, x, y, w)
        close(z, nw.predictions(method, root[:, None] * x, root * y), 1e-8)


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


def test_rows_scaled_in_single_precision_are_within_their_bound():
    """And what is longer than rounding explains is refused with all the digits that show it."""
    x = sphere(np.random.default_rng(3), 50, 3).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    assert np.linalg.norm(x.astype(float), axis=1).max() > 1 + 1e-8
    glm = nw.GLM("logistic")
    for method in (
        nw.FTRL(glm),
        nw.FTRL(glm, tolerance=0),
        nw.NewtonStep(glm),
        nw.GradientDescent(glm),
    ):
        state = method.start(3)
        method.update(state, x, np.ones(50))
        method.update(state, x[0], 1.0)
        with pytest.raises(ValueError, match=r"norm 1\.00001.* above feature_bound 1;"):
            method.update(state, [1.00001, 0.0, 0.0], 1.0)


def test_scores_of_newton_step_and_descent_invert_to_means():
    rng = np.random.default_rng(10)
    x, y = sphere(rng, 30, 2), rng.normal(size=30)
    glm = nw.GLM("logistic")
    for method in (nw.NewtonStep(glm), nw.GradientDescent(glm)):
        z = nw.predictions(method, x, y, scores=True)
        close(glm.mean(z), nw.predictions(method, x, y))
        assert np.abs(z).max() <= 1 + 1e-12
    ridge = nw.Ridge()
    close(nw.predictions(ridge, x, y, scores=True), nw.predictions(ridge, x, y), 0)


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


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: nw.Ridge(-1.0), "ridge"),
        (lambda: nw.Ridge(0.0), r"ridge.*Forward"),
        (lambda: nw.Ridge(clip=0.0), "clip"),
        (lambda: nw.Ridge(clip=-1.0), "clip"),
        (lambda: nw.Forward(-0.1), "ridge"),
        (lambda: nw.Aggregating((), 1.0), "experts"),
        (lambda: nw.Aggregating(nw.Ridge(), 1.0), "experts"),
        (lambda: nw.Aggregating((nw.Ridge,), 1.0), "experts"),
        (lambda: nw.Aggregating((nw.Ridge(),), 0.0), "label_bound"),
        (lambda: nw.Aggregating((nw.Ridge(), nw.Forward()), 1.0, (0.5, 0.6)), "prior"),
        (lambda: nw.Aggregating((nw.Ridge(), nw.Forward()), 1.0, (1.0,)), "prior"),
        (lambda: nw.Aggregating((nw.Ridge(), nw.Forward()), 1.0, (1.0, 0.0)), "prior"),
        (lambda: nw.Aggregating((nw.Ridge(), nw.Forward()), 1.0, 0.5), "prior"),
        (lambda: nw.Minimax().start(2), "design"),
        (lambda: nw.Minimax().start(2, design=np.ones((3, 3))), "design"),
        (lambda: nw.Minimax().start(2, design=np.ones(2)), "design"),
        (lambda: nw.Minimax().start(2, design=np.ones((0, 2))), "design"),
        (lambda: nw.Minimax().start(1, design=[[np.nan]]), "design"),
        (lambda: nw.HorizonFreeMinimax(0.0), "budget"),
        (lambda: nw.HorizonFreeMinimax().start(2, covariance=np.ones((3, 3))), "covariance"),
        (lambda: nw.HorizonFreeMinimax().start(2, covariance=-np.eye(2)), "covariance"),
        (lambda: nw.HorizonFreeMinimax().start(2, covariance=[[1, 2], [0, 1]]), "covariance"),
        (lambda: nw.GradientDescent(rate=0.0), "rate"),
        (lambda: nw.GradientDescent(rate=2.0), "rate"),
        (lambda: nw.GradientDescent(feature_bound=0.0), "feature_bound"),
        (lambda: nw.GradientDescent(nw.GLM(), normalised=True), "normalised"),
        (lambda: nw.GradientDescent("logistic"), "glm"),
        (lambda: nw.ExponentiatedGradient(0.0), "feature_range"),
        (lambda: nw.ExponentiatedGradient(1.0, bound=0.0), "bound"),
        (lambda: nw.ExponentiatedGradient(1.0, rate=-1.0), "rate"),
        (lambda: nw.ExponentiatedGradient(1.0, rate=2.0), "rate"),
        (lambda: nw.NewtonStep("logistic"), "glm"),
        (lambda: nw.NewtonStep(nw.GLM(), 0.0), "initial"),
    ],
)
def test_bad_specs_are_refused(make, word):
    with pytest.raises(ValueError, match=word):
        make()


@pytest.mark.parametrize(
    ("method", "x", "word"),
    [
        (nw.GradientDescent(), [3.0, 0.0], "feature_bound"),
        (nw.GradientDescent(nw.GLM("tanh")), [3.0, 0.0], "feature_bound"),
        (nw.NewtonStep(nw.GLM("tanh")), [3.0, 0.0], "feature_bound"),
        (nw.ExponentiatedGradient(1.0), [0.8, -0.8], "feature_range"),
        (nw.ExponentiatedGradient(1.0, bound=1.0), [0.8, 0.8], "feature_range"),
        (nw.Ridge(), [1e200, 0.0], "x"),
        (nw.Forward(), [1e200, 0.0], "x"),
        (nw.SimplexFTRL(), [1e200, 0.0], "x"),
    ],
    ids=repr,
)
def test_rows_out_of_bounds_are_refused(method, x, word):
    state = method.start(2)
    with pytest.raises(ValueError, match=word):
        method.update(state, np.array(x), 1.0)
    with pytest.raises(ValueError, match=word):
        method.update(state, [[0.1, 0.1], x], [1.0, 1.0])
    assert state.count == 0


@pytest.mark.parametrize(
    "method",
    [
        nw.GradientDescent(),
        nw.GradientDescent(normalised=True),
        nw.ExponentiatedGradient(2.0, bound=1.0, rate=0.5),
        nw.Aggregating((nw.Ridge(), nw.GradientDescent()), 1.0),
    ],
    ids=repr,
)
def test_weights_that_would_oscillate_are_refused(method):
    """At rate 1/2 and rows as long as the bound, weights below 4 pass and still converge."""
    state = method.start(1)
    for weight in ([1.0, 4.0], [1e6, 1.0]):
        with pytest.raises(ValueError, match=r"weight is .*divide all by the largest"):
            method.update(state, [[1.0], [-1.0]], [1.0, 1.0], weight)
    assert state.count == 0
    if isinstance(method, nw.Aggregating):
        assert state.states[0].count == 0
        return
    method.update(state, np.ones((400, 1)), np.full(400, 0.3), 3.9)
    close(method.predict(state, [1.0]), 0.3, 1e-6)
    method.update(state, [0.0], 1.0, 1e6)  # a zero row takes no step


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


@dataclasses.dataclass(frozen=True)
class Modest(nw.Ridge):
    """Ridge that promises less than it keeps."""

    not_promised = ("rotation leaves predictions alone",)


def test_what_is_not_promised_is_not_checked():
    names = [name for name, _ in checks.yield_checks(Modest())]
    everything = [name for name, _ in checks.yield_checks(nw.Ridge())]
    assert set(everything) - set(names) == {"rotation leaves predictions alone"}
    assert checks.not_promised(Modest()) == ("rotation leaves predictions alone",)
    both = nw.Aggregating((nw.Ridge(), nw.ExponentiatedGradient(2.0)), 1.0)
    assert "rotation leaves predictions alone" in checks.not_promised(both)
    for wrong in (("rotation",), "rotation leaves predictions alone", (1,)):
        object.__setattr__(spec := Modest(), "not_promised", wrong)
        with pytest.raises(ValueError, match="not_promised"):
            checks.check_regressor(spec)


@pytest.mark.parametrize(
    "method",
    [nw.ExponentiatedGradient(2.0), nw.GradientDescent(), nw.HorizonFreeMinimax(0.3)],
    ids=repr,
)
def test_what_is_not_promised_is_really_not_kept(method):
    waived = checks.not_promised(method)
    object.__setattr__(bold := copy.copy(method), "not_promised", ())
    known = dict(checks.yield_checks(bold))
    for name in waived:
        with pytest.raises(AssertionError):
            known[name]()
