"""An estimator is saved alone, as plain arrays, and goes on as if never stopped."""

import json

import numpy as np
import pandas as pd
import pytest

import noisewise as nw

FAMILIES = "gaussian", "binomial", "poisson", "probit", "tanh", "algebraic"


def table(n=120):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 3)) * [1.0, 50.0, 0.1] + 3, columns=["age", "size", "é"])
    return X, 1.0 * (rng.random(n) < 0.3 + 0.4 * (X["age"] > 3))


def through(path, model):
    nw.save(path, model)
    return nw.load(path)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_loaded_model_goes_on_to_the_same_numbers(family, tmp_path):
    X, y = table()
    model = nw.OnlineGLM(family, ridge=0.5, fit_intercept=family != "probit").fit(X[:70], y[:70])
    again = through(tmp_path / "model.npz", model)
    assert repr(again) == repr(model)
    assert again.feature_names_in_.tolist() == ["age", "size", "é"]
    for _ in range(2):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.coef_, model.coef_)
        for how in ({}, {"anytime": False}):
            ours, theirs = (each.predict_interval(X, **how) for each in (again, model))
            np.testing.assert_array_equal(ours, theirs)
        assert repr(again.summary()) == repr(model.summary())
        for each in (again, model):
            each.partial_fit(X[70:], y[70:]).partial_fit(X[["é", "age", "size"]][:1], y[:1])


@pytest.mark.parametrize(
    "names",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes", "é"], dtype=object),
        np.array([3, 5, 9], dtype=np.int16),
        np.array([False, True]),
    ],
    ids=str,
)
def test_a_loaded_classifier_goes_on_to_the_same_numbers(names, tmp_path):
    X, _ = table()
    y = names[np.arange(120) % len(names)]
    model = nw.OnlineGLMClassifier().fit(X[:70], y[:70])
    again = through(tmp_path / "model.npz", model)
    assert again.classes_.dtype == names.dtype
    for each in (again, model):
        each.partial_fit(X[70:], y[70:])
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_parameters_are_kept_as_they_are(tmp_path):
    X, y = table()
    noise = nw.SubGaussian(2.0)
    model = nw.OnlineGLM(forgetting=(1.0, 0.9), noise=noise).fit(X.to_numpy(), y)
    model.set_params(ridge=3.0)  # for the next fit
    again = through(tmp_path / "model.npz", model)
    assert again.get_params() == model.get_params()
    assert again.method_ == nw.SelfTuned("auto", (1.0, 0.9), clip=False)
    assert not hasattr(again, "feature_names_in_")


def test_the_file_is_plain(tmp_path):
    X, y = table()
    nw.save(tmp_path / "model.npz", nw.OnlineGLMClassifier().fit(X, y))
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert {file[name].dtype.kind for name in file.files} <= set("Ufi")
        header = json.loads(str(file["header"]))
    assert header["spec"] == {
        "type": "OnlineGLMClassifier", "fields": {
            "ridge": "auto", "fit_intercept": True, "multi_class": "auto",
        },
    }  # fmt: skip


def test_what_can_not_be_saved(tmp_path):
    path = tmp_path / "model.npz"
    X, y = table()
    model = nw.OnlineGLM().fit(X, y)
    with pytest.raises(ValueError, match="not fitted yet"):
        nw.save(path, nw.OnlineGLM())
    with pytest.raises(ValueError, match="an estimator is saved without a state"):
        nw.save(path, model, model.state_)
    with pytest.raises(ValueError, match="state is None; pass the state of the spec"):
        nw.save(path, nw.SelfTuned())
    model._model.sums.count += 1
    with pytest.raises(ValueError, match="interrupted half-way"):
        nw.save(path, model)
    assert not path.exists()
    nw.save(path, nw.OnlineGLM().fit(X, y))
    with pytest.raises(ValueError, match=r"holds no agent; open it with noisewise\.load"):
        nw.Agent.load(path)


def edited(path, edit):
    with np.load(path) as file:
        members = {name: file[name] for name in file.files}
    header = json.loads(str(members["header"]))
    edit(header, members)
    np.savez(path, **{**members, "header": np.array(json.dumps(header))})


def fields(header):
    return header["state"]["fields"]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda h, m: h["spec"].update(type="OnlineGLM", fields=GLM), "is not of OnlineGLM"),
        (lambda h, m: h["spec"].update(type="SelfTuned", fields=SELF), "do not belong together"),
        (lambda h, m: fields(h).update(classes=["a", "b"]), "not those of 2 classes"),
        (lambda h, m: fields(h).update(classes=["b", "a", "c"]), "in order"),
        (lambda h, m: fields(h).update(classes=["a", 1, "c"]), "different labels"),
        (lambda h, m: fields(h).update(classes=None), "without classes"),
        (lambda h, m: fields(h).update(label_type="<i8"), "label_type '<i8' is not"),
        (lambda h, m: fields(h).update(label_type="<U1, <U2"), "label_type"),
        (lambda h, m: fields(h).update(columns=["age", "age", "x"]), "3 different names"),
        (lambda h, m: fields(h)["models"].pop(), "not those of 3 classes"),
        (lambda h, m: fields(h).update(models=[]), "no model, or none"),
        (lambda h, m: fields(h)["models"][0]["fields"].update(state=3), "RidgeMixtureState"),
        (lambda h, m: fields(h)["models"][0]["fields"]["method"]["fields"].update(family="probit"),
         "another model"),
    ],
)  # fmt: skip
def test_crafted_files_are_refused(edit, words, tmp_path):
    X, _ = table()
    path = tmp_path / "model.npz"
    model = nw.OnlineGLMClassifier(multi_class="ovr")
    nw.save(path, model.fit(X, np.array(["a", "b", "c"])[np.arange(120) % 3]))
    edited(path, edit)
    with pytest.raises(ValueError, match=f"damaged.*{words}"):
        nw.load(path)


def of_several(header):
    return fields(header)["several"]["fields"]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda h, m: fields(h).update(classes=["a", "b"]), "not those of 2 classes"),
        (lambda h, m: fields(h).update(classes=["a", "b", "c", "d"]), "not those of 4 classes"),
        (lambda h, m: fields(h).update(classes=None), "without classes"),
        (lambda h, m: fields(h).update(several=None), "no model, or none"),
        (lambda h, m: of_several(h).update(count=3), "interrupted half-way"),
        (lambda h, m: of_several(h)["rest"].pop(), "not 3 regressions"),
        (lambda h, m: of_several(h)["method"]["fields"].update(classes=4), "belongs there"),
        (lambda h, m: of_several(h)["method"]["fields"].update(fit_intercept=False),
         "this spec started"),
    ],
)  # fmt: skip
def test_crafted_files_of_several_classes_are_refused(edit, words, tmp_path):
    X, _ = table()
    path, y = tmp_path / "model.npz", np.array(["a", "b", "c"])[np.arange(120) % 3]
    nw.save(path, nw.OnlineGLMClassifier().partial_fit(X, y))
    edited(path, edit)
    with pytest.raises(ValueError, match=f"damaged.*{words}"):
        nw.load(path)


GLM = {"family": "gaussian", "ridge": "auto", "forgetting": "auto", "fit_intercept": True,
       "noise": "auto", "nonlinear": False, "hashed": None}  # fmt: skip
SELF = {"ridge": "auto", "forgetting": "auto", "fit_intercept": True, "clip": True,
        "steady": 0.8}  # fmt: skip
