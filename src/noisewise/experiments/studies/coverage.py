"""Study `coverage`: how often every confidence set misses, over all rounds at once."""

import numpy as np
import pandas as pd

from ... import environments as env
from ...environments.draws import Draw
from ...model.glm import GLM
from ...model.noise import Bounded, Likelihood, Noise, SubGaussian
from ...protocols import Rounds
from ...regression.ftrl.ftrl import FTRL
from ...support.printing import percent
from .. import Record, plotting
from ..verdicts import Verdict, rare

TITLE = "Confidence that holds at all rounds at once"
CLAIM = (
    "Streaming FTRL on labels of unequal precision. After every row each confidence set is asked "
    "whether it contains the truth; a run misses if it ever does not. The promise is that at most"
    " one run in twenty misses. The ratio is the largest distance of the truth from the estimate "
    "over all rounds, in radii: 1 is the edge of the set, and the closer the ninetieth percentile"
    " (bar) lies to 1, the less the set wastes. Sub-Gaussian radii meet Gaussian noise; the radii"
    " for bounded noise meet uniform, clipped Gaussian, random-sign and sparse noise within ±1; "
    "likelihood radii meet draws of the link's own family (Gaussian for identity). Counts are not"
    " sub-Gaussian, and the algebraic link has no family, so neither pair is there."
)
TRIALS = 16
ROUNDS = 150
DELTA = 0.05
DIM, BOUND, RIDGE = 2, 1.5, 0.05

CURVED = ("logistic", "probit", "tanh", "algebraic")
NOISES = {
    "gaussian": ("identity", *CURVED),
    "uniform": ("identity", *CURVED),
    "sparse": ("identity", *CURVED),
    "sign": ("identity", "logistic"),
    "clipped gaussian": ("identity", "logistic"),
    "family": ("identity", "logistic", "probit", "tanh", "exponential"),
}
# within 1, of sds from 0.2 to 0.4 under weights of at most 25
BOUNDED: dict[str, Draw] = {
    "uniform": env.Uniform(),
    "sparse": env.Sparse(1.0),
    "sign": env.Rademacher(),
    "clipped gaussian": env.ClippedGaussian(1.0),
}


def cells(rounds: int) -> list[Record]:
    """One cell per noise and link."""
    return [
        {"link": link, "noise": noise, "rounds": rounds}
        for noise, links in NOISES.items()
        for link in links
    ]


def data(cell: Record, rng: np.random.Generator) -> list[Record]:
    """Play one stream; for every set the largest distance of the truth over its radius."""
    glm = GLM(cell["link"], parameter_bound=BOUND)
    noise, rounds = _draw(glm, cell["noise"], cell["rounds"], rng)
    names = ["adaptive"]
    if cell["link"] != "exponential":
        names.append("self-normalised")
    if isinstance(noise, Bounded):
        names += ["freedman", "printed"]
    ftrl = FTRL(glm, ridge=RIDGE)
    state, largest = ftrl.start(DIM), dict.fromkeys(names, 0.0)
    for x, y, w in zip(rounds.x, rounds.y, rounds.weight, strict=True):
        ftrl.update(state, x, y, w)
        for name in names:
            forms = ftrl.confidence(state, noise, DELTA, name)
            for form, each in zip((name, f"{name}, local"), forms, strict=False):
                ratio = each.distance(rounds.theta) / each.radius  # type: ignore[arg-type]
                largest[form] = max(largest.get(form, 0.0), ratio)
    return [
        {
            "link": cell["link"],
            "noise": cell["noise"],
            "radius": form,
            "missed": ratio > 1,
            "largest_ratio": ratio,
        }
        for form, ratio in largest.items()
    ]


