import html
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryFile

import pandas as pd
import pytest
from click.testing import CliRunner
from places import ROOT

from noisewise import __version__, report
from noisewise.cli import main
from noisewise.experiments import EXPERIMENTS, runner
from noisewise.support import provenance

SMALL = ["reproduce", "links", "--trials", "2", "--rounds", "20", "--jobs", "1"]


def invoke(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_version_info_and_list():
    assert invoke("--version").output.strip() == f"noisewise {__version__}"
    info = invoke("info").output
    assert "FTRL" in info
    assert "logistic" in info
    assert "links" in invoke("reproduce", "--list").output.split()


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    done = invoke(*SMALL, "--out", out)
    assert done.exit_code == 0, done.output
    return out


def summary(out):
    return json.loads((out / "links.json").read_text())


def test_reproduce_writes_what_it_promises(results):
    assert {"links.parquet", "links.svg", "links.json", "index.html"} <= set(os.listdir(results))
    table = pd.read_parquet(results / "links.parquet")
    assert {"link", "rounds", "trial", "estimate", "lower", "upper", "error", "gap"} <= set(table)
    assert table["trial"].nunique() == 2
    found = summary(results)
    assert found["seed"] == 0
    assert "--trials 2" in found["command"]
    assert all(isinstance(held, bool) for held in found["holds"].values())
    page = (results / "index.html").read_text()
    assert "://" not in page
    assert "<svg" in page
    assert all(claim in page for claim in found["holds"])
    assert list(found["measured"]) == list(found["holds"])


def test_the_table_does_not_depend_on_jobs_or_interruptions(results, tmp_path):
    digest = summary(results)["digest"]
    assert invoke(*SMALL[:-1], "2", "--out", tmp_path / "two").exit_code == 0
    assert summary(tmp_path / "two")["digest"] == digest
    parts = sorted((tmp_path / "two" / "parts").rglob("*.parquet"))
    stamps = {part: part.stat().st_mtime_ns for part in parts[1:]}
    parts[0].unlink()
    left = parts[0].parent / f".{parts[0].name}.{'0' * 16}.noisewise-part"
    left.write_bytes(b"half")
    assert invoke(*SMALL, "--out", tmp_path / "two").exit_code == 0
    assert summary(tmp_path / "two")["digest"] == digest
    assert {part: part.stat().st_mtime_ns for part in stamps} == stamps
    assert not left.exists()


def test_more_trials_reuse_what_is_there(results, tmp_path):
    out = tmp_path / "grow"
    words = [*SMALL[:3], "1", *SMALL[4:], "--out", out]
    assert invoke(*words).exit_code == 0
    first = pd.read_parquet(out / "links.parquet")
    old = {part: part.stat().st_mtime_ns for part in (out / "parts").rglob("*.parquet")}
    assert invoke(*SMALL, "--out", out).exit_code == 0
    assert summary(out)["digest"] == summary(results)["digest"]
    assert {part: part.stat().st_mtime_ns for part in old} == old
    again = pd.read_parquet(out / "links.parquet").query("trial == 0").reset_index(drop=True)
    pd.testing.assert_frame_equal(first, again)


def test_another_seed_gives_other_numbers(results, tmp_path):
    assert invoke(*SMALL, "--seed", 5, "--out", tmp_path).exit_code == 0
    assert summary(tmp_path)["digest"] != summary(results)["digest"]


KILLING = """
import os, signal
from pathlib import Path
from noisewise.cli import main
from noisewise.experiments import parts
keep, me = parts.keep, os.getpid()
def keep_one(*args):
    keep(*args)
    parts.keep = keep
    found = map(int, Path(f"/proc/{me}/task/{me}/children").read_text().split())
    workers = [pid for pid in found if "popen_loky" in Path(f"/proc/{pid}/cmdline").read_text()]
    print(*workers, flush=True)
    os.kill(%s, signal.SIGKILL)
parts.keep = keep_one
main()
"""


def killed(who, *words):
    """A run in which a process is killed once a part is kept; return code, workers, errors."""
    command = [sys.executable, "-c", KILLING % who, *map(str, words)]
    with TemporaryFile("w+") as out, TemporaryFile("w+") as errors:  # workers may outlive a pipe
        code = subprocess.run(command, stdout=out, stderr=errors).returncode
        out.seek(0)
        errors.seek(0)
        return code, [*map(int, out.readline().split())], errors.read()


def test_a_killed_run_continues(results, tmp_path):
    words = *SMALL, "--out", tmp_path
    assert killed("me", *words)[0] == -signal.SIGKILL
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    assert invoke(*words).exit_code == 0
    assert summary(tmp_path)["digest"] == summary(results)["digest"]


def test_a_killed_worker_is_replaced(results, tmp_path):
    code, workers, errors = killed("workers[0]", *SMALL[:-1], "2", "--out", tmp_path)
    assert code == 0, errors
    assert len(workers) == 2
    assert summary(tmp_path)["digest"] == summary(results)["digest"]


def test_workers_end_with_a_killed_run(tmp_path):
    words = "reproduce", "figure-3", "--trials", 1000, "--jobs", 2, "--out", tmp_path
    code, workers, _ = killed("me", *words)
    assert code == -signal.SIGKILL
    assert len(workers) == 2
    deadline = time.monotonic() + 300
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [pid for pid in workers if alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_bad_requests(tmp_path):
    (tmp_path / "file").write_text("")
    for words, sentence in (
        (["reproduce", "nonsense", "--out", tmp_path], "links"),
        (["reproduce", "--trials", "0"], "--trials"),
        (["reproduce", "--out", tmp_path / "file" / "x"], "can't be written"),
        (["reproduce", "links", "--regressor", "noisewise:Ridge"], "study regressors"),
        (["reproduce", "regressors", "--regressor", "noisewise:Rigde"], "has no 'Rigde'"),
        (["reproduce", "regressors", "--regressor", "noisewise:OFUL"], "start, predict and update"),
        (["check", "nonsense"], "MODULE:NAME"),
        (["check", "no_such_module:x"], "no_such_module"),
        (["check", "noisewise:nothing"], "nothing"),
        (["check", "noisewise:save"], "start, predict and update"),
    ):
        done = invoke(*words)
        assert done.exit_code == 2, (words, done.output)
        assert sentence in done.output


def test_damaged_parts_are_named_and_run_again(results, tmp_path):
    shutil.copytree(results, tmp_path, dirs_exist_ok=True)
    cut = sorted((tmp_path / "parts").rglob("*-0-1-*.parquet"))[:2]
    later = sorted((tmp_path / "parts").rglob("*-1-2-*.parquet"))[0]
    for part in (*cut, later):
        part.write_bytes(part.read_bytes()[:100])
    one = invoke(*SMALL[:3], "1", *SMALL[4:], "--out", tmp_path)
    assert one.exit_code == 0
    assert [part.name in one.output for part in (*cut, later)] == [True, True, False]
    assert later.stat().st_size == 100  # beyond the trials asked for
    done = invoke(*SMALL, "--out", tmp_path)
    assert done.exit_code == 0
    assert later.name in done.output
    assert done.output.count("run again") == 1
    assert summary(tmp_path)["digest"] == summary(results)["digest"]


def test_summary_and_page_name_what_it_was_run_on(results):
    found = summary(results)
    assert {"numpy", "scipy", "numba", "python", "noisewise"} == set(found["versions"])
    (machine,) = found["machines"]
    assert machine == provenance.machine()
    assert all(machine.values())
    page = html.unescape((results / "index.html").read_text())
    assert all(value in page for value in (*machine.values(), *found["versions"].values()))


def test_the_page_leaves_out_what_is_no_study(results, tmp_path):
    out = shutil.copytree(results, tmp_path / "foreign")
    (out / "broken.json").write_text("{")
    (out / "other.json").write_text('{"study": "mine"}')
    (out / "links.svg").unlink()
    left_out = []
    page = report.write(out, left_out.append)
    assert [name in " ".join(left_out) for name in ("broken.json", "other.json", "links.json")] == [
        True, True, False,
    ]  # fmt: skip
    assert "links.svg is not there" in page.read_text()


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    def full(self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runner.Run, "execute", full)
    done = invoke(*SMALL, "--out", tmp_path)
    assert done.exit_code == 2
    assert "No space left" in done.output


def test_one_trial_judges_no_standard_error(tmp_path):
    words = ["reproduce", "figure-3", "--trials", 1, "--rounds", 30, "--jobs", 1]
    done = invoke(*words, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert "nan" not in done.output
    assert "needs at least two trials" in done.output
    found = json.loads((tmp_path / "figure-3.json").read_text())
    assert set(found["holds"]) < set(found["measured"])
    assert found["constants"]["VARIANCES"] == [1, 4, 16]


def test_check_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "import numpy as np, noisewise as nw\n"
        "def slope(z): return np.cosh(z) ** -2.0\n"
        "def wrong(z): return 1.1 * np.cosh(z) ** -2.0\n"
        "good = nw.Link('mine', np.tanh, slope)\n"
        "bad = nw.Link('mine', np.tanh, wrong)\n"
    )
    done = invoke("check", "mine:good")
    assert done.exit_code == 0, done.output
    assert "0 failed" in done.output
    done = invoke("check", "mine:bad")
    assert done.exit_code == 1
    assert "FAIL" in done.output
    assert invoke("check", "noisewise:FTRL").exit_code == 0
    assert invoke("check", "noisewise:OFUL").exit_code == 0
    done = invoke("check", "noisewise:Minimax")
    assert done.exit_code == 0, done.output
    assert "weight two equals the row twice: not promised" in done.output
    assert "10 passed, 0 failed" in done.output


COLUMNS = {
    "figure-2": "labels rounds trial regret stochastic_regret clipped",
    "figure-3": "rounds dimension variance trial regret mean_regret",
    "bounds": "rounds dimension trial regret lower mean sharp repaired printed",
    "coverage": "link noise radius trial missed largest_ratio",
    "lower-bound": "prior dimension learner rounds trial regret lower",
    "regressors": "stream regressor rounds trial regret bound",
    "bandits": "world policy rounds trial regret",
    "unknown-variance": "world policy rounds trial regret missed near below",
    "real-data": "part player kind rounds trial error coverage width lost",
    "replay": "campaign level policy way trial matched clicks rate low high",
    "agents": "world player trial regret",
    "classification": "data player trial reward",
}


def test_every_study_runs_small(tmp_path):
    words = ["reproduce", *COLUMNS, "--trials", 2, "--rounds", 20, "--jobs", 1]
    done = invoke(*words, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    for name, columns in COLUMNS.items():
        table = pd.read_parquet(tmp_path / f"{name}.parquet")
        assert set(columns.split()) <= set(table), name
        assert table["trial"].nunique() == 2
    assert len(pd.read_parquet(tmp_path / "figure-3.parquet")) == 10 * 3 * 2
    assert set(EXPERIMENTS) >= {*COLUMNS, "links"}


EXAMPLE = ROOT / "examples" / "your_own_regressor.py"


def test_a_regressor_of_your_own_is_checked_and_takes_part_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "your_own_regressor", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    Path("your_own_regressor.py").write_text(EXAMPLE.read_text())
    Path("choosy.py").write_text(
        "import noisewise as nw\nSHORT = nw.GradientDescent(feature_bound=0.9)"
    )
    done = invoke("check", "your_own_regressor:Average")
    assert done.exit_code == 0, done.output
    words = ["reproduce", "regressors", "--trials", 2, "--rounds", 30, "--jobs", 1, "--out", "r"]
    own = [
        f"--regressor={t}"
        for t in ("your_own_regressor:Average", "choosy:SHORT", "noisewise:Ridge")
    ]
    done = invoke(*words, *own)
    assert done.exit_code == 0, done.output
    table = pd.read_parquet("r/regressors.parquet")
    played = table[table["regressor"] == "Average"]
    assert played["stream"].nunique() == 7
    assert played["regret"].notna().all()
    twin = table.pivot_table(
        index=["stream", "trial", "rounds"], columns="regressor", values="regret"
    )
    shared = twin.drop("logistic")
    pd.testing.assert_series_equal(shared["Ridge"], shared["noisewise:Ridge"], check_names=False)
    refused = table[table["regressor"] == "SHORT"]
    assert refused["refused"].str.contains("feature_bound").all()
    found = json.loads(Path("r/regressors.json").read_text())
    assert "--regressor your_own_regressor:Average --regressor choosy:SHORT" in found["command"]
    assert found["specs"][0]["own"][0]["spec"] == "Average(prior=1.0)"
    page = Path("r/index.html").read_text()
    assert ">Average</td>" in page
    assert "refused" in page


def test_another_version_of_your_regressor_is_played_anew(tmp_path, monkeypatch):
    from noisewise.experiments.runner import Run, user_algorithms

    monkeypatch.syspath_prepend(tmp_path)
    places = []
    for line in ("", "# changed"):
        (tmp_path / "mine_changing.py").write_text(EXAMPLE.read_text() + line)
        monkeypatch.delitem(sys.modules, "mine_changing", raising=False)
        own = user_algorithms("--regressor", ["mine_changing:Average"])
        places.append(Run("regressors", tmp_path, own=own).parts)
    assert len({*places, Run("regressors", tmp_path).parts}) == 3


def test_bound_prints_a_table_or_json():
    words = ["bound", "--link", "identity", "--dim", 5, "--rounds", 1000, "--sigma", 1]
    table = invoke(*words)
    assert table.exit_code == 0, table.output
    values = {line.split()[0]: float(line.split()[1]) for line in table.output.splitlines()}
    assert list(values) == ["lower", "mean", "sharp", "repaired", "printed"]
    assert values == pytest.approx(
        {"lower": 6.55, "mean": 13.66, "sharp": 18.4, "repaired": 103, "printed": 706}, rel=5e-3
    )
    found = json.loads(invoke(*words, "--noise-bound", 3, "--ridge", 6, "--json").output)
    assert found["ridge"] == 6
    assert set(found["bounds"]) == {"mean", "sharp"}
    assert len(invoke(*words, "--ridge", 4).output.splitlines()) == 5
    assert "with probability 0 or more\n" in invoke(*words, "--delta", 0.7).output
    for extra in (
        ["--link", "logit"],
        ["--sigma", 0],
        ["--sigma", 1e200],
        ["--delta", 2],
        ["--ridge", 0.1],
        ["--noise-bound", 0.5],
    ):
        done = invoke(*words, *extra)
        assert done.exit_code == 2, extra
