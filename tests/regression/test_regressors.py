"""Regressors together: weights, scores, what is refused and what is not promised."""

import copy
import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import close, quick, sphere, streams

import noisewise as nw
from noisewise import checks


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
