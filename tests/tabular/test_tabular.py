"""Models of files, from the shell: what is fitted, what is written, what is refused and how."""

import datetime as dt
import decimal
import gzip
import io
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import noisewise as nw
from noisewise.cli import main
from noisewise.tabular import reading


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def invoke(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def refused(words, *command):
    done = invoke(*command)
    assert done.exit_code == 2, done.output
    assert re.search(words, " ".join(done.output.split())), done.output
    return done.output


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(10, 3, n),
            "city": rng.choice(["Rom", "Oslo", "Bonn"], n, p=[0.5, 0.3, 0.2]),
            "new": rng.random(n) < 0.5,
            "day": pd.date_range("2024-01-01", periods=n).astype("str"),
        }
    )
    effect = frame["city"].map({"Rom": 0.0, "Oslo": 4.0, "Bonn": -4.0})
    frame["price"] = 2 * frame["size"] + effect + 3 * frame["new"] + rng.normal(size=n)
    return frame


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "houses.csv"
    table().to_csv(path, index=False)
    return path


def fitted(path, *options):
    out = path.parent / "out"
    done = invoke("fit", path, "--out", out, *options)
    assert done.exit_code == 0, done.output
    return out, done.output


def features(frame):
    return pd.DataFrame(
        {
            "size": frame["size"],
            "city=Oslo": 1.0 * (frame["city"] == "Oslo"),
            "city=Bonn": 1.0 * (frame["city"] == "Bonn"),
            "new": 1.0 * frame["new"],
            "day": (pd.to_datetime(frame["day"]) - pd.Timestamp("1970-01-01")).dt.days.astype(
                float
            ),
        }
    )


def test_the_model_is_that_of_the_library(csv, monkeypatch):
    monkeypatch.setattr(reading, "CHUNK", 64)
    out, words = fitted(csv, "--target", "price", "--categorical", "city")
    frame = table()
    ours = nw.OnlineGLM().fit(features(frame), frame["price"])
    model = nw.load(out / "model.npz")
    assert list(model.feature_names_in_) == list(features(frame))
    assert_allclose(model.predict(features(frame)), ours.predict(features(frame)), rtol=1e-8)
    for text in ("city=Oslo", "least squares", "running mean", "compared with 'Rom'"):
        assert text in words
    expected = nw.evaluate(nw.OnlineGLM(), features(frame), frame["price"], baseline="textbook")
    for name, loss in expected.losses.items():
        name = {"OnlineGLM": "noisewise"}.get(name, name)
        assert re.search(rf"^{name} +\S+ +{loss:.4g} ", words, re.MULTILINE), (name, loss)
    page = (out / "index.html").read_text("utf-8")
    HTMLParser().feed(page)
    assert page.count("<svg") == 4
    assert "://" not in page
    assert set(os.listdir(out)) == {"index.html", "model.npz", "columns.json"}


def test_predictions_are_those_of_the_model(csv, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "CHUNK", 64)
    out, _ = fitted(csv, "--target", "price", "--categorical", "city")
    more = table(150, seed=1).drop(columns="price")
    more.loc[3, "size"] = np.nan
    more.loc[100, "city"] = "Paris"
    more.to_csv(tmp_path / "more.csv", index=False)
    runner = CliRunner()
    done = runner.invoke(main, ["predict", str(out), str(tmp_path / "more.csv"), "--keep", "day"])
    assert done.exit_code == 0, done.output
    assert "column 'city': 'Paris' (row 101)" in done.stderr
    assert "2 rows" in done.stderr
    found = pd.read_csv(io.StringIO(done.stdout))
    assert list(found) == ["day", "prediction", "lower", "upper"]
    assert (found["day"] == more["day"]).all()
    empty = found["prediction"].isna()
    assert list(np.flatnonzero(empty)) == [3, 100]
    model, rows = nw.load(out / "model.npz"), features(more)[~empty]
    assert_allclose(found["prediction"][~empty], model.predict(rows), rtol=1e-7)
    assert_allclose(found["lower"][~empty], model.predict_interval(rows).lower, rtol=1e-6)
    wide = tmp_path / "wide.csv"
    assert invoke("predict", out / "model.npz", tmp_path / "more.csv", "--kind", "observation",
                  "--delta", "0.5", "--out", wide).exit_code == 0  # fmt: skip
    upper = model.predict_interval(rows, 0.5, kind="observation").upper
    assert_allclose(pd.read_csv(wide)["upper"][~empty], upper, rtol=1e-6)


