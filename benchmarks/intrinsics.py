"""Hand-written vector code against its plain twins, where it is used.

`python -m benchmarks.intrinsics` shows how many times as long the plain loop takes, on this
processor and as if on older ones.
"""

import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from unittest.mock import patch

import numpy as np
from numba import njit
from numba.core import config

import noisewise as nw
from noisewise.kernels import layout as at

from .clock import interleave
from .processors import PROCESSORS
from .streams import isotropic, labels

ROOM = "noisewise.kernels"
DIMS = (5, 20, 50, 100)


def kernels(folder, without=""):
    """Return the kernels, compiled anew into a folder, one intrinsic being left to its twin."""
    kept = {name: sys.modules.pop(name) for name in [*sys.modules] if name.startswith(ROOM)}
    simd = import_module(f"{ROOM}.simd")
    inner = import_module(f"{ROOM}.compile_options").INNER
    make = simd.make_intrinsic

    def choose(twin, **how):
        return (lambda _: njit(**inner)(twin)) if twin.__name__ == without else make(twin, **how)

    with patch.object(simd, "make_intrinsic", choose), patch.object(config, "CACHE_DIR", folder):
        room = {each: import_module(f"{ROOM}.{each}") for each in ("step", "gram", "arms")}
        for entry in (room["step"].run, room["gram"].add_gram, room["arms"].forms_of):
            entry.compile()
    sys.modules |= kept
    return room


def stream(room, rows, d):
    """Least squares row by row, the Gram matrix added up whenever the buffer is full."""
    rng = np.random.default_rng(d)
    x = isotropic(rng, rows, d)
    y, w, out, scratch = (
        labels(rng, x, "identity"),
        np.ones(1),
        np.empty(rows),
        np.empty(at.SCRATCH),
    )
    start = nw.FTRL(nw.GLM("identity", 1.0, 3.0), ridge=0.5).start(d).array
    ld = -(-d // 8) * 8
    run, add_gram = room["step"].run, room["gram"].add_gram

    def play():
        a, gram, done = start.copy(), np.zeros((d, d)), 0
        while done < rows:
            done = run(a, x.reshape(-1), y, w, done, np.inf, 0, out, scratch)
            add_gram(a, gram, np.empty(ld * ld))

    return play


def forms(room, rows, d):
    """The quadratic forms of the arms of a round, a thousand at a time."""
    arms, inverse = isotropic(np.random.default_rng(d), 1000, d), np.eye(d)
    quads = np.empty(1000)
    return lambda: [room["arms"].forms_of(arms, inverse, quads) for _ in range(1 + rows // 4000)]


USES = {"sweep": stream, "squares": stream, "eight_forms": forms}


def ratios(repeats=21):
    """Yield each intrinsic with the time of its twin over its own, by dimension."""
    with tempfile.TemporaryDirectory() as folder:
        ours = kernels(f"{folder}/ours")
        for name, use in USES.items():
            plain = kernels(f"{folder}/{name}", name)
            found = []
            for d in DIMS:
                rows = int(4e6 / (20 * d + d * d))
                times = interleave(
                    {"ours": use(ours, rows, d), "plain": use(plain, rows, d)}, repeats
                )
                found.append(times["plain"] / times["ours"])
            yield name, found


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(dict(ratios())))
    else:
        print(f"{'':24}" + "".join(f"{f'd = {d}':>9}" for d in DIMS))
        for title, variables in PROCESSORS.items():
            command = [sys.executable, "-m", __spec__.name, "measure"]
            done = subprocess.run(
                command, env={**os.environ, **variables}, check=True, stdout=subprocess.PIPE
            )
            for name, row in json.loads(done.stdout).items():
                print(f"{title:10}{name:14}" + "".join(f"{each:9.2f}" for each in row))
