"""Odd files and names: each is read rightly, or refused in one sentence; nothing in them runs."""

import csv
import json
import os
import re
from unicodedata import bidirectional, category
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import noisewise as nw
from noisewise.cli import main
from noisewise.support.printing import CONTROLS, DIRECTIONS
from noisewise.tabular.survey import Column

N = 60
X = np.random.default_rng(0).normal(size=N)
Y = 2 * X + np.random.default_rng(1).normal(size=N)
NASTY = "a\x1b[31m\x00\u202egnp\r$x$\uffff"  # colours, a null, a change of direction


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def said(*words):
    return CliRunner().invoke(main, list(map(str, words)))


def refused(words, *command):
    done = said(*command)
    assert done.exit_code == 2, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    found = done.output.partition("Error: ")[2]
    assert found == f"{words}\n"


def written(path="f.csv", **columns):
    pd.DataFrame(columns).to_csv(path, index=False)


def test_integers_beyond_64_bits_are_numbers():
    """They were '0 values are no numbers'."""
    scale = 10**20
    written(x=[int(each * 1000) for each in X], y=Y)
    small = said("fit", "f.csv", "--target", "y", "--out", "small")
    written(x=[int(each * 1000) * scale for each in X], y=Y)
    large = said("fit", "f.csv", "--target", "y", "--out", "large")
    assert (small.exit_code, large.exit_code) == (0, 0), large.output
    one, two = (nw.load(f"{name}/model.npz").coef_ for name in ("small", "large"))
    np.testing.assert_allclose(one, two * scale, rtol=1e-9)
    done = said("predict", "large", "f.csv", "--out", "p.csv")
    assert done.exit_code == 0, done.output
    assert not pd.read_csv("p.csv").isna().any(axis=None)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("1" + 400 * "0", "column 'x': 1 value is infinite, or beyond 1.8e308 (first in row 4)"),
        ("1" + 30 * "0", "column 'x' goes to 1e+30, too large to compute with; rescale it"),
    ],
)
def test_integers_too_large_to_compute_with(cell, words):
    """The first ended in an OverflowError."""
    written(x=[cell if i == 3 else str(i) for i in range(N)], y=Y)
    rows = "\nRows are counted from 1, without the line of column names." * ("row" in words)
    refused(f"f.csv can't be used as it is:\n  {words}{rows}", "fit", "f.csv", "--target", "y")
    if "row" in words:
        written(x=X, y=[cell if i == 3 else str(i) for i in range(N)])
        words = words.replace("'x'", "'y'")
        refused(f"f.csv can't be used as it is:\n  {words}{rows}", "fit", "f.csv", "--target", "y")


def test_text_that_is_all_numbers_is_called_that():
    pytest.importorskip("pyarrow")
    pd.DataFrame({"x": [str(i) for i in range(N)], "y": Y}).to_parquet("f.parquet")
    refused(
        "f.parquet can't be used as it is:\n  column 'x' holds numbers written as text ('0' in row "
        "1); save them as numbers, add --categorical 'x', or leave it out (--features)\n"
        "Rows are counted from 1, without the line of column names.",
        "fit", "f.parquet", "--target", "y",
    )  # fmt: skip
    column = Column("x")
    column.look(pd.Series(["1e5", "-.5", " 7 ", "nan5", "1_000", "9" * 500], dtype=object))
    assert (column.wrong, column.example) == (2, "nan5")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("name", ["f.csv", "f.parquet", "/dev/zero", "/dev/null"])
def test_pipes_and_devices_are_refused_and_not_waited_for(name):
    """A pipe nobody writes to was waited for."""
    if not name.startswith("/dev"):
        os.mkfifo(name)
    words = f"{name} is a pipe or device; save what it gives to a file, and pass that"
    refused(words, "fit", name, "--target", "y")
    refused(words, "evaluate", name)
    written("good.csv", x=X, y=Y)
    assert said("fit", "good.csv", "--target", "y").exit_code == 0
    refused(words, "predict", "good-fit", name)
    if name.endswith("parquet"):
        with pytest.raises(ValueError, match=re.escape(words)):
            nw.fit_partitions(nw.GLM("identity"), [name], target="y")


