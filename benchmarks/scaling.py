"""Fits on Dask: python -m benchmarks.scaling [ROWS] measures one worker and two, and extrapolates.

Logistic rows of 20 features are written as Parquet files, which workers read in every pass. The
time of a pass over P partitions and n rows by W workers is fitted as

    seconds = n * compute / W + P * task + log2(P) * level

where level is what one level of the tree of sums costs. On a busy machine walls mean little, so
seconds are processor time: that of the busiest worker and of the driver, which has the scheduler.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import nnls

import noisewise as nw
from noisewise.experiments import cluster, plotting
from noisewise.partitions.fit_partitions import _sums
from noisewise.partitions.partition_rows import Columns
from noisewise.partitions.passes import OnDask
from noisewise.partitions.sources import sources_of
from noisewise.regression.ftrl.sums import sums

from .spent import used

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
DIM, FILES, REPEATS = 20, 64, 3
GLM = nw.GLM("logistic", feature_bound=12.0, parameter_bound=0.5)
RIDGE = 1.0
TARGET = {"rows": 1e9, "features": 100, "workers": 1000, "partitions": 4000}
NAMES = tuple(f"x{j}" for j in range(DIM))


def drawn(i: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(i)
    x = rng.normal(size=(rows, DIM))
    x *= np.minimum(1, GLM.feature_bound / np.linalg.norm(x, axis=1))[:, None]
    return x, (rng.random(rows) < GLM.prediction(x @ np.full(DIM, 0.1))) * 1.0


def write_files(folder: Path, rows: int) -> None:
    for i in range(FILES):
        x, y = drawn(i, rows // FILES)
        table = pd.DataFrame(x, columns=list(NAMES)).assign(label=y)
        table.to_parquet(folder / f"{i:03}.parquet", index=False)


def tiny(i: int) -> tuple[np.ndarray, np.ndarray]:
    return drawn(i, 1)


def one_pass(client, sources, columns) -> tuple[float, float]:
    """Return processor seconds, of the busiest worker and of the driver with the scheduler; wall.

    Their sum is what the pass takes at most where every process has a core.
    """
    work = partial(_sums, GLM, columns, np.full(DIM, 0.05), False)
    before, driver, began = client.run(used), time.process_time(), time.perf_counter()
    OnDask(sources).total(work)
    wall, driver = time.perf_counter() - began, time.process_time() - driver
    after = client.run(used)
    return driver + max(after[name][0] - before[name][0] for name in after), wall


def on_workers(count: int, folder: Path, rows: int) -> tuple[list[dict], dict]:
    """Return the passes measured with that many workers, and the whole fit."""
    from distributed import Client, LocalCluster

    files, columns = sources_of(folder), Columns("label", None, NAMES)
    options = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(processes=True, **options) as machines, Client(machines) as client:
        client.run(one_pass_here, files[0], columns)  # imports
        cells = []
        for partitions in (4, 16, 32, FILES):
            cells.append((partitions, partitions * (rows // FILES), files[:partitions], columns))
        for partitions in (16, 64, 256):
            functions = sources_of([partial(tiny, i) for i in range(partitions)])
            cells.append((partitions, partitions, functions, Columns()))
        records = []
        for partitions, n, sources, named in cells:
            seconds, wall = np.min([one_pass(client, sources, named) for _ in range(REPEATS)], 0)
            record = {"W": count, "P": partitions, "n": n, "seconds": seconds, "wall": wall}
            records.append(record)
        before = client.run(used)
        began = time.perf_counter()
        state = nw.fit_partitions(GLM, folder, ridge=RIDGE, target="label")
        wall, after = time.perf_counter() - began, client.run(used)
        spent = [after[name][0] - before[name][0] for name in after]
        began, noops = time.perf_counter(), [(i,) for i in range(200)]
        assert sum(done for done, _ in cluster.results(client, int, noops)) == sum(range(200))
        fit = {
            "W": count,
            "wall": wall,
            "cpu": sum(spent),
            "busiest": max(spent),
            "worker GiB": max(peak for _, peak in after.values()),
            "driver GiB": used()[1],
            "batch ms": (time.perf_counter() - began) / len(noops) * 1e3,
            "theta": state.theta,
        }
    return records, fit


def one_pass_here(source, columns) -> None:
    _sums(GLM, columns, np.zeros(DIM), False, source)


def cost_model(table: pd.DataFrame) -> np.ndarray:
    """Return compute per row, task and latency per level, fitted to relative errors."""
    X = np.column_stack([table["n"] / table["W"], table["P"], np.log2(table["P"])])
    y = table["seconds"].to_numpy()
    return nnls(X / y[:, None], np.ones(len(y)))[0]


def predicted(cost: np.ndarray, n: float, W: float, P: float) -> float:
    return float(cost @ [n / W, P, np.log2(P)])


def per_row(dim: int) -> float:
    """Return processor seconds per row of a pass over rows in memory."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8192, dim)) / dim
    y, w, theta = np.ones(8192), np.ones(8192), np.zeros(dim)
    times = []
    for _ in range(15):
        began = time.process_time()
        sums(GLM, x, y, w, theta, False)
        times.append(time.process_time() - began)
    return float(np.median(times)) / 8192


def in_one_process(folder: Path) -> tuple[np.ndarray, float]:
    """Return the estimate without Dask, and its processor seconds."""
    began = time.process_time()
    state = nw.fit_partitions(GLM, folder, ridge=RIDGE, target="label")
    return state.theta, time.process_time() - began


