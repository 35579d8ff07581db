"""What new users tried first, and the answers they get."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import noisewise as nw
from noisewise.cli import main
from noisewise.tabular import predict

RNG = np.random.default_rng
X = RNG(0).normal(size=(40, 2))
Y = X @ [1.0, -1.0] + RNG(1).normal(size=40)
LOG = {"action": ["a", "b"] * 20, "reward": [1.0, 0.0] * 20, "probability": [0.5] * 40}
WORLD = nw.environments.WORLDS["fixed-linear"]

CLASSES = {
    "a model": lambda: nw.evaluate(nw.OnlineGLM, X, Y),
    "a regressor": lambda: nw.evaluate(nw.FTRL, X, Y),
    "a classifier": lambda: nw.evaluate(nw.OnlineGLMClassifier, X, Y > 0),
    "a baseline": lambda: nw.evaluate(nw.OnlineGLM(), X, Y, baseline=nw.OnlineGLM),
    "to play rows": lambda: nw.predictions(nw.FTRL, X, Y),
    "to play rounds": lambda: nw.choices(nw.FTRLUCB, WORLD.draw(RNG(0)), RNG(0)),
    "of an agent": lambda: nw.Agent(nw.FTRLUCB, dim=2),
    "to evaluate": lambda: nw.off_policy_value(LOG, nw.FTRLUCB),
    "to predict rewards": lambda: nw.off_policy_value(LOG, "a", regressor=nw.Ridge),
    "to save": lambda: nw.save("model.npz", nw.OnlineGLM),
    "to check": lambda: nw.checks.check_policy(nw.FTRLUCB),
}


@pytest.mark.parametrize("what", CLASSES)
def test_a_class_in_place_of_an_instance_is_named(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"is the class \w+; pass an instance, \w+\(\.\.\.\)"):
        CLASSES[what]()
    assert not list(tmp_path.iterdir())


def test_other_classes_are_named_too():
    for call in (
        lambda: nw.FTRL(nw.GLM),
        lambda: nw.OnlineGLM(noise=nw.SubGaussian).fit(X, Y),
        lambda: nw.Agent.for_means(arms=nw.Arms),
    ):
        with pytest.raises(ValueError, match="is the class"):
            call()
    with pytest.raises(ValueError, match=r"pass rounds\.draw\(rng\)"):
        nw.choices(nw.FTRLUCB(), WORLD, RNG(0))


def test_text_among_the_features_names_the_call_that_helps():
    frame = pd.DataFrame({"age": X[:, 0], "city": ["Roma", "Bari"] * 20})
    with pytest.raises(ValueError, match=r"column 'city'.*pd\.get_dummies\(X, columns=\['city'\]"):
        nw.OnlineGLM().fit(frame, Y)
    encoded = pd.get_dummies(frame, columns=["city"], dtype=float)
    model = nw.OnlineGLM().fit(encoded, Y)
    one = pd.get_dummies(frame[:1], columns=["city"], dtype=float)
    with pytest.raises(ValueError, match=r"X\.reindex\(columns=model\.feature_names_in_"):
        model.predict(one)
    one = one.reindex(columns=model.feature_names_in_, fill_value=0.0)
    assert_allclose(model.predict(one), model.predict(encoded)[:1])
    with pytest.raises(ValueError, match="OnlineGLMClassifier"):
        nw.OnlineGLM().fit(X, ["yes", "no"] * 20)


def test_a_regressor_says_where_probabilities_are():
    model = nw.OnlineGLM("binomial").fit(X, Y > 0)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict returns the probability of 1"):
        _ = model.predict_proba


def test_the_summary_of_two_classes_is_that_of_the_regression():
    labels = np.where(Y > 0, "yes", "no")
    found = nw.OnlineGLMClassifier().fit(X, labels).summary(0.1)
    same = nw.OnlineGLM("binomial").fit(X, Y > 0).summary(0.1)
    assert found.names == same.names == ("x0", "x1", "intercept")
    assert_allclose(found.coefficients, same.coefficients)
    for one, two in ((found.anytime, same.anytime), (found.textbook, same.textbook)):
        assert_allclose(one, two)
    assert "log odds of 'yes' against 'no'" in repr(found)


def test_the_summary_of_three_classes_has_lines_for_each():
    labels = np.digitize(Y, [-0.7, 0.7])
    frame = pd.DataFrame(X, columns=["u", "v"])
    model = nw.OnlineGLMClassifier(fit_intercept=False, multi_class="ovr").fit(frame, labels)
    found = model.summary()
    assert found.names == ("0: u", "0: v", "1: u", "1: v", "2: u", "2: v")
    assert_allclose(np.reshape(found.coefficients, (3, 2)), model.coef_)
    alone = nw.OnlineGLM("binomial", fit_intercept=False).fit(X, labels == 2).summary()
    assert_allclose(found.anytime.lower[4:], alone.anytime.lower)


def test_the_summary_of_three_classes_is_against_the_first():
    labels = np.digitize(Y, [-0.7, 0.7])
    model = nw.OnlineGLMClassifier().fit(X, labels)
    found = model.summary()
    assert found.names == tuple(
        f"{k}: {name}" for k in (1, 2) for name in ("x0", "x1", "intercept")
    )
    own = np.column_stack([model.coef_, model.intercept_])
    assert_allclose(np.reshape(found.coefficients, (2, 3)), own[1:] - own[0])
    two = labels != 1
    alone = nw.OnlineGLM("binomial").fit(X[two], labels[two] == 2).summary()
    assert_allclose(found.textbook.lower[3:], alone.textbook.lower, rtol=1e-6)
    assert "each class against 0, multinomial model" in repr(found)


def invoke(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder of `noisewise fit`, with a category, a date and a code."""
    rng, folder = RNG(5), tmp_path_factory.mktemp("fitted")
    size, city = rng.uniform(30, 90, 60).round(1), rng.choice(["Roma", "Bari", "Pisa"], 60)
    day = pd.date_range("2024-01-01", periods=60).astype("str")
    code, noise = rng.integers(3, size=60), rng.normal(size=60)
    price = (3 * size + 50 * (city == "Roma") + noise).round(2)
    columns = {"size": size, "city": city, "day": day, "code": code, "price": price}
    table, file = pd.DataFrame(columns), folder / "houses.csv"
    table.to_csv(file, index=False)
    invoke("fit", file, "--target", "price", "--categorical", "city,code", "--out", folder / "fit")
    return folder, table