def test_a_level_that_stands_twice_in_the_columns_of_a_model():
    """It ended in pandas' InvalidIndexError."""
    written(x=X, city=["Roma", "Bari", "Pisa"] * 20, y=Y)
    assert said("fit", "f.csv", "--target", "y", "--categorical", "city").exit_code == 0
    with open("f-fit/columns.json", encoding="utf-8") as file:
        held = json.load(file)
    held["features"][1]["levels"][2] = held["features"][1]["levels"][1]
    with open("f-fit/columns.json", "w", encoding="utf-8") as file:
        json.dump(held, file)
    refused(
        "f-fit/columns.json was not written by noisewise fit, or is damaged (column 'city' has a "
        "level twice)",
        "predict", "f-fit", "f.csv",
    )  # fmt: skip


RUN = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "=\n1",
    "=1:9",
    "\t7",
]
RUN += ["\uff1d1+1", "\uff0b1+A1", "\uff0dA1", "\uff20SUM(A1)"]  # of double width
KEPT = ["-5", "+49 30 123", "-1.5e-3", "-", "=", "@", "1-2", "a=b", "", "-12,5", "-3 %", "a\r=1"]


def test_kept_words_that_a_spreadsheet_would_run_are_quoted():
    """They were written as they are."""
    words = [*RUN, *KEPT, *["word"] * (N - len(RUN) - len(KEPT))]
    whole = {"x": X, "=name": words, "low": -np.arange(N), "y": Y}
    pd.DataFrame(whole).to_csv("f.csv", index=False, quoting=csv.QUOTE_ALL)
    assert said("fit", "f.csv", "--target", "y", "--features", "x").exit_code == 0
    keep = "predict", "f-fit", "f.csv", "--keep", "=name,low,x,low", "--out", "p.csv"
    done = said(*keep)
    assert done.exit_code == 0, done.output
    assert done.stderr == (
        f"note: {len(RUN)} kept cells begin like a formula of a spreadsheet: written behind an "
        "apostrophe; --formulas keeps such cells as they are\n"
    )
    found = pd.read_csv("p.csv", keep_default_na=False, dtype="str")
    assert list(found.columns[:3]) == ["'=name", "low", "x"]
    read_back = pd.read_csv("f.csv", keep_default_na=False, dtype="str")["=name"].tolist()
    expected = [f"'{each}" if i < len(RUN) else each for i, each in enumerate(read_back)]
    assert found["'=name"].tolist() == expected
    assert found["low"].tolist() == [str(-i) for i in range(N)]
    np.testing.assert_array_equal(found["x"].astype(float), pd.read_csv("f.csv")["x"])
    assert said(*keep, "--formulas").exit_code == 0
    found = pd.read_csv("p.csv", keep_default_na=False, dtype="str")
    assert found["=name"].tolist() == read_back


@pytest.mark.parametrize("cell", ["a;=1+1;b", "a\t=1+1\tb"])
@pytest.mark.parametrize("head", [False, True])
def test_kept_words_are_one_cell_wherever_cells_end(cell, head):
    """Spreadsheets of many countries end cells at semicolons: what follows would be run."""
    name = cell if head else "word"
    written(**{"x": X, name: ["b"] * N if head else [cell] * N, "y": Y})
    assert said("fit", "f.csv", "--target", "y", "--features", "x").exit_code == 0
    done = said("predict", "f-fit", "f.csv", "--keep", name, "--out", "p.csv")
    assert done.exit_code == 0, done.output
    with open("p.csv", encoding="utf-8") as file:
        lines = file.read().splitlines()
    for separator in ",;\t":
        cells = [each for row in csv.reader(lines, delimiter=separator) for each in row]
        assert not any(each.startswith("=") for each in cells)


