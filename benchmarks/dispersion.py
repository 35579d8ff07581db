"""How often default intervals of shares and counts miss, how wide they are, and when they begin.

``python -m benchmarks.dispersion [--streams 300] [WORLD ...]`` plays streams of every world, asks
for the intervals of a coefficient, the intercept and a row at times that grow by a third, and
prints a line a world: the share of streams in which an interval ever missed (the mean over the
three, and the worst), the row from which on they are finite, their width over that of the
likelihood at some times, and how often textbook intervals cover at row 245. Then new labels.
"""

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from scipy.special import expit

import noisewise as nw
from noisewise.regression.intervals import curved_intervals
from noisewise.theory.mixtures import PRECISION, half_width

DELTA = 0.05
SHOWN = 105, 245, 1000


@dataclass(frozen=True)
class World:
    """Labels of a family with a rate, extra dispersion and kinds of features and trials."""

    family: str
    dim: int
    rate: float
    extra: float = 0.0  # relative variance of a count's mean, or correlation of trials
    trials: str = "one"
    features: str = "normal"
    exact: bool = False
    most: float = 0.05
    wider: float = 1.15

    @property
    def rows(self):
        return 1750 if self.dim >= 30 else 3000

    def features_of(self, rng, n):
        x = rng.normal(size=(n, self.dim))
        if self.features == "skewed":
            x = (np.exp(x) - math.exp(0.5)) / math.sqrt(math.e * (math.e - 1))
        if self.features in ("dummy", "group"):
            x[:, 0] = rng.random(n) < 0.03
        if self.features == "correlated":
            x = math.sqrt(0.999) * x[:, :1] + math.sqrt(0.001) * rng.normal(size=x.shape)
        return x

    def draw(self, rng, n, x=None, truth=None):
        """Return rows, labels, weights and the parameter: coefficients, then the intercept."""
        d = self.dim
        x = self.features_of(rng, n) if x is None else x
        if truth is None:
            start = math.log(self.rate / (1 - self.rate if self.family == "binomial" else 1))
            truth = np.append(0.5 / math.sqrt(d) * rng.choice([-1.0, 1.0], d), start)
        score = x @ truth[:d] + truth[d]
        extra = np.full(n, self.extra)
        if self.features == "group":
            extra *= x[:, 0]
        if self.family == "poisson":
            w = np.exp(rng.normal(size=n)) if self.trials == "exposure" else np.ones(n)
            mean = w * np.exp(score)
            some = extra > 0
            mean[some] *= rng.gamma(1 / extra[some], extra[some])
            return x, rng.poisson(mean) / w, w, truth
        w = {"one": np.ones(n), "mixed": np.floor(np.exp(rng.uniform(0, math.log(2001), n)))}.get(
            self.trials, np.full(n, 20.0)
        )
        share = expit(score)
        if self.extra:
            size = 1 / self.extra - 1
            share = rng.beta(np.maximum(share * size, 1e-12), np.maximum((1 - share) * size, 1e-12))
        return x, rng.binomial(w.astype(int), share) / w, w, truth