@pytest.mark.parametrize("form", ["parquet", "csv.gz", "semicolon", "tab"])
def test_other_forms_of_a_file(csv, tmp_path, form):
    frame = table()
    options = ("--target", "price", "--categorical", "city")
    path = tmp_path / f"other.{form if '.' in form or form == 'parquet' else 'csv'}"
    if form == "parquet":
        frame["day"] = pd.to_datetime(frame["day"])
        frame.sample(frac=1, random_state=0).sort_index().to_parquet(path)
    elif form == "csv.gz":
        path.write_bytes(gzip.compress(csv.read_bytes()))
    else:
        frame.to_csv(path, index=form == "tab", sep={"semicolon": ";", "tab": "\t"}[form])
    out, words = fitted(path, *options)
    model = nw.load(out / "model.npz")
    ours = nw.OnlineGLM().fit(features(table()), frame["price"])
    assert_allclose(model.coef_, ours.coef_, rtol=1e-7)
    if form == "tab":
        assert "Left out: 'Unnamed: 0'" in words


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_shares_and_counts(tmp_path, family):
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    trials = rng.integers(1, 9, 300)
    if family == "binomial":
        y = rng.binomial(trials, 1 / (1 + np.exp(-x))) / trials
        weight = ("--weight", "n")
    else:
        y, weight = rng.poisson(np.exp(x)), ()
    frame = pd.DataFrame({"x": x, "y": y, "n": trials})
    (frame if weight else frame.drop(columns="n")).to_csv(tmp_path / "f.csv", index=False)
    out, words = fitted(tmp_path / "f.csv", "--target", "y", "--family", family, *weight)
    w = trials if weight else None
    ours = nw.OnlineGLM(family=family).fit(frame[["x"]], y, w)
    assert_allclose(nw.load(out / "model.npz").predict(frame[["x"]]), ours.predict(frame[["x"]]))
    low, high = map(float, re.search(r"^x .*\[(\S+), (\S+)\] +\[", words, re.MULTILINE).groups())
    assert low < 1 < high
    assert high - low < 1.5


def test_columns_in_the_way_are_named_all_at_once(tmp_path):
    frame = table()
    frame.loc[6, "size"] = np.nan
    frame["note"] = "x"
    frame["mixed"] = [*map(str, range(199)), "?"]
    frame["fixed"] = 7
    frame.to_csv(tmp_path / "f.csv", index=False)
    start = ("fit", tmp_path / "f.csv", "--target", "price", "--out", tmp_path / "out")
    words = refused("can't be used as it is", *start)
    assert "column 'city' holds text ('" in words
    assert "--categorical 'city'" in words
    assert "column 'size': 1 of 200 values is missing (first in row 7)" in words
    assert "--drop-missing" in words
    assert "column 'mixed': 1 value is no number ('?' in row 200)" in words
    assert not (tmp_path / "out").exists()
    done = invoke(*start, "--drop-missing", "--features", "size,city", "--features", "fixed",
                  "--categorical", "city")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "'fixed' is constant" in done.output
    assert "1 of 200 rows lacks a value" in done.output
    whole = frame.drop(index=6)
    ours = nw.OnlineGLM().fit(features(whole)[["size", "city=Oslo", "city=Bonn"]], whole["price"])
    assert_allclose(nw.load(tmp_path / "out" / "model.npz").coef_, ours.coef_, rtol=1e-7)


def _empty(frame):
    return frame.iloc[:0]


def _infinite(frame):
    return frame.assign(size=np.inf)


def _negative(frame):
    return frame.assign(w=-1.0)


@pytest.mark.parametrize(
    ("options", "words", "change"),
    [
        (["--target", "prize"], "did you mean 'price'", None),
        (["--target", "price", "--features", "Size"], "--features names the column 'Size'", None),
        (["--target", "price", "--weight", "w"], "--weight names", None),
        (["--target", "price", "--categorical", "town"], "'city'", None),
        (["--target", "price", "--features", "price,size"], "--target too", None),
        (["--target", "price", "--features", "size", "--categorical", "city"], "not among", None),
        (["--target", "price", "--family", "binomial"], "--family binomial takes 0 and 1", None),
        (["--target", "price", "--family", "normal"], "Invalid value for '--family'", None),
        (["--target", "city"], "'city' holds text", None),
        (["--target", "day"], "'day' holds dates; it must", None),
        (["--target", "price", "--features", "size"], "200 values are infinite", _infinite),
        (["--target", "price", "--weight", "w"], "falls below 0", _negative),
        (["--target", "price", "--features", "size"], "no rows", _empty),
        (["--target", "price", "--delta", "2"], "--delta", None),
    ],
)
def test_options_that_do_not_fit_the_file(csv, options, words, change):
    if change:
        change(table()).to_csv(csv, index=False)
    refused(words, "fit", csv, *options)


