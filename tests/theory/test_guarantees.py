"""No stream within a method's assumptions exceeds its guarantee; worst cases and tuned rates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import CAUCHIT, close, least, quick, sphere, streams
from scipy.special import rel_entr

import noisewise as nw
from noisewise import theory
from noisewise.numerics import linalg

SLACK = 1e-9


def half(x, y, u):
    """The comparator's losses summed up to every round."""
    return np.cumsum(0.5 * (y - x @ u) ** 2)


def regret(x, y, z, u):
    return np.cumsum(0.5 * (y - z) ** 2) - half(x, y, u)


def comparators(x, y, seed):
    """The best, zero and three random parameters."""
    rng = np.random.default_rng(seed)
    d = x.shape[1]
    return [least(x, y, 1e-6 * np.eye(d))[1], np.zeros(d), *rng.normal(size=(3, d))]


seeds = st.integers(0, 2**32)


@quick
@given(streams(), st.floats(1e-2, 10), seeds)
def test_ridge_and_forward(stream, ridge, seed):
    x, y = stream
    growth = theory.log_dets(x, ridge)
    assert growth[-1] <= theory.worst_log_det(x.shape[1], len(x), 1.0, ridge) + SLACK
    V = 2 * ridge * np.eye(x.shape[1])
    close(growth[-1], np.linalg.slogdet(np.linalg.solve(V, V + x.T @ x))[1])
    free, clipped = (nw.predictions(nw.Ridge(ridge, clip), x, y) for clip in (None, 1.0))
    forward = nw.predictions(nw.Forward(ridge), x, y)
    for u in comparators(x, y, seed):
        norm = np.linalg.norm(u)
        for z, residual in (
            (free, np.maximum.accumulate(np.abs(y - free))),
            (clipped, np.maximum.accumulate(np.abs(y - clipped))),
            (clipped, 2.0),
        ):
            assert np.all(
                regret(x, y, z, u) <= theory.ridge_bound(growth, residual, norm, ridge) + SLACK
            )
        bound = theory.forward_bound(growth, 1.0, norm, ridge)
        assert np.all(regret(x, y, forward, u) <= bound + SLACK)


@quick
@given(streams(), st.floats(0.01, 10), st.floats(0.3, 1), seeds)
def test_discounted_forward_against_comparators_that_move(stream, ridge, gamma, seed):
    """One factor; then three, of which each is a comparator as good as its own bound."""
    x, y = stream
    u = np.cumsum(np.random.default_rng(seed).normal(size=x.shape), axis=0)
    lost = np.cumsum(0.5 * (y - np.einsum("ij,ij->i", x, u)) ** 2)
    for factors in ((gamma,), (1.0, gamma, 0.2)):
        z = nw.predictions(nw.DiscountedForward(ridge, factors), x, y)
        for each in factors:
            bound = theory.discounted_forward_bound(x, y, u, ridge, each, len(factors))
            assert np.all(np.cumsum(0.5 * (y - z) ** 2) - lost <= bound * (1 + 1e-7) + 1e-7)
            if each == 1:
                still = theory.discounted_forward_bound(x, y, 0 * u + u[0], ridge, 1.0)
                growth = ridge * u[0] @ u[0] + 0.5 * np.cumsum(y**2 * leverages(x, ridge))
                close(still, growth, 1e-7)


def leverages(x, ridge):
    grams = 2 * ridge * np.eye(x.shape[1]) + np.cumsum(x[:, :, None] * x[:, None, :], axis=0)
    return np.einsum("ti,tij,tj->t", x, np.linalg.inv(grams), x)


