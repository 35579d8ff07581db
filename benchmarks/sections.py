"""What is measured. Every section yields rows (dicts); ratios are to the limit of the same run."""

import os
import subprocess
import sys
import tempfile
from importlib import import_module

import numpy as np
from numba import float64, njit

import noisewise as nw
from noisewise.kernels.glm import step

from . import limit
from .arena import arena, settings
from .bandits import agents, decisions, flat
from .clock import asked, interleave
from .estimators import estimators
from .field import field
from .progressive import progressive
from .quality import quality
from .streams import STREAMS, isotropic, labels
from .threads import threads

ROUND_PEERS = ["plain_numpy", "scipy_blas", "padasip_rls", "river_blr", "vowpal_wabbit"]
REFIT_PEERS = ["sklearn_logistic", "glum_logistic", "statsmodels_glm"]


def _peer(name):
    return import_module(f"benchmarks.peers.{name}")


def _rows(section, times, rounds, base, **columns):
    for name, seconds in times.items():
        yield {
            "section": section,
            **columns,
            "rounds": rounds,
            "what": name,
            "us": 1e6 * seconds / rounds,
            "ratio": seconds / times[base],
        }


def identity(repeats, largest):
    """The identity link as a stream against the limit and the BLAS pair."""
    for d in (5, 20, 50, 100):
        T = int(min(100_000, largest))
        rng = np.random.default_rng(d)
        x = isotropic(rng, T, d)
        y = labels(rng, x, "identity")
        ftrl = nw.FTRL(nw.GLM("identity", 1.0, 3.0), ridge=0.5)
        times = interleave(
            {
                "limit": limit.fused(x),
                "BLAS pair": limit.blas(x),
                "noisewise": lambda ftrl=ftrl, x=x, y=y: nw.predictions(ftrl, x, y),
            },
            repeats,
        )
        for row in _rows("identity stream", times, T, "limit", dim=d, stream="isotropic"):
            most = {20: 1.3, 50: 1.15, 100: 1.15}.get(d)
            judged = row["what"] == "noisewise" and most is not None
            yield row | (asked(row["ratio"], most) if judged else {})


def calls(repeats, largest):
    """One Python call a round, predict and learn, against libraries that do the same."""
    for d in (5, 20, 50):
        T = 20_000
        rng = np.random.default_rng(d)
        x = isotropic(rng, T, d)
        y = labels(rng, x, "identity")
        candidates = {name: _peer(name).rounds(x, y) for name in ROUND_PEERS}
        for link in ("identity", "logistic"):
            ftrl = nw.FTRL(nw.GLM(link, 1.0, 3.0), ridge=0.5)
            candidates[f"noisewise {link}"] = _calls(ftrl, list(x), y.tolist())
        candidates["empty call"] = _empty_calls(list(x), y.tolist())
        times = interleave(candidates, repeats)
        for row in _rows("one call a round", times, T, "noisewise identity", dim=d):
            least = {"plain_numpy": 12, "padasip_rls": 20, "river_blr": 27}.get(row["what"])
            judged = least is not None and d <= 20
            yield row | (asked(row["ratio"], least=least) if judged else {})


def _calls(ftrl, rows, y):
    def play():
        state, update = ftrl.start(len(rows[0])), ftrl.update
        for row, label in zip(rows, y, strict=True):
            update(state, row, label)

    return play


def _empty_calls(rows, y):
    kinds = step.ROW, step.ROW, step.REAL, step.REAL
    empty = njit(lambda a, x, y, w: 0.0).compile(float64(*kinds))

    def play():
        for row, label in zip(rows, y, strict=True):
            empty(row, row, label, 1.0)

    return play


SPECS = {
    "rigorous 0.1": {"tolerance": 0.1},
    "calibrated 0.01": {"tolerance": 0.01, "certificate": "calibrated"},
    "rigorous 0.01": {"tolerance": 0.01},
}


def logistic(repeats, largest):
    """The logistic link: cost against the limit, passes, certificate and true error."""
    glm = nw.GLM("logistic", 1.0, 3.0)
    for stream, draw in STREAMS.items():
        for d, T in ((5, 1e4), (20, 1e4), (50, 1e4), (5, 1e5), (20, 1e5), (50, 1e5), (100, 1e5),
                     (20, 1e6), (50, 1e6)):  # fmt: skip
            if largest < T:
                continue
            rng = np.random.default_rng([d, int(T)])
            x = draw(rng, int(T), d)
            y = labels(rng, x)
            states, candidates = {}, {"limit": limit.fused(x)}
            for name, spec in SPECS.items():
                if name == "rigorous 0.01" and T > 1e5:
                    continue
                ftrl = nw.FTRL(glm, ridge=0.5, **spec)
                candidates[name] = _stream(states, name, ftrl, x, y)
            times = interleave(candidates, repeats)
            for row in _rows("logistic stream", times, int(T), "limit", dim=d, stream=stream):
                if row["what"] in states:
                    row |= quality(glm, states[row["what"]])
                most = MOST.get((d, int(T)))
                judged = row["what"] == "rigorous 0.1" and most is not None
                yield row | (asked(row["ratio"], most) if judged else {})