def test_a_folder_of_parquet_files_is_one_file(tmp_path, csv):
    (folder := tmp_path / "houses").mkdir()
    options = "--target", "price", "--categorical", "city"
    frame = table()
    for i, piece in enumerate([frame[:50], frame[50:120], frame[120:]]):
        piece.to_parquet(folder / f"{i}.parquet", index=False)
    out, _ = fitted(folder, *options)
    model = nw.load(out / "model.npz")
    fitted(csv, *options)
    assert_allclose(model.coef_, nw.load(out / "model.npz").coef_, rtol=1e-9)
    refused("is a folder", "predict", out, folder)
    last = folder / "2.parquet"
    for change, words in (
        (
            piece.assign(size=np.nan),
            r"80 of 200 values .* \(first in row 1 of 2.parquet\)",
        ),
        (piece.drop(columns="new"), r"2.parquet has other columns than 0.parquet: it lacks 'new'"),
        (piece.assign(old=1), r"2.parquet has other columns .* it also has 'old'"),
        (piece[:0], r"2.parquet holds no row"),
    ):
        change.to_parquet(last, index=False)
        refused(words, "fit", folder, *options)


def test_files_that_can_not_be_read(tmp_path):
    target = ("--target", "y")
    refused("holds no Parquet file", "fit", tmp_path, *target)
    refused("No such file", "fit", tmp_path / "none.csv", *target)
    refused("No such file", "fit", tmp_path / "none.parquet", *target)
    for name, content, words in (
        ("empty.csv", b"", "is empty"),
        ("latin.csv", "y,x\n1,\xe4\n".encode("latin1"), "not text in UTF-8"),
        ("bad.parquet", b"y,x\n1,2\n", "no Parquet file"),
        ("bad.csv.gz", b"y,x\n1,2\n", "can't be read"),
        ("ragged.csv", b"y,x\n1,2\n1,2,3,4\n", "line 3"),
        ("longer.csv", b"y,x\n1,2,3\n2,3,4\n", "2 column names but 3 values"),
        ("one.csv", b"y\n1\n2\n", "features are missing"),
        ("constant.csv", b"y,x\n1,2\n2,2\n", "every feature .* is constant"),
        ("short.csv", b"y,x\n1,2\n,3\n", "1 of 2 values is missing"),
    ):
        (tmp_path / name).write_bytes(content)
        refused(words, "fit", tmp_path / name, *target)
        assert not list(tmp_path.glob("*-fit"))
    refused("1 complete row;", "fit", tmp_path / "short.csv", *target, "--drop-missing")
    good = tmp_path / "good.csv"
    good.write_bytes(b"y,x\n1,2\n2,3\n3,5\n")
    (tmp_path / "file").touch()
    refused("can't be written", "fit", good, *target, "--out", tmp_path / "file")


def test_models_that_can_not_be_used(csv, tmp_path):
    out, _ = fitted(csv, "--target", "price", "--categorical", "city")
    refused("is not there", "predict", tmp_path, csv)
    more = table(5)
    more.drop(columns="size").to_csv(tmp_path / "less.csv", index=False)
    refused("'size', which .*less.csv does not have", "predict", out, tmp_path / "less.csv")
    more.assign(size="big").to_csv(tmp_path / "text.csv", index=False)
    refused(r"'size' holds text \('big' in row 1\)", "predict", out, tmp_path / "text.csv")
    refused("--keep names", "predict", out, csv, "--keep", "id")
    more.assign(lower=1).to_csv(tmp_path / "lower.csv", index=False)
    refused("--keep holds 'lower'", "predict", out, tmp_path / "lower.csv", "--keep", "lower")
    columns = json.loads((out / "columns.json").read_text())
    columns["model"] = "0"
    (out / "columns.json").write_text(json.dumps(columns))
    refused("different fits", "predict", out, csv)
    (out / "columns.json").write_text("[]")
    refused("damaged", "predict", out, csv)


