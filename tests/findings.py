"""Runs a script of tries in a process of its own, and says which try ended it or went wrong."""

import collections
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MOST = 20


def findings(script, folder, seed, count):
    """Return how many tries came to what, and (seed, index, try, what) of those that failed.

    The script notes each try before and after, so that one which ends the process is known; the
    next process goes on behind it.
    """
    notes, first, failures = folder / "notes", 0, []
    notes.touch()
    while first < count and len(failures) < MOST:
        done = subprocess.run(
            [sys.executable, HERE / script, str(seed), str(first), str(count), folder],
            capture_output=True,
            text=True,
            check=False,
        )
        lines = notes.read_text().splitlines()
        assert lines, done.stderr
        index, what, tried = json.loads(lines[-1])
        if what == "begun":
            failures.append((seed, index, tried, f"the process ended: {done.stderr[-2000:]}"))
        else:
            assert done.returncode == 0, done.stderr
        first = index + 1
    found = collections.Counter()
    for line in notes.read_text().splitlines():
        index, what, tried = json.loads(line)
        found[what] += what != "begun"
        if what not in ("begun", "refused", "done"):
            failures.append((seed, index, tried, what))
    return found, failures


def check(script, folder, seed, count):
    """Fail unless every try is done or refused, and enough of them are."""
    found, failures = findings(script, folder, seed, count)
    print(f"{script}, seed {seed}: {found['done']} done, {found['refused']} refused")
    listed = "\n".join(map(str, failures[:MOST]))
    assert not failures, f"{len(failures)} failures (seed, index, try, what):\n{listed}"
    assert found["done"] + found["refused"] == count
    assert min(found["done"], found["refused"]) > count // 20, "all are of one kind"