# times the limit, at most, by dimension and length
MOST = {(20, 10**5): 2.5, (50, 10**5): 2.5, (100, 10**5): 3.0, (20, 10**6): 2.0, (50, 10**6): 2.0}


def _stream(states, name, ftrl, x, y):
    def play():
        states[name] = ftrl.start(x.shape[1])
        ftrl.update(states[name], x, y)

    return play


def links(repeats, largest):
    """Every built-in link on the same features."""
    T, d = int(min(100_000, largest)), 20
    rng = np.random.default_rng(7)
    x = isotropic(rng, T, d)
    states, candidates = {}, {"limit": limit.fused(x)}
    for name in nw.LINKS:
        bound = 1.5 if name in ("probit", "exponential", "tanh", "algebraic") else 3.0
        y = labels(rng, x, name, bound)
        ftrl = nw.FTRL(nw.GLM(name, 1.0, bound), ridge=0.5)
        candidates[name] = _stream(states, name, ftrl, x, y)
    for row in _rows("links", interleave(candidates, repeats), T, "limit", dim=d):
        yield row | ({"passes": states[row["what"]].passes} if row["what"] in states else {})


def refits(repeats, largest):
    """One refit by a batch library against one round of the stream at the same length."""
    for d in (20, 50):
        T = int(min(100_000, largest))
        rng = np.random.default_rng(d)
        x = isotropic(rng, T, d)
        y = labels(rng, x)
        ftrl = nw.FTRL(nw.GLM("logistic", 1.0, 3.0), ridge=0.5)
        candidates = {"noisewise stream": _stream({}, "", ftrl, x, y)}
        candidates |= {name: _peer(name).refit(x, y) for name in REFIT_PEERS}
        times = interleave(candidates, min(repeats, 3))
        a_round = times.pop("noisewise stream") / T
        for name, seconds in times.items():
            yield {
                "section": "one refit against one round",
                "dim": d,
                "rounds": T,
                "what": name,
                "us": 1e6 * seconds,
                "ratio": seconds / a_round,
            }


MEMORY = """
import numpy as np, noisewise as nw

def kilobytes(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field))

T, d = {T}, 20
f = nw.FTRL(nw.GLM("logistic", 1.0, 3.0), ridge=0.5)
s = f.start(d)
f.update(s, np.eye(d), np.zeros(d))
s, before = f.start(d), kilobytes("VmRSS")
rng = np.random.default_rng(0)
for _ in range(T // 1000):
    x = rng.normal(size=(1000, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    f.update(s, x, (rng.random(1000) < 0.5) * 1.0)
print(1024 * (kilobytes("VmHWM") - before))
"""

ROW = """
import time
import numpy as np, noisewise as nw
f = nw.FTRL(nw.GLM("logistic")); s = f.start(20)
f.update(s, np.eye(20)[0], 1.0)
print(time.process_time())
"""

BLOCK = """
import time
import numpy as np, noisewise as nw
f = nw.FTRL(nw.GLM("logistic")); s = f.start(20)
f.update(s, np.eye(20), np.ones(20))
print(time.process_time())
"""

DECISION = """
import time
import numpy as np, noisewise as nw
nw.Agent.for_binary_rewards(dim=20, seed=0).choose(np.eye(20))
print(time.process_time())
"""

REWARD = """
import time
import numpy as np, noisewise as nw
agent = nw.Agent.for_{rewards}_rewards(dim=20, seed=0)
agent.choose(np.eye(20), key=0)
agent.learn(0, 1.0)
print(time.process_time())
"""

HELP = """
import time, sys
sys.argv = ["noisewise", "--help"]
from noisewise.cli import main
try:
    main(standalone_mode=False)
finally:
    print(time.process_time())
"""


def _child(code, **env):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])


def processes(repeats, largest):
    """Memory of a long stream; CPU of a first call, compiling and in a new process; help."""
    T = int(min(1_000_000, largest))
    allowed = 1.15 * 8 * (20 + 2) * T + 100e6
    yield {
        "section": "memory", "dim": 20, "rounds": T, "what": "bytes over the import",
        "bytes": _child(MEMORY.format(T=T)), "allowed": allowed,
    }  # fmt: skip
    for what, code, most in (
        ("update of a row", ROW, 3.0),
        ("update of a block", BLOCK, None),
        ("decision of an agent", DECISION, 4.0),
        ("reward, 0 or 1", REWARD.format(rewards="binary"), 8.0),
        ("reward, continuous", REWARD.format(rewards="continuous"), 8.0),
    ):
        with tempfile.TemporaryDirectory() as cache:
            first = _child(code, NUMBA_CACHE_DIR=cache)
            again = float(np.median([_child(code, NUMBA_CACHE_DIR=cache) for _ in range(5)]))
        cold = {"section": "cold start", "what": f"first {what}", "seconds": first}
        warm = {"section": "cold start", "what": f"{what}, new process", "seconds": again}
        yield cold | (asked(first, most) if most else {})
        yield warm | asked(again, 0.5)
    help_ = float(np.median([_child(HELP) for _ in range(5)]))
    yield {"section": "cold start", "what": "noisewise --help", "seconds": help_}


SECTIONS = [
    identity, calls, estimators, logistic, links, refits, processes, threads, decisions, flat,
    agents, field, arena, settings, progressive,
]  # fmt: skip
