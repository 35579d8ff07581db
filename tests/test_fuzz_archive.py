"""No file harms: thousands of damaged and crafted archives, loaded and used in another process."""

import collections
import json
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FIXED = 20220213


def findings(folder, seed, count):
    """What came of every mutant: 'refused', 'loaded', or what is wrong."""
    notes, first = folder / "notes", 0
    found, failures = collections.Counter(), []
    while first < count and len(failures) < 20:
        done = subprocess.run(
            [sys.executable, HERE / "mutants.py", str(seed), str(first), str(count), folder],
            capture_output=True,
            text=True,
            check=False,
        )
        last, what, way = json.loads(notes.read_text().splitlines()[-1])
        if what == "begun":
            failures.append((seed, last, way, f"the process ended: {done.stderr[-2000:]}"))
        elif done.returncode:
            failures.append((seed, last, way, done.stderr[-2000:]))
            break
        first = last + 1
    for line in notes.read_text().splitlines():
        index, what, way = json.loads(line)
        found[what] += 1
        if what not in ("begun", "refused", "loaded"):
            failures.append((seed, index, way, what))
    return found, failures


def check(folder, seed, count):
    found, failures = findings(folder, seed, count)
    print({key: found[key] for key in ("refused", "loaded")})
    listed = "\n".join(map(str, failures[:20]))
    assert not failures, f"{len(failures)} mutants (seed, index, way, what):\n{listed}"
    assert found["refused"] + found["loaded"] == count
    assert found["loaded"] > count // 20, "hardly a mutant was loaded: nothing was used"
    assert found["refused"] > count // 4


def test_no_mutant_harms(tmp_path):
    check(tmp_path, FIXED, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [FIXED + 1, None])
def test_no_mutant_of_many_harms(tmp_path, seed):
    check(tmp_path, secrets.randbits(32) if seed is None else seed, 25_000)
