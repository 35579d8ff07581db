"""OnlineGLM of every family: batches, columns, offsets, intervals, odd streams, bad input."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from scipy.special import expit

import noisewise as nw

CURVED = "binomial", "poisson", "probit", "tanh", "algebraic"
FAMILIES = "gaussian", *CURVED
SIGNS = "tanh", "algebraic"
WAYS = {}, {"simultaneous": True}, {"anytime": False}, {"kind": "observation"}


def labels(family, score, rng):
    if family == "gaussian":
        return score + rng.normal(size=len(score))
    if family == "poisson":
        return rng.poisson(np.exp(np.clip(score, -4, 4))).astype(float)
    y = 1.0 * (rng.random(len(score)) < expit(score))
    return 2 * y - 1 if family in SIGNS else y


def stream(family, seed=0, n=160, d=3):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d))
    x = 5 + z * 10.0 ** rng.integers(-2, 3, size=d)
    return x, labels(family, z @ rng.normal(size=d), rng)


@pytest.mark.parametrize("family", FAMILIES)
def test_batches_and_columns_do_not_matter(family):
    x, y = stream(family)
    w = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], size=160)
    w[0] = 1.0
    whole = nw.OnlineGLM(family).partial_fit(x, y, w)
    for cuts in (range(1, 160, 9), [1, 2, 50]):
        parts = nw.OnlineGLM(family)
        for rows in np.split(np.arange(160), cuts):
            parts.partial_fit(x[rows], y[rows], w[rows])
        np.testing.assert_allclose(parts.predict(x), whole.predict(x), rtol=1e-10)
        np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-10)
    turned = nw.OnlineGLM(family).partial_fit(x[:, ::-1], y, w)
    np.testing.assert_allclose(turned.predict(x[:, ::-1]), whole.predict(x), rtol=1e-9, atol=1e-9)
    X = pd.DataFrame(x, columns=["a", "b", "c"])
    named = nw.OnlineGLM(family).partial_fit(X[:90], y[:90], w[:90])
    named.partial_fit(X[["c", "a", "b"]][90:], y[90:], w[90:])
    np.testing.assert_allclose(named.predict(X[["b", "c", "a"]]), whole.predict(x), rtol=1e-10)


@pytest.mark.parametrize("simultaneous", [False, True])
def test_intervals_are_those_of_all_rows_though_a_fit_is_kept(simultaneous):
    x, y = stream("binomial")
    model, ways, done = nw.OnlineGLM("binomial"), {"simultaneous": simultaneous}, 0
    for stop in (100, 101, 160):
        model.partial_fit(x[done:stop], y[done:stop])
        done, size = stop, len(pickle.dumps(model))
        for delta in (0.1, 0.05, 0.1):
            fresh = nw.OnlineGLM("binomial").fit(x[:stop], y[:stop])
            ends = [each.predict_interval(x[:3], delta, **ways) for each in (model, fresh)]
            np.testing.assert_allclose(*map(np.array, ends), rtol=1e-9)
        assert len(pickle.dumps(model)) == size


@pytest.mark.parametrize("family", CURVED)
def test_predictions_are_those_of_the_mixture(family):
    x, y = stream(family)
    model, mixture = nw.OnlineGLM(family, ridge=0.5), nw.RidgeMixture(family, ridge=0.5)
    state = mixture.start(3)
    mixture.update(state, x, y)
    model.partial_fit(sparse.csr_matrix(x), y.tolist())
    np.testing.assert_array_equal(model.predict(x), mixture.predict(state, x))
    np.testing.assert_array_equal(model.coef_, state.theta)
    assert model.method_ == mixture
    with pytest.raises(ValueError, match=f"labels of family '{family}' are"):
        model.partial_fit(x[:1], [-7.0])
    np.testing.assert_array_equal(model.coef_, state.theta)


def test_links_name_families():
    for link, family in ("logistic", "binomial"), ("exponential", "poisson"):
        x, y = stream(family)
        both = [nw.OnlineGLM(name).fit(x, y).predict(x) for name in (link, family)]
        np.testing.assert_array_equal(*both)
    x, y = stream("gaussian")
    both = [nw.OnlineGLM(name).fit(x, y).predict(x) for name in ("identity", "gaussian")]
    np.testing.assert_array_equal(*both)


def test_units_of_labels_and_features_do_not_matter():
    """One-step-ahead predictions from the second row on, y -> 1000 y + 500."""
    x, y = stream("gaussian", n=60)
    plain, other = nw.OnlineGLM(), nw.OnlineGLM()
    for i in range(60):
        now, then = x[i : i + 1], x[i : i + 1] * [1e3, 1e-4, 7.0] - [40.0, 2.0, 0.1]
        if i:
            expected = 1000 * plain.predict(now) + 500
            np.testing.assert_allclose(other.predict(then), expected, rtol=1e-8)
        plain.partial_fit(now, y[i : i + 1])
        other.partial_fit(then, 1000 * y[i : i + 1] + 500)


def test_offsets_of_linear_models_are_taken_from_labels():
    x, y = stream("gaussian")
    o = np.random.default_rng(3).normal(size=160) * 10
    plain, shifted = nw.OnlineGLM().fit(x, y), nw.OnlineGLM().fit(x, y + o, offset=o)
    np.testing.assert_allclose(shifted.predict(x, offset=o), plain.predict(x) + o, rtol=1e-9)
    expected = np.array(plain.predict_interval(x)) + o
    np.testing.assert_allclose(shifted.predict_interval(x, offset=o), expected, rtol=1e-9)
    assert shifted.score(x, y + o, offset=o) > plain.score(x, y)


def test_counts_with_exposure_are_those_of_statsmodels():
    """The fit without ridge, and widths of its textbook intervals; predictions are close to it."""
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(4)
    x, o = rng.normal(size=(400, 2)), rng.normal(size=400)
    y = rng.poisson(np.exp(0.3 + x @ [0.4, -0.2] + o)).astype(float)
    model = nw.OnlineGLM("poisson", noise="likelihood")
    model.partial_fit(x[:150], y[:150], offset=o[:150])
    model.partial_fit(x[150:], y[150:], offset=o[150:])
    theirs = sm.GLM(y, sm.add_constant(x), sm.families.Poisson(), offset=o).fit(tol=1e-12)
    np.testing.assert_allclose(np.roll(model.summary().errors, 1), theirs.bse, rtol=1e-6)
    there = theirs.get_prediction(sm.add_constant(x[:5]), offset=o[:5])
    ours = model.predict_interval(x[:5], anytime=False, offset=o[:5])
    ratios = np.divide(*there.conf_int().T)  # the bias moves both ends by the same factor
    np.testing.assert_allclose(ours.lower / ours.upper, ratios, rtol=1e-6)
    np.testing.assert_allclose(np.array(ours).T, there.conf_int(), rtol=0.01)
    assert np.abs(model.predict(x, offset=o) / theirs.fittedvalues - 1).max() < 0.1
    np.testing.assert_array_equal(model.predict(x, offset=o), model.predict(x) * np.exp(o))


def test_an_offset_is_an_exposure_as_weight():
    x, y = stream("poisson")
    o = np.random.default_rng(5).normal(size=160)
    ours = nw.OnlineGLM("poisson").fit(x, y, 2.0, offset=o)
    plain = nw.OnlineGLM("poisson").fit(x, y / np.exp(o), 2 * np.exp(o))
    np.testing.assert_array_equal(ours.predict(x), plain.predict(x))


def test_shares_with_trials_are_those_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(6)
    x, n = rng.normal(size=(200, 2)), rng.integers(1, 30, size=200)
    wins = rng.binomial(n, expit(0.5 + x @ [1.0, -0.5]))
    model = nw.OnlineGLM("binomial", noise="likelihood").fit(x, wins / n, sample_weight=n)
    theirs = sm.GLM(np.column_stack([wins, n - wins]), sm.add_constant(x), sm.families.Binomial())
    found, theirs = model.summary(), theirs.fit(tol=1e-12)
    np.testing.assert_allclose(np.roll(found.errors, 1), theirs.bse, rtol=1e-6)
    away = np.roll(found.estimates, 1) - theirs.params
    assert (np.abs(away) < 0.3 * theirs.bse).all()


@pytest.mark.parametrize("family", ["binomial", "probit", "tanh", "algebraic"])
def test_offsets_that_can_not_be_exact_are_refused(family):
    x, y = stream(family)
    model = nw.OnlineGLM(family)
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="families 'gaussian' and 'poisson' take it"):
            call(x, y, offset=np.zeros(160))
    assert not hasattr(model, "coef_")
    with pytest.raises(ValueError, match="families 'gaussian' and 'poisson' take it"):
        model.fit(x, y).predict(x, offset=np.zeros(160))


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        ([1.0], r"offset has shape \(1,\); pass \(160,\)"),
        (np.nan, "Input offset contains NaN"),
        (1000.0, "offset is 1000 at row 0, too large to compute with"),
        (["a"] * 160, "offset is of type"),
    ],
)
def test_wrong_offsets_are_named(offset, words):
    x, y = stream("poisson")
    with pytest.raises(ValueError, match=words):
        nw.OnlineGLM("poisson").fit(x, y, offset=offset)


@pytest.mark.parametrize("family", CURVED)
def test_intervals_say_what_they_promise(family):
    x, y = stream(family, n=400)
    model = nw.OnlineGLM(family).fit(x, y)
    whole, fixed, textbook, label = (model.predict_interval(x[:9], **how) for how in
                                     ({"simultaneous": True}, *WAYS[::2], WAYS[3]))  # fmt: skip
    assert whole.promise == "all rows, all times"
    assert fixed.promise == "a row fixed in advance, all times"
    assert textbook.promise == "a row fixed in advance, one time"
    assert label.promise == "one new label, one time"
    widths = [each.upper - each.lower for each in (textbook, fixed, whole)]
    assert (widths[0] < widths[1]).all()
    assert (widths[1] < widths[2]).all()
    asymptotic = nw.OnlineGLM(family, noise="asymptotic").fit(x, y).predict_interval(x[:9])
    assert asymptotic.rests_on.startswith("independent rows, asymptotically")
    single = family == "binomial"
    assert whole.rests_on.startswith("the likelihood" if single else "independent rows, asympt")
    assert (
        (textbook.lower <= model.predict(x[:9])) & (model.predict(x[:9]) <= textbook.upper)
    ).all()
    summary = model.summary(0.1)
    assert summary.names == ("x0", "x1", "x2", "intercept")
    assert summary.anytime.promise == "a coefficient fixed in advance, all times"
    assert repr(summary).startswith(f"OnlineGLM(family='{family}'), 400 rows")


def test_the_sandwich_of_probit_is_that_of_the_estimating_equations():
    """Its fit solves sum (Phi(z) - y) x = 0; the variance by matrices as written."""
    x, y = stream("probit", n=300)
    model = nw.OnlineGLM("probit").fit(x, y)
    centre = np.mean(model.summary().textbook, axis=0)
    z = np.column_stack([x, np.ones(300)])
    error = stats.norm.cdf(z @ centre) - y
    np.testing.assert_allclose(z.T @ error / np.abs(z).sum(axis=0), 0.0, atol=1e-8)
    J = np.linalg.inv(z.T @ (stats.norm.pdf(z @ centre)[:, None] * z))
    h = stats.norm.pdf(z @ centre) * np.einsum("ij,jk,ik->i", z, J, z)
    V = J @ (z.T @ ((error / (1 - h))[:, None] ** 2 * z)) @ J
    slope = stats.norm.pdf(z @ centre)
    average = max((error**2 / slope).sum() / 296, (error**2 / (1 - h)).sum() / slope.sum())
    v = np.maximum(np.diag(V), average * np.diag(J))
    np.testing.assert_allclose(model.summary().errors, np.sqrt(v), rtol=1e-5)


def test_dispersion_widens_intervals():
    x, y = stream("poisson", n=300)
    models = [nw.OnlineGLM("poisson", noise=each) for each in ("likelihood", nw.Likelihood(4.0))]
    with pytest.warns(UserWarning, match="labels scatter 1.9 times as much as poisson counts"):
        plain = models[0].fit(x, y).summary().textbook
    wide = models[1].fit(x, y).summary().textbook
    np.testing.assert_allclose(np.diff(wide, axis=0), 2 * np.diff(plain, axis=0), rtol=1e-9)


def odd(family):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    low = -1.0 if family in SIGNS else 0.0
    split = np.where(x[:, 0] > 0, 1.0, low)
    still, wide = x.copy(), rng.normal(size=(12, 30))
    still[:, 1] = 7.0
    return {
        "separated": (x, split),
        "all labels the largest": (x, np.ones(60)),
        "all labels the least": (x, np.full(60, low)),
        "one row": (x[:1], split[:1]),
        "two rows": (x[:2], split[:2]),
        "more features than rows": (wide, split[:12]),
        "constant column": (still, split),
        "equal columns": (x[:, [0, 0, 1]], split),
        "offset": (x + 1e6 * np.eye(3)[0], split),
        "no features": (0 * x, split),
    }


@pytest.mark.parametrize("family", CURVED)
@pytest.mark.parametrize("name", odd("binomial"))
def test_odd_streams_give_numbers(family, name):
    x, y = odd(family)[name]
    for model in (nw.OnlineGLM(family), nw.OnlineGLM(family, fit_intercept=False)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(x, y)
            assert np.isfinite(model.predict(x)).all()
            assert np.isfinite([*model.coef_, model.intercept_]).all()
            for how in WAYS:
                low, high = model.predict_interval(x, **how)
                assert (low <= high).all()
            assert "nan" not in repr(model.summary())


def test_memory_of_linear_models_does_not_grow():
    x, y = stream("gaussian", n=20_000)
    sizes = [len(pickle.dumps(nw.OnlineGLM().fit(x[:n], y[:n]))) for n in (50, 20_000)]
    assert abs(sizes[1] - sizes[0]) < 20  # numbers are pickled in as many bytes as they need


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize(
    ("X", "y", "w", "words"),
    [
        ([[1.0], [np.nan]], [0, 1], None, "Input X contains NaN at row 1, column 0"),
        ([[1.0], [np.inf]], [0, 1], None, "Input X contains infinity"),
        ([["a"], ["b"]], [0, 1], None, "X is of type"),
        ([[1.0], [2.0]], [0, np.nan], None, "Input y contains NaN"),
        ([[1.0], [2.0]], [0, 1], [0, 0], "at least one non-zero"),
        ([[1.0], [2.0]], [0, 1], [1, -1], "Negative values in data passed to sample_weight"),
        ([[1.0], [2.0]], [0, -1], None, "y is -1 at row 1"),
    ],
)
def test_mistakes_are_named(family, X, y, w, words):
    model = nw.OnlineGLM(family)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y, w)
    assert not hasattr(model, "coef_")


def test_pipelines_and_grids():
    pytest.importorskip("sklearn")
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = stream("poisson")
    model = make_pipeline(StandardScaler(), nw.OnlineGLM("poisson"))
    search = GridSearchCV(model, {"onlineglm__ridge": ["auto", 1.0]}, cv=3).fit(x, y)
    assert search.best_score_ > 0.1
    shares, wins = stream("binomial")
    assert (cross_val_score(nw.OnlineGLM("binomial"), shares, wins, cv=3) > 0).all()
