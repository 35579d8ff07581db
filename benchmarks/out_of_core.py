"""Logistic fits to Parquet files against peers: python -m benchmarks.out_of_core [ROWS [NAME]].

All read the same files, in one run, each candidate in a process of its own, in turn. An estimate is
as far off as sqrt((t - t*)'H(t - t*)/d) says, in standard errors: H is the Hessian of the penalised
loss at its minimiser t*. Compared is the processor time, of driver and workers together, until it
is within a tenth and a hundredth of a standard error. Who has a tolerance is run with the first of
several that suffices, and charged with that run alone; an epoch of SGD goes on from the last.
dask-ml is left out unless it is installed (pip install dask-ml).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

import noisewise as nw

from .scaling import DIM, GLM, NAMES, PICTURES, RIDGE, write_files
from .spent import Spent

ASKED = 0.1, 0.01  # standard errors
EPOCHS = 6
TOLERANCES = 1e-4, 1e-6, 1e-8  # the first is everybody's default


def ours(files, **_):
    yield nw.fit_partitions(GLM, files, ridge=RIDGE, target="label").theta


def sgd(files, count):
    from .peers import sklearn_out_of_core as peer

    yield from peer.sgd(files, list(NAMES), "label", RIDGE, count)


def in_memory(solver):
    def fit(files, tol, **_):
        from .peers import sklearn_out_of_core as peer

        return peer.in_memory(files, list(NAMES), "label", RIDGE, solver, tol)

    return fit


def dask_ml(solver):
    def fit(files, tol, **_):
        from .peers import dask_ml_logistic as peer

        return peer.fit(files, list(NAMES), "label", RIDGE, solver, tol)

    return fit


# by name: the fit, the workers of Dask, and whether it has a tolerance
CANDIDATES = {
    "noisewise, one process": (ours, 0, False),
    "noisewise, two workers": (ours, 2, False),
    "scikit-learn SGD, epochs over files": (sgd, 0, False),
    "scikit-learn lbfgs, rows in memory": (in_memory("lbfgs"), 0, True),
    "scikit-learn newton-cholesky, rows in memory": (in_memory("newton-cholesky"), 0, True),
}
if find_spec("dask_ml"):
    CANDIDATES |= {
        "dask-ml newton (no penalty), two workers": (dask_ml("newton"), 2, True),
        "dask-ml lbfgs, two workers": (dask_ml("lbfgs"), 2, True),
    }


def child(name, folder):
    """Print what a candidate reached and spent, one JSON line each; first it meets one file."""
    run, workers, tolerant = CANDIDATES[name]
    files, known = sorted(folder.glob("*.parquet")), np.load(folder / "known.npz")
    if not workers:
        measure(run, files, known, tolerant, None)
        return
    from distributed import Client, LocalCluster

    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(processes=True, **options) as machines, Client(machines) as client:
        measure(run, files, known, tolerant, client)


def measure(run, files, known, tolerant, client):
    count = int(known["count"])
    if tolerant:
        run(files[:1], tol=1.0)
        for tol in TOLERANCES:
            with Spent(client) as spent:
                theta = run(files, tol=tol)
            if tell(known, theta, spent, spent.cpu, spent.wall, tol) <= min(ASKED):
                break
        return
    next(run(files[:1], count=count // len(files)))
    cpu, wall, going = 0.0, 0.0, run(files, count=count)
    for _ in range(EPOCHS):
        with Spent(client) as spent:
            theta = next(going, None)
        cpu, wall = cpu + spent.cpu, wall + spent.wall
        if theta is None or tell(known, theta, spent, cpu, wall) <= min(ASKED):
            break


def tell(known, theta, spent, cpu, wall, tol=None):
    away = theta - known["theta"]
    far = float(np.sqrt(away @ known["hessian"] @ away / len(theta)))
    found = {"far": far, "cpu": cpu, "wall": wall, "GiB": spent.memory, "tol": tol}
    print(json.dumps(found), flush=True)
    return far


def minimiser(folder):
    """Write the minimiser, and the Hessian there, beside the files."""
    files = sorted(folder.glob("*.parquet"))
    state = nw.fit_partitions(GLM, files, ridge=RIDGE, target="label")
    (summary,) = state.condensed
    H = summary.curvature + 2 * RIDGE * np.eye(DIM)
    np.savez(folder / "known.npz", theta=state.theta, hessian=H, count=state.count)


def played(name, folder):
    words = [sys.executable, "-m", "benchmarks.out_of_core", "child", name, str(folder)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    return [{"name": name, **json.loads(line)} for line in done.stdout.splitlines()]


def main():
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2], Path(sys.argv[3]))
        return
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    names = [name for name in CANDIDATES if " ".join(sys.argv[2:]) in name]
    repeats = 3 if rows <= 2e6 else 1
    folder = Path(tempfile.mkdtemp(prefix="noisewise-out-of-core-"))
    try:
        write_files(folder, rows)
        minimiser(folder)
        found = [
            {"repeat": repeat, **line}
            for repeat in range(repeats)
            for name in names
            for line in played(name, folder)
        ]
    finally:
        shutil.rmtree(folder)
    report(rows, repeats, pd.DataFrame(found))


def report(rows, repeats, table):
    """Print who needed how long, and write it; medians over repeats."""
    lines = []
    for name, part in table.groupby("name", sort=False):
        line = {"name": name, "closest": float(part["far"].min()), "GiB": float(part["GiB"].max())}
        for asked in ASKED:
            reached = part[part["far"] <= asked].groupby("repeat")[["cpu", "wall"]].first()
            whole = len(reached) == part["repeat"].nunique()
            cpu, wall = reached.median() if whole else (np.nan, np.nan)
            line |= {f"cpu to {asked:g} se": cpu, f"wall to {asked:g} se": wall}
        lines.append(line)
    found = pd.DataFrame(lines)
    print(found.round(4).to_string(index=False))
    known = {"rows": rows, "repeats": repeats, "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    text = json.dumps(known | {"fits": json.loads(found.to_json(orient="records"))}, indent=1)
    (PICTURES / "out-of-core.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
