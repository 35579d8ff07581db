"""One-step-ahead errors on real data beside river, padasip, vowpalwabbit and scikit-learn.

`python -m benchmarks.progressive` prints the table, and writes it with a picture for
docs/howto/which-tool.md. Nobody is tuned: every model has its defaults. Labels of a peer are
standardised by the first ten rows where they are real numbers, and features either by running
statistics, this row included, or by those of the first ten rows, whichever is better for it on
that data set (that it knows ten rows from the start is a favour). Ours gets the data as they are.
The first row counts, and real numbers are predicted as 0 there by everyone.
"""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
from scipy.special import expit, gammaln

import noisewise as nw

from .clock import asked
from .tables import HELD_OUT, TABLES, orders, read

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
PEERS = ["river_linear", "padasip_rls", "vowpal_wabbit", "sklearn_sgd"]
LOSSES = {"gaussian": "squared error", "binomial": "log loss", "poisson": "log loss"}
FROZEN = 10
CLIP = expit(-15.0)  # of probabilities, ours too; and the least mean of a count
MOST, BEST = 1.02, 8  # ratio to the best peer of a row, and how many rows ours is best on


def running(x):
    """Return rows standardised by those up to and including each."""
    n, z = np.arange(1.0, len(x) + 1)[:, None], x - x[0]
    mean, square = np.cumsum(z, axis=0) / n, np.cumsum(z * z, axis=0) / n
    variance = square - mean**2
    moved = variance > 1e-12 * square
    return np.where(moved, (z - mean) / np.sqrt(np.where(moved, variance, 1.0)), 0.0)


def frozen(x):
    """Return rows standardised by the first ten; what did not move there keeps its unit."""
    mean, sd = x[:FROZEN].mean(axis=0), x[:FROZEN].std(axis=0)
    return (x - mean) / np.where(sd > 1e-9 * np.abs(mean), sd, 1.0)


SCALINGS = {"running": running, "frozen": frozen}


def loss(family, y, means):
    """Return the mean loss of predictions; infinite if one is not a number."""
    if family == "gaussian":
        found = (means - y) ** 2
    elif family == "binomial":
        p = np.clip(means, CLIP, 1 - CLIP)
        found = -y * np.log(p) - (1 - y) * np.log1p(-p)
    else:
        p = np.maximum(means, CLIP)
        found = p - y * np.log(p) + gammaln(y + 1)
    return float(np.nan_to_num(np.mean(found), nan=np.inf))


def forecasts(peer, x, y, family):
    """Return what the models of a library predict one step ahead, labels in their own unit."""
    module = import_module(f"benchmarks.peers.{peer}")
    if family != "gaussian":
        return module.forecasts(x, y, family)
    mean, sd = y[:FROZEN].mean(), y[:FROZEN].std()
    found = module.forecasts(x, (y - mean) / sd, family)
    return {name: np.append(0.0, mean + sd * each[1:]) for name, each in found.items()}


def compare(name):
    """Return the losses on a data set, the mean over its orders: ours, and each peer's better."""
    family, (x, y) = {**TABLES, **HELD_OUT}[name].family, read(name)
    ours = nw.SelfTuned() if family == "gaussian" else nw.RidgeMixture(family)
    met, losses, mine = orders(name, len(y)), {}, []
    for order in met:
        u, v = x[order], y[order]
        mine.append(loss(family, v, nw.predictions(ours, u, v)))
        for scaling, scale in SCALINGS.items():
            for peer in PEERS:
                for model, means in forecasts(peer, scale(u), v, family).items():
                    losses.setdefault((model, scaling), []).append(loss(family, v, means))
    peers = {}
    for (model, scaling), each in losses.items():
        found = {"loss": float(np.mean(each)), "scaling": scaling}
        peers[model] = min(peers.get(model, found), found, key=lambda f: f["loss"])
    best = min(peers, key=lambda model: peers[model]["loss"])
    return {
        "data": name, "family": family, "rows": len(y), "dim": x.shape[1], "orders": len(met),
        "ours": float(np.mean(mine)), "peers": peers, "best": best,
        "ratio": float(np.mean(mine)) / peers[best]["loss"],
    }  # fmt: skip


def progressive(repeats, largest):
    """One-step-ahead errors on real data; the ratio is to the best of five peers."""
    first = 0
    for found in map(compare, TABLES):
        first += found["ratio"] < 1
        row = {
            "section": "progressive", "stream": found["data"], "dim": found["dim"],
            "rounds": found["rows"],
        }  # fmt: skip
        yield {**row, "what": "noisewise", "error": found["ours"], "ratio": found["ratio"],
               **asked(found["ratio"], most=MOST)}  # fmt: skip
        for model, each in found["peers"].items():
            ratio = each["loss"] / found["peers"][found["best"]]["loss"]
            yield {**row, "what": model, "error": each["loss"], "ratio": ratio}
    yield {"section": "progressive", "what": "data sets ours is best on", "lead": first,
           **asked(first, least=BEST)}  # fmt: skip


def short(value):
    """Return a loss in four digits, or "-" where a model has none and "diverges" beyond sense."""
    if value is None:
        return "-"
    if not value < 1e8:
        return "diverges"
    return f"{value:.0f}" if value >= 1000 else f"{value:#.4g}"


def lines(found):
    """Return the rows of the table as text: ours, each peer, and the ratio to the best peer."""
    models = list(dict.fromkeys(model for row in found for model in row["peers"]))
    yield ["data", "rows", "features", "loss", "noisewise", *models, "ratio"]
    for row in found:
        peers = [short(row["peers"].get(model, {}).get("loss")) for model in models]
        yield [row["data"], f"{row['rows']:,}", str(row["dim"]), LOSSES[row["family"]],
               short(row["ours"]), *peers, f"{row['ratio']:.3f}"]  # fmt: skip


def draw(found):
    """Draw the ratio of each model's loss to that of the best peer, a line for each data set."""
    from noisewise.experiments import plotting

    figure, (row,) = plotting.panels(1, 1, width=8.0, height=5.0)
    axis, most = row[0], 3.0
    models = list(dict.fromkeys(model for each in found for model in each["peers"]))
    colours = dict(zip(models, plotting.COLOURS[1:], strict=False))
    for at, each in enumerate(found):
        least = each["peers"][each["best"]]["loss"]
        axis.axhline(at, color="black", alpha=0.12, lw=0.6, zorder=0)
        for model, other in each["peers"].items():
            ratio = other["loss"] / least
            axis.plot(min(ratio, most), at, ">" if ratio > most else "o", color=colours[model],
                      ms=5, alpha=0.85, clip_on=False)  # fmt: skip
        axis.plot(each["ratio"], at, "D", color=plotting.BLUE, ms=7, zorder=3)
    return figure


def main():
    found = {name: [compare(each) for each in tables]
             for name, tables in (("tables", TABLES), ("held_out", HELD_OUT))}  # fmt: skip
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "progressive.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