def test_a_mixture_of_factors_is_little_behind_each_on_labels_of_all_sizes():
    """Labels that grow by jumps and change sign, where the largest so far is exceeded often."""
    rng, factors = np.random.default_rng(5), (1.0, 0.9, 0.5)
    for scale in (1.0, 3.0, 1.2):
        x = sphere(rng, 300, 3)
        y = rng.choice([-1.0, 1.0], 300) * scale ** (np.arange(300) // 50)
        lost = [
            np.cumsum((y - nw.predictions(nw.DiscountedForward(0.5, each), x, y)) ** 2) / 2
            for each in (factors, *factors)
        ]
        most = (4 * np.log(3) + 1.5) * np.maximum.accumulate(np.abs(y)) ** 2
        assert all(np.all(lost[0] <= each + most) for each in lost[1:])


@quick
@given(streams(), st.booleans())
def test_forward_without_ridge_against_all_parameters_at_once(stream, deficient):
    x, y = stream
    if deficient:
        x = np.hstack([x, x @ np.ones((x.shape[1], 1)), 0 * x])
    z = nw.predictions(nw.Forward(0.0), x, y)
    bound = theory.free_forward_bound(x, 1.0)
    best = [least(x[:t], y[:t], 0 * np.eye(x.shape[1]))[0] for t in range(1, len(x) + 1)]
    assert np.all(np.cumsum(0.5 * (y - z) ** 2) - best <= bound + 1e-7)
    steps = 2 * np.diff(bound, prepend=0.0)
    ranks = [np.linalg.matrix_rank(x[:t], tol=1e-7) for t in range(len(x) + 1)]
    np.testing.assert_allclose(steps[np.diff(ranks) > 0], 1, atol=1e-7)


def test_forward_without_ridge_where_a_feature_is_faint_at_first():
    """The second row adds a direction that is faint beside the third row, but not before it."""
    x, y = np.array([[1.0, 1e-6], [1.0, -1e-6], [0.0, 1.0]]), np.array([1.0, -1.0, 1.0])
    z = nw.predictions(nw.Forward(0.0), x, y)
    best = [0.5 * np.sum((y[:t] - x[:t] @ np.linalg.lstsq(x[:t], y[:t], rcond=None)[0]) ** 2)
            for t in (1, 2, 3)]  # fmt: skip
    lost, bound = np.cumsum(0.5 * (y - z) ** 2) - best, theory.free_forward_bound(x, 1.0)
    close(lost[:2], [0.5, 1.0])
    close(bound[:2], [0.5, 1.0])
    assert np.all(lost <= bound + SLACK)


@quick
@given(streams(), st.integers(0, 2**32))
def test_forward_without_ridge_in_any_units(stream, seed):
    """Bound and predictions do not change with the units of the features."""
    x, y = stream
    units = 10 ** np.random.default_rng(seed).uniform(-6, 6, x.shape[1])
    z, scaled = nw.predictions(nw.Forward(0.0), x, y), nw.predictions(nw.Forward(0.0), x * units, y)
    np.testing.assert_allclose(scaled, z, atol=1e-5)
    bound = theory.free_forward_bound(x, 1.0)
    np.testing.assert_allclose(theory.free_forward_bound(x * units, 1.0), bound, atol=1e-5)


@quick
@given(streams(), st.floats(0.05, 0.95))
def test_aggregating(stream, share):
    x, y = stream
    experts = nw.Ridge(0.01), nw.Forward(5.0)
    z = nw.predictions(nw.Aggregating(experts, 1.0, (share, 1 - share)), x, y)
    assert np.abs(z).max() <= 1 + 1e-12
    for expert, prior in zip(experts, (share, 1 - share), strict=True):
        theirs = np.cumsum(0.5 * (y - nw.predictions(expert, x, y)) ** 2)
        ours = np.cumsum(0.5 * (y - z) ** 2)
        assert np.all(ours - theirs <= theory.aggregating_bound(1.0, prior) + SLACK)
    assert theory.aggregating_bound(2.0, 1.0) == 0


@quick
@given(streams(), st.floats(0.02, 0.98), seeds)
def test_gradient_descent(stream, rate, seed):
    x, y = stream
    z = nw.predictions(nw.GradientDescent(rate=rate), x, y)
    normalised = nw.predictions(nw.GradientDescent(rate=rate, normalised=True), 3 * x, y)
    length = np.linalg.norm(3 * x, axis=1)
    seen = length > 0
    for u in comparators(x, y, seed):
        norm = np.linalg.norm(u)
        loss = half(x, y, u)[-1]
        assert regret(x, y, z, u)[-1] <= theory.gradient_descent_bound(loss, norm, rate) + SLACK
        ours = np.sum(0.5 * ((y - normalised)[seen] / length[seen]) ** 2)
        theirs = np.sum(0.5 * ((y - 3 * x @ u)[seen] / length[seen]) ** 2)
        assert ours - theirs <= theory.gradient_descent_bound(theirs, norm, rate) + SLACK
        if norm > 0 and loss > 0:
            tuned = theory.gradient_descent_rate(loss, norm)
            bound = theory.gradient_descent_bound(loss, norm, tuned)
            close(bound, norm * np.sqrt(2 * loss) + norm**2 / 2)
            assert bound <= theory.gradient_descent_bound(loss, norm, rate) + SLACK
            played = nw.predictions(nw.GradientDescent(rate=tuned), x, y)
            assert regret(x, y, played, u)[-1] <= bound + SLACK


@pytest.mark.parametrize("link", [*nw.LINKS.values(), CAUCHIT], ids=repr)
@settings(deadline=None, max_examples=15)
@given(streams(), st.floats(0.1, 3), seeds)
def test_projected_descent_and_newton_step(link, stream, B, seed):
    x, y = stream
    y = 3 * y
    glm = nw.GLM(link, 1.0, B)
    inside = B * sphere(np.random.default_rng(seed), 4, x.shape[1])
    inside[0] *= 0.3

    def losses(z):
        return np.cumsum(glm.potential(z) - y * z)

    for rate in (0.5, 0.1, 3.0):
        z = nw.predictions(nw.GradientDescent(glm, rate), x, y, scores=True)
        gradients = (glm.mean(z) - y) * np.linalg.norm(x, axis=1)
        bound = theory.projected_descent_bound(gradients, glm, rate)
        for u in inside:
            assert np.all(losses(z) - losses(x @ u) <= bound + SLACK)
    for initial in (1.0, 0.05):
        z = nw.predictions(nw.NewtonStep(glm, initial), x, y, scores=True)
        for u in inside:
            bound = theory.newton_step_bound(glm, x, glm.mean(z) - y, np.linalg.norm(u), initial)
            assert np.all(losses(z) - losses(x @ u) <= bound * (1 + SLACK) + SLACK)


@pytest.mark.parametrize("B", [0.3, 2.0])
def test_projected_descent_nearly_pays_its_bound(B):
    """A faint row drives the estimate to B, then strong ones drive it the other way.

    Their lengths are those that cost most of the bound, more than three quarters of it.
    """
    glm, y = nw.GLM("identity", 1.0, B), B * np.array([1e3, -1e8, -5e7, -2.8e7])
    x, u = np.ones((4, 1)), np.array([-B])
    z = nw.predictions(nw.GradientDescent(glm), x, y)
    lost, bound = regret(x, y, z, u)[-1], theory.projected_descent_bound(z - y, glm)[-1]
    assert 0.76 * bound < lost <= bound
    close(bound, 3 * B * np.sqrt(np.sum((z - y) ** 2)))


def test_newton_step_just_outside_a_ball_with_an_uneven_metric():
    """Labels that put every raw step at 1 + 1e-8 along the axis that has seen little."""
    glm = nw.GLM("identity", feature_bound=1e4, parameter_bound=1.0)
    method = nw.NewtonStep(glm)
    state = method.start(2)
    x, y = np.array([[0.0, 1e4]] + [[1.0, 0.0]] * 30), np.zeros(31)
    z = [method.update(state, x[0], 0.0)]
    for t in range(1, 31):
        theta = state.theta[0]
        y[t] = theta + (1 + 1e-8 - theta) * (state.metric[0, 0] + 1)
        z.append(method.update(state, x[t], y[t]))
    u = np.array([1.0, 0.0])
    close(state.theta, u)
    bound = theory.newton_step_bound(glm, x, z - y, 1.0)
    assert np.all(regret(x, y, z, u) <= bound + SLACK)


@quick
@given(streams(), st.floats(0.02, 0.98), st.floats(0.1, 4), seeds)
def test_exponentiated_gradient(stream, rate, U, seed):
    x, y = stream
    d = x.shape[1]
    rng = np.random.default_rng(seed)
    z = nw.predictions(nw.ExponentiatedGradient(2.0, rate=rate), x, y)
    for u in [*np.eye(d), *rng.dirichlet(np.full(d, 0.5), 3)]:
        loss, D = half(x, y, u)[-1], float(rel_entr(u, 1 / d).sum())
        bound = theory.exponentiated_gradient_bound(loss, D, 2.0, rate=rate)
        assert regret(x, y, z, u)[-1] <= bound + SLACK
        if loss > 0 and D > 1e-6:
            tuned = theory.exponentiated_gradient_rate(loss, D, 2.0)
            bound = theory.exponentiated_gradient_bound(loss, D, 2.0, rate=tuned)
            close(bound, 2 * np.sqrt(loss * D) + D)
            played = nw.predictions(nw.ExponentiatedGradient(2.0, rate=tuned), x, y)
            assert regret(x, y, played, u)[-1] <= bound + SLACK
    z = nw.predictions(nw.ExponentiatedGradient(2.0, U, rate), x, y)
    for u in U * rng.dirichlet(np.ones(d), 3) * rng.choice([-1, 1], size=(3, d)):
        bound = theory.exponentiated_gradient_bound(
            half(x, y, u)[-1], np.log(2 * d), 2.0, bound=U, rate=rate
        )
        assert regret(x, y, z, u)[-1] <= bound + SLACK


def progress(x, y, u, rate, range_):
    """What one row takes of KL(u, p), times R^2/(4 rate), and what the bound needs of it."""
    method = nw.ExponentiatedGradient(range_, rate=rate)
    state = method.start(len(x))
    z = method.update(state, x, y)
    taken = float(rel_entr(u, 1 / len(x)).sum() - rel_entr(u, state.theta).sum())
    needed = 0.5 * (y - z) ** 2 - 0.5 * (y - x @ u) ** 2 / (1 - rate)
    return range_**2 / (4 * rate) * taken, needed


@quick
@given(st.integers(2, 6), st.floats(0.02, 0.98), seeds)
def test_every_step_of_exponentiated_gradient_pays_for_its_loss(d, rate, seed):
    rng = np.random.default_rng(seed)
    x, y, u = rng.uniform(-1, 1, d), 3 * rng.normal(), rng.dirichlet(np.ones(d))
    taken, needed = progress(x, y, u, rate, 2.0)
    assert taken >= needed - SLACK


@pytest.mark.parametrize("rate", [0.1, 1 / 3, 0.8])
@pytest.mark.parametrize("range_", [0.5, 1.0, 4.0])
def test_the_step_of_exponentiated_gradient_is_the_only_one_that_pays(rate, range_):
    """Two features R and 0, a small residual r, u ahead by rate r: both sides are rate r^2/2."""
    r = 1e-3 * range_
    lead = rate * r / range_
    x, u = np.array([range_, 0.0]), np.array([0.5 + lead, 0.5 - lead])
    taken, needed = progress(x, range_ / 2 + r, u, rate, range_)
    np.testing.assert_allclose([taken, needed], 0.5 * rate * r * r, rtol=1e-4)


@quick
@given(streams(low=0.0), seeds)
def test_simplex(stream, seed):
    x, y = stream
    d = x.shape[1]
    z = nw.predictions(nw.SimplexFTRL(), x, y)
    for u in [*np.eye(d), *np.random.default_rng(seed).dirichlet(np.ones(d), 3)]:
        bound = theory.simplex_bound(x, y, z, u)
        assert np.all(regret(x, y, z, u) <= bound + SLACK)
        assert bound[-1] <= (1 + d * np.log1p(len(x))) / 2 + SLACK


@quick
@given(streams(), st.floats(0.3, 3))
def test_minimax_value_is_the_worst_case(stream, Y):
    x, y = stream
    z = nw.predictions(nw.Minimax(), x, Y * y)
    regret = 0.5 * np.sum((z - Y * y) ** 2) - least(x, Y * y, 0 * np.eye(x.shape[1]))[0]
    assert regret <= theory.minimax_value(x, Y) + SLACK


@quick
@given(streams(), st.floats(0.05, 20), seeds)
def test_horizon_free(stream, budget, seed):
    x, y = stream
    z = nw.predictions(nw.HorizonFreeMinimax(budget), x, y)
    for u in comparators(x, y, seed):
        bound = theory.horizon_free_bound(x, 1.0, np.linalg.norm(u), budget)
        assert np.all(regret(x, y, z, u) <= bound + SLACK)


def test_no_learner_beats_the_minimax_value_on_average():
    """All label paths of the adversary, with their probabilities, for three learners."""
    x = np.random.default_rng(0).uniform(0.5, 1.5, size=(6, 1))
    directions = linalg.minimax_directions(x)[0]
    excess = {}
    for learner in (nw.Minimax(), nw.Forward(), nw.Ridge()):
        mean = 0.0
        for path in range(2**6):
            y = np.array([1.0 if path >> t & 1 else -1.0 for t in range(6)])
            lean = np.array([directions[t] @ (y[:t] @ x[:t]) for t in range(6)])
            assert np.all(np.abs(lean) <= 1)
            z = nw.predictions(learner, x, y)
            lost = 0.5 * np.sum((z - y) ** 2) - least(x, y, np.zeros((1, 1)))[0]
            mean += np.prod(0.5 + 0.5 * lean * y) * lost
        excess[type(learner).__name__] = mean - theory.minimax_value(x)
    assert abs(excess["Minimax"]) < 1e-12
    assert excess["Forward"] > 1e-6
    assert excess["Ridge"] > 1e-6
