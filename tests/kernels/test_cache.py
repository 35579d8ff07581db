"""Compiled code on disk: whatever happens to it costs a compilation and one warning."""

import ast
import os
import pickle
import shutil
import subprocess
import sys
import warnings
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from numba import float64

from noisewise.kernels.compiling import cache, compile_note
from noisewise.kernels.compiling.compile_options import COMPILED, entry

SIGNATURE = float64(float64)
PACKAGE = Path(cache.__file__).parents[2]

pytestmark = pytest.mark.skipif(not COMPILED, reason="nothing is compiled")


def half(x):
    return 0.5 * x


@pytest.fixture
def use(monkeypatch):
    """Return a function that says which folders hold the code, the process being a fresh one."""

    def folders(*given):
        monkeypatch.setattr(cache, "folders", lambda: [*given])
        monkeypatch.setattr(cache, "troubles", [])

    return folders


def made():
    """The kernel, whether it came from disk, and the warnings on the way."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        kernel = entry(SIGNATURE)(half).compile()
    assert kernel(3.0) == 1.5
    hits, misses = (sum(each.values()) for each in kernel.stats[1:])
    assert hits + misses == 1
    return hits == 1, [str(each.message) for each in seen]


def test_code_is_found_again(use, tmp_path):
    use(tmp_path / "new")
    assert made() == (False, [])
    assert made() == (True, [])
    assert len([*(tmp_path / "new").iterdir()]) == 1


def test_a_folder_that_can_not_be_written_gives_one_warning_or_its_place_to_the_next(use, tmp_path):
    (tmp_path / "file").write_text("")
    use(tmp_path / "file" / "below")
    found, words = made()
    assert not found
    assert len(words) == 1
    assert f"can't be kept in {tmp_path / 'file' / 'below'}" in words[0]
    assert "NUMBA_CACHE_DIR" in words[0]
    assert made() == (False, [])
    use(tmp_path / "file" / "below", tmp_path / "good")
    assert made() == (False, [])
    assert made() == (True, [])


def test_a_full_disk_gives_one_warning_and_leaves_nothing(use, tmp_path):
    """The system refuses to write more than 100 bytes of a file, halfway through an entry."""
    resource = pytest.importorskip("resource")
    use(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        found, words = made()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not found
    assert len(words) == 1
    assert "File too large" in words[0]
    assert [*tmp_path.iterdir()] == []


def test_an_entry_that_can_not_be_read_gives_one_warning(use, tmp_path):
    use(tmp_path)
    made()
    (path,) = tmp_path.iterdir()
    path.unlink()
    path.mkdir()
    found, words = made()
    assert not found
    assert len(words) == 1
    assert "can't be read" in words[0]


def test_no_damaged_entry_is_run(use, tmp_path):
    use(tmp_path)
    made()
    (path,) = tmp_path.iterdir()
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    damaged = [whole[:n] for n in (0, 1, 31, 32, 33, len(whole) // 2, len(whole) - 1)]
    damaged += [whole + b"\0", bytes(len(whole))]
    for place in [*range(0, 64, 7), *rng.integers(len(whole), size=200).tolist()]:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(rng.integers(8))
        damaged.append(bytes(flipped))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for each in damaged:
            path.write_bytes(each)
            assert cache.load(path.name) == {}
    assert len(seen) == 1
    assert "damaged" in str(seen[0].message)
    use(tmp_path)
    found, words = made()  # compiles and writes anew
    assert not found
    assert len(words) == 1
    assert made() == (True, [])


def entries(folder):
    """Names of files in a folder."""
    return sorted(each.name for each in folder.iterdir())


def old_folder(home, name, *files):
    """A folder beside the code, older than those before it."""
    folder = home / name
    folder.mkdir()
    for file in files:
        (folder / file).write_text("")
    age = 1e9 + len(entries(home))
    os.utime(folder, (age, age))
    return folder


CODE_FILE = f"step.step-{'0123456789abcdef' * 2}.bin"


def test_folders_of_old_sources_do_not_pile_up(use, tmp_path):
    names = [f"{cache.NAME}{i:032x}" for i in range(20)]
    for name in names:
        old_folder(tmp_path, name, CODE_FILE, CODE_FILE + ".0123456789abcdef")
    use(tmp_path / (cache.NAME + "new"))
    made()
    assert entries(tmp_path) == [*names[20 - cache.KEPT :], cache.NAME + "new"]


def test_nothing_of_others_is_deleted(use, tmp_path):
    """Neither what has another name, nor a folder that holds anything but entries."""
    digits, home = f"{0xABC:032x}", tmp_path / "home"
    home.mkdir()
    theirs = [
        old_folder(home, cache.NAME + "experiment-1", "results.csv"),
        old_folder(home, cache.NAME + "experiment-2", CODE_FILE),
        old_folder(home, cache.NAME + digits[1:], CODE_FILE),
        old_folder(home, cache.NAME + "A" * 32, CODE_FILE),
        old_folder(home, cache.NAME + digits + "0", CODE_FILE),
        old_folder(home, cache.NAME + digits, CODE_FILE, "notes.txt"),
    ]
    inside = old_folder(home, cache.NAME + "d" * 32, CODE_FILE)
    (inside / f"sub-{digits}.bin").mkdir()
    away = old_folder(tmp_path, "away", CODE_FILE)
    link = home / (cache.NAME + "e" * 32)
    link.symlink_to(away)
    before = {each: entries(each) for each in (*theirs, away)}
    for i in range(12):  # newer ones, so that all of the others would go
        old_folder(home, f"{cache.NAME}{i:032x}", CODE_FILE)
    use(home / (cache.NAME + "new"))
    made()
    assert {each: entries(each) for each in before} == before
    assert link.is_symlink()
    assert (inside / f"sub-{digits}.bin").is_dir()
    assert len(entries(home)) == len(theirs) + 2 + cache.KEPT + 1


posix = pytest.mark.skipif(os.name != "posix", reason="rights of another kind")
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="files are given away by root alone"
)


class Evil:
    """What is run when it is unpickled."""

    def __init__(self, proof):
        self.proof = str(proof)

    def __reduce__(self):
        return os.mkdir, (self.proof,)


@posix
@pytest.mark.parametrize("what", ["folder", "entry"])
@pytest.mark.parametrize(
    "change", ["writable by all", "by the group", pytest.param("owned by another", marks=as_root)]
)
def test_code_that_others_may_have_written_is_not_run(use, tmp_path, what, change):
    """An entry with a right checksum, which anyone can compute; one warning, and it compiles."""
    folder, proof = tmp_path / "code", tmp_path / "proof"
    use(folder)
    assert made() == (False, [])
    (path,) = folder.iterdir()
    code = pickle.dumps(Evil(proof))
    path.write_bytes(sha256(code).digest() + code)
    odd = folder if what == "folder" else path
    if change == "owned by another":
        os.chown(odd, 12345, 12345)
    else:
        odd.chmod(odd.stat().st_mode | (0o002 if change == "writable by all" else 0o020))
    found, words = made()
    assert not found
    assert not proof.exists()
    assert len(words) == 1
    assert "another user" in words[0] or "other users" in words[0]
    if what == "folder":  # it takes no new code either
        assert path.read_bytes()[32:] == code
        assert entries(folder) == [path.name]
    else:  # the entry is replaced by a good one
        assert made() == (True, [])


@posix
def test_code_is_found_again_whatever_the_umask(use, tmp_path):
    before = os.umask(0)
    try:
        use(tmp_path / "above" / "code")
        assert made() == (False, [])
        assert made() == (True, [])
    finally:
        os.umask(before)


@pytest.mark.parametrize("path", ["", "nb", "./nb"])
@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "NUMBA_CACHE_DIR"])
def test_no_relative_path_is_used(tmp_path, path, variable):
    """Neither read nor written: it would be a folder of whoever owns the current one."""
    code = "from noisewise.kernels.compiling import cache; print([*map(str, cache.folders())])"
    env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    env.pop("NUMBA_CACHE_DIR", None)
    run = [sys.executable, "-c", code]
    done = subprocess.run(
        run, env={**env, variable: path}, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    places = [Path(each) for each in ast.literal_eval(done.stdout)]
    assert all(each.is_absolute() for each in places)
    assert bool(places) == (variable == "XDG_CACHE_HOME" or not path)
    assert entries(tmp_path) == []


def test_without_any_folder_there_is_one_warning(use):
    use()
    found, words = made()
    assert not found
    assert len(words) == 1
    assert "relative" in words[0]
    assert made() == (False, [])


CODE = """
import numpy as np
import noisewise as nw
from noisewise.kernels.glm.step import step
state = nw.FTRL(nw.GLM("logistic")).start(3)
step(1.0, 0.5, state.array, np.array([0.1, 0.2, 0.3]))
assert (state.views.numbers[:2, 0] == 0.5).all(), state.views.numbers
print(int(step.found()))
"""


def test_an_edited_source_is_compiled_anew_wherever_the_cache_is(tmp_path):
    """Machine code of the old layout would put the numbers of a row elsewhere."""
    ignored = shutil.ignore_patterns("__pycache__")
    package = Path(shutil.copytree(PACKAGE, tmp_path / "src" / "noisewise", ignore=ignored))
    env = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(tmp_path / "nb")}

    def hits():
        run = [sys.executable, "-c", CODE]
        done = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert [hits(), hits()] == [0, 1]
    layout = package / "kernels" / "glm" / "layout.py"
    text = layout.read_text()
    assert "\nBUFFER = 512\n" in text
    layout.write_text(text.replace("\nBUFFER = 512\n", "\nBUFFER = 256\n"))
    assert [hits(), hits()] == [0, 1]
    layout.write_text(text)
    assert hits() == 1


def test_a_process_without_any_place_for_code_works_and_warns_once(tmp_path):
    (tmp_path / "file").write_text("")
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "file")}
    code = (
        "import numpy as np\n"
        "from noisewise.kernels.policies import normal_rounds as normal\n"
        "table = np.zeros((3, 2))\n"
        "assert normal.choose(np.eye(2), table, 0, 0) == normal.learn(np.eye(2)[0], 1.0, table)"
    )
    run = [sys.executable, "-W", "always", "-c", code]
    done = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
    assert done.stderr.count("RuntimeWarning") == 1
    assert "set NUMBA_CACHE_DIR" in done.stderr


def test_warm_up_compiles_once_and_says_where(tmp_path):
    """One module is left in the room: all take half a minute."""
    others = ("step", "optimism", "self_tuned", "factor", "arm_forms", "normal")
    others += ("dense", "change_evidence", "multinomial", "safe_mixture")
    others += ("learner_rounds", "blocked_inverse", "history_passes")
    ignored = shutil.ignore_patterns("__pycache__", *(f"{name}*.py" for name in others))
    package = Path(shutil.copytree(PACKAGE, tmp_path / "src" / "noisewise", ignore=ignored))
    env = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(tmp_path / "nb")}

    def lines(**more):
        run = [sys.executable, "-c", "from noisewise.cli import main; main()", "warm-up"]
        return subprocess.run(run, env={**env, **more}, capture_output=True, text=True, check=False)

    first, second = lines(), lines()
    assert "mirror         2 compiled   0 found" in first.stdout
    assert "mirror         0 compiled   2 found" in second.stdout
    assert f"kept in {tmp_path / 'nb'}" in second.stdout
    (tmp_path / "file").write_text("")
    worse = lines(NUMBA_CACHE_DIR=str(tmp_path / "file"))
    assert worse.returncode == 1
    assert "nothing could be kept on disk" in worse.stderr


def test_all_kernels_are_warmed_up():
    run = [sys.executable, "-c", "from noisewise.cli import main; main()", "warm-up"]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert {"step", "optimism", "history_passes"} <= {
        line.split()[0] for line in done.stdout.splitlines()
    }


def test_a_terminal_is_told_why_nothing_happens(monkeypatch, capsys):
    """Once per process, after a second of compiling in all; a pipe is told nothing."""
    clock, said = [0.0], []

    class Timer:
        """Of a clock that the test sets."""

        def __init__(self, seconds, call):
            self.due, self.call = clock[0] + seconds, call

        def start(self):
            pass

        def cancel(self):
            if clock[0] >= self.due:
                self.call()

    monkeypatch.setattr(compile_note, "Timer", Timer)
    monkeypatch.setattr(compile_note, "perf_counter", lambda: clock[0])
    for terminal in (False, True):
        monkeypatch.setattr(compile_note, "_spent", 0.0)
        monkeypatch.setattr(compile_note, "_noted", False)
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        for _ in range(5):
            with compile_note.noted():
                clock[0] += 0.4
            said.append(capsys.readouterr().err.count("once per machine"))
    assert said == [0] * 5 + [0, 0, 1, 0, 0]


def test_a_row_compiles_the_step_alone_and_a_choice_one_index(tmp_path):
    code = (
        "import numpy as np, noisewise as nw\n"
        "f = nw.FTRL(nw.GLM('logistic')); s = f.start(3)\n"
        "f.update(s, np.eye(3)[0], 1.0); f.update(s, [0, 1, 0], 1)\n"
        "nw.FTRLUCB(radius='practical').select(nw.FTRLUCB(radius='practical').start(3), np.eye(3),"
        " np.random.default_rng(0))"
    )
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    made = {path.name.rpartition("-")[0] for path in tmp_path.rglob("*.bin")}
    assert made == {"step.step", "optimism.choose_practical"}


def test_a_shared_folder_is_left_alone_and_not_trusted(tmp_path):
    """From outside: a user's own folders stay, and code in a folder of all users is not used."""
    home = tmp_path / "shared"
    home.mkdir()
    own = [old_folder(home, f"{cache.NAME}experiment-{i}", "results.csv") for i in range(12)]
    code = (
        "import numpy as np, noisewise as nw\n"
        "print(nw.UCB1Normal().select(nw.UCB1Normal().start(2), np.eye(2),"
        " np.random.default_rng(0)))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "NUMBA_CACHE_DIR": str(home)}
    run = [sys.executable, "-W", "always", "-c", code]

    def warned():
        done = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
        assert done.stdout == "0\n"
        return done.stderr.count("RuntimeWarning")

    assert [warned(), warned()] == [0, 0]
    assert all(entries(each) == ["results.csv"] for each in own)
    made_here = [each for each in home.rglob("*") if each.parent not in own and each not in own]
    assert made_here
    for each in made_here:
        each.chmod(0o777)
    assert warned() == 1
