"""The pictures of docs/streaming.md: python -m benchmarks.pictures ROWS...

ROWS are files that `python -m benchmarks` wrote, one for each kind of processor. What was drawn is
kept beside the picture, in docs/pictures/bench.json.
"""

import json
import sys
from pathlib import Path

import numpy as np

import noisewise as nw
from noisewise.experiments import plotting

from .quality import quality
from .streams import isotropic, labels

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
SHOWN = {
    "identity stream": ("BLAS pair", "noisewise"),
    "logistic stream": ("rigorous 0.1", "calibrated 0.01"),
}


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
            found = quality(glm, state)
            shown.append((t + 1, found["certificate"], found["error"]))
    times, certificate, error = np.array(shown).T
    figure, (row,) = plotting.panels(1, 1, width=8.0, height=3.6)
    axis, error = row[0], np.maximum(error, 1e-9)
    axis.plot(times, certificate, lw=0.9)
    axis.plot(times, error, lw=0.9)
    axis.axhline(0.1, color="black", ls="--", lw=1)
    axis.plot(passes, np.full(len(passes), 3e-8), "|", color="black", ms=9)
    plotting.log_rounds(axis, T)
    axis.set(yscale="log", xlabel="observations", ylim=(1e-8, 1), xlim=(1, T))
    axis.set_ylabel("distance from the exact minimiser,\nin standard errors")
    ends = {
        "tolerance": (0.1, plotting.BLACK),
        "certified gap": (certificate[-50:].mean(), plotting.BLUE),
        "true distance": (error[-50:].mean(), plotting.VERMILION),
        f"{len(passes)} passes": (3e-8, plotting.BLACK),
    }
    plotting.label_ends(axis, ends)
    plotting.headline(
        figure,
        f"Certified gap at most {certificate.max():.2f} standard errors, the true one "
        f"{np.median(certificate / error):.0f} times smaller",
    )
    return figure


def drawn(rows):
    """Return of the rows measured those that `bench` draws, with what it needs of them."""
    kept = ("processor", "section", "stream", "dim", "rounds", "what", "ratio")
    return [
        {key: row[key] for key in kept}
        for row in rows
        if row["what"] in SHOWN.get(row["section"], ()) and row["rounds"] == 100_000
    ]


def bench(rows):
    """Cost of a round against the limit, identity and logistic streams, by kind of processor."""
    kinds = list(dict.fromkeys(row["processor"] for row in rows))
    figure, axes = plotting.panels(len(kinds), 2, width=10.0, height=3.2)
    for kind, (left, right) in zip(kinds, axes, strict=True):
        own = [row for row in rows if row["processor"] == kind]
        linear, curved = ([r for r in own if r["section"] == section] for section in SHOWN)
        words = "this processor" if kind == "host" else f"as on one with {kind} alone"
        _bars(left, linear, lambda r: r["what"], f"identity link, {words}")
        _bars(right, curved, lambda r: f"{r['what']}, {r['stream']}", f"logistic link, {words}")
        left.set_ylabel("CPU time of a round / limit")
    ours = [r for r in rows if r["what"] != "BLAS pair"]
    most = {d: max(r["ratio"] for r in ours if r["dim"] == d) for d in {r["dim"] for r in ours}}
    few, many = min(most), max(most)
    plotting.headline(
        figure,
        f"A round costs at most {most[few]:.0f} times the limit with {few} features, and "
        f"{most[many]:.1f} times with {many}",
    )
    return figure


def _bars(axis, rows, name, title):
    """Draw a bar a row from the limit, upwards where it is slower and downwards where faster."""
    kinds = list(dict.fromkeys(map(name, rows)))
    dims = sorted({r["dim"] for r in rows})
    for i, kind in enumerate(kinds):
        ratio = {r["dim"]: r["ratio"] for r in rows if name(r) == kind}
        at = np.arange(len(dims)) + (i - (len(kinds) - 1) / 2) * 0.8 / len(kinds)
        height = [ratio.get(d, 1.0) - 1 for d in dims]
        bars = axis.bar(at, height, 0.8 / len(kinds), bottom=1, label=kind)
        words = [f"{ratio[d]:.1f}" if d in ratio else "" for d in dims]
        axis.bar_label(bars, words, fontsize=6, padding=1)
    axis.axhline(1, color="black", lw=1)
    axis.annotate("limit", (1.01, 1), xycoords=("axes fraction", "data"), va="center", fontsize=7)
    axis.set_xticks(range(len(dims)), [f"{d} features" for d in dims])
    axis.set(title=title, yscale="log", ylim=(0.4, 40))
    ticks = [0.5, 1, 2, 5, 10, 20]
    axis.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axis.minorticks_off()
    axis.legend(fontsize=7)


def main(*paths):
    rows = [row for path in paths for row in drawn(json.loads(Path(path).read_text())["rows"])]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "bench.json").write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    plotting.write(gap, None, FOLDER / "gap.svg")
    plotting.write(bench, rows, FOLDER / "bench.svg")


if __name__ == "__main__":
    main(*sys.argv[1:])
