"""How wide intervals are, over the textbook's: python -m benchmarks.widths draws the picture.

One stream for each dimension: rows on the sphere, parameter of norm 0.7, noise of sd 1 (identity)
or coin flips (logistic), `theory.interval_ridge`. The median over coordinates.
"""

import math
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import chi2

import noisewise as nw
from noisewise.confidence import score_bounds
from noisewise.experiments import plotting
from noisewise.regression.intervals.fixed_row import one_direction

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "widths.svg"
COUNTS = [round(10 ** (k / 2)) for k in range(4, 13)]
DIMS, DELTA = (1, 3, 10, 50), 0.05
PROMISES = {"all rows, all times": True, "one row fixed in advance, all times": False}


def measure(link: str, d: int, seed: int = 0) -> list[dict[str, object]]:
    """Return the ratios of one stream, a record for each number of rows and promise."""
    glm, rng = nw.GLM(link), np.random.default_rng([seed, d])
    noise = nw.SubGaussian(1.0) if glm.linear else nw.Likelihood()
    ftrl = nw.FTRL(glm, nw.theory.interval_ridge(glm, noise, d))
    state, truth, records = ftrl.start(d), np.full(d, 0.7 / math.sqrt(d)), []
    for n in COUNTS:
        x = rng.normal(size=(n - state.count, d))
        x /= np.linalg.norm(x, axis=1)[:, None]
        mean = glm.mean(x @ truth)
        y = mean + rng.normal(size=len(x)) if glm.linear else rng.random(len(x)) < mean
        ftrl.update(state, x, np.asarray(y, dtype=float))
        rows = np.eye(d)
        usual = np.subtract(*one_direction(glm, state, rows, noise, DELTA, anytime=False)[1::-1])
        ends = {
            True: score_bounds(ftrl.confidence(state, noise, DELTA), rows),
            False: one_direction(glm, state, rows, noise, DELTA, anytime=True)[:2],
        }
        for promise, all_rows in PROMISES.items():
            ratio = np.median(np.subtract(*ends[all_rows][::-1]) / usual)
            records.append({"link": link, "d": d, "n": n, "promise": promise, "ratio": ratio})
    return records


def draw(table: pd.DataFrame) -> plotting.Figure:
    """Draw width over textbook against the number of rows."""
    figure, axes = plotting.panels(2, 2, height=2.8)
    for i, link in enumerate(("identity", "logistic")):
        for axis, promise in zip(axes[i], PROMISES, strict=True):
            ends: dict[str, tuple[float, str]] = {}
            for d, colour in zip(DIMS, plotting.COLOURS, strict=False):
                cell = table.query("link == @link and d == @d and promise == @promise")
                axis.plot(cell["n"], cell["ratio"], color=colour)
                ends[f"{d} feature{'s' * (d > 1)}"] = (cell["ratio"].iloc[-1], colour)
                if promise.startswith("all"):
                    floor = math.sqrt(chi2.ppf(1 - DELTA, d)) / 1.96
                    axis.axhline(floor, color=colour, linewidth=0.9, linestyle=":")
            axis.set_xscale("log")
            axis.set_ylim(0, 10 if promise.startswith("all") else 3)
            axis.axhline(1, color="black", linewidth=0.8)
            axis.set_title(f"{link}: {promise}")
            axis.set_ylabel("width over the textbook's")
            axis.set_xlim(COUNTS[0], COUNTS[-1])
            if not promise.startswith("all"):  # the curves lie on each other
                ends = {f"{DIMS[0]} to {DIMS[-1]} features": next(iter(ends.values()))}
            plotting.label_ends(axis, {"textbook": (1.0, plotting.BLACK), **ends})
        words = "dotted: the least width for all\nrows at once, at one fixed time"
        axes[i, 0].annotate(words, (0.03, 0.97), xycoords="axes fraction", va="top", fontsize=8)
    for axis in axes[1]:
        axis.set_xlabel("rows")
    last = table[table["n"] == COUNTS[-1]].groupby(["promise", "d"])["ratio"].max().unstack()
    all_rows, one_row = (last.loc[promise] for promise in PROMISES)
    plotting.headline(
        figure,
        f"Valid at all times: {one_row.max():.1f} times the textbook's width for one row, up to "
        f"{all_rows.max():.1f} times for all rows at once",
    )
    return figure


def main() -> None:
    """Measure all cells, print and draw them."""
    cells = [
        record for link in ("identity", "logistic") for d in DIMS for record in measure(link, d)
    ]
    table = pd.DataFrame(cells)
    shown = table.pivot_table(index=["link", "promise", "d"], columns="n", values="ratio")
    print(shown.round(2).to_string())
    plotting.write(draw, table, PICTURE)


if __name__ == "__main__":
    main()
