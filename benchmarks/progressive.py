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
from noisewise.experiments import plotting

from .clock import asked
from .tables import HELD_OUT, TABLES, orders, read

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURES, PAGE = DOCS / "pictures", DOCS / "howto" / "which-tool.md"
MARKS = "<!-- written by python -m benchmarks.progressive -->", "<!-- end -->"
PEERS = ["river_linear", "padasip_rls", "vowpal_wabbit", "sklearn_sgd"]
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
    """Return the mean loss of all rows, and of those after the first ten."""
    if family == "gaussian":
        found = (means - y) ** 2
    elif family == "binomial":
        p = np.clip(means, CLIP, 1 - CLIP)
        found = -y * np.log(p) - (1 - y) * np.log1p(-p)
    else:
        p = np.maximum(means, CLIP)
        found = p - y * np.log(p) + gammaln(y + 1)
    return np.nan_to_num([np.mean(found), np.mean(found[FROZEN:])], nan=np.inf)


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
    mine, peers = np.mean(mine, axis=0).tolist(), {}
    for (model, scaling), each in losses.items():
        whole, later = np.mean(each, axis=0).tolist()
        found = {"loss": whole, "later": later, "scaling": scaling}
        peers[model] = min(peers.get(model, found), found, key=lambda f: f["loss"])
    best = min(peers, key=lambda model: peers[model]["loss"])
    return {
        "data": name, "family": family, "rows": len(y), "dim": x.shape[1], "orders": len(met),
        "ours": mine[0], "later": mine[1], "peers": peers, "best": best,
        "ratio": mine[0] / peers[best]["loss"],
        "later_ratio": mine[1] / min(each["later"] for each in peers.values()),
    }  # fmt: skip


def progressive(repeats, largest):
    """One-step-ahead errors on real data; the ratio is to the best of five peers."""
    table = []
    for found in map(compare, TABLES):
        table.append(found)
        row = {"section": "progressive", "stream": found["data"], "dim": found["dim"],
               "rounds": found["rows"]}  # fmt: skip
        target = asked(found["ratio"], most=MOST)
        yield row | {"what": "noisewise", "error": found["ours"], "ratio": found["ratio"]} | target
        best = found["peers"][found["best"]]["loss"]
        for model, peer in found["peers"].items():
            yield row | {"what": model, "error": peer["loss"], "ratio": peer["loss"] / best}
    first, _ = summary(table)
    yield {"section": "progressive", "what": "data sets ours is best on", "lead": first,
           **asked(first, least=BEST)}  # fmt: skip


def models(found):
    """Return the names of all peers."""
    return list(dict.fromkeys(model for row in found for model in row["peers"]))


def short(value):
    """Return a loss in four digits; "diverges" beyond all sense, "-" where a model has none."""
    if value is None:
        return "-"
    if not value < 1e8:
        return "diverges"
    return f"{value:.0f}" if value >= 1000 else f"{value:#.4g}"


def lines(found):
    """Return the rows of the table as text: ours, each peer, and ours over the best peer."""
    names = models(found)
    yield ["data", "rows", "features", "noisewise", *names, "ratio", "after ten"]
    for row in found:
        peers = [short(row["peers"].get(name, {}).get("loss")) for name in names]
        size = [f"{row['rows']:,}", str(row["dim"])]
        ratios = [f"{row[each]:.3f}" for each in ("ratio", "later_ratio")]
        yield [row["data"], *size, short(row["ours"]), *peers, *ratios]


def markdown(found):
    """Return the tables as the page shows them."""
    head, *body = lines([*found["tables"], *found["held_out"]])
    body.insert(len(found["tables"]), ["*held out*", *[""] * (len(head) - 1)])
    rule = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, rule, *body])


LEAST, FURTHEST = 0.65, 3.0  # ratios in the picture; beyond stands an arrow


def draw(found):
    """Draw each model's loss over that of the best peer, a line for every data set."""
    both = found["tables"] + found["held_out"]
    figure, (row,) = plotting.panels(1, 1, width=8.0, height=5.2)
    axis, gap = row[0], len(found["tables"])
    heights = [at + (at >= gap) for at in range(len(both))]
    axis.axvspan(LEAST, 1, color=plotting.BLUE, alpha=0.06, lw=0)
    axis.axvline(1, color="black", lw=1)
    axis.hlines(heights, LEAST, FURTHEST, color="black", alpha=0.15, lw=0.6, zorder=0)
    _dots(axis, [row["ratio"] for row in both], heights, "noisewise", "D", plotting.BLUE, 9)
    for name, mark, colour in zip(models(both), "osv^X", plotting.COLOURS[1:], strict=False):
        losses = [row["peers"].get(name, {}).get("loss", np.nan) for row in both]
        best = [row["peers"][row["best"]]["loss"] for row in both]
        _dots(axis, np.divide(losses, best), heights, name, mark, colour)
    axis.set_yticks(heights, [f"{row['data']}  {row['rows']:,} × {row['dim']}" for row in both])
    axis.set(xscale="log", xlim=(LEAST, FURTHEST * 1.04), ylim=(heights[-1] + 0.6, -0.6))
    ticks = [0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 3]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.grid(axis="y", visible=False)
    axis.set_xlabel("error over that of the best other package (left is better; arrows: beyond 3)")
    axis.annotate("held out", (LEAST * 1.01, gap), style="italic", va="center", fontsize=8)
    axis.annotate("noisewise ahead of all", (LEAST * 1.01, -0.45), va="center", fontsize=8,
                  color=plotting.BLUE)  # fmt: skip
    axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=6, handletextpad=0.2,
                columnspacing=1.2)  # fmt: skip
    first, held_out = (summary(found[group])[0] for group in ("tables", "held_out"))
    plotting.headline(
        figure,
        f"noisewise has the smallest error on {first} of {len(found['tables'])} data sets, and on "
        f"{held_out} of {len(found['held_out'])} held out",
    )
    return figure


def _dots(axis, ratios, heights, name, mark, colour, size=5.5):
    """Draw a model on every line, as an arrow at the edge where it is beyond."""
    ratios, heights = np.array(ratios), np.array(heights)
    style = {"color": colour, "mec": "white", "mew": 0.6, "zorder": 3, "ls": "", "ms": size}
    far = ratios > FURTHEST
    axis.plot(np.where(far, np.nan, ratios), heights, mark, label=name, **style)
    if far.any():  # an empty line would widen the margin
        axis.plot(np.full(far.sum(), FURTHEST), heights[far], ">", clip_on=False, **style)


def fill(page, found):
    """Return the text of a page with the tables of this run between its two comments."""
    before, _, rest = page.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n\n{markdown(found)}\n\n{MARKS[1]}{after}"


def summary(found):
    """Return on how many data sets ours is best, and the largest ratio to the best peer."""
    ratios = [row["ratio"] for row in found]
    return sum(ratio < 1 for ratio in ratios), max(ratios)


def main():
    groups = {"tables": TABLES, "held_out": HELD_OUT}
    found = {group: [compare(name) for name in names] for group, names in groups.items()}
    for group, table in found.items():
        for line in lines(table):
            print("  ".join(f"{cell:>16}" for cell in line))
        first, most = summary(table)
        print(f"{group}: best on {first} of {len(table)}, at most {most:.3f} of the best peer\n")
    (PICTURES / "progressive.json").write_text(json.dumps(found, indent=1) + "\n")
    plotting.write(draw, found, PICTURES / "progressive.svg")
    PAGE.write_text(fill(PAGE.read_text(), found))


if __name__ == "__main__":
    main()