def streaming(folder: Path) -> tuple[np.ndarray, float]:
    """Return the estimate by rows learnt one after the other, and its processor seconds."""
    ftrl, began = nw.FTRL(GLM, ridge=RIDGE), time.process_time()
    state = ftrl.start(DIM)
    for path in sorted(folder.iterdir()):
        table = pd.read_parquet(path)
        ftrl.update(state, table[list(NAMES)].to_numpy(), table["label"].to_numpy())
    ftrl.solve(state)
    return state.theta, time.process_time() - began


def scikit_learn(folder: Path) -> tuple[np.ndarray, float]:
    """Return the estimate by scikit-learn's solver, all rows in memory, and processor seconds."""
    from sklearn.linear_model import LogisticRegression

    began = time.process_time()
    table = pd.read_parquet(folder)
    model = LogisticRegression(C=1 / (2 * RIDGE), fit_intercept=False, tol=1e-8, max_iter=1000)
    model.fit(table[list(NAMES)].to_numpy(), table["label"].to_numpy())
    return model.coef_[0], time.process_time() - began


def main() -> None:
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    folder = Path(tempfile.mkdtemp(prefix="noisewise-scaling-"))
    try:
        write_files(folder, rows)
        both = [on_workers(count, folder, rows) for count in (1, 2)]
        others = {
            "in one process": in_one_process(folder),
            "streaming FTRL, rows in memory": streaming(folder),
            "scikit-learn, rows in memory": scikit_learn(folder),
        }
    finally:
        shutil.rmtree(folder)
    report(rows, both, others)


def report(rows: int, both: list, others: dict) -> None:
    table = pd.DataFrame([record for records, _ in both for record in records])
    cost = cost_model(table)
    table["model"] = [predicted(cost, r.n, r.W, r.P) for r in table.itertuples()]
    left_out = [
        predicted(cost_model(table.drop(index=i)), r.n, r.W, r.P) / r.seconds - 1
        for i, r in enumerate(table.itertuples())
    ]
    table["left out"] = left_out
    one, two = (fit for _, fit in both)
    theta = one.pop("theta")
    assert np.array_equal(theta, two.pop("theta"))
    stretch = per_row(TARGET["features"]) / per_row(DIM)
    scale = {"compute": cost[0], "task": cost[1], "level": cost[2], "features": stretch}
    big = cost * [stretch, 1, 1]
    seconds = predicted(big, TARGET["rows"], TARGET["workers"], TARGET["partitions"])
    found = {
        "rows": rows,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "cost": scale,
        "error": float(np.median(np.abs(left_out))),
        "worst": float(np.max(np.abs(left_out))),
        "fits": [one, two],
        "speed-up": one["busiest"] / two["busiest"],
        "pass at the target": seconds,
        "others": {
            name: {"cpu": spent, "difference": float(np.abs(estimate - theta).max())}
            for name, (estimate, spent) in others.items()
        },
        "passes": table.to_dict("records"),
    }
    print(table.round(4).to_string(index=False))
    print(json.dumps({key: found[key] for key in found if key != "passes"}, indent=1))
    (PICTURES / "scaling.json").write_text(json.dumps(found, indent=1) + "\n")
    picture()


def picture() -> None:
    """Draw the numbers that were written last."""
    found = json.loads((PICTURES / "scaling.json").read_text())
    plotting.write(lambda _: draw(found), pd.DataFrame(), PICTURES / "scaling.svg")


def draw(found: dict) -> plotting.Figure:
    """Draw measured passes against the model, and the model at the target."""
    figure, axes = plotting.panels(1, 2, height=3.0)
    left, right = np.ravel(axes)
    table = pd.DataFrame(found["passes"])
    for count, colour in zip((1, 2), plotting.COLOURS, strict=False):
        part = table[table["W"] == count]
        left.scatter(
            part["seconds"],
            part["model"],
            color=colour,
            label="one worker" if count == 1 else "two workers",
        )
    ends = [table["seconds"].min(), table["seconds"].max()]
    left.plot(ends, ends, color="black", linewidth=0.8)
    left.set(
        xscale="log",
        yscale="log",
        xlabel="measured, processor seconds per pass",
        ylabel="cost model, seconds per pass",
        title="here: cost model and measurement",
    )
    for axis in (left.xaxis, left.yaxis):
        plotting.plain_logs(axis)
    left.legend()
    cost = found["cost"]
    big = np.array([cost["compute"] * cost["features"], cost["task"], cost["level"]])
    workers = np.logspace(0, 4, 60)
    parts = {
        "compute": [big[0] * TARGET["rows"] / w for w in workers],
        "scheduler": [big[1] * max(4 * w, 64) for w in workers],
        "levels of the tree": [big[2] * np.log2(max(4 * w, 64)) for w in workers],
    }
    ends = {}
    for (name, values), colour in zip(parts.items(), plotting.COLOURS, strict=False):
        if max(values) > 0:  # what could not be told from 0 has no line
            right.plot(workers, values, color=colour, linewidth=1.0)
            ends[name] = (values[-1], colour)
    total = np.sum(list(parts.values()), axis=0)
    right.plot(workers, total, color="black")
    ends["both" if len(ends) == 2 else "a pass"] = (total[-1], plotting.BLACK)
    plotting.log_rounds(right, workers[-1])
    right.set(yscale="log", xlabel="workers", ylabel="predicted, seconds per pass", xlim=(1, 1e4))
    right.set_title("10⁹ rows × 100 features, 4 partitions per worker")
    plotting.plain_logs(right.yaxis)
    plotting.label_ends(right, ends)
    best = round(workers[np.argmin(total)], -2)
    plotting.headline(
        figure,
        f"The scheduler sets the limit: beyond about {best:,.0f} workers a pass gets slower",
    )
    return figure


if __name__ == "__main__":
    main()
