"""The pictures of docs/streaming.md: python -m benchmarks.pictures results/bench/rows.json"""

import json
import sys
from pathlib import Path

import numpy as np

import noisewise as nw
from noisewise.experiments import canvas

from .sections import _quality
from .streams import isotropic, labels

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"


def gap(_):
    """Certified gap, true error and passes over time, logistic link, d = 20."""
    rng = np.random.default_rng(0)
    d, T = 20, 20_000
    glm = nw.GLM("logistic", 1.0, 3.0)
    ftrl = nw.FTRL(glm, ridge=0.5)
    x = isotropic(rng, T, d)
    y, state = labels(rng, x), ftrl.start(d)
    looks = set(np.unique(np.geomspace(1, T, 700).astype(int)))
    shown, passes = [], []
    for t in range(T):
        before = state.passes
        ftrl.update(state, x[t], y[t])
        if state.passes > before:
            passes.append(t + 1)
        if t + 1 in looks:
            quality = _quality(glm, state)
            shown.append((t + 1, quality["certificate"], quality["error"]))
    times, certificate, error = np.array(shown).T
    figure, (row,) = canvas.panels(1, 1, width=8.0, height=3.6)
    row[0].plot(times, certificate, lw=0.9, label="certified gap")
    row[0].plot(times, np.maximum(error, 1e-9), lw=0.9, label="true distance")
    row[0].axhline(0.1, color="black", ls="--", lw=1)
    row[0].annotate("tolerance", (1, 0.11), va="bottom")
    row[0].plot(passes, np.full(len(passes), 3e-8), "|", color="black", ms=9, label="passes")
    row[0].set(xscale="log", yscale="log", xlabel="observations", ylim=(1e-8, 1))
    row[0].set_ylabel("distance from the exact minimiser,\nin standard errors")
    row[0].legend(loc="lower right", bbox_to_anchor=(1, 0.12))
    return figure


def bench(report):
    """Cost of a round against the limit, identity and logistic streams."""
    figure, (row,) = canvas.panels(1, 2, width=10.0, height=3.4)
    rows = report["rows"]
    _bars(row[0], [r for r in rows if r["section"] == "identity stream"], "identity link")
    chosen = [
        r
        for r in rows
        if (r["section"], r.get("rounds")) == ("logistic stream", 100_000)
        and r["what"] in ("rigorous 0.1", "calibrated 0.01")
    ]
    for r in chosen:
        r["what"] = f"{r['what']}, {r['stream']}"
    _bars(row[1], chosen, "logistic link, 100,000 rows")
    row[0].set_ylabel("CPU time of a round / limit")
    return figure


def _bars(axis, rows, title):
    kinds = list(dict.fromkeys(r["what"] for r in rows if r["what"] != "limit"))
    dims = sorted({r["dim"] for r in rows})
    for i, kind in enumerate(kinds):
        ratio = {r["dim"]: r["ratio"] for r in rows if r["what"] == kind}
        at = np.arange(len(dims)) + (i - (len(kinds) - 1) / 2) * 0.8 / len(kinds)
        bars = axis.bar(at, [ratio.get(d, 0) for d in dims], 0.8 / len(kinds), label=kind)
        axis.bar_label(bars, fmt="%.1f", fontsize=6)
    axis.axhline(1, color="black", ls="--", lw=1)
    axis.set_xticks(range(len(dims)), [f"{d} features" for d in dims])
    axis.set(title=title, yscale="log")
    ticks = [1, 2, 3, 5, 10, 20]
    axis.set_yticks(ticks, [f"{t}" for t in ticks])
    axis.minorticks_off()
    axis.annotate("limit", (-0.62, 1), va="bottom", fontsize=7)
    axis.set_xlim(-0.65, len(dims) - 0.4)
    axis.legend(fontsize=7)


def main(path):
    report = json.loads(Path(path).read_text())
    FOLDER.mkdir(exist_ok=True)
    canvas.write(gap, report, FOLDER / "gap.svg")
    canvas.write(bench, report, FOLDER / "bench.svg")


if __name__ == "__main__":
    main(*sys.argv[1:])