def test_a_model_of_a_file_predicts_a_data_frame(fitted):
    folder, table = fitted
    invoke("predict", folder / "fit", folder / "houses.csv", "--out", folder / "out.csv")
    found = predict(folder / "fit", table)
    assert_allclose(found, pd.read_csv(folder / "out.csv"), rtol=1e-6)
    dated = table.assign(day=pd.to_datetime(table["day"]), code=table["code"].astype(float))
    later = predict(folder / "fit", dated[::-1], 0.1, "observation")
    assert list(later.index) == list(table.index[::-1])
    assert_allclose(later["prediction"][::-1], found["prediction"])
    gone = predict(folder / "fit", table.assign(city="Napoli", size=np.nan))
    assert gone.isna().all(axis=None)
    assert "noisewise.tabular import predict" in (folder / "fit" / "index.html").read_text()


def test_a_data_frame_that_does_not_fit_is_refused(fitted):
    folder, table = fitted
    with pytest.raises(ValueError, match="frame has no column 'city'"):
        predict(folder / "fit", table.drop(columns="city"))
    with pytest.raises(ValueError, match="column 'size' holds text"):
        predict(folder / "fit", table.assign(size="large"))
    with pytest.raises(ValueError, match="no rows"):
        predict(folder / "fit", table[:0])


def test_predictions_outside_their_intervals_are_counted(fitted):
    folder, table = fitted
    table.assign(size=1e6).to_csv(folder / "far.csv", index=False)
    said = invoke("predict", folder / "fit", folder / "far.csv", "--out", folder / "out.csv")
    assert "60 of the predictions lie outside their intervals" in said
    model = nw.OnlineGLM().fit(X, Y)
    assert "1 of the predictions lies outside" in model.predict_interval([[1e6, 0.0]]).note


