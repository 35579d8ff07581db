"""CPU of streams with and without OPENBLAS_NUM_THREADS=1, on a busy machine."""

import os
import subprocess
import sys
from contextlib import contextmanager

import numpy as np

from .clock import asked

STREAM = """
import sys, time
import numpy as np, noisewise as nw
d, T = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(d)
x = rng.normal(size=(T, d))
x /= np.linalg.norm(x, axis=1, keepdims=True)
y = (rng.random(T) < 1 / (1 + np.exp(-3 * x[:, 0]))).astype(float)
ftrl = nw.FTRL(nw.GLM("logistic", 1.0, 3.0), ridge=0.5)
ftrl.update(ftrl.start(d), x[:2000], y[:2000])
time.sleep(0.2)  # threads that the features have woken go back to sleep
state, began = ftrl.start(d), time.process_time()
ftrl.update(state, x, y)
print(time.process_time() - began)
"""
BUSY = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(10**6))
"""
MOST = 1.15


def threads(repeats, largest):
    """CPU of logistic streams as BLAS is set up by itself, against OPENBLAS_NUM_THREADS=1.

    Processes take turns, beside two that are busy.
    """
    with _busy(2):
        for d, T in ((20, 200_000), (50, 60_000), (100, 20_000)):
            T = int(min(T, largest))
            spent = {"one thread": [], "as it comes": []}
            for _ in range(repeats):
                for what, seconds in spent.items():
                    seconds.append(_child(d, T, one=what == "one thread"))
            medians = {what: float(np.median(seconds)) for what, seconds in spent.items()}
            for what, seconds in medians.items():
                ratio = seconds / medians["one thread"]
                row = {
                    "section": "BLAS threads", "dim": d, "rounds": T, "what": what,
                    "us": 1e6 * seconds / T, "ratio": ratio,
                }  # fmt: skip
                yield row | (asked(ratio, most=MOST) if what == "as it comes" else {})


@contextmanager
def _busy(count):
    """Keep so many processes busy."""
    crowd = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for each in crowd:
            each.kill()
            each.wait()


def _child(d, T, one):
    env = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    env |= {"OPENBLAS_NUM_THREADS": "1"} if one else {}
    done = subprocess.run(
        [sys.executable, "-c", STREAM, str(d), str(T)],
        env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout)
