"""No call of ours wakes BLAS threads, and the caller's setting is what it was afterwards."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import numpy as np
import pytest
from places import TESTS

import noisewise as nw
from noisewise.numerics import blas

CORES = len(os.sched_getaffinity(0))


def child(*command):
    """What a process prints in which nobody has set the number of threads."""
    env = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, *command], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_other_threads_stay_asleep():
    """A thread that shares the work, or spins, takes about as much CPU as the one that calls."""
    parts = ["streams", "regressors", "policies", "plain"]
    out = child(str(TESTS / "others_cpu.py"), *parts)
    rows = [json.loads(line) for line in out.splitlines()]
    assert {row[0] for row in rows} == set(parts)
    awake = {name for _, name, mine, others in rows if others > 0.05 * mine + 0.002}
    plain = {name for part, name, *_ in rows if part == "plain"}
    assert awake <= plain
    if CORES > 1:  # the measure sees threads that wake
        assert awake == plain


def test_finds_the_pools_of_numpy_and_scipy():
    built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    if built != "scipy-openblas":
        pytest.skip(f"numpy is built with {built}")
    out = child(
        "-c", "from noisewise.numerics import blas; print([get() for get, _ in blas.pools()])"
    )
    assert json.loads(out) == [CORES] * 2


@pytest.fixture
def pool(monkeypatch):
    """A pool of four threads in Python, which can be interrupted anywhere."""
    count = [4]

    def get():
        return count[0]

    def put(number):
        count[0] = number

    monkeypatch.setattr(blas, "pools", lambda: ((get, put),))
    return count


def test_one_thread_inside_and_the_old_number_after(pool):
    @blas.one_thread
    def inner(depth):
        assert pool == [1]
        if depth:
            inner(depth - 1)
            assert pool == [1]
        else:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        inner(3)
    assert pool == [4]
    pool[0] = 3  # the caller may change it between calls
    blas.matmul(np.ones((100, 100)), np.ones(100))
    assert pool == [3]
    assert not blas._holders


def test_a_setting_of_one_is_left_alone(pool):
    pool[0] = 1
    blas.one_thread(lambda: None)()
    assert pool == [1]


def test_eight_threads_at_once(pool):
    wrong = []

    @blas.one_thread
    def work(i):
        if pool != [1]:
            wrong.append(i)
        if i % 3 == 0:
            raise KeyError(i)

    def many():
        for i in range(2000):
            with suppress(KeyError):
                blas.one_thread(work)(i)

    crowd = [threading.Thread(target=many) for _ in range(8)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()
    assert not wrong
    assert pool == [4]
    assert not blas._holders


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_interrupts_anywhere(pool):
    """A real signal at 500 random moments, most of them within entering and leaving."""

    def interrupt(*_):
        raise KeyboardInterrupt

    guarded = blas.one_thread(lambda: None)
    rng, old = np.random.default_rng(), signal.signal(signal.SIGALRM, interrupt)
    try:
        for wait in rng.uniform(2e-5, 4e-4, size=500).tolist():
            try:
                signal.setitimer(signal.ITIMER_REAL, wait)
                while True:
                    guarded()
            except KeyboardInterrupt:
                pass
            assert pool == [4]
            assert not blas._holders
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_an_interrupted_pass(pool):
    """The link of a user is evaluated within the passes."""
    seen, armed = [], []

    def mean(z):
        if armed:
            seen.append(pool[0])
            raise KeyboardInterrupt
        return np.tanh(z)

    link = nw.Link("mine", mean, lambda z: 1 - np.tanh(z) ** 2, self_concordance=2.0)
    ftrl = nw.FTRL(nw.GLM(link))
    state = ftrl.start(2)
    ftrl.update(state, np.eye(2), np.ones(2))
    armed.append(True)
    with pytest.raises(KeyboardInterrupt):
        ftrl.solve(state)
    assert seen == [1]
    assert pool == [4]


FORK = """
import os, threading
import numpy as np
from noisewise.numerics import blas, linalg

for _, put in blas.pools():
    put(2)
inside, go = threading.Event(), threading.Event()

@blas.one_thread
def hold():
    inside.set()
    go.wait()

def counts():
    return [get() for get, _ in blas.pools()]

thread = threading.Thread(target=hold)
thread.start()
inside.wait()
held, child = counts(), os.fork()
if not child:  # the holder does not exist here
    was = counts()
    linalg.factor(np.eye(100))
    os._exit(0 if was == counts() == [2] * len(was) and not blas._holders else 1)
_, status = os.waitpid(child, 0)
go.set()
thread.join()
assert status == 0
assert held == [1] * len(held) and counts() == [2] * len(held)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_while_another_thread_is_inside():
    child("-W", "ignore", "-c", FORK)