def test_values_that_cant_be_relied_on_are_marked(tmp_path):
    log = {**LOG, "action": ["a"] * 35 + ["b"] * 5}  # 20 successes, of which "b" has 2
    found = nw.off_policy_value(log, greedy=True)
    marks = {(e.policy, e.estimator): e.reliable for e in found.estimates}
    assert not marks["b", "dr"]
    assert not marks["b", "ips"]
    assert marks["b", "anytime"]
    assert marks["played", "mean"]
    text = repr(found)
    assert re.search(r"^b +dr .* unreliable$", text, re.MULTILINE)
    assert "greedy: takes the action with the largest predicted reward" in text
    assert "no column 'probabilities'" in text
    whole = nw.off_policy_value({**log, "probabilities": [[0.5, 0.5]] * 40}, greedy=True)
    assert "no column 'probabilities'" not in repr(whole)
    pd.DataFrame(log).to_csv(tmp_path / "log.csv", index=False)
    assert "unreliable" in invoke("evaluate", tmp_path / "log.csv", "--out", tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert "unreliable" in page
    more = {each: [None] * 40 for each in ("trials", "sigma")}
    more |= {each: ["x"] * 40 for each in ("event_id", "at", "group", "slot")}
    pd.DataFrame({**log, **more}).to_csv(tmp_path / "exported.csv", index=False)
    assert "played" in invoke("evaluate", tmp_path / "exported.csv", "--out", tmp_path)
    assert (
        "largest reliable estimate" in page or "No approximate interval of another policy" in page
    )


def test_what_had_probability_zero_is_said_with_the_remedy():
    agent = nw.Agent.for_binary_rewards(arms=nw.Arms(["a", "b"], None), randomise=0.5)
    rng = RNG(0)
    for t in range(300):
        action = agent.choose(None, key=t)
        agent.learn(t, float(rng.random() < (0.9 if action == "a" else 0.1)))
    log = agent.log()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert not nw.off_policy_value(log, "b").of("b", "dr").reliable
    assert re.search("probability 0 in the log.*among='all'", str(said[0].message))
    del log["probabilities"]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = nw.off_policy_value(log, "b")
    assert said
    assert not found.of("b", "dr").reliable
    assert not found.checked


def test_weights_that_fall_short_are_suspected_without_the_probabilities_of_all():
    """Of 400 fair draws 160 are of "a": weights average 0.8, 4.1 standard errors below 1."""
    log = {"action": ["a"] * 160 + ["b"] * 240, "reward": [1.0, 0.0] * 200}
    log["probability"] = [0.5] * 400
    with pytest.warns(UserWarning, match="about 20 % of its decisions may have had probability 0"):
        nw.off_policy_value(log, "a")
    known = {**log, "probabilities": [[0.5, 0.5]] * 400}
    assert nw.off_policy_value(known, "a").of("a", "dr").reliable


def test_contributions_name_what_they_are_relative_to():
    agent = nw.Agent.for_binary_rewards(arms=nw.Arms(["a", "b"], context=["age"]))
    for t, age in enumerate((57.0, 30.0, 40.0)):
        agent.choose({"age": age}, key=t)
        agent.learn(t, float(age > 35))
    why = agent.explain({"age": 30.0})
    assert why.origin == pytest.approx({"age": 127 / 3})
    assert "relative to the average one (age 42.33)" in repr(why)
    same = agent.explain(why.origin)
    assert all(name != "a:age" for name, _ in same[0].parts)  # no difference, no contribution


def test_promises_that_exclude_each_other_are_refused():
    x = np.arange(12.0)[:, None]
    model = nw.OnlineGLM().fit(x, x[:, 0])
    with pytest.raises(ValueError, match="simultaneous is True and anytime False"):
        model.predict_interval(x, anytime=False, simultaneous=True)
    with pytest.raises(ValueError, match="among is 'all', but no decision is drawn"):
        nw.Agent.for_binary_rewards(dim=2, among="all")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="nofit is not there; pass a folder"):
        predict(tmp_path / "nofit", pd.DataFrame({"x": [1.0]}))
