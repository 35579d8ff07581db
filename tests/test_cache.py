"""Compiled code on disk: whatever happens to it costs a compilation and one warning."""

import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from numba import float64

from noisewise.kernels import cache, compile_note
from noisewise.kernels.compile_options import COMPILED, entry

SIGNATURE = float64(float64)
PACKAGE = Path(cache.__file__).parents[1]

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
    kernel = entry(SIGNATURE)(half).compile()
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
            assert kernel._cache.load_overload(SIGNATURE, kernel.targetctx) is None
    assert len(seen) == 1
    assert "damaged" in str(seen[0].message)
    use(tmp_path)
    found, words = made()  # compiles and writes anew
    assert not found
    assert len(words) == 1
    assert made() == (True, [])


def test_folders_of_old_sources_do_not_pile_up(use, tmp_path):
    for i in range(20):
        old = tmp_path / f"{cache.NAME}{i:02}"
        old.mkdir()
        (old / "code").write_text("")
        os.utime(old, (1e9 + i, 1e9 + i))
    (tmp_path / "other").mkdir()
    use(tmp_path / f"{cache.NAME}new")
    made()
    left = [f"{cache.NAME}{i:02}" for i in range(20 - cache.KEPT, 20)]
    assert sorted(each.name for each in tmp_path.iterdir()) == [*left, cache.NAME + "new", "other"]


CODE = """
import numpy as np
from noisewise.kernels import layout as at
from noisewise.kernels.gram import add_gram
a, gram, x = at.allocate(3), np.zeros((3, 3)), np.arange(15.0).reshape(5, 3)
a[at.DIM], a[at.PADDED], a[at.BUFFERED] = 3, 8, 5
at.Views(a, 3).x[:5] = x
add_gram(a, gram, np.empty(64))
assert (gram == x.T @ x).all(), gram
print(sum(add_gram.compile().stats.cache_hits.values()))
"""


def test_an_edited_source_is_compiled_anew_wherever_the_cache_is(tmp_path):
    """Machine code of the old layout would look for the rows elsewhere."""
    ignored = shutil.ignore_patterns("__pycache__")
    package = Path(shutil.copytree(PACKAGE, tmp_path / "src" / "noisewise", ignore=ignored))
    env = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(tmp_path / "nb")}

    def hits():
        run = [sys.executable, "-c", CODE]
        done = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert [hits(), hits()] == [0, 1]
    layout = package / "kernels" / "layout.py"
    text = layout.read_text()
    assert "\nHEADER = 56\n" in text
    layout.write_text(text.replace("\nHEADER = 56\n", "\nHEADER = 64\n"))
    assert [hits(), hits()] == [0, 1]
    layout.write_text(text)
    assert hits() == 1


def test_a_process_without_any_place_for_code_works_and_warns_once(tmp_path):
    (tmp_path / "file").write_text("")
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "file")}
    code = (
        "import numpy as np\n"
        "from noisewise.kernels import normal\n"
        "table = np.zeros((3, 2))\n"
        "assert normal.choose(np.eye(2), table, 0, 0) == normal.learn(np.eye(2)[0], 1.0, table)"
    )
    run = [sys.executable, "-W", "always", "-c", code]
    done = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
    assert done.stderr.count("RuntimeWarning") == 1
    assert "set NUMBA_CACHE_DIR" in done.stderr


def test_warm_up_compiles_once_and_says_where(tmp_path):
    """One kernel is left in the room: all take half a minute."""
    others = ("step", "optimism", "self_tuned", "user_link", "arms", "mirror", "normal")
    others += ("constant_width", "dense")
    ignored = shutil.ignore_patterns("__pycache__", *(f"{name}*.py" for name in others))
    package = Path(shutil.copytree(PACKAGE, tmp_path / "src" / "noisewise", ignore=ignored))
    env = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(tmp_path / "nb")}

    def lines(**more):
        run = [sys.executable, "-c", "from noisewise.cli import main; main()", "warm-up"]
        return subprocess.run(run, env={**env, **more}, capture_output=True, text=True, check=False)

    first, second = lines(), lines()
    assert "gram           1 compiled   0 found" in first.stdout
    assert "gram           0 compiled   1 found" in second.stdout
    assert f"kept in {tmp_path / 'nb'}" in second.stdout
    (tmp_path / "file").write_text("")
    worse = lines(NUMBA_CACHE_DIR=str(tmp_path / "file"))
    assert worse.returncode == 1
    assert "nothing could be kept on disk" in worse.stderr


def test_a_terminal_is_told_why_nothing_happens(monkeypatch, capsys):
    """Once per process, after a second of compiling in all; a pipe is told nothing."""
    monkeypatch.setattr(compile_note, "PATIENCE", 0.05)
    for terminal in (False, True):
        monkeypatch.setattr(compile_note, "_spent", 0.0)
        monkeypatch.setattr(compile_note, "_noted", False)
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        with compile_note.noted():
            pass
        assert capsys.readouterr().err == ""
        for _ in range(3):
            with compile_note.noted():
                time.sleep(0.2)
        assert capsys.readouterr().err.count("once per machine") == terminal


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
