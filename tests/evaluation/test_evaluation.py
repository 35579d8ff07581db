"""Progressive validation: predictions before labels, baselines in closed form, honest coverage."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit

import noisewise as nw
from noisewise.evaluation.progressive.losses import class_log_loss, log_loss, poisson_deviance
from noisewise.evaluation.progressive.players import EstimatorPlayer, play
from noisewise.evaluation.progressive.running_mean import RunningMean
from noisewise.evaluation.progressive.textbook import Textbook
from noisewise.evaluation.progressive.validation import Validation
from noisewise.model import families
from noisewise.regression.intervals.maximum_likelihood import Design, maximise
from noisewise.regression.normal_equations import NormalEquations

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
    x = np.r_[-np.ones(5), np.ones(5)][:, None]
    y, w, sums = 1.0 * (x[:, 0] > 0), np.ones(10), NormalEquations.start(1, True)
    sums.update(x, y, w)
    found = maximise(Design.of(families.model("binomial").link, sums, x, y, w))
    assert not found.exists
    assert np.isfinite(found.beta).all()
    assert found.scores[-1] - found.scores[0] > 10


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
    trusting = nw.OnlineGLM(family="poisson", noise=nw.Likelihood())
    with pytest.warns(UserWarning, match="scatter"):
        heavy = nw.evaluate(trusting, X, np.where(y > 0.5, 40.0, 0.0))
    assert heavy.looks.too_few
    assert "too few" in repr(heavy)
    assert (np.diff(found.looks.table[3:, 1]) < 0).all()  # means are known better and better


@pytest.mark.parametrize("family", FAMILIES)
def test_labels_of_unequal_weight_are_covered(family):
    """At least 95 % of more than 1000 labels of their own weight; 4 standard errors below that by
    chance with probability 3e-5, and gaussian ones above it as well."""
    rng = np.random.default_rng(7)
    X, _ = stream(7, 4000)
    score = X @ [1.0, -0.5, 0.2] + 0.3
    w = rng.integers(1, 20, 4000).astype(float)
    if family == "gaussian":
        y = score + rng.normal(size=4000) / np.sqrt(w)
    elif family == "binomial":
        y = rng.binomial(w.astype(int), expit(score)) / w
    else:
        y = rng.poisson(w * np.exp(score)) / w
    looks = nw.evaluate(nw.OnlineGLM(family=family), X, y, w).looks
    assert looks.labels > 1000
    assert not looks.too_few
    if family == "gaussian":
        assert abs(looks.coverage - 0.95) < 4 * np.sqrt(0.05 * 0.95 / looks.labels)


def test_an_interval_of_a_weighted_label_in_closed_form():
    rng = np.random.default_rng(0)
    X, y = stream(n=60)
    w, ahead = rng.uniform(0.5, 4, 60), rng.normal(size=(5, 3))
    asked = EstimatorPlayer(nw.OnlineGLM(), None)
    asked.update(X, y, w)
    new = np.array([0.3, 1.0, 2.0, 9.0, 100.0])
    found = asked.label_interval("gaussian", ahead, new, 0.05)
    Z, z = np.column_stack([X, np.ones(60)]), np.column_stack([ahead, np.ones(5)])
    G = np.linalg.inv((Z * w[:, None]).T @ Z)
    theta = G @ (Z * w[:, None]).T @ y
    variance = w @ (y - Z @ theta) ** 2 / 56
    half = stats.t.ppf(0.975, 56) * np.sqrt(
        variance * (np.einsum("ij,jk,ik->i", z, G, z) + 1 / new)
    )
    assert_allclose(found.lower, z @ theta - half, rtol=1e-7)
    assert_allclose(found.upper, z @ theta + half, rtol=1e-7)


def test_an_offset_is_what_statsmodels_makes_of_it():
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(1)
    X, _ = stream(n=120)
    o = rng.normal(size=120)
    for family, kind in (("gaussian", sm.families.Gaussian()), ("poisson", sm.families.Poisson())):
        mean = X @ [1.0, -0.5, 0.2] + o
        y = mean + rng.normal(size=120)
        if family == "poisson":
            y = rng.poisson(np.exp(mean)).astype(float)
        player = Textbook(family)
        play(player, family, X[:100], y[:100], np.ones(100), o[:100])
        player.next = player.count  # a refit is due
        means = play(player, family, X[100:], y[100:], np.ones(20), o[100:])
        theirs = sm.GLM(y[:100], sm.add_constant(X[:100]), kind, offset=o[:100]).fit()
        first = theirs.predict(sm.add_constant(X[100:], has_constant="add"), offset=o[100:])[0]
        assert_allclose(means[0], first, rtol=1e-6, err_msg=family)
    running = play(RunningMean("poisson"), "poisson", X, y, np.ones(120), o)
    expected = (y[:-1].sum() + 0.5) / np.exp(o[:-1]).sum() * np.exp(o[-1])
    assert_allclose(running[-1], expected)


def test_all_are_compared_over_the_rows_with_a_fit():
    X, y = stream(n=60)
    w = np.linspace(0.5, 2, 60)
    found = nw.evaluate(nw.OnlineGLM(), X, y, w, baseline="textbook")
    fitted = Textbook("gaussian").update(X, y, w)
    known = ~np.isnan(fitted)
    assert list(np.flatnonzero(known)) == list(range(18, 60))  # 2 p + 10 rows before
    assert found.compared.rows == 42
    assert found.compared.first == 19
    ours, theirs = (y - found.predictions) ** 2, (y - fitted) ** 2
    expected = [np.average(each[known], weights=w[known]) for each in (ours, theirs)]
    assert_allclose(list(found.losses.values()), expected)
    assert_allclose(found.all_rows.averages[0], np.average(ours[1:], weights=w[1:]))
    assert np.isnan(found.all_rows.averages[1])
    apart = (ours - theirs)[known] - (expected[0] - expected[1])
    error = np.sqrt((w[known] ** 2) @ apart**2) / w[known].sum()
    assert_allclose(found.errors["least squares"], error)
    assert "from row 19 on" in repr(found)
    assert "over the 42 rows for which it had a fit" in repr(found)


def test_a_method_that_was_not_fitted_is_not_compared():
    X, y = stream(n=27)
    found = nw.evaluate(nw.OnlineGLM(), X, y, baseline="textbook")
    assert found.names == ("OnlineGLM",)
    assert (
        "Least squares is not compared: its first fit takes 18 rows, and a comparison 10 more; "
        "there are 27." in repr(found)
    )
    x = np.linspace(-1, 1, 80)[np.random.default_rng(0).permutation(80), None]
    apart = nw.evaluate(nw.OnlineGLM("binomial"), x, 1.0 * (x[:, 0] > 0), baseline="textbook")
    assert apart.names == ("OnlineGLM",)
    assert "without ridge it had no finite fit for most rows" in repr(apart)


def test_a_fit_that_exists_is_told_from_one_that_does_not():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=200), rng.random(200) < 0.2])
    y = 1.0 * (rng.random(200) < expit(3 * x[:, 0]))
    for labels, exists in ((y, True), (np.where(x[:, 1] > 0, 0.0, y), False)):
        for family, scale in (("binomial", 1), ("poisson", 3)):
            player = Textbook(family)
            player.update(x[:199], scale * labels[:199], np.ones(199))
            player.next = player.count  # a refit is due
            means = player.update(x[199:], scale * labels[199:], np.ones(1))
            assert np.isfinite(means[0]) == exists


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
    expected = model.summary().estimates[:3] * (X * [1.0, 100.0, 1.0]).std(axis=0)
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
