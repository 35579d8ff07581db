"""OnlineGLMClassifier: two classes and several, labels of any kind, scikit-learn's conventions."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import expit

import noisewise as nw

WORDS = np.array(["bird", "cat", "dog"])


def stream(classes=3, n=100, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    scores = 2 * x @ rng.normal(size=(4, classes)) + rng.gumbel(size=(n, classes))
    return x * [1.0, 100.0, 0.01, 1.0] + 5, scores.argmax(axis=1)


def mixture_of(x, y):
    """The mixture of ridges, and 5 % of the share of ones so far; both by what they gave labels."""
    mixture, y = nw.RidgeMixture(), 1.0 * y
    state = mixture.start(x.shape[1])
    ahead, ones = mixture.update(state, x, y), np.append(0.0, np.cumsum(y))
    share = (ones + 0.5) / (np.arange(len(y) + 1) + 1)
    given = [np.prod(np.where(y == 1, p, 1 - p)) for p in (ahead, share[:-1])]
    weight = 0.05 * given[1] / (0.95 * given[0] + 0.05 * given[1])
    return (1 - weight) * mixture.predict(state, x) + weight * share[-1], state


def test_two_classes_are_one_mixture():
    x, y = stream(2)
    p, state = mixture_of(x, y)
    model = nw.OnlineGLMClassifier().partial_fit(x, WORDS[y])
    np.testing.assert_allclose(
        model.predict_proba(x), np.column_stack([1 - p, p]), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(model.predict(x), WORDS[1 * (p > 0.5)])
    np.testing.assert_allclose(expit(model.decision_function(x)), p, rtol=1e-9)
    np.testing.assert_array_equal(model.coef_, [state.theta])
    np.testing.assert_array_equal(model.intercept_, [state.intercept])
    assert model.score(x, WORDS[y]) == pytest.approx(np.mean((p > 0.5) == y))
    assert model.score(x, WORDS[y], y + 1e-9) == pytest.approx(np.average(p > 0.5, weights=y))


def test_several_classes_may_be_each_against_the_rest():
    x, y = stream(3)
    shares = np.column_stack([mixture_of(x, y == k)[0] for k in range(3)])
    model = nw.OnlineGLMClassifier(multi_class="ovr").partial_fit(x, WORDS[y])
    np.testing.assert_allclose(model.predict_proba(x), shares / shares.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(expit(model.decision_function(x)), shares, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(x), WORDS[shares.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(x)).sum(axis=1), 1.0)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert model.score(x, WORDS[y]) > 0.7


KINDS = {
    "words": WORDS,
    "objects": WORDS.astype(object),
    "integers": np.array([-3, 0, 7]),
    "small integers": np.array([1, 2, 3], dtype=np.int8),
    "floats": np.array([0.0, 1.0, 5.0]),
    "truth": np.array([False, True]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_any_kind_come_back_as_they_were(kind):
    names = KINDS[kind]
    x, y = stream(len(names), n=30)
    plain, model = nw.OnlineGLMClassifier().fit(x, y), nw.OnlineGLMClassifier().fit(x, names[y])
    assert model.classes_.dtype == names.dtype
    np.testing.assert_array_equal(model.classes_, names)
    np.testing.assert_array_equal(model.predict(x), names[plain.predict(x)])
    listed = nw.OnlineGLMClassifier().fit(x.tolist(), names[y].tolist())
    np.testing.assert_array_equal(listed.predict(x), model.predict(x))
    series = nw.OnlineGLMClassifier().fit(x, pd.Series(names[y]).astype("category"))
    np.testing.assert_array_equal(series.predict_proba(x), model.predict_proba(x))


def test_batches_columns_and_sparse_rows():
    x, y = stream(3)
    X = pd.DataFrame(x, columns=list("abcd"))
    model = nw.OnlineGLMClassifier().partial_fit(X, WORDS[y])
    parts = nw.OnlineGLMClassifier().partial_fit(X[:1], WORDS[y[:1]], classes=WORDS)
    parts.partial_fit(X[list("dbca")][1:70], WORDS[y[1:70]], classes=WORDS[::-1])
    parts.partial_fit(X[70:], WORDS[y[70:]], sample_weight=np.ones(30))
    np.testing.assert_allclose(parts.predict_proba(X), model.predict_proba(X), rtol=1e-10)
    with pytest.raises(ValueError, match="now missing:\n- b"):
        model.predict(X[["a", "c", "d"]])
    thin = nw.OnlineGLMClassifier().fit(sparse.csr_matrix(x), WORDS[y])
    np.testing.assert_array_equal(thin.predict_proba(x), model.fit(x, WORDS[y]).predict_proba(x))
    turned = nw.OnlineGLMClassifier().fit(x[:, ::-1], WORDS[y])
    np.testing.assert_allclose(turned.predict_proba(x[:, ::-1]), thin.predict_proba(x), rtol=1e-8)


def test_a_copy_goes_on_as_the_original():
    x, y = stream(3)
    model = nw.OnlineGLMClassifier().fit(x[:60], WORDS[y[:60]])
    copies = pickle.loads(pickle.dumps(model)), copy.deepcopy(model)
    model.partial_fit(x[60:], WORDS[y[60:]])
    for each in copies:
        each.partial_fit(x[60:], WORDS[y[60:]])
        np.testing.assert_array_equal(each.predict_proba(x), model.predict_proba(x))


def test_classes_are_those_of_the_first_call():
    x, y = stream(2)
    model = nw.OnlineGLMClassifier().partial_fit(x, WORDS[y])
    before = model.predict_proba(x)
    with pytest.raises(ValueError, match=r"y has the class 'dog' at row 1, not among .*classes="):
        model.partial_fit(x[:2], ["cat", "dog"])
    with pytest.raises(ValueError, match="y has the class 1 at row 0"):
        model.partial_fit(x[:2], [1, 0])
    with pytest.raises(ValueError, match="not the same as on last call to partial_fit"):
        model.partial_fit(x[:2], ["cat", "cat"], classes=WORDS)
    np.testing.assert_array_equal(model.predict_proba(x), before)
    one = nw.OnlineGLMClassifier()
    for learn in (one.fit, one.partial_fit):
        with pytest.raises(ValueError, match=r"at least 2 classes .* only one class: 'cat'"):
            learn(x[:2], ["cat", "cat"])
    with pytest.raises(ValueError, match="y has the class 'cat'"):
        one.partial_fit(x[:1], ["cat"], classes=["bird", "dog"])
    assert not hasattr(one, "classes_")
    assert one.partial_fit(x[:1], ["cat"], classes=["cat", "dog"]).predict(x[:1]) == "cat"


BAD = {
    "Unknown label type: continuous": [0.5, 1.0],
    "Input y contains NaN": [np.nan, 1.0],
    "Unknown label type: y holds None": ["a", None],
    "Unknown label type: y is of type datetime64": np.array(["2020", "2021"], dtype="M8[Y]"),
    "y should be a 1d array": [["a", "b"], ["c", "d"]],
    "inconsistent numbers of samples": ["a"],
    "requires y to be passed": None,
}


@pytest.mark.parametrize("words", BAD)
def test_labels_that_are_no_classes_are_refused(words):
    model = nw.OnlineGLMClassifier()
    with pytest.raises(ValueError, match=words):
        model.fit([[1.0], [2.0]], BAD[words])
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    ("X", "w", "words"),
    [
        ([[1.0], [np.nan]], None, "Input X contains NaN"),
        ([[1.0], [np.inf]], None, "Input X contains infinity"),
        ([["a"], ["b"]], None, "X is of type"),
        ([[1.0], [2.0]], [0.0, 0.0], "at least one non-zero"),
    ],
)
def test_mistakes_are_named(X, w, words):
    with pytest.raises(ValueError, match=words):
        nw.OnlineGLMClassifier().fit(X, ["a", "b"], w)
    fitted = nw.OnlineGLMClassifier().fit([[1.0], [2.0]], ["a", "b"])
    with pytest.raises(
        ValueError, match="X has 2 features, but OnlineGLMClassifier is expecting 1"
    ):
        fitted.predict([[1.0, 2.0]])


@pytest.mark.parametrize("classes", [2, 3])
def test_odd_streams_give_probabilities(classes):
    x, y = stream(classes, n=40)
    y[:3] = [0, 1, classes - 1]
    still, split = x.copy(), np.digitize(x[:, 0], np.quantile(x[:, 0], [0.4, 0.7][: classes - 1]))
    still[:, 1] = 7.0
    rare = np.zeros(40, dtype=int)
    rare[: classes - 1] = np.arange(1, classes)
    wide = np.random.default_rng(1).normal(size=(12, 30))
    for X, labels in (
        (x, split), (x, rare), (still, y), (x[:, [0, 0, 1]], y), (x + 1e6 * np.eye(4)[0], y),
        (wide, np.arange(12) % classes), (x[:classes], np.arange(classes)), (0 * x, y),
    ):  # fmt: skip
        model = nw.OnlineGLMClassifier().fit(X, labels)
        for rows in (X, 1e6 * X[:2]):
            p = model.predict_proba(rows)
            assert (p > 0).all()
            np.testing.assert_allclose(p.sum(axis=1), 1.0)
    ends = split != 1 if classes == 3 else np.ones(40, dtype=bool)  # one class against the rest
    assert nw.OnlineGLMClassifier().fit(x, split).score(x[ends], split[ends]) > 0.9


def test_an_interrupted_update_is_noticed(monkeypatch):
    x, y = stream(3)
    model = nw.OnlineGLMClassifier(multi_class="ovr").fit(x, y)
    learn, seen = type(model._learnt.models[0]).learn, []

    def second_fails(self, *args):
        seen.append(self)
        if len(seen) == 2:
            raise KeyboardInterrupt
        learn(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(type(model._learnt.models[0]), "learn", second_fails)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(x, y)
    with pytest.raises(ValueError, match="interrupted half-way; fit it again"):
        model.predict(x)


def test_pipelines_grids_and_other_metrics():
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    x, y = x[order], y[order]
    usual = make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression()))
    ours, theirs = (
        -cross_val_score(each, x, y, scoring="neg_log_loss", cv=3).mean()
        for each in (nw.OnlineGLMClassifier(), usual)
    )
    assert ours < 1.1 * theirs
    model = make_pipeline(StandardScaler(), nw.OnlineGLMClassifier(fit_intercept=False))
    search = GridSearchCV(model, {"onlineglmclassifier__ridge": [1.0, 2.0]}, cv=2).fit(x, y)
    assert search.best_score_ > 0.6
    assert clone(search.best_estimator_[-1]).fit_intercept is False
    assert repr(nw.OnlineGLMClassifier(ridge=2.0)) == "OnlineGLMClassifier(ridge=2.0)"
