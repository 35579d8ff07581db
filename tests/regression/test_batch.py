"""`fit` is a batch: free of the order of rows, against plain formulas, scipy and integrals."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, gammaln, log_expit, log_ndtr

import noisewise as nw
from noisewise.kernels.self_tuning.self_tuned_numbers import (
    ExpertNumbers,
    Moments,
    StateNumbers,
    by_name,
)
from noisewise.model.families import FAMILIES
from noisewise.regression.mixtures import batch_mixture, stream_replay
from noisewise.regression.mixtures.ridge_mixture import GRID, PRIOR
from noisewise.regression.self_tuned.batch_linear import batch_state

RNG = np.random.default_rng
CURVED = tuple(FAMILIES)


def world(family, n=150, d=4, seed=0, size=1.0):
    """Features of very different units, one of them rarely 1, and labels of the family."""
    rng = RNG([seed, n, d])
    z = rng.normal(size=(n, d))
    z[:, -1] = rng.random(n) < 0.05
    score = z @ rng.normal(size=d) * size / np.sqrt(d)
    x = z * np.append(np.logspace(-2, 3, d - 1), 1.0) + 100 * np.arange(d)
    if family == "gaussian":
        return x, 50 + 3 * score + rng.normal(size=n)
    if family == "poisson":
        return x, rng.poisson(np.exp(score)).astype(float)
    y = 1.0 * (rng.random(n) < expit(score))
    return x, 2 * y - 1 if family in ("tanh", "algebraic") else y


def weighted(family):
    """Rows with all that the family takes: weights or trials, some of them 0, and offsets."""
    x, y = world(family)
    rng, n = RNG(1), len(y)
    w = rng.choice([0.0, 0.5, 1.0, 3.0], size=n)
    if family in ("binomial", "probit"):
        w = rng.choice([0.0, 1.0, 20.0, 300.0], size=n)
        y = rng.binomial(w.astype(int), expit((x[:, 0] - x[:, 0].mean()) * 50)) / np.maximum(w, 1)
    return x, y, w, rng.normal(size=n) if family in ("gaussian", "poisson") else None


NONLINEAR = "gaussian", "binomial", "poisson"
CASES = {
    **{family: ({"family": family}, (*world(family), None, None)) for family in FAMILIES},
    **{f"{family}, weighted": ({"family": family}, weighted(family)) for family in FAMILIES},
    **{
        f"{family}, nonlinear": ({"family": family, "nonlinear": True}, weighted(family))
        for family in NONLINEAR
    },
    "gaussian": ({}, (*world("gaussian"), None, None)),
    "gaussian, weights and offsets": ({}, weighted("gaussian")),
    "gaussian, no forgetting": ({"forgetting": 1.0}, weighted("gaussian")),
    "gaussian, ridge given": ({"ridge": 2.0}, weighted("gaussian")),
    "gaussian, no intercept": ({"fit_intercept": False}, weighted("gaussian")),
    "gaussian, almost no noise": (
        {},
        (world("gaussian")[0], world("gaussian")[0] @ [1e3, 1, 0.1, 9], None, None),
    ),
    "binomial, ridge given": ({"family": "binomial", "ridge": 0.1}, weighted("binomial")),
    "poisson, no intercept": (
        {"family": "poisson", "fit_intercept": False},
        (world("poisson")[0] / 100, world("poisson")[1], None, None),
    ),
    "binomial, separated": (
        {"family": "binomial"},
        (world("binomial")[0], 1.0 * (world("binomial")[0][:, 0] > 0), None, None),
    ),
}


def orders(y, count=20):
    """The rows sorted by label, and in random orders."""
    return [np.argsort(y, kind="stable"), *(RNG(s).permutation(len(y)) for s in range(count - 1))]


@pytest.mark.parametrize("case", CASES)
def test_the_order_of_rows_does_not_matter(case):
    """Predictions, also far from the rows, coefficients and textbook intervals, to 1e-8."""
    options, (x, y, w, offset) = CASES[case]
    places = np.vstack([x, x.mean(axis=0) + 30 * (x[:2] - x.mean(axis=0))])
    w = np.ones(len(y)) if w is None else w

    def numbers(rows):
        o = None if offset is None else offset[rows]
        model = nw.OnlineGLM(**options).fit(x[rows], y[rows], w[rows], o)
        ends = model.predict_interval(x[:3], anytime=False)
        return model.predict(places), model.coef_ * x.std(axis=0), model.intercept_, *ends

    known = numbers(np.arange(len(y)))
    for rows in orders(y):
        for ours, theirs in zip(known, numbers(rows), strict=True):
            size = np.abs(np.atleast_1d(ours)[np.isfinite(ours)]).max(initial=0.0)
            np.testing.assert_allclose(theirs, ours, rtol=1e-8, atol=1e-8 * size)


def test_the_order_of_rows_does_not_matter_to_a_classifier():
    x, _ = world("gaussian")
    kind = np.array(["a", "b", "c"])[
        np.digitize(x[:, 0] + RNG(0).normal(size=150) / 100, [0, 0.01])
    ]
    model = nw.OnlineGLMClassifier().fit(x, kind)
    for rows in orders(kind):
        other = nw.OnlineGLMClassifier().fit(x[rows], kind[rows])
        np.testing.assert_allclose(other.predict_proba(x), model.predict_proba(x), atol=1e-10)
        np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-8)
    stream = nw.OnlineGLMClassifier().partial_fit(x, kind)
    assert np.abs(stream.predict_proba(x) - model.predict_proba(x)).max() > 1e-4
    np.testing.assert_allclose(stream.refit().predict_proba(x), model.predict_proba(x), atol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_the_rows_of_a_stream_are_fitted_as_a_batch(case):
    options, (x, y, w, offset) = CASES[case]
    whole = nw.OnlineGLM(**options).fit(x, y, w, offset)
    parts = nw.OnlineGLM(**options)
    for rows in np.split(np.arange(len(y)), [1, 40, 41]):
        parts.partial_fit(x[rows], y[rows], *(v if v is None else v[rows] for v in (w, offset)))
    for _ in range(2):  # again, from what the first left
        assert parts.refit() is parts
        np.testing.assert_allclose(parts.predict(x), whole.predict(x), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-7)
        for how in ({}, {"simultaneous": True}):
            ours, theirs = (each.predict_interval(x[:5], **how) for each in (parts, whole))
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def plain_gaussian(x, y, w, intercept=True):
    """The formula of the evidence, row by row matrices and determinants, not centred."""
    n, d = x.shape
    w = w / w.mean()
    v = x.var(axis=0) if intercept else (x**2).mean(axis=0)
    z = np.column_stack([x - x[0], np.ones(n)]) if intercept else x
    y = y - y[0] if intercept else y
    G, b, q = z.T @ (w[:, None] * z), z.T @ (w * y), w @ y**2
    grid, logs = 10.0 ** np.arange(-3, 4.5, 0.5), []
    for c in grid:
        R = np.diag(np.append(c * d * v, [1e-8] * intercept))
        S = q - b @ np.linalg.solve(G + R, b)
        det = np.linalg.slogdet(G + R)[1] - np.log(c * d * v).sum()
        logs.append(-np.log(1 + np.log10(c) ** 2) - det / 2 - (n - intercept) / 2 * np.log(S))
    mass = np.exp(np.array(logs) - max(logs))
    c = np.exp(mass @ np.log(grid) / mass.sum())
    R = np.diag(np.append(c * d * v, [1e-8] * intercept))
    return c, np.linalg.solve(G + R, b)[:d]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("count", [8, 40, 150])
def test_gaussian_labels_have_the_ridge_of_the_evidence(intercept, count):
    x, y = world("gaussian", count, size=0.3)
    x[1, -1] += 1  # which moves it
    w = RNG(2).gamma(1, size=count)
    model = nw.OnlineGLM(fit_intercept=intercept).fit(x, y, w)
    c, theta = plain_gaussian(x, y, w, intercept)
    assert ExpertNumbers(model.state_.experts[0]).ridge == pytest.approx(c, rel=1e-6)
    np.testing.assert_allclose(model.coef_, theta, rtol=1e-6)


def test_a_ridge_that_is_given_is_used():
    x, y, w, _ = weighted("gaussian")
    x, y, w = x[w > 0], y[w > 0], w[w > 0]
    model = nw.OnlineGLM(ridge=3.0).fit(x, y, w)
    z, u = x - np.average(x, axis=0, weights=w), y - np.average(y, weights=w)
    theta = np.linalg.solve(z.T @ (w[:, None] * z) + 6 * np.diag(x.var(axis=0)), z.T @ (w * u))
    np.testing.assert_allclose(model.coef_, theta, rtol=1e-9)


def log_likelihood(family, score, y):
    """Up to a constant, written anew."""
    if family == "binomial":
        return y * log_expit(score) + (1 - y) * log_expit(-score)
    if family == "probit":
        return y * log_ndtr(score) + (1 - y) * log_ndtr(-score)
    return y * score - np.exp(score) - gammaln(y + 1)


def log_prior(family, b):
    """Of the intercept, at the mean of the features."""
    if family == "poisson":
        return -(b**2) / 8
    return log_likelihood(family, b, 0.5) - b**2 / 2 / 64**2


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_experts_are_the_penalised_fits_of_scipy(family):
    x, y, w, _ = weighted(family)
    x, y, w = x[w > 0], y[w > 0], w[w > 0]
    state = nw.OnlineGLM(family).fit(x, y, w).state_
    z, d = (x - x.mean(axis=0)) / x.std(axis=0), 4
    assert state.weights.sum() == pytest.approx(1)
    for i, c in enumerate(state.ridges):

        def loss(t, c=c):
            penalty = c * d / 2 * t[:d] @ t[:d] - log_prior(family, t[d])
            return penalty - w @ log_likelihood(family, z @ t[:d] + t[d], y)

        found = minimize(loss, np.zeros(d + 1), method="BFGS", options={"gtol": 1e-9}).x
        own = state.learners.theta[i]
        score = z * x.std(axis=0) @ own[:d] + own[d]
        np.testing.assert_allclose(score, z @ found[:d] + found[d], atol=2e-5)


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_weights_are_those_of_the_formula(family):
    """In units of the features: R beside H, and the dispersion of labels that scatter too much."""
    x, y, w, _ = weighted(family)
    x, y, w = x[w > 0], y[w > 0], w[w > 0]
    y = y * 5 if family == "poisson" else np.clip(y + RNG(3).normal(size=len(y)) / 5, 0, 1)
    n, d = x.shape
    state = nw.OnlineGLM(family).fit(x, y, w).state_
    start = nw.RidgeMixture(family).start(d)
    more, free = (0, 0.25) if family == "poisson" else (1, 64.0**-2)
    z = np.vstack([np.zeros((more, d)), x - x.mean(axis=0)])
    w, y = np.append(np.ones(more), w), np.append(np.full(more, 0.5), y)
    start.variances = x.var(axis=0)
    found = batch_mixture.minimisers(
        nw.RidgeMixture(family), start, z, np.array([w, w * y, 0 * w, 0 * w])
    )
    values, dets, scatter = np.zeros((3, len(GRID)))
    for i, c in enumerate(GRID):
        t = found[i].theta * start.learner_units[i]
        full = np.column_stack([z, np.ones(len(z))])
        mean = np.exp(full @ t) if family == "poisson" else expit(full @ t)
        V = mean if family == "poisson" else mean * (1 - mean)
        R = np.diag(np.append(c * d * x.var(axis=0), free))
        H = full.T @ ((w * V)[:, None] * full)
        values[i] = w @ log_likelihood(family, full @ t, y) - t @ R @ t / 2
        dets[i] = np.linalg.slogdet(H + R)[1] - np.linalg.slogdet(R)[1]
        freedom = n - np.trace(np.linalg.solve(H + R, H))
        scatter[i] = (w * (y - mean))[more:] @ (w * (y - mean))[more:] / (w * V)[more:].sum()
        scatter[i] *= n / freedom
    phi = 1.0
    for _ in range(2):
        logs = np.log(PRIOR) + values / phi - dets / 2
        mass = np.exp(logs - logs.max())
        phi = max(1.0, float(mass / mass.sum() @ scatter))
    assert phi > 1.5
    mass[mass < 1e-6 * mass.sum()] = 0.0
    np.testing.assert_allclose(state.ridges, GRID[mass > 0])
    np.testing.assert_allclose(state.weights, mass[mass > 0] / mass.sum(), rtol=1e-7)


@pytest.mark.parametrize("family", ["binomial", "poisson", "probit"])
def test_the_evidence_is_an_integral(family):
    """One feature and the intercept, integrated numerically; the error of Laplace is of order 1/n.

    With 60 rows it is below 0.05 for ridges within a factor of 64 of each other.
    """
    rng = RNG(5)
    x = rng.normal(size=60)
    y = 1.0 * (rng.random(60) < expit(x))
    if family == "poisson":
        y = rng.poisson(np.exp(0.5 * x)).astype(float)
    z = (x - x.mean()) / x.std()
    mixture = nw.RidgeMixture(family)
    start = mixture.start(1)
    start.variances = np.array([x.var()])
    more = start.prior_rows
    w, labels = np.ones(60 + more), np.append(np.full(more, 0.5), y)
    rows = np.append(np.zeros(more), x - x.mean())[:, None]
    found = batch_mixture.minimisers(mixture, start, rows, np.array([w, labels, 0 * w, 0 * w]))
    kept, top = range(3, 8), -60.0
    logs = []
    t, b = np.meshgrid(np.linspace(-4, 4, 161), np.linspace(-4, 4, 161))
    density = log_prior(family, b) - top
    for each, label in zip(z, y, strict=True):
        density += log_likelihood(family, t * each + b, label)
    for i in kept:
        area = np.exp(
            density - GRID[i] * t * t / 2
        ).sum()  # a rule that is exact for such densities
        logs.append(np.log(area) + 0.5 * np.log(GRID[i]))
    ours = np.array([found[i].log_evidence(1.0) for i in kept])
    np.testing.assert_allclose(ours - ours.mean(), np.array(logs) - np.mean(logs), atol=0.05)


def test_labels_that_scatter_more_ask_for_a_larger_ridge():
    """Counts of dispersion 50 in place of 1, of the same means: the mean c is at least doubled."""
    rng = RNG(0)
    x = rng.normal(size=(200, 10))
    mean = np.exp(3 + 0.3 * x[:, 0])
    even = nw.OnlineGLM("poisson").fit(x, rng.poisson(mean)).state_
    wild = nw.OnlineGLM("poisson").fit(x, 50 * rng.poisson(mean / 50)).state_
    ours, theirs = (each.weights @ np.log(each.ridges) for each in (even, wild))
    assert theirs > ours + np.log(2)


@pytest.mark.parametrize("family", ["gaussian", *CURVED])
def test_a_file_holds_the_batch_and_goes_on(family, tmp_path):
    x, y, w, offset = weighted(family)
    model = nw.OnlineGLM(family).fit(x, y, w, offset)
    if family != "gaussian":
        model.predict_interval(x[:1], simultaneous=True)
    nw.save(tmp_path / "model.npz", model)
    copies = nw.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))
    for each in copies:
        np.testing.assert_array_equal(each.predict(x), model.predict(x))
        assert "_replay" not in vars(each.state_)
    for each in (model, *copies):
        each.partial_fit(x[:30], y[:30], w[:30], None if offset is None else offset[:30])
    for each in copies:
        np.testing.assert_array_equal(each.predict(x), model.predict(x))
        for simultaneous in (False, True):
            ours, theirs = (
                m.predict_interval(x[:3], simultaneous=simultaneous) for m in (each, model)
            )
            np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_a_gaussian_stream_goes_on_from_the_batch():
    x, y = world("gaussian", 300)
    model = nw.OnlineGLM().fit(x[:200], y[:200])
    state = model.state_
    assert state.forgetting.tolist() == [1.0, 0.99, 0.97]
    assert state.shares.tolist() == [1.0, 0.0, 0.0]
    before, noise = model.predict(x[200:201])[0], StateNumbers(state.numbers).squares / 199
    means = [state.estimate(gamma) for gamma in (1.0, 0.99, 0.97)]
    means = np.array([x[200] @ coef + intercept for coef, intercept in means])
    assert model.update(x[200:201], y[200:201])[0] == before == pytest.approx(means[0])
    losses = (y[200] - means) ** 2
    expected = [0.95, 0.025, 0.025] * np.exp(-losses / 2 / noise)
    np.testing.assert_allclose(by_name(state.experts)["loss"], losses)
    np.testing.assert_allclose(state.shares, expected / expected.sum(), rtol=0.05)
    model.partial_fit(x[201:], y[201:])
    assert np.abs(model.predict(x) - nw.OnlineGLM().fit(x, y).predict(x)).max() < 0.5


@pytest.mark.parametrize("family", CURVED)
def test_a_curved_stream_goes_on_with_the_evidence_as_prior(family):
    x, y = world(family, 200)
    model = nw.OnlineGLM(family).fit(x[:150], y[:150])
    state, mixture = model.state_, model.method_
    assert state.loss == pytest.approx(0, abs=1e-12)
    before = state.weights
    z = x[150:151] - state.shift
    scores = state.scores(z)
    after = before * np.exp(mixture.log_likelihood(scores, y[150:151]))[:, 0]
    expected = model.predict(x[150:151])
    np.testing.assert_allclose(model.update(x[150:151], y[150:151]), expected, rtol=1e-12)
    np.testing.assert_allclose(state.weights, after / after.sum())
    assert state.loss == pytest.approx(-np.log(after.sum()))
    model.partial_fit(x[151:], y[151:])
    assert state.count == 200
    assert np.abs(model.predict(x) - nw.OnlineGLM(family).fit(x, y).predict(x)).max() < 0.3


@pytest.mark.parametrize("family", CURVED)
def test_the_loss_as_played_is_that_of_a_stream(family):
    """In the order learnt, however often rows were fitted as a batch; computed when asked for."""
    x, y = world(family, 120)
    stream = nw.OnlineGLM(family)
    model = nw.OnlineGLM(family).fit(x[:80], y[:80])
    first, asked = 0, None
    for last in (80, 100, 120):
        stream.partial_fit(x[first:last], y[first:last])
        if first:
            model.partial_fit(x[first:last], y[first:last])
        later = stream_replay.played(model.method_, model.state_)
        assert later() == pytest.approx(stream.state_.loss, rel=1e-9)
        asked, first = asked or later, last
    assert asked() == stream_replay.played(model.method_, model.state_)() - (later() - asked())
    again = stream_replay.played(model.method_, model.refit().state_)
    assert "_replay" not in vars(model.state_)
    assert again() == pytest.approx(stream.state_.loss, rel=1e-9)
    assert model.state_.loss == pytest.approx(0, abs=1e-12)


def test_sets_for_all_rows_do_not_depend_on_how_rows_were_fitted():
    x, y = world("binomial")
    batch = nw.OnlineGLM("binomial").fit(x, y)
    stream = nw.OnlineGLM("binomial").partial_fit(x, y)
    ours, theirs = (m.predict_interval(x[:9], simultaneous=True) for m in (batch, stream))
    np.testing.assert_allclose(ours, theirs, rtol=1e-7)


def test_with_forgetting_given_the_order_counts():
    x, y, w, offset = weighted("gaussian")
    w[0] = 1.0
    for forgetting in (0.98, (1.0, 0.9)):
        fitted = nw.OnlineGLM(forgetting=forgetting).fit(x, y, w, offset)
        stream = nw.OnlineGLM(forgetting=forgetting).partial_fit(x, y, w, offset)
        np.testing.assert_array_equal(fitted.predict(x), stream.predict(x))
        np.testing.assert_array_equal(stream.refit().coef_, fitted.coef_)


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson"])
def test_frames_sparse_rows_and_collections_are_rows_too(family):
    array = pytest.importorskip("dask.array")
    x, y = world(family)
    x[:, 1] *= x[:, 1] > 100
    model = nw.OnlineGLM(family).fit(x, y)
    frame = pd.DataFrame(x, columns=list("abcd"))
    for kind in (frame, sparse.csr_matrix(x), x.tolist(), np.asfortranarray(x)):
        again = nw.OnlineGLM(family).fit(kind, y)
        np.testing.assert_array_equal(again.coef_, model.coef_)
    lazy = nw.OnlineGLM(family).fit(array.from_array(x, (40, 4)), array.from_array(y, 40))
    np.testing.assert_allclose(lazy.predict(x), model.predict(x), rtol=1e-10)


def test_a_fit_that_fails_leaves_the_model_as_it_was(monkeypatch):
    x, y = world("binomial")
    model = nw.OnlineGLM("binomial").fit(x, y)
    before = model.predict(x)
    with pytest.raises(ValueError, match="labels of family 'binomial' are"):
        model.fit(x, y - 3)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(batch_mixture, "minimisers", interrupted)
    for again in (lambda: model.fit(x, 1 - y), model.refit):
        with pytest.raises(KeyboardInterrupt):
            again()
    np.testing.assert_array_equal(model.predict(x), before)
    with pytest.raises(ValueError, match="not fitted yet"):
        nw.OnlineGLM().refit()


@pytest.mark.parametrize("family", ["gaussian", *CURVED])
def test_few_rows_and_features_that_stand_still(family):
    x, y = world(family)
    x[:, 1] = 0.1
    for n in (1, 2, 3, 7, 140):
        model = nw.OnlineGLM(family).fit(x[:n], y[:n])
        assert np.isfinite(model.predict(x[:9])).all()
        assert model.coef_[1] == 0.0
        model.partial_fit(x[n : n + 3] + np.eye(4)[1], y[n : n + 3])
        assert np.isfinite(model.predict(x[:9])).all()
    model = nw.OnlineGLM(family).fit(x, np.ones(150))
    assert model.predict(x) == pytest.approx(np.full(150, model.predict(x)[0]), abs=0.01)


def test_separated_labels_have_a_sane_fit():
    """Almost sure of what it has seen, and not of what lies between."""
    x = np.append(np.linspace(-3, -1, 50), np.linspace(1, 3, 50))[:, None]
    model = nw.OnlineGLM("binomial").fit(x, 1.0 * (x[:, 0] > 0))
    p = model.predict([[-2.0], [-0.5], [0.0], [0.5], [2.0]])
    assert 1e-6 < p[0] < 0.02
    assert p[4] == pytest.approx(1 - p[0])
    assert p[2] == pytest.approx(0.5)
    assert 0.01 < p[1] < 0.4


def test_the_sums_are_all_that_a_gaussian_batch_needs():
    """The state has the sums of G, b and labels around the mean, and no memory of a stream."""
    x, y, w, offset = weighted("gaussian")
    model = nw.OnlineGLM().partial_fit(x, y, w, offset)._model
    sums = model.sums
    state = batch_state(model.method, model.state, sums, sums.total / sums.count)
    u = (y - offset) - np.average(y - offset, weights=w)
    z, unit = x - np.average(x, axis=0, weights=w), w[w > 0].mean()
    np.testing.assert_allclose(state.moment[0, :4], z.T @ (w * u) / unit, rtol=1e-9)
    assert ExpertNumbers(state.experts[0]).labels == pytest.approx(w @ u**2 / unit)
    assert by_name(state.experts)["rows"] == pytest.approx(
        [sums.count, *((1 - g**sums.count) / (1 - g) for g in (0.99, 0.97))]
    )
    np.testing.assert_allclose(Moments(*state.moments).used, x[w > 0].var(axis=0), rtol=1e-9)
