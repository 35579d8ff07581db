"""Estimators as models of river: its own checks, and agreement with the estimators."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from places import TESTS

import noisewise as nw

checks = pytest.importorskip("river.checks")
MODELS = {
    "regressor": nw.adapters.RiverRegressor,
    "classifier": nw.adapters.RiverClassifier,
}


def slow(name, i):
    """Return whether a check of a classifier is for its second data set, Phishing once more."""
    return name == "classifier" and i >= 14 and i % 2 == 1


CASES = [
    pytest.param(
        model, check, id=f"{name}-{check.__name__}-{i}", marks=[pytest.mark.slow] * slow(name, i)
    )
    for name, model in MODELS.items()
    for i, check in enumerate(checks.yield_checks(model()))
]


@pytest.mark.parametrize(("model", "check"), CASES)
@pytest.mark.filterwarnings("ignore:feature .* is ignored:UserWarning")
def test_checks_of_river(model, check):
    """None is left out. Some let features appear late, which warns."""
    if check.__name__ != "check_bounded_memory_growth":
        check(model())
        return
    # it measures all that can be reached from a model, so also what other tests left in caches
    at = [case.values[1] for case in CASES].index(check)
    code = f"import sys; sys.path[:0] = [{str(TESTS)!r}, {str(TESTS / 'adapters')!r}]\n"
    code += f"import test_river; test_river.alone({at})"
    subprocess.run([sys.executable, "-c", code], check=True)


def alone(at):
    """Run a check in a process of its own."""
    model, check = CASES[at].values
    check(model())


def rows(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    return X, X.to_numpy() @ [1.0, -2.0, 0.5] + 3 + rng.normal(size=n)


def test_a_regressor_predicts_as_its_estimator():
    X, y = rows()
    ours, theirs = nw.OnlineGLM(), nw.adapters.RiverRegressor()
    for x, label, w in zip(X.to_dict("records"), y, np.linspace(0, 2, len(y)), strict=True):
        theirs.learn_one(dict(reversed(x.items())), label, w)
    ours.partial_fit(X.to_numpy()[:, ::-1], y, np.linspace(0, 2, len(y)))
    found = theirs.predict_many(X)
    np.testing.assert_allclose(found, ours.predict(X.to_numpy()[:, ::-1]), rtol=1e-10)
    assert found.index.equals(X.index)
    assert theirs.predict_one({"a": 1.0}) == pytest.approx(ours.predict([[0.0, 0.0, 1.0]])[0])


def test_a_classifier_predicts_as_its_estimator():
    X, y = rows()
    labels = y > 3
    ours, theirs = nw.OnlineGLMClassifier(), nw.adapters.RiverClassifier()
    theirs.learn_many(X, pd.Series(labels))
    ours.partial_fit(X.to_numpy(), labels)
    expected = ours.predict_proba(X.to_numpy())
    np.testing.assert_allclose(theirs.predict_proba_many(X).to_numpy(), expected, rtol=1e-10)
    assert (theirs.predict_many(X) == ours.predict(X.to_numpy())).all()


def test_features_may_be_missing_and_new_ones_are_named():
    X, y = rows()
    given = nw.adapters.RiverRegressor(features=("a", "b", "c", "later"))
    first = nw.adapters.RiverRegressor()
    for x, label in zip(X.to_dict("records"), y, strict=True):
        given.learn_one(x, label)
        first.learn_one(x, label)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given.learn_one({"a": 1.0, "later": 2.0}, 1.0)
        zero, missing = {"a": 1.0, "b": 0.0, "c": 2.0}, {"a": 1.0, "c": 2.0}
        assert first.predict_one(zero) == first.predict_one(missing)
    with pytest.warns(UserWarning, match="feature 'later' was not in the first row") as caught:
        first.learn_one({**zero, "later": 5.0}, 1.0)
    first.learn_one({**zero, "later": 5.0}, 1.0)  # warns no more
    assert caught[0].filename == __file__


def test_several_classes_are_wrapped():
    from river import multiclass

    model = multiclass.OneVsRestClassifier(nw.adapters.RiverClassifier())
    rng = np.random.default_rng(0)
    hits, names = 0, ["low", "mid", "high"]
    for t in range(200):
        kind = int(rng.integers(3))
        x = {"a": kind + 0.2 * rng.normal(), "b": (kind - 1) ** 2 + 0.2 * rng.normal()}
        hits += t >= 50 and model.predict_one(x) == names[kind]
        model.learn_one(x, names[kind])
    assert hits > 140
    with pytest.raises(ValueError, match="OneVsRestClassifier"):
        nw.adapters.RiverClassifier().learn_one({"a": 1.0}, "low")


def test_bad_rows_change_nothing():
    model = nw.adapters.RiverRegressor()
    with pytest.raises(ValueError, match="NaN"):
        model.learn_one({"a": float("nan")}, 1.0)
    with pytest.raises(ValueError, match="no features"):
        model.learn_one({}, 1.0)
    model.learn_one({"b": 1.0}, 2.0)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="infinity"):
        model.learn_one({"b": 1.0}, float("inf"))
    assert pickle.dumps(model) == before


def test_without_river_a_sentence_says_so():
    code = (
        "import sys; sys.modules['river'] = None\nimport noisewise as nw\n"
        "try:\n    nw.adapters.RiverRegressor\n"
        "except ImportError as error:\n    assert '[river]' in str(error)\n"
        "else:\n    raise AssertionError"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