@pytest.mark.parametrize("first", [2**53, 10**18, 10**20])
def test_actions_of_many_digits_are_told_apart(first):
    """The integers differ, the floats next to them do not."""
    log = {"action": [str(first), str(first + 1)] * 30, "reward": [0, 1] * 30, "probability": 0.5}
    written("log.csv", **log)
    done = said("evaluate", "log.csv", "--policy", first + 1)
    assert done.exit_code == 0, done.output
    found = re.findall(rf"^({first}|{first + 1}) +snips +([01]) ", done.output, re.MULTILINE)
    assert sorted(found) == [(str(first), "0"), (str(first + 1), "1")]
    for dtype in (object, *([] if first > 2**63 else [np.int64])):
        whole = np.array([first, first + 1] * 30, dtype)
        value = nw.off_policy_value({**log, "action": whole, "probability": np.full(60, 0.5)})
        assert {str(first), str(first + 1)} <= {each.policy for each in value.estimates}


def harmless(text, what):
    lines = text.replace("\n", "")
    bad = {
        c
        for c in lines
        if category(c) in CONTROLS or bidirectional(c) in DIRECTIONS or c == "\uffff"
    }
    assert not bad, (what, bad)


def test_control_characters_stay_out_of_terminals_and_pages():
    pytest.importorskip("pyarrow")
    words = [NASTY if i % 2 else "b" for i in range(N)]
    frame = pd.DataFrame({NASTY: X, f"{NASTY}2": X + 0.1, "c": words, "d\u202e": Y, "y": Y})
    frame.loc[3, f"{NASTY}2"] = np.nan
    frame.to_parquet("f.parquet")
    options = "--target", "d\u202e", "--categorical", "c", "--drop-missing"
    done = said("fit", "f.parquet", *options, "--features", f"{NASTY},c,{NASTY}2")
    assert done.exit_code == 0, done.output
    harmless(done.output, "fit")
    with open("f-fit/index.html", encoding="utf-8") as file:
        harmless(file.read(), "page")
    frame.loc[5, "c"] = "new\x1b\u202e"
    frame.to_parquet("new.parquet")
    done = said("predict", "f-fit", "new.parquet", "--out", "p.csv")
    assert done.exit_code == 0, done.output
    harmless(done.output, "predict")
    for command in (
        ("fit", "f.parquet", "--target", "no\x1b\u202e"),
        ("fit", "no\x1b\u202e.csv", "--target", "y"),
        ("fit", "f.parquet", "--target", "y"),
        ("evaluate", "f.parquet", "--action", "c", "--reward", "no\x1b\u202e"),
        ("evaluate", "f.parquet", "--action", "c", "--reward", "y", "--probability", "d\u202e"),
    ):
        done = said(*command)
        assert done.exit_code == 2, done.output
        harmless(done.output, command)


def test_control_characters_of_actions_stay_out_of_tables_and_pictures():
    """The picture of such an action was no XML, and its name coloured the terminal."""
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(2)
    taken = [NASTY if each else "b" for each in rng.random(N) < 0.1]
    log = {"z\x1b": X, "action": taken, "reward": 50 * Y, "probability": 0.5}
    pd.DataFrame(log).to_parquet("log.parquet")
    done = said("evaluate", "log.parquet", "--policy", NASTY, "--out", "e\x1b")
    assert done.exit_code == 0, done.output
    harmless(done.output, "evaluate")
    with open("e\x1b/index.html", encoding="utf-8") as file:
        harmless(file.read(), "page")
    found = nw.off_policy_value(pd.DataFrame(log))
    harmless(repr(found) + found._repr_html_(), "table")


def test_control_characters_of_columns_stay_out_of_summaries_and_plots():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("svg")
    frame = pd.DataFrame({NASTY: X, f"{NASTY}2": X + 1e-9 * Y})
    model = nw.OnlineGLM().fit(frame, Y)
    classes = np.where(Y > 0, NASTY, "b")
    for each in (model, nw.OnlineGLMClassifier().fit(frame, classes)):
        summary = each.summary()
        harmless(repr(summary) + summary._repr_html_(), "summary")
    model.plot().figure.savefig("plot.svg")
    ElementTree.parse("plot.svg")  # raises where it is no XML


