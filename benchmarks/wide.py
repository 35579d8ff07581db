"""Wide tables: python -m benchmarks.wide [FAMILY ...] prints milliseconds per row, by columns.

Rows of `OnlineGLM` are learnt one by one: dense, sparse (2 % of cells) and one-hot (three
categories). "early" are the first 100 rows, "late" the last 200, "mean" all 2,000; a table that
takes longer than `PATIENCE` ends there. "fit" is the same table as a batch, beside scikit-learn's
Ridge: milliseconds in all. CPU time.
"""

import sys
import time

import numpy as np
from scipy import sparse

import noisewise as nw

from .clock import asked

FAMILIES = "gaussian", "binomial", "poisson"
COLUMNS, ROWS = (100, 300, 1000, 2000), 2000
EARLY, LATE, PATIENCE = 100, 200, 120.0
MOST = {300: 0.6, 1000: 8.0}  # milliseconds per row of numbers
OTHERS = 8.0  # times that, for other families
HEAD = "family", "columns", "kind", "early", "late", "mean", "rows", "asked", "", "fit", "Ridge"


def table(kind, columns, rng):
    """Return features of a kind."""
    if kind == "dense":
        return rng.standard_normal((ROWS, columns))
    if kind == "sparse":
        return sparse.random_array((ROWS, columns), density=0.02, rng=rng, format="csr")
    x, levels = np.zeros((ROWS, columns)), columns // 3
    for block in range(3):
        x[np.arange(ROWS), block * levels + rng.integers(0, levels, ROWS)] = 1.0
    return x


def labels(family, x, rng):
    """Return labels of a family, whose scores have variance 1."""
    score = x @ rng.standard_normal(x.shape[1])
    score = (score - score.mean()) / score.std()
    if family == "gaussian":
        return score + 0.5 * rng.standard_normal(ROWS)
    if family == "binomial":
        return 1.0 * (rng.random(ROWS) < 1 / (1 + np.exp(-score)))
    return rng.poisson(np.exp(score)).astype(float)


def clocked(call):
    """Return the milliseconds of CPU that a call takes."""
    began = time.process_time()
    call()
    return 1000 * (time.process_time() - began)


def by_rows(family, x, y):
    """Return the milliseconds of each row, as many as patience allows."""
    model, times, spent = nw.OnlineGLM(family), [], 0.0
    model.partial_fit(x[:2], y[:2])  # compiles
    model = nw.OnlineGLM(family)
    for i in range(ROWS):
        row, label = x[i : i + 1], y[i : i + 1]
        times.append(clocked(lambda row=row, label=label: model.partial_fit(row, label)))
        spent += times[-1]
        if spent > 1000 * PATIENCE:
            break
    return np.array(times)


def measure(family, columns, kind):
    """Return a row of the table."""
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng([columns, FAMILIES.index(family)])
    x = table(kind, columns, rng)
    y = labels(family, x, rng)
    times = by_rows(family, x, y)
    found = {}
    if columns in MOST:
        most = MOST[columns] * (1.0 if family == "gaussian" else OTHERS)
        found = asked(float(times.mean()), most=most)
    whole = len(times) == ROWS
    cells = [
        times[:EARLY].mean(), times[-LATE:].mean(), times.mean(), len(times),
        found.get("asked", ""), found.get("verdict", ""),
        clocked(lambda: nw.OnlineGLM(family).fit(x, y)) if whole else "",
        clocked(lambda: Ridge(alpha=columns).fit(x, y)),
    ]  # fmt: skip
    return [family, columns, kind, *cells]


def main(families):
    """Print the table."""
    print(*HEAD, sep="\t")
    for family in families:
        for columns in COLUMNS:
            for kind in ("dense", "sparse", "one-hot"):
                cells = measure(family, columns, kind)
                print(*(f"{c:.3g}" if isinstance(c, float) else c for c in cells), sep="\t")
                sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:] or FAMILIES)
