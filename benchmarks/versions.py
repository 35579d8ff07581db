"""Two versions of the sources, interleaved: python -m benchmarks.versions OLD NEW (their folders).

Each version runs in processes of its own, in turn; the least CPU time of all is taken, in
microseconds per row or round.
"""

import json
import os
import subprocess
import sys
import time
from functools import partial

import numpy as np

import noisewise as nw

ROUNDS, STREAM = 500, 30_000


def least(call, count, repeats=5):
    """Return the least CPU time of a call, in microseconds for each of ``count``."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        times.append((time.process_time() - began) / count * 1e6)
    return min(times)


def learn(ftrl, x, y):
    """Learn a stream from the start."""
    ftrl.update(ftrl.start(x.shape[1]), x, y)


def streams(rng):
    """Yield streams learnt as one block."""
    for d in (5, 20, 50):
        x = rng.normal(size=(STREAM, d))
        x /= np.linalg.norm(x, axis=1)[:, None] * 1.01
        y = (rng.random(STREAM) < 0.6).astype(float)
        calibrated = nw.FTRL(nw.GLM("logistic"), tolerance=0.01, certificate="calibrated")
        learners = {link: nw.FTRL(nw.GLM(link)) for link in ("identity", "logistic", "tanh")}
        for name, ftrl in (*learners.items(), ("logistic, calibrated", calibrated)):
            call = partial(learn, ftrl, x, y)
            yield f"{name}, d = {d}", call, STREAM


def rounds(rng):
    """Yield rounds of a bandit with ten fresh arms: a choice and its reward."""
    arms = rng.normal(size=(ROUNDS, 10, 10))
    arms /= np.linalg.norm(arms, axis=2)[:, :, None] * 1.01
    shares = nw.GLM("logistic")
    for name, policy in {
        "FTRLUCB practical, identity": nw.FTRLUCB(nw.GLM(), radius="practical"),
        "FTRLUCB, identity": nw.FTRLUCB(nw.GLM()),
        "FTRLUCB practical, logistic": nw.FTRLUCB(shares, "likelihood", radius="practical"),
        "FTRLUCB, logistic": nw.FTRLUCB(shares, "likelihood"),
        "MORUCB, identity": nw.MORUCB(nw.GLM()),
    }.items():

        def play(policy=policy):
            state, rng = policy.start(10), np.random.default_rng(0)
            for offered in arms:
                k = policy.select(state, offered, rng)
                policy.update(state, offered[k], float(k % 2), 0.5)

        yield f"round of {name}", play, ROUNDS


def measure():
    """Print what this version takes."""
    rng = np.random.default_rng(0)
    found = {n: least(call, k) for part in (streams, rounds) for n, call, k in part(rng)}
    print(json.dumps(found))


def main(old, new):
    """Run both versions in turn and print one table."""
    code, found = "from benchmarks.versions import measure; measure()", {old: [], new: []}
    for turn in range(9):
        for tree, times in found.items():
            env = {**os.environ, "PYTHONPATH": os.path.join(tree, "src") + os.pathsep + os.getcwd()}
            run = [sys.executable, "-c", code]
            done = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
            if turn:  # the first compiles
                times.append(json.loads(done.stdout.splitlines()[-1]))
    for name in found[old][0]:
        before, after = (min(each[name] for each in times) for times in found.values())
        print(f"{name:34} {before:8.3f} {after:8.3f}  x {after / before:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
