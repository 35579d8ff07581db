"""Studies and fits on a real Dask cluster: same numbers, whatever is killed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest
from places import ROOT, TESTS

import noisewise as nw
from noisewise.experiments import cluster as room

SOURCES = ROOT / "src"
COMMAND = [sys.executable, "-c", "from noisewise.cli import main; main()", "reproduce", "figure-3"]
SMALL = "--trials", "4", "--rounds", "60"
LONGER = "--trials", "60", "--rounds", "600"


@contextmanager
def a_cluster(sources=SOURCES):
    """Start a cluster with a noisewise of these sources; yield its process and where it is."""
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    process = subprocess.Popen(
        [sys.executable, TESTS / "a_cluster.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        for stream in (process.stdin, process.stdout):
            stream.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def start(out, *words, command=COMMAND):
    return subprocess.Popen(
        [*command, *words, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(run):
    out, errors = run.communicate(timeout=300)
    return run.returncode, out, errors


def digest(out):
    return json.loads((out / "figure-3.json").read_text())["digest"]


def wait_for_parts(out, number=1):
    deadline = time.monotonic() + 120
    while len(list(out.rglob("*.parquet"))) < number and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_study_and_a_fit_on_two_workers(tmp_path):
    """The user's own client serves both; the fit is the same to the last bit, as in one process."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, json, joblib, numpy as np, noisewise as nw\n"
        "from pathlib import Path\n"
        "from distributed import Client\n"
        "from noisewise.experiments.runner import Run\n"
        "def rows(i):\n"
        "    rng = np.random.default_rng(i)\n"
        "    x = rng.normal(size=(500, 3)) / 9\n"
        "    return x, (rng.random(500) < 0.5 + x[:, 0]) * 1.0\n"
        "parts = [lambda i=i: rows(i) for i in range(7)]\n"
        "glm = nw.GLM('logistic')\n"
        "one = nw.fit_partitions(glm, parts)\n"
        "with Client(sys.argv[1]), joblib.parallel_config(backend='dask'):\n"
        "    two = nw.fit_partitions(glm, parts)\n"
        "    assert nw.fit_partitions(glm, parts[:1]).count == 500\n"
        "    Run('figure-3', Path(sys.argv[2]), 4, 60).execute()\n"
        "Run('figure-3', Path(sys.argv[2]) / 'serial', 4, 60, jobs=1).execute()\n"
        "assert one.__getstate__()['array'].tobytes() == two.__getstate__()['array'].tobytes()\n"
    )
    with a_cluster() as (_, at):
        done = subprocess.run(
            [sys.executable, script, at["address"], tmp_path], capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d+/40 \[\d+:\d+<\d+:\d+, +[\d.]+(trial/s|s/trial), workers=2", done.stderr)
    assert digest(tmp_path) == digest(tmp_path / "serial")


def test_a_scheduler_that_is_not_there_is_one_sentence(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from noisewise.cli import main

    monkeypatch.setattr(room, "TIMEOUT", 0.2)
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        words = [*COMMAND[3:], *SMALL, "--scheduler", address, "--out", str(tmp_path)]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 2
        assert f"--scheduler {address} can't be reached" in done.output.replace("\n", " ")
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "pip install '.[cluster]'" in done.output


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    out = tmp_path_factory.mktemp("serial")
    assert finish(start(out, *LONGER, "--jobs", "1"))[0] == 0
    return digest(out)


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(serial, tmp_path):
    with a_cluster() as (_, at):
        run = start(tmp_path, *LONGER, "--scheduler", at["address"])
        wait_for_parts(tmp_path)
        os.kill(next(iter(at["workers"].values())), signal.SIGKILL)
        code, _, errors = finish(run)
    assert code == 0, errors
    assert digest(tmp_path) == serial


@pytest.mark.slow
def test_a_killed_driver_is_started_again(serial, tmp_path):
    with a_cluster() as (_, at):
        words = *LONGER, "--scheduler", at["address"]
        run = start(tmp_path, *words)
        wait_for_parts(tmp_path, 3)
        os.killpg(run.pid, signal.SIGKILL)
        finish(run)
        assert not (tmp_path / "figure-3.json").exists()
        kept = {*tmp_path.rglob("*.parquet")}
        cut = min(kept)
        cut.write_bytes(cut.read_bytes()[:100])
        code, _, errors = finish(start(tmp_path, *words))
    assert code == 0, errors
    assert f"{cut.name} is damaged" in errors
    assert errors.count("run again") == 1
    assert kept - {cut} < {*tmp_path.rglob("*.parquet")}
    assert digest(tmp_path) == serial


@pytest.mark.slow
def test_a_killed_scheduler_is_one_sentence_and_the_rest_is_run_later(serial, tmp_path):
    with a_cluster() as (process, at):
        run = start(tmp_path, *LONGER, "--scheduler", at["address"])
        wait_for_parts(tmp_path, 3)
        os.killpg(process.pid, signal.SIGKILL)
        code, _, errors = finish(run)
    assert code == 1
    assert "was lost; what was done is kept, run the same command again" in errors
    assert "Traceback" not in errors
    kept = {*tmp_path.rglob("*.parquet")}
    assert len(kept) >= 3
    assert finish(start(tmp_path, *LONGER, "--jobs", "1"))[0] == 0
    assert kept < {*tmp_path.rglob("*.parquet")}
    assert digest(tmp_path) == serial


AFTER_PARTS = """
import errno, os, signal
from noisewise.cli import main
from noisewise.experiments import parts
room, write = {parts}, parts.files.replace
def replace(path, fill):
    global room
    if not room:
        {then}
    room -= 1
    return write(path, fill)
parts.files.replace = replace
main()
"""
FULL = AFTER_PARTS.format(parts=3, then='raise OSError(errno.ENOSPC, "No space left on device")')
INTERRUPTED = AFTER_PARTS.format(parts=1, then="os.kill(os.getpid(), signal.SIGINT)")


@pytest.mark.slow
def test_a_full_disk_and_an_interrupt_are_one_sentence_each_and_lose_nothing(serial, tmp_path):
    out, said = tmp_path / "out", []
    with a_cluster() as (_, at):
        words = *LONGER, "--scheduler", at["address"]
        full = start(out, *words, command=[sys.executable, "-c", FULL, *COMMAND[3:]])
        said.append((*finish(full), 2, "No space left on device); what was done is kept"))
        first = {*out.rglob("*.parquet")}
        assert len(first) == 3
        run = start(out, *words, command=[sys.executable, "-c", INTERRUPTED, *COMMAND[3:]])
        said.append((*finish(run), 130, "interrupted; the same command continues"))
        second = {*out.rglob("*.parquet")}
        assert first < second
        assert not (out / "figure-3.json").exists()
        code, _, errors = finish(start(out, *words))
    for found, _, text, wanted, sentence in said:
        assert found == wanted, text
        assert sentence in " ".join(text.split())
        assert "Traceback" not in text
        assert "distributed" not in text
    assert code == 0, errors
    assert second < {*out.rglob("*.parquet")}
    assert digest(out) == serial


FIT = """
import sys
import numpy as np, noisewise as nw
from distributed import Client
with Client(sys.argv[1]):
    try:
        nw.fit_partitions(nw.GLM("logistic"), [lambda: (np.ones((1, 1)), [1.0])])
    except ValueError as error:
        print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("words", ["other sources of noisewise", "no noisewise like that"])
def test_a_worker_with_other_sources_is_refused_by_name(tmp_path, words):
    other = shutil.copytree(SOURCES, tmp_path / "src")
    with (other / "noisewise" / "turns.py").open("a") as file:
        file.write("# another\n")
    if words.startswith("no"):  # so old that it does not know what it is asked
        (other / "noisewise" / "support" / "worker_versions.py").unlink()
    with a_cluster(other) as (_, at):
        code, _, errors = finish(start(tmp_path / "out", *SMALL, "--scheduler", at["address"]))
        fit = subprocess.run(
            [sys.executable, "-c", FIT, at["address"]], capture_output=True, text=True
        )
    assert code == 2
    for said in (errors, fit.stdout):
        assert any(f"worker {name} has {words}" in said for name in at["workers"]), said
    assert not list((tmp_path / "out").rglob("*.parquet"))


@pytest.mark.slow
def test_a_fit_outlives_a_killed_worker(tmp_path):
    from distributed import Client

    rng, glm = np.random.default_rng(1), nw.GLM("logistic")
    x = rng.normal(size=(2000, 3)) / 9
    y = (rng.random(2000) < 0.5 + x[:, 0]) * 1.0

    def slowly(i):
        time.sleep(0.3)
        return x[i::10], y[i::10]

    parts = [lambda i=i: slowly(i) for i in range(10)]
    with a_cluster() as (_, at), Client(at["address"]):
        doomed = next(iter(at["workers"].values()))
        killer = subprocess.Popen(["sh", "-c", f"sleep 1.5; kill -9 {doomed}"])
        state = nw.fit_partitions(glm, parts)
        killer.wait()
    held = nw.fit_partitions(glm, [(x[i::10], y[i::10]) for i in range(10)])
    assert np.array_equal(state.theta, held.theta)
