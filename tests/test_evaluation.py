"""Progressive validation: predictions before labels, baselines in closed form, honest coverage."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

import noisewise as nw
from noisewise.evaluation.losses import class_log_loss, log_loss, poisson_deviance
from noisewise.evaluation.running_mean import RunningMean
from noisewise.evaluation.textbook import Textbook, newton
from noisewise.evaluation.validation import Validation

mpl.use("Agg")


def stream(seed=0, n=300, family="gaussian"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = X @ [1.0, -0.5, 0.2] + 0.3
    if family == "binomial":
        return X, 1.0 * (rng.random(n) < expit(score))
    if family == "poisson":
        return X, rng.poisson(np.exp(score)).astype(float)
    return X, score + rng.normal(size=n)


FAMILIES = ("gaussian", "binomial", "poisson")


@pytest.mark.parametrize("family", FAMILIES)
def test_predictions_are_those_before_each_label(family):
    X, y = stream(n=80, family=family)
    model = nw.OnlineGLM(family=family)
    found = nw.evaluate(model, X, y)
    assert not hasattr(model, "coef_") or "_fitted" not in vars(model)
    loop = nw.OnlineGLM(family=family).partial_fit(X[:1], y[:1])
    for t in range(1, len(y)):
        assert_allclose(found.predictions[t], loop.predict(X[t : t + 1])[0], rtol=1e-9)
        loop.partial_fit(X[t : t + 1], y[t : t + 1])
    assert_allclose(found.model.predict(X), loop.predict(X), rtol=1e-9)


def test_losses_by_hand():
    X, y = stream(n=50)
    w = np.linspace(0.5, 2, 50)
    found = nw.evaluate(nw.SelfTuned(), X, y, w)
    means = nw.predictions(nw.SelfTuned(), X, y, w)
    assert_allclose(found.predictions, means)
    assert_allclose(found.losses["SelfTuned"], np.average((y - means)[1:] ** 2, weights=w[1:]))
    running = np.cumsum(w * y) / np.cumsum(w)
    expected = np.average((y[1:] - running[:-1]) ** 2, weights=w[1:])
    assert_allclose(found.losses["running mean"], expected)
    late = slice(found.half, None)
    assert_allclose(
        found.late_losses["SelfTuned"], np.average((y - means)[late] ** 2, weights=w[late])
    )
    assert_allclose(found.curves["SelfTuned"][-1], found.losses["SelfTuned"])


def test_losses_agree_with_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    p, y = rng.random(50), 1.0 * (rng.random(50) < 0.4)
    assert_allclose(log_loss(p, y).mean(), metrics.log_loss(y, p))
    m, k = rng.gamma(2, size=50), rng.poisson(2, size=50)
    assert_allclose(poisson_deviance(m, k).mean(), metrics.mean_poisson_deviance(k, m))
    q, c = rng.dirichlet(np.ones(3), size=50), rng.integers(3, size=50)
    assert_allclose(class_log_loss(q, np.eye(3)[c]).mean(), metrics.log_loss(c, q))


@pytest.mark.parametrize("family", FAMILIES)
def test_splits_into_blocks_do_not_matter(family):
    X, y = stream(n=200, family=family)
    results = []
    for cuts in ([], [1, 30, 31, 150]):
        players = {"textbook": Textbook(family), "mean": RunningMean(family)}
        validation = Validation(players, family, 0.05)
        for part in np.split(np.arange(200), cuts):
            validation.update(X[part], y[part], np.ones(len(part)))
        results.append(validation.result(""))
    assert_allclose(results[0].times[:-1], results[1].times[:-1])
    assert_allclose(results[0].totals, results[1].totals, rtol=1e-9)


def test_the_textbook_fit_is_that_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    for family, kind in (
        ("gaussian", sm.families.Gaussian()),
        ("binomial", sm.families.Binomial()),
        ("poisson", sm.families.Poisson()),
    ):
        X, y = stream(3, 150, family)
        X = 10 + 2 * X
        w = np.linspace(0.5, 2, 150)
        player = Textbook(family)
        player.update(X[:140], y[:140], w[:140])
        player.next = player.count  # a refit is due
        means = player.update(X[140:], y[140:], w[140:])
        theirs = sm.GLM(y[:140], sm.add_constant(X[:140]), kind, freq_weights=w[:140]).fit()
        first = theirs.predict(sm.add_constant(X[140:], has_constant="add"))[0]
        assert_allclose(means[0], first, rtol=1e-6, err_msg=family)


def test_newton_ends_when_classes_are_separated():
    z = np.column_stack([np.r_[-np.ones(5), np.ones(5)], np.ones(10)])
    theta = newton(z, 1.0 * (z[:, 0] > 0), np.ones(10), np.zeros(2), "binomial")
    assert np.isfinite(theta).all()
    assert theta[0] > 5


def test_estimators_of_scikit_learn_take_part():
    linear = pytest.importorskip("sklearn.linear_model")
    X, y = stream(n=60)
    found = nw.evaluate(linear.SGDRegressor(), X, y, baseline=nw.OnlineGLM())
    assert set(found.losses) == {"SGDRegressor", "OnlineGLM"}
    labels = np.array(["low", "mid", "high"])[np.digitize(y, [-0.5, 0.5])]
    classes = nw.evaluate(linear.SGDClassifier(loss="log_loss", random_state=0), X, labels)
    assert classes.predictions.shape == (60, 3)
    rate = nw.evaluate(linear.SGDClassifier(loss="log_loss"), X, y > 0, np.full(60, 2.0))
    assert rate.predictions.shape == (60,)
    with pytest.raises(ValueError, match="predict_proba"):
        nw.evaluate(linear.SGDClassifier(), X, y > 0)


@pytest.mark.parametrize("count", [2, 3])
def test_classifiers_are_scored_by_log_loss(count):
    X, y = stream(n=120)
    labels = np.digitize(y, np.linspace(-0.5, 1, count - 1))
    found = nw.evaluate(nw.OnlineGLMClassifier(), X, labels)
    loop = nw.OnlineGLMClassifier().partial_fit(X[:1], labels[:1], classes=np.arange(count))
    total = 0.0
    for t in range(1, len(y)):
        total -= np.log(loop.predict_proba(X[t : t + 1])[0, labels[t]])
        loop.partial_fit(X[t : t + 1], labels[t : t + 1])
    assert_allclose(found.losses["OnlineGLMClassifier"], total / 119, rtol=1e-6)
    assert found.losses["OnlineGLMClassifier"] < found.losses["running mean"]


def test_a_classifier_and_a_regressor_of_the_same_labels():
    X, y = stream(n=60, family="binomial")
    w = np.r_[np.zeros(40), np.ones(20)]  # nothing to begin with
    for model, other in (
        (nw.OnlineGLM(family="binomial"), nw.OnlineGLMClassifier()),
        (nw.OnlineGLMClassifier(), nw.OnlineGLM(family="binomial")),
        (nw.OnlineGLMClassifier(), nw.OnlineGLMClassifier()),
    ):
        first, second = nw.evaluate(model, X, y, w, baseline=other).losses.values()
        assert_allclose(first, second, rtol=1e-9)


def test_intervals_of_observations_cover():
    """At 5 % misses of more than 1000 labels; wrong by chance with probability below 1e-6."""
    X, y = stream(5, 4000)
    found = nw.evaluate(nw.OnlineGLM(), X, y, delta=0.05)
    looked = found.looks.table[:, 3].sum()
    assert looked > 1000
    assert abs(found.looks.coverage - 0.95) < 5 * np.sqrt(0.05 * 0.95 / looked)
    assert not found.looks.too_few
    heavy = nw.evaluate(nw.OnlineGLM(family="poisson"), X, np.where(y > 0.5, 40.0, 0.0))
    assert heavy.looks.too_few
    assert "too few" in repr(heavy)
    assert (np.diff(found.looks.table[3:, 1]) < 0).all()  # means are known better and better


def test_no_row_is_looked_at_twice():
    X, y = stream(n=100)
    table = nw.evaluate(nw.OnlineGLM(), X, y).looks.table
    assert table[:, 3].sum() == 100 - table[0, 0]


def test_tables_and_pictures():
    X, y = stream(n=150)
    frame = pd.DataFrame(X, columns=["<a>", "b", "c"])
    found = nw.evaluate(nw.OnlineGLM(), frame, y, baseline="textbook")
    assert list(found.model.feature_names_in_) == ["<a>", "b", "c"]
    lines = repr(found).splitlines()
    assert lines[0] == "OnlineGLM(), 150 rows"
    assert lines[3].startswith("least squares")
    page = found._repr_html_()
    assert page.count("<tr>") == 3
    axes = found.plot()
    assert [axis.get_title(loc="left") for axis in axes] == [
        "Squared error so far",
        "Width of intervals",
        "Observations inside",
    ]
    assert len(nw.evaluate(nw.Ridge(), X, y, baseline=None).plot()) == 1
    drawn = found.model.plot()
    assert [text.get_text() for text in drawn.get_yticklabels()][-1] == "<a>"
    _, ax = mpl.pyplot.subplots()
    per_unit = found.model.plot(standardised=False, ax=ax)
    assert per_unit is ax
    assert "per unit" in per_unit.get_xlabel()
    mpl.pyplot.close("all")


def test_coefficients_are_drawn_per_standard_deviation():
    X, y = stream(n=200)
    model = nw.OnlineGLM().fit(X * [1.0, 100.0, 1.0], y)
    dots = model.plot().lines[-1]
    order = [int(label.get_text()[1:]) for label in dots.axes.get_yticklabels()]
    expected = model.coef_ * (X * [1.0, 100.0, 1.0]).std(axis=0)
    assert_allclose(dots.get_xdata(), expected[order])
    mpl.pyplot.close("all")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": object()}, "partial_fit"),
        ({"baseline": "median"}, "baseline is 'median'"),
        ({"delta": 2.0}, "delta"),
        ({"X": np.ones((1, 2)), "y": [1.0]}, "fewer than two rows"),
        ({"model": nw.OnlineGLMClassifier(), "y": np.zeros(300)}, "one class"),
        ({"model": nw.OnlineGLMClassifier(), "y": np.zeros(3)}, "300 labels"),
    ],
)
def test_mistakes_are_named(change, words):
    X, y = stream()
    given = {"model": nw.OnlineGLM(), "X": X, "y": y, **change}
    with pytest.raises(ValueError, match=words):
        nw.evaluate(**given)


def test_evaluate_needs_no_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = None; sys.modules['sklearn.base'] = None\n"
        "import numpy as np, noisewise as nw\n"
        "X = np.random.default_rng(0).normal(size=(40, 2))\n"
        "print(nw.evaluate(nw.OnlineGLM(), X, X @ [1.0, 2.0], progress=False))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
