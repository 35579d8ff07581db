"""Labelled data as bandits in the benchmarks: the rule, the players and what is said of them."""

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from places import ROOT

from noisewise.experiments.ingredients.fixed_settings import SETTINGS
from noisewise.experiments.ingredients.labelled_data import Labelled


@pytest.fixture
def bandits(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return import_module("benchmarks.real_bandits")


def labelled(n, classes, seed=0):
    """Return a frame of two numbers, a sign and a class that one of the numbers decides."""
    rng = np.random.default_rng(seed)
    x = rng.normal(50, 10, (n, 2))
    y = np.argsort(np.argsort(x[:, 0])) * classes // n
    sign, words = np.where(rng.random(n) < 0.5, "yes", "no"), [f"class {k}" for k in y]
    return pd.DataFrame({"a": x[:, 0], "sign": sign, "kind": words, "b": x[:, 1]}), y


def test_the_last_column_of_words_is_the_label(bandits):
    frame, y = labelled(2000, 4)
    seen = set()
    (task,) = bandits.of_frame("data", frame, seen)
    assert (task.name, task.x.shape, task.classes) == ("data:kind", (1500, 3), 4)
    order = np.random.default_rng(bandits.digest("data") % 2**32).permutation(2000)[:1500]
    assert np.array_equal(task.y, y[order])
    assert np.array_equal(task.x[:, 2], frame["b"].to_numpy()[order])
    assert not list(bandits.of_frame("the same again", frame, seen))
    assert not list(bandits.of_frame("two levels only", frame.drop(columns="kind"), set()))
    wide = frame.assign(**{f"more {i}": np.arange(2000.0) ** 0.1 + i for i in range(35)})
    assert not list(bandits.of_frame("more than 30 features", wide, set()))
    wide = labelled(2000, 10)[0].assign(**{f"more {i}": np.arange(2000.0) for i in range(12)})
    assert not list(bandits.of_frame("16 x 10 coefficients", wide, set()))


def test_agent_and_settings_learn_a_class_that_a_number_decides(bandits):
    frame, _ = labelled(600, 3)
    (task,) = bandits.of_frame("data", frame, set())
    rewards = bandits.play(task)
    assert rewards[:30].mean() < 0.8 < rewards[300:].mean()
    assert bandits.compare(task, only_ours=True)["noisewise"] == rewards.mean()


@pytest.mark.parametrize("name", ["LinUCB .3", "LinUCB 1"])
def test_a_ridge_for_each_arm_is_one_ridge_of_blocks(bandits, name):
    """The study `classification` has the same settings, written for arms of any kind."""
    frame, y = labelled(300, 3)
    data = Labelled(frame[["a", "b"]].to_numpy(), y)
    drawn = data.bandit(np.random.default_rng(1), 300)
    order = np.random.default_rng(1).permutation(300)
    x = (data.features - data.features.mean(axis=0)) / data.features.std(axis=0)
    ridge = import_module("benchmarks.peers.disjoint_ridge")
    found = ridge.choices(x[order], y[order], 3)
    expected = SETTINGS[name].choices(drawn, np.random.default_rng(0))
    assert np.array_equal(found[name], expected)


def test_vowpal_wabbit_learns_too(bandits):
    pytest.importorskip("vowpalwabbit")
    (task,) = bandits.of_frame("data", labelled(1000, 3)[0], set())
    row = bandits.compare(task)
    assert row.keys() >= {*bandits.SETTINGS}
    assert min(row[name] for name in bandits.SETTINGS) > 0.4


def rows_by_hand(bandits):
    """Return three tasks: ahead, near and behind the last two settings."""
    size = {"rows": 500, "dim": 2, "classes": 3}
    low = dict.fromkeys(bandits.SETTINGS, 0.25)
    rewards = [(0.75, 0.5, 0.5), (0.5, 0.25, 0.505), (0.25, 0.75, 0.5)]
    names = bandits.OURS, *bandits.SETTINGS[-2:]
    rows = [
        {"task": f"t{i}", **size, **low, **dict(zip(names, each, strict=True))}
        for i, each in enumerate(rewards)
    ]
    rows[2]["rows"] = 400
    return rows


def test_standings_are_those_of_their_definition(bandits):
    rows = rows_by_hand(bandits)
    found = bandits.standing(rows)
    assert (found.tasks, found.mean, found.worst) == (3, 0.5, -0.5)
    assert found.near == pytest.approx(2 / 3)
    assert found.worst_long == pytest.approx(-0.005)
    last = bandits.SETTINGS[-1]
    assert bandits.best_setting(rows) == last
    assert [bandits.lead(row, last) for row in rows] == pytest.approx([-0.25, 0.005, -0.25])
    more, error = bandits.gain(rows, last)
    leads = np.array([0.25, -0.005, -0.25])
    assert (more, error) == pytest.approx((leads.mean(), leads.std(ddof=1) / np.sqrt(3)))
    assert [row["task"] for row in bandits.worst(rows)] == ["t2", "t1", "t0"]
    assert bandits.groups(rows).keys() == {"all", "1-20 coefficients"}
    assert any("t2" in line for line in bandits.table(rows))


def test_ours_alone_can_play_again(bandits, monkeypatch, tmp_path):
    """What peers earned stays, as does the run of the other tasks."""
    real = import_module("benchmarks.real_data")
    rows, file = rows_by_hand(bandits), tmp_path / "run.json"
    monkeypatch.setattr(real, "PACKAGES", ("numpy",))
    monkeypatch.setattr(real, "ProcessPoolExecutor", lambda jobs, _: ThreadPoolExecutor(jobs))

    def play(row, only_ours):
        return {"task": row["task"], bandits.OURS: 1.0} if only_ours else row

    monkeypatch.setitem(real.KINDS, "bandits", (lambda half: rows, play, bandits.table))
    command = ["open", str(file), "--tasks", "bandits"]
    refused = CliRunner().invoke(real.main, [*command, "--only-ours"])
    assert refused.exit_code == 2
    assert "needs a FILE" in refused.output
    other = {"half": "held", "date": "today", "versions": {}, "tasks": []}
    real.write(file, {"predictions": other})
    for options in ([], ["--only-ours"]):
        done = CliRunner().invoke(real.main, [*command, *options], catch_exceptions=False)
        assert "the worst 10" in done.output
    found = real.read(file)
    assert found["predictions"] == other
    assert found["bandits"]["tasks"] == [row | {bandits.OURS: 1.0} for row in rows]
    assert found["bandits"]["peers"]["versions"].keys() == {"numpy"}