def test_a_target_of_zeros_and_ones_is_noticed(tmp_path):
    frame = pd.DataFrame({"x": np.arange(30.0), "y": np.arange(30) % 2})
    frame.to_csv(tmp_path / "f.csv", index=False)
    _, words = fitted(tmp_path / "f.csv", "--target", "y")
    assert "--family binomial" in words


def test_a_target_in_words(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    won = rng.random(100) < 1 / (1 + np.exp(-x))
    frame = pd.DataFrame({"x": x, "result": np.where(won, "won", "lost")})
    frame.to_csv(tmp_path / "f.csv", index=False)
    start = ("fit", tmp_path / "f.csv", "--target", "result")
    refused("--success is for --family binomial", *start, "--success", "won")
    binomial = (*start, "--family", "binomial")
    refused("which value counts as 1: --success '(won|lost)'", *binomial)
    refused("holds '(won|lost)', '(won|lost)'", *binomial, "--success", "win")
    out, _ = fitted(tmp_path / "f.csv", *binomial[2:], "--success", "won")
    ours = nw.OnlineGLM(family="binomial").fit(frame[["x"]], 1.0 * won)
    assert_allclose(nw.load(out / "model.npz").coef_, ours.coef_)
    assert invoke("predict", out, tmp_path / "f.csv").exit_code == 0


def test_types_of_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    n = 60
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(n)]
    columns = {
        "cost": pa.array([decimal.Decimal("1.5") * (i * i % 7) for i in range(n)]),
        "day": pa.array(days),
        "whole": pa.array([None if i == 3 else i % 5 for i in range(n)], pa.int64()),
        "open": pa.array([None if i == 4 else i % 3 == 0 for i in range(n)]),
        "kind": pa.array(["ab"[i % 2] for i in range(n)]).dictionary_encode(),
        "y": pa.array(np.sin(np.arange(n))),
    }
    pq.write_table(pa.table(columns), tmp_path / "f.parquet")
    out, words = fitted(tmp_path / "f.parquet", "--target", "y", "--categorical", "kind",
                        "--drop-missing")  # fmt: skip
    assert "2 of 60 rows lack a value" in words
    i = np.array([i for i in range(n) if i not in (3, 4)])
    rows = np.column_stack([1.5 * (i * i % 7), 19723 + i, i % 5, i % 3 == 0, i % 2])
    frame = pd.DataFrame(rows, columns=["cost", "day", "whole", "open", "kind=b"])
    ours = nw.OnlineGLM().fit(frame, np.sin(i))
    assert_allclose(nw.load(out / "model.npz").coef_, ours.coef_, rtol=1e-6)


def test_words_of_a_file_do_nothing_on_its_page(tmp_path):
    evil = "<script>alert(1)</script>"
    frame = pd.DataFrame({evil: np.arange(30.0), "y": np.arange(30.0) % 7})
    frame.to_csv(tmp_path / "f.csv", index=False)
    out, _ = fitted(tmp_path / "f.csv", "--target", "y")
    assert "<script" not in (out / "index.html").read_text("utf-8")


def test_odd_names_and_a_constant_target(tmp_path):
    rng = np.random.default_rng(0)
    names = ["cost $", "$\\frac{$", "größe", "大小"]
    frame = pd.DataFrame(rng.normal(size=(40, 4)), columns=names).assign(y=1.0)
    frame.to_csv(tmp_path / "f.csv", index=False)
    _, words = fitted(tmp_path / "f.csv", "--target", "y")
    assert "大小" in words


def test_the_default_folder_is_named_after_the_file(csv):
    assert invoke("fit", "houses.csv", "--target", "price", "--features", "size").exit_code == 0
    assert (csv.parent / "houses-fit" / "index.html").exists()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    """A million rows against a tenth of it: 90 MB of CSV more, and 30 MB of memory at most."""
    rng = np.random.default_rng(0)
    peaks = {}
    for n in (100_000, 1_000_000):
        path = tmp_path / f"{n}.csv"
        with path.open("w") as file:
            file.write("a,b,c,d,y\n")
            for _ in range(n // 100_000):
                block = rng.normal(size=(100_000, 5))
                block[:, 4] += block[:, 0]
                np.savetxt(file, block, "%.15g", ",")
        code = (
            "import resource, sys\nfrom noisewise.cli import main\n"
            "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code\n"
            "print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        words = ["fit", str(path), "--target", "y", "--out", str(tmp_path / "out")]
        done = subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True)
        peaks[n] = int(done.stdout.split()[-1])
    assert peaks[1_000_000] < peaks[100_000] + 30_000