def worlds():
    """Return the worlds by name."""
    counts, shares, one = {}, {}, {}
    for d in (1, 3, 10, 30):
        counts[f"Poisson 3, d={d}"] = World("poisson", d, 3.0, exact=True)
        counts[f"neg. binomial 1, d={d}"] = World("poisson", d, 3.0, 1.0)
        shares[f"beta-bin. .05 mixed, d={d}"] = World("binomial", d, 0.3, 0.05, "mixed")
        one[f"0/1 30 %, d={d}"] = World("binomial", d, 0.3, exact=True)
    counts |= {
        "neg. binomial 1, d=50": World("poisson", 50, 3.0, 1.0),
        "Poisson .3": World("poisson", 3, 0.3, exact=True),
        "Poisson .02": World("poisson", 3, 0.02, exact=True, wider=2.3),
        "Poisson 3, skewed": World("poisson", 3, 3.0, features="skewed", exact=True),
        "Poisson 3, skewed, d=10": World("poisson", 10, 3.0, features="skewed", exact=True),
        "Poisson 3, dummy 3 %": World("poisson", 3, 3.0, features="dummy", exact=True, wider=1.6),
        "Poisson 3, corr. .999": World("poisson", 3, 3.0, features="correlated", exact=True),
        "Poisson 3, exposure": World("poisson", 3, 3.0, trials="exposure", exact=True),
        "neg. binomial 1, exposure": World("poisson", 3, 3.0, 1.0, "exposure"),
        "neg. binomial .3": World("poisson", 3, 3.0, 0.3),
        "neg. binomial 5": World("poisson", 3, 3.0, 5.0),
        "neg. binomial 5, d=10": World("poisson", 10, 3.0, 5.0),
        "neg. binomial 5, rate .3": World("poisson", 3, 0.3, 5.0),
        "neg. binomial 1, skewed": World("poisson", 3, 3.0, 1.0, features="skewed"),
        "neg. binomial 5, skewed": World("poisson", 3, 3.0, 5.0, features="skewed"),
        "neg. binomial 1, dummy 3 %": World("poisson", 3, 3.0, 1.0, features="dummy"),
        "only 3 % group": World("poisson", 3, 3.0, 1.0, features="group", most=0.055),
        "neg. binomial 1, corr. .999": World("poisson", 3, 3.0, 1.0, features="correlated"),
    }
    shares |= {
        "binomial 20 trials": World("binomial", 3, 0.3, trials="20", exact=True),
        "binomial mixed": World("binomial", 3, 0.3, trials="mixed", exact=True),
        "binomial mixed .5 %": World("binomial", 3, 0.005, 0, "mixed", exact=True, wider=1.3),
        "beta-bin. .05 20 trials": World("binomial", 3, 0.3, 0.05, "20"),
        "beta-bin. .01 mixed": World("binomial", 3, 0.3, 0.01, "mixed"),
        "beta-bin. .2 mixed": World("binomial", 3, 0.3, 0.2, "mixed"),
        "beta-bin. .05 mixed .5 %": World("binomial", 3, 0.005, 0.05, "mixed"),
        "beta-bin. .2 mixed, d=30": World("binomial", 30, 0.3, 0.2, "mixed"),
        "beta-bin. .05 mixed skewed": World("binomial", 10, 0.3, 0.05, "mixed", "skewed"),
    }
    one |= {
        "0/1 30 %, d=50": World("binomial", 50, 0.3, exact=True),
        "0/1 .5 %, d=1": World("binomial", 1, 0.005),
        "0/1 .5 %, d=3": World("binomial", 3, 0.005),
        "0/1 2 %, d=10": World("binomial", 10, 0.02, exact=True),
        "0/1 30 %, skewed": World("binomial", 3, 0.3, features="skewed", exact=True),
        "0/1 30 %, corr. .999": World("binomial", 3, 0.3, features="correlated", exact=True),
    }
    return counts | shares | one


def times(world):
    """Return the rows at which intervals are looked at."""
    grid = 20 * 1.32 ** np.arange(40)
    return [int(n) for n in grid if n <= world.rows]


def likelihood_width(fit, z):
    """Return the width of anytime intervals that trust the likelihood, with diagonal scales."""
    b, _ = fit.fit.design.project(z)
    v = np.einsum("ij,jk,ik->i", b, fit.fit.inverse, b)
    sums = fit.fit.design.sums
    a = z @ fit.fit.design.C.T
    scales = np.where(sums.scales > 0, sums.scales, 1.0)
    unit = float(fit.fit.design.link.slope(np.zeros(1))[0])
    phi = PRECISION * unit / (a * a / scales).sum(axis=1)
    return 2 * half_width(v, math.inf, DELTA, phi)


def play(world, rng):
    """Return, for each time and direction, whether it missed, its width and the likelihood's."""
    x, y, w, truth = world.draw(rng, world.rows)
    d, out = world.dim, []
    row = world.features_of(rng, 1)
    mixture = nw.RidgeMixture(world.family)
    # the exact set of labels 0 and 1 needs the losses of the stream; where d > 10 events are many
    streamed = world.trials == "one" and world.family == "binomial" and d <= 10
    state, done = mixture.start(d), 0
    for n in times(world):
        if streamed:
            mixture.update(state, x[done:n], y[done:n], w[done:n])
            fit, done = curved_intervals.solve(mixture, state), n
        else:
            fit = curved_intervals.fit_rows(
                world.family, x[:n] - x[0], y[:n], w[:n], True, x[0], lambda: math.inf
            )
        units = fit._unit_directions()
        z = np.vstack([units[0], units[-1], fit._directions(row)[0]])
        aim = np.array([truth[0], truth[-1], float(row[0] @ truth[:d] + truth[-1])])
        found = fit._scores_within(z, "auto", DELTA, True, False)
        book = fit._scores_within(z, "auto", DELTA, False, False)
        lower, upper = np.array(found)
        wide = likelihood_width(fit, z) if fit.fit.exists else np.full(3, math.nan)
        out.append(
            [
                (aim < lower) | (aim > upper),
                upper - lower,
                wide,
                (book.lower <= aim) & (aim <= book.upper),
            ]
        )
    return np.array(out, dtype=float)  # times, what, directions