def _draw(glm: GLM, kind: str, T: int, rng: np.random.Generator) -> tuple[Noise, Rounds]:
    """Draw a stream and what a learner knows of its noise."""
    x, theta = env.Sphere().draw(rng, T, DIM), env.OnSphere(BOUND).draw(rng, DIM)
    if kind == "family" and not glm.linear:
        return Likelihood(), env.Family(glm, most=100).label(rng, x, theta)
    if kind in BOUNDED:
        labels = env.Noisy(glm, BOUNDED[kind], env.LogUniform(0.2, 0.4))
        return Bounded(1.0, 1.0, max_weight=25.0), labels.label(rng, x, theta)
    labels = env.Noisy(glm, scales=env.Levels() if kind == "family" else env.LogUniform(0.1, 1.0))
    known = Likelihood() if kind == "family" else SubGaussian()
    return known, labels.label(rng, x, theta)


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """One line per noise, link and set: share of runs that missed, percentiles of the ratio."""
    grouped = table.groupby(["noise", "link", "radius"], sort=False)
    lines = grouped["missed"].mean().rename("missed").to_frame()
    lines["ratio, median"] = grouped["largest_ratio"].median()
    lines["ratio, 90th percentile"] = grouped["largest_ratio"].quantile(0.9)
    return lines.reset_index()


def holds(table: pd.DataFrame) -> dict[str, Verdict]:
    """No set misses more often than it may, and the adaptive one is not idle."""
    missed = table.set_index(["radius", "noise", "link", "trial"])["missed"]
    third = (3 * table["largest_ratio"] > 1).groupby([table["radius"], table["noise"]]).mean()
    power = {form: third[form].max() for form in ("adaptive", "adaptive, local")}
    return {
        "no kind of set misses more often than in one run in twenty, all worlds together": rare(
            missed.droplevel(["noise", "link"]), DELTA
        ),
        "no set misses more often than in one run in twenty in any one world": rare(missed, DELTA),
        "a third of the adaptive set's size would be too small": Verdict(
            min(power.values()) > DELTA,
            f"it would miss in {percent(power['adaptive'])} of the runs of some noise, its local "
            f"form in {percent(power['adaptive, local'])}; not claimed for the other sets",
        ),
    }


def plot(table: pd.DataFrame) -> plotting.Figure:
    """A panel per noise: the runs' largest ratios, a row per link, a colour per set."""
    forms = list(table["radius"].unique())
    colours = dict(zip(forms, plotting.COLOURS, strict=False))
    figure, axes = plotting.panels(2, 3, width=10.0, height=3.8)
    far = max(1.15, 1.05 * table["largest_ratio"].max())
    for axis, (kind, links) in zip(axes.flat, NOISES.items(), strict=True):
        shown = [link for link in links if link in set(table["link"])]
        for place, link in enumerate(shown):
            part = table[(table["noise"] == kind) & (table["link"] == link)]
            present = [form for form in forms if form in set(part["radius"])]
            for i, form in enumerate(present):
                ratio = part.loc[part["radius"] == form, "largest_ratio"]
                height = place + 0.7 * ((i + 0.5) / len(present) - 0.5)
                axis.plot(
                    ratio, np.full(len(ratio), height), "o", ms=3, alpha=0.4, mew=0,
                    color=colours[form],
                )  # fmt: skip
                axis.plot(ratio.quantile(0.9), height, "|", ms=9, mew=2, color=colours[form])
        axis.axvline(1.0, color="black", ls="--", lw=1)
        axis.set(
            xlim=(0, far),
            title="noise of the link's family" if kind == "family" else f"{kind} noise",
            xlabel="largest distance of the truth, in radii",
        )
        plotting.name_rows(axis, shown)
        axis.invert_yaxis()
    for form, colour in colours.items():
        axes[0, 0].plot([], [], "o", ms=4, color=colour, label=form)
    words = "Dots: runs; bars: their 90th percentiles. Right of the dashed line the set missed."
    figure.legend(loc="outside lower center", ncols=len(forms), title=words)
    plotting.headline(
        figure,
        f"The truth left its set in {table['missed'].sum()} of {len(table):,} cases, where "
        f"{100 * DELTA:.0f} % are allowed",
    )
    return figure
