"""Options of `noisewise fit`, compared with the same in Python; columns recognised; the order."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose
from scipy.special import expit

import noisewise as nw
from noisewise.cli import main
from noisewise.report import fit as page_of_fit
from noisewise.tabular import predict
from noisewise.tabular.choosing import Options
from noisewise.tabular.fitting import fit
from noisewise.tabular.order import RowOrder

RNG = np.random.default_rng(0)
N = 200
X = RNG.normal(size=(N, 2))
YEARS = np.exp(RNG.normal(size=N))
TRIALS = RNG.integers(0, 30, N)
SCORE = 0.6 * X[:, 0] - 0.3 * X[:, 1] + 0.5
FRAME = pd.DataFrame(X, columns=["a", "b"])
COUNTS = FRAME.assign(years=YEARS, claims=RNG.poisson(YEARS * np.exp(SCORE)))
SHARES = FRAME.assign(seen=TRIALS, clicked=RNG.binomial(TRIALS, expit(SCORE)))
NUMBERS = FRAME.assign(base=YEARS, y=YEARS + SCORE + RNG.normal(size=N))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def invoke(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


def fitted(frame, *options):
    frame.to_csv("f.csv", index=False)
    done = invoke("fit", "f.csv", "--out", "out", *options)
    return nw.load("out/model.npz"), done.output


def predicted(frame, *options):
    frame.to_csv("new.csv", index=False)
    done = invoke("predict", "out", "new.csv", "--out", "p.csv", *options)
    return pd.read_csv("p.csv"), done


def test_exposure_is_an_offset_of_logarithms():
    model, words = fitted(
        COUNTS, "--target", "claims", "--family", "poisson", "--exposure", "years"
    )
    ours = nw.OnlineGLM("poisson").fit(FRAME, COUNTS["claims"], offset=np.log(YEARS))
    assert_allclose(model.coef_, ours.coef_, rtol=1e-7)
    assert list(model.feature_names_in_) == ["a", "b"]
    found, _ = predicted(COUNTS)
    assert_allclose(found["prediction"], ours.predict(FRAME, np.log(YEARS)), rtol=1e-6)
    same = predict("out", COUNTS, kind="observation")
    label = ours.predict_interval(FRAME, kind="observation", offset=np.log(YEARS))
    assert_allclose(same["upper"], label.upper)
    per_year, done = predicted(FRAME)
    assert_allclose(per_year["prediction"], ours.predict(FRAME), rtol=1e-6)
    assert "has no column 'years': predictions are per unit of it" in done.stderr
    assert "predictions: p.csv, 200 rows" in done.stdout
    some, done = predicted(COUNTS.assign(years=COUNTS["years"].where(COUNTS.index > 2)))
    assert list(np.flatnonzero(some["prediction"].isna())) == [0, 1, 2]
    evaluated = nw.evaluate(nw.OnlineGLM("poisson"), FRAME, COUNTS["claims"] / YEARS, YEARS)
    assert evaluated.looks.labels  # weights of rates are exposures
    assert "new labels" in words


def test_an_offset_is_passed_on():
    model, _ = fitted(NUMBERS, "--target", "y", "--offset", "base")
    ours = nw.OnlineGLM().fit(FRAME, NUMBERS["y"], offset=YEARS)
    assert_allclose(model.coef_, ours.coef_, rtol=1e-7)
    found, _ = predicted(NUMBERS)
    assert_allclose(found["prediction"], ours.predict(FRAME, YEARS), rtol=1e-6)
    bare, done = predicted(FRAME)
    assert_allclose(bare["prediction"], ours.predict(FRAME), rtol=1e-6)
    assert "predictions are for an offset of 0" in done.stderr


def test_events_of_trials_are_shares():
    model, words = fitted(SHARES, "--events", "clicked", "--trials", "seen")
    some = SHARES["seen"] > 0
    rows, share = FRAME[some], (SHARES["clicked"] / SHARES["seen"])[some]
    ours = nw.OnlineGLM("binomial").fit(rows, share, SHARES["seen"][some])
    assert_allclose(model.coef_, ours.coef_, rtol=1e-7)
    assert f"{(~some).sum()} of 200 rows lack a value or have 0 trials" in words
    assert "new labels" in words
    given, _ = predicted(SHARES[some], "--kind", "observation")
    label = ours.predict_interval(rows, kind="observation", trials=SHARES["seen"][some])
    assert_allclose(given["lower"], label.lower, rtol=1e-6)
    assert_allclose(given["upper"], label.upper, rtol=1e-6)
    _, done = predicted(FRAME, "--kind", "observation")
    assert "has no column 'seen': intervals are for one trial" in done.stderr
    by_weight = SHARES[some].assign(share=share).drop(columns="clicked")
    again, _ = fitted(by_weight, "--target", "share", "--family", "binomial", "--weight", "seen")
    assert_allclose(again.coef_, ours.coef_, rtol=1e-7)


@pytest.mark.parametrize("noise", ["likelihood", "asymptotic"])
def test_noise_is_passed_on(noise):
    options = "--target", "claims", "--family", "poisson", "--features", "a,b", "--noise", noise
    model, words = fitted(COUNTS, *options)
    assert model.noise == noise
    assert ("these intervals assume they do not" in words) == (noise == "likelihood")


def test_the_model_does_not_depend_on_order_or_shuffling():
    frame = NUMBERS.sort_values("y")
    models = []
    for table, options in (
        (frame, ()), (frame, ("--shuffle", "1")), (frame, ("--shuffle", "2")), (NUMBERS, ()),
    ):  # fmt: skip
        model, words = fitted(table, "--target", "y", *options)
        models.append(model.predict(FRAME.assign(base=YEARS)))
        assert ("sorted by the target" in words) == (table is frame and not options)
        assert ("shuffled with seed" in words) == bool(options)
    for other in models[1:]:
        assert_allclose(other, models[0], rtol=1e-8)


def test_shuffled_rows_are_evaluated_in_that_order():
    _, words = fitted(COUNTS, "--target", "claims", "--family", "poisson", "--exposure", "years",
                      "--shuffle", "3")  # fmt: skip
    at = np.random.default_rng(3).permutation(N)
    model = nw.OnlineGLM("poisson")
    y, o = COUNTS["claims"].to_numpy()[at], np.log(YEARS[at])
    means = np.concatenate([
        model.update(FRAME.iloc[at[[i]]], y[[i]].astype(float), offset=o[[i]]) for i in range(N)
    ])  # fmt: skip
    deviance = 2 * (np.where(y > 0, y * np.log(np.maximum(y, 1) / means), 0) - y + means)
    assert re.search(rf"^noisewise +{deviance[1:].mean():.4g} ", words, re.MULTILINE)


def test_how_likely_sorted_labels_are():
    """By counting all orders; and splitting labels into blocks changes nothing."""
    for labels in ([1, 2, 3, 4], [0, 0, 0, 1, 1], [5, 5, 3, 2, 2, 2], [0, 0, 0, 0, 0, 1]):
        y = np.array(labels, dtype=float)
        orders = {*itertools.permutations(labels)}
        sorted_ones = {tuple(sorted(labels)), tuple(sorted(labels, reverse=True))}
        for cuts in ([], [1], [2, 3]):
            order = RowOrder()
            for part in np.split(y, cuts):
                order.update(part)
            assert_allclose(math.exp(order.log_probability), len(sorted_ones) / len(orders))
    rng = np.random.default_rng(0)
    order = RowOrder()
    y = rng.normal(1e6, 1, 1000).cumsum()
    order.update(y[:300])
    order.update(y[300:])
    z = y - y.mean()
    assert_allclose(order.correlation, z[1:] @ z[:-1] / (z @ z), atol=0.02)


@pytest.mark.parametrize(
    ("column", "left_out"),
    [
        (("id", range(1, 41)), True),
        (("id", range(40)), True),
        (("customer_id", RNG.permutation(40) + 1000), True),
        (("userId", RNG.permutation(40) + 1000), True),
        (("name", [f"person {i}" for i in range(40)]), True),
        (("Nr", range(10, 50)), True),
        (("obs", range(1, 41)), True),
        (("case", range(1, 41)), True),
        (("first", range(1, 41)), True),  # the file's first column counts the rows
        (("year", range(1, 41)), False),
        (("year", range(1961, 2001)), False),
        (("income", RNG.permutation(40) * 100), False),
        (("weight_id", RNG.normal(size=40)), False),
        (("id", [*range(1, 40), 1]), False),
        (("number", RNG.integers(0, 9, 40)), False),
    ],
)
def test_columns_that_identify_rows(column, left_out):
    name, values = column
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({name: values, "x": rng.normal(size=40), "y": rng.normal(size=40)})
    frame.to_csv("f.csv", index=False)
    found = fit(Path("f.csv"), Options(target="y"))
    assert any(f"Left out: '{name}'" in note for note in found.column_notes) == left_out
    assert found.encoding.names == (("x",) if left_out else (name, "x"))
    if name != "name":
        named = fit(Path("f.csv"), Options(target="y", features=[name, "x"]))
        assert named.encoding.names == (name, "x")


def test_the_only_number_is_no_identifier():
    frame = pd.DataFrame({"x": range(1, 31), "y": RNG.normal(size=30)})
    assert list(fitted(frame, "--target", "y")[0].feature_names_in_) == ["x"]


def test_amounts_and_broken_dates_are_no_identifiers():
    for values in (
        [f"{i}.5 kg" for i in range(40)],
        [f"€ {i}" for i in range(40)],
        [*(f"2024-01-{i:02d}" for i in range(1, 32)), *"abcdefghi"],
    ):
        pd.DataFrame({"v": values, "x": range(40), "y": range(40)}).to_csv("g.csv", index=False)
        done = CliRunner().invoke(main, ["fit", "g.csv", "--target", "y"])
        assert done.exit_code == 2
        assert "column 'v' holds text" in done.output


def test_dates_with_dots_are_dates():
    days = pd.date_range("2023-12-20", periods=N)
    rows = FRAME.assign(y=SCORE)
    model, words = fitted(rows.assign(day=days.strftime("%d.%m.%Y")), "--target", "y")
    assert "'day' counts as days since 1970-01-01, read as day.month.year." in words
    iso, _ = fitted(rows.assign(day=days.strftime("%Y-%m-%d")), "--target", "y")
    assert_allclose(model.coef_, iso.coef_, rtol=1e-9)
    found, _ = predicted(FRAME.assign(day=days.strftime("%d.%m.%Y %H:%M")))
    assert_allclose(found["prediction"], predict("out", FRAME.assign(day=days))["prediction"], 1e-6)


def test_control_characters_are_spelt_out():
    evil = "x\x07\u202e\ny"
    levels = np.where(np.arange(N) % 3 == 0, "a\x1b[31m", "b")
    frame = FRAME.rename(columns={"a": evil}).assign(level=levels, y=SCORE)
    frame.to_parquet("f.parquet", index=False)
    done = invoke("fit", "f.parquet", "--out", "out", "--target", "y", "--categorical", "level")
    model, words = nw.load("out/model.npz"), done.output
    assert list(model.feature_names_in_) == ["x\\x07\\u202e\\ny", "b", "level=a\\x1b[31m"]
    page = Path("out/index.html").read_text("utf-8")
    for text in (words, page):
        assert not {"\x07", "\u202e", "\x1b"} & {*text}
    found = predict("out", frame)
    assert found["prediction"].notna().all()


def test_the_model_is_there_if_the_page_fails(monkeypatch):
    def fails(*_):
        raise RuntimeError("no page")

    monkeypatch.setattr(page_of_fit, "page", fails)
    NUMBERS.to_csv("f.csv", index=False)
    done = CliRunner().invoke(main, ["fit", "f.csv", "--out", "out", "--target", "y"])
    assert isinstance(done.exception, RuntimeError)
    assert predict("out", NUMBERS)["prediction"].notna().all()