def measure(world, streams, seed):
    """Return the figures of a world."""
    started = time.process_time()
    runs = np.array([play(world, np.random.default_rng([seed, i])) for i in range(streams)])
    at, missed = times(world), runs[:, :, 0].max(axis=1)
    width, likely = np.median(runs[:, :, 1].mean(axis=2), axis=0), runs[:, :, 2].mean(axis=2)
    with np.errstate(invalid="ignore"):
        ratio = width / np.median(np.where(np.isfinite(likely), likely, math.inf), axis=0)
    near = {n: int(np.argmin(np.abs(np.array(at) - n))) for n in SHOWN}
    finite = [n for n, each in zip(at, width, strict=True) if np.isfinite(each)]
    late = [each for n, each in zip(at, ratio, strict=True) if n >= 245 and np.isfinite(each)]
    rates = missed.mean(axis=0)
    return {
        "ever_miss": float(rates.mean()),
        "worst": float(rates.max()),
        "error": math.sqrt(max(rates.max(), 1 / streams) / streams),
        "finite_from": finite[0] if finite else None,
        "width_over_likelihood": {n: float(ratio[i]) for n, i in near.items()},
        "widest_from_245": float(max(late)) if late else None,
        "textbook_245": float(runs[:, near[245], 3].mean()),
        "seconds": time.process_time() - started,
    }


LABELS = {
    "Poisson 3": World("poisson", 3, 3.0),
    "neg. binomial 1": World("poisson", 3, 3.0, 1.0),
    "neg. binomial 5": World("poisson", 3, 3.0, 5.0),
    "neg. binomial .3, mean 30": World("poisson", 3, 30.0, 0.3),
    "neg. binomial 1, skewed": World("poisson", 3, 3.0, 1.0, features="skewed"),
    "beta-bin. .05 of 20": World("binomial", 3, 0.3, 0.05, "20"),
    "beta-bin. .2 of 20": World("binomial", 3, 0.3, 0.2, "20"),
    "beta-bin. .05 mixed": World("binomial", 3, 0.3, 0.05, "mixed"),
    "binomial of 20": World("binomial", 3, 0.3, trials="20"),
}


def label_coverage(world, streams, seed, new=6):
    """Return the share of new labels inside their 95 % intervals after some rows."""
    covered = {n: [] for n in (20, 50, 200, 800)}
    for i in range(streams):
        rng = np.random.default_rng([seed, 1, i])
        x, y, w, truth = world.draw(rng, 800)
        for n, into in covered.items():
            fresh, label, size, _ = world.draw(rng, new, truth=truth)
            fit = curved_intervals.fit_rows(
                world.family, x[:n] - x[0], y[:n], w[:n], True, x[0], lambda: math.inf
            )
            lower, upper = fit.interval(fresh, kind="observation", trials=size)
            into += ((lower <= label + 1e-12) & (label - 1e-12 <= upper)).tolist()
    return {n: float(np.mean(into)) for n, into in covered.items()}


@click.command()
@click.argument("names", nargs=-1)
@click.option("--streams", default=300, show_default=True)
@click.option("--seed", default=20261118, show_default=True)
@click.option("--out", default="results/bench/dispersion.json", type=click.Path(path_type=Path))
def main(names, streams, seed, out):
    """Measure the default intervals of shares and counts."""
    known, found, labels = worlds(), {}, {}
    out.parent.mkdir(parents=True, exist_ok=True)
    for name in names or known:
        world = known[name]
        row = found[name] = measure(world, streams, seed)
        widest = row["widest_from_245"]
        kept = row["worst"] <= world.most
        narrow = not world.exact or (widest is not None and widest <= world.wider)
        row["verdict"] = "ok" if kept and narrow else "MISSED"
        ratios = " ".join(f"{each:6.2f}" for each in row["width_over_likelihood"].values())
        worst = f"worst {row['worst']:.3f} +- {row['error']:.3f}"
        click.echo(
            f"{name:28} miss {row['ever_miss']:.3f} ({worst})  finite {row['finite_from']}  "
            f"width/likelihood {ratios}  textbook "
            f"{row['textbook_245']:.3f}  {row['seconds']:.0f} s  {row['verdict']}"
        )
        out.write_text(json.dumps({"streams": streams, "seed": seed, "worlds": found}, indent=1))
    for name, world in ({} if names else LABELS).items():
        labels[name] = label_coverage(world, streams, seed)
        click.echo(
            f"new labels, {name:28} " + " ".join(f"{n}: {c:.3f}" for n, c in labels[name].items())
        )
        every = {"streams": streams, "seed": seed, "worlds": found, "labels": labels}
        out.write_text(json.dumps(every, indent=1))


if __name__ == "__main__":
    main()