SHARED = "the number of trials as --weight, or events and trials as --events and --trials."


def test_shares_without_their_trials_are_asked_about():
    """Nothing was said of them."""
    shares = np.round(1 / (1 + np.exp(-Y)), 2)
    written(x=X, y=shares, n=np.full(N, 20))
    start = "fit", "f.csv", "--target", "y", "--features", "x"
    plain = (
        "note: 'y' lies between 0 and 1: if it is a share, add --family binomial, and pass "
        f"{SHARED}"
    )
    assert plain in said(*start).output
    taken = f"note: 'y' holds shares, each taken as one trial: if there were more, pass {SHARED}"
    assert taken in said(*start, "--family", "binomial").output
    for options in (("--family", "binomial", "--weight", "n"), ("--weight", "n")):
        done = said(*start, *options)
        assert done.exit_code == 0
        assert "--trials." not in done.output
    written(x=X, y=1.0 * (Y > 0))
    done = said("fit", "f.csv", "--target", "y", "--family", "binomial")
    assert "one trial" not in done.output


def log_of(count=N, **columns):
    rng = np.random.default_rng(3)
    log = {"action": rng.choice(["a", "b"], count), "reward": rng.normal(size=count)}
    return log | {"probability": np.full(count, 0.5)} | columns


PYTHON = re.compile(r"\w+\(\)|SubGaussian|reward_range|actions=|noise=|\btrials=|pass trials")


def test_rows_are_counted_alike_and_options_named():
    """`evaluate` counted rows from 0 and named arguments of Python."""
    rows = "Rows are counted from 1, without the line of column names."
    written("log.csv", **log_of(probability=[*[0.5] * 12, 2.0, *[0.5] * (N - 13)]))
    refused(
        "probability is 2 at row 13; pass the probability with which the action was taken, above 0 "
        f"and at most 1\n{rows}",
        "evaluate", "log.csv",
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"at row 12 \(counted from 0\)"):
        nw.off_policy_value(pd.read_csv("log.csv"))
    written("log.csv", **log_of(action=["a", None, *["b"] * (N - 2)]))
    done = said("evaluate", "log.csv")
    assert done.exit_code == 2
    assert "at row 2" in done.output
    assert rows in done.output
    written("log.csv", **log_of())
    refused(
        "--policy is 'c', no action of the log, which has ['a', 'b']",
        "evaluate", "log.csv", "--policy", "c",
    )  # fmt: skip
    done = said("evaluate", "log.csv", "--reward-range", "-1", "1")
    assert done.exit_code == 2
    assert "Error: --reward-range is -1.0 1.0, but rewards go from" in done.output
    done = said("evaluate", "log.csv")
    assert done.exit_code == 0
    assert "; add --reward-range if there is one" in done.output
    with open("log-evaluation/index.html", encoding="utf-8") as file:
        page = file.read()
    assert "add --reward-range" in page
    assert not PYTHON.search(done.output + page)


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson"])
@pytest.mark.parametrize("rows", [2, 3, 4, 16])
def test_notes_of_short_files_name_options(family, rows):
    """They said: pass SubGaussian(sigma), or Likelihood()."""
    rng = np.random.default_rng(rows)
    y = np.arange(rows) % 2 if family == "binomial" else rng.poisson(5, rows)
    written(x=rng.normal(size=rows), z=rng.normal(size=rows), y=y)
    done = said("fit", "f.csv", "--target", "y", "--family", family)
    assert done.exit_code == 0, done.output
    with open("f-fit/index.html", encoding="utf-8") as file:
        page = file.read()
    notes = [said("predict", "f-fit", "f.csv", "--kind", kind) for kind in ("mean", "observation")]
    text = done.output + page + "".join(each.stderr for each in notes)
    assert not re.search(r"SubGaussian|Likelihood\(|noise=|pass trials", text), text[:2000]
    pd.read_csv("f.csv")[:1].to_csv("one.csv", index=False)
    assert said("predict", "f-fit", "one.csv", "--out", "p").stdout == "predictions: p, 1 row\n"
