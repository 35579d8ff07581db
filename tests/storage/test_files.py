"""What `save` and the studies write is there whole or not at all, and nothing else is left."""

import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

import noisewise as nw
from noisewise.storage import files

FTRL = nw.FTRL(nw.GLM("logistic"), ridge=1.0)


def state(rows=3, seed=0):
    rng, made = np.random.default_rng(seed), FTRL.start(20)
    x = rng.normal(size=(rows, 20)) / 10
    FTRL.update(made, x, rng.integers(0, 2, rows).astype(float))
    return made


def write(text):
    return lambda part: part.write_text(text)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_an_old_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "a.npz"
    path.touch()
    path.chmod(mode)
    nw.save(path, FTRL, state())
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert nw.load(path)[0] == FTRL


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_a_new_file_has_what_the_umask_gives(tmp_path, mask):
    before = os.umask(mask)
    try:
        nw.save(tmp_path / "a.npz", FTRL, state())
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.npz").stat().st_mode) == 0o666 & ~mask


def test_links_stay_and_their_target_is_replaced(tmp_path):
    for folder in ("real", "links"):
        (tmp_path / folder).mkdir()
    real = tmp_path / "real" / "a.npz"
    one, two = tmp_path / "links" / "one", tmp_path / "links" / "two"
    two.symlink_to(Path("..") / "real" / "a.npz")  # of a file that is not there yet
    one.symlink_to(two)
    for seed in (1, 2):
        nw.save(one, FTRL, state(seed=seed))
        assert one.is_symlink()
        assert two.is_symlink()
        np.testing.assert_array_equal(nw.load(real)[1].theta, state(seed=seed).theta)
    assert names(tmp_path / "links") == ["one", "two"]
    assert names(tmp_path / "real") == ["a.npz"]


def test_paths_that_cant_be_written_are_one_sentence(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    before = names(tmp_path)
    for path, sentence in (
        (tmp_path / "folder", "a folder; add the name of a file"),
        (tmp_path / "none" / "a.npz", "is no folder; create it"),
        (tmp_path / "file" / "a.npz", "is no folder; create it"),
        (tmp_path / "pipe", "no regular file"),
        (tmp_path / "loop", "no regular file"),
        ("/dev/null", "no regular file"),
    ):
        with pytest.raises(ValueError, match=sentence) as error:
            nw.save(path, FTRL, state())
        assert "\n" not in str(error.value)
    assert names(tmp_path) == before
    assert (tmp_path / "file").read_text() == "mine"


@pytest.fixture
def open_folder():
    """A folder that every user can enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_what_is_protected_is_one_sentence_and_stays(open_folder):
    (open_folder / "closed").mkdir()
    protected, closed = open_folder / "a.npz", open_folder / "closed" / "a.npz"
    for path in (protected, closed):
        path.write_text("mine")
        path.chmod(0o444 if path == protected else 0o666)
    closed.parent.chmod(0o555)
    user = os.geteuid()
    if user == 0:  # whom nothing is closed to
        os.seteuid(65534)
    try:
        for path in (protected, closed):
            with pytest.raises(ValueError, match=r"can't be written.*choose another"):
                files.replace(path, write("other"))
    finally:
        os.seteuid(user)
        closed.parent.chmod(0o755)
    assert protected.read_text() == closed.read_text() == "mine"
    assert names(open_folder) == ["a.npz", "closed"]
    assert names(closed.parent) == ["a.npz"]


@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt, ZeroDivisionError])
def test_a_writer_that_fails_leaves_the_old_file_alone(tmp_path, kind):
    def fail(part):
        part.write_text("half")
        raise kind(28, "No space left on device")

    path = tmp_path / "a"
    path.write_text("whole")
    with pytest.raises(kind):
        files.replace(path, fail)
    assert names(tmp_path) == ["a"]
    assert path.read_text() == "whole"


def test_leftovers_are_removed_but_no_file_of_a_living_writer_nor_anyone_elses(tmp_path):
    path, names_kept = tmp_path / "a[1]*.npz", set()
    left = tmp_path / f".{path.name}.{'0' * 16}{files.SUFFIX}"
    left.write_text("of a killed writer")
    for other in ("b", ".b.0000000000000000" + files.SUFFIX, f".{path.name}.part", "a11.npz"):
        (tmp_path / other).write_text("not ours")
        names_kept.add(other)
    writing, done = threading.Event(), threading.Event()

    def slow(part):
        part.write_text("slow")
        writing.set()
        assert done.wait(60)

    thread = threading.Thread(target=files.replace, args=(path, slow))
    thread.start()
    assert writing.wait(60)
    (living,) = {*names(tmp_path)} - names_kept
    files.replace(path, write("quick"))
    assert {*names(tmp_path)} == {*names_kept, path.name, living}
    assert path.read_text() == "quick"
    done.set()
    thread.join()
    assert {*names(tmp_path)} == {*names_kept, path.name}
    assert path.read_text() == "slow"


def test_the_longest_name_is_written(tmp_path):
    path = tmp_path / ("ä" * 127 + "a")
    files.replace(path, write("long"))
    files.replace(path, write("longer"))
    assert names(tmp_path) == [path.name]


def test_file_and_folder_are_flushed_before_save_returns(tmp_path, monkeypatch):
    """The file before it gets its name, the folder after."""
    path, seen = tmp_path / "a", []
    real = os.fsync

    def fsync(descriptor):
        real(descriptor)
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        seen.append(("folder" if folder else "file", path.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    files.replace(path, write("text"))
    assert seen == [("file", False), ("folder", True)]


KILLING = """
import gc, os, signal, sys
import numpy as np
from test_files import FTRL, nw, state
path, seen, found, parts = sys.argv[1], [], [], []
gc.disable()
folder = os.path.dirname(path)
old, new = (state(rows=1000, seed=seed) for seed in (0, 1))
def save(which, look=None):
    sys.setprofile(look and (lambda frame, event, function: event == "c_call" and look()))
    nw.save(path, FTRL, which)
    sys.setprofile(None)
    return open(path, "rb").read()
whole = [save(old), save(new)]
save(old, lambda: seen.append(len(os.listdir(folder)) > 1))
first = seen.index(True)  # of the calls of C functions in a save: the part is there
def die():
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
for at in np.linspace(first, len(seen), 60, endpoint=False).astype(int):  # calls vary by a few
    save(old)
    left, child = at, os.fork()
    if child == 0:
        save(new, die)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    parts += [os.path.getsize(each) for each in os.scandir(folder) if each.path != path]
    found.append(whole.index(open(path, "rb").read()))
    save(old)
    assert os.listdir(folder) == [os.path.basename(path)], os.listdir(folder)
assert found == sorted(found), found
print(len(parts), sum(0 < each < len(whole[1]) for each in parts), found.count(0), found.count(1))
"""


def test_sixty_killed_saves_leave_the_old_file_or_the_new(tmp_path):
    """Kills are spread evenly over the calls that a save makes once it has begun to write."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path]),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILLING, str(tmp_path / "a.npz")],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    left, half, old, new = map(int, done.stdout.split())
    assert old + new == 60
    assert 20 <= half < left <= old < 60
