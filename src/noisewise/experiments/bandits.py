"""Study `bandits`: every policy on the same worlds, with and without honest variances."""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from ..bandits.adaoful import AdaOFUL
from ..bandits.ftrl_ucb import FTRLUCB
from ..bandits.glm_ucb import GLMUCB
from ..bandits.gloc import GLOC
from ..bandits.greedy import Greedy
from ..bandits.laplace_thompson import LaplaceThompson
from ..bandits.linear_thompson import LinearThompson
from ..bandits.linucb import LinUCB
from ..bandits.losan import LOSAN
from ..bandits.mor_ucb import MORUCB
from ..bandits.oful import OFUL
from ..bandits.save import SAVE
from ..bandits.ucb_glm import UCBGLM
from ..bandits.uniform import Uniform
from ..bandits.weighted_least_squares import WeightedLeastSquaresUCB
from ..bandits.weighted_oful import WeightedOFUL
from ..bandits.weighted_oful_plus import WeightedOFULPlus
from ..environments import WORLDS, ClippedGaussian, NoisyBandit, geometric
from ..protocols import Array, BanditRounds
from ..theory.bandits import certificate
from ..theory.regret import bandit_regret
from . import canvas
from .verdicts import Verdict, rare

TITLE = "Bandits that know the noise of every reward"
CLAIM = (
    "Ten features, twenty arms on the unit sphere, rewards with Gaussian noise, clipped to ±1, "
    "whose standard deviation takes one of seven values from 0.05 to 0.5 and is told with the "
    "reward. Fresh arms explore for free, fixed "
    "arms do not; in the misreported worlds a tenth of the rewards has the largest noise and tells "
    "the smallest. All policies meet the same drawn rewards. FTRL-UCB weighs rewards by their "
    "precision; its practical index has no regret proof, the guaranteed one and MOR-UCB have, "
    "and a certificate computed while playing. Where all noise is scaled, policies that weigh by "
    "variance profit from quiet rewards and the others do not; MOR-UCB's gain is hidden at this "
    "horizon by the price of the largest noise possible."
)
TRIALS = 4
ROUNDS = 2000
NOISE_BOUND, NOISE_FLOOR, LAYER_FLOOR = 1.0, 0.05, 0.1
MAIN = (
    "fresh-linear", "fixed-linear", "misreported-linear",
    "fresh-logistic", "fixed-logistic", "misreported-logistic",
)  # fmt: skip
QUIETER = (0.1, 0.3)
UNAWARE = ("OFUL", "LinUCB")
GUARANTEED = ("FTRL-UCB, guaranteed", "MOR-UCB", "MOR-UCB, nested")


def cells(rounds: int) -> list[dict[str, Any]]:
    """One cell a world."""
    names = [*MAIN, *(f"fixed-linear x {scale:g}" for scale in QUIETER)]
    return [{"world": name, "rounds": rounds} for name in names]


def world(name: str, rounds: int) -> Any:
    """Return a named world with noise clipped to the bound, scaled where the name says so."""
    base, _, scale = name.partition(" x ")
    found, c = WORLDS[base], float(scale or 1)
    assert isinstance(found, NoisyBandit)
    return dataclasses.replace(
        found,
        rounds=rounds,
        noise=ClippedGaussian(NOISE_BOUND),
        scales=geometric(0.05 * c, 0.5 * c, 7),
    )


def contestants(cell: dict[str, Any]) -> dict[str, Any]:
    """Return the policies that play in a cell."""
    glm = world(cell["world"], 1).glm
    scale = float(cell["world"].partition(" x ")[2] or 1)
    floor = NOISE_FLOOR * scale
    layers = MORUCB(glm, NOISE_BOUND, LAYER_FLOOR * scale)
    found: dict[str, Any] = {
        "FTRL-UCB": FTRLUCB(glm, noise_floor=floor, radius="practical"),
        "FTRL-UCB, guaranteed": FTRLUCB(glm, noise_floor=floor),
        "MOR-UCB": layers,
        "MOR-UCB, nested": dataclasses.replace(layers, nested=True),
        "MOR-UCB, printed radius": dataclasses.replace(layers, radius="printed"),
    }
    if glm.linear:
        found |= {
            "OFUL": OFUL(sigma=0.5),
            "LinUCB": LinUCB(),
            "weighted LinUCB": WeightedLeastSquaresUCB(noise_floor=floor),
            "Thompson": LinearThompson(),
        }
    else:
        found |= {"Thompson": LaplaceThompson(glm, scale=2.0)}
    found |= {"greedy": Greedy(glm), "uniform": Uniform()}
    if cell.get("policies") == "all":  # slow, or with radii far too large
        T = cell["rounds"]
        found |= {
            "MOR-UCB, as printed": dataclasses.replace(layers, as_printed=True),
            "GLM-UCB": GLMUCB(glm, horizon=T),
            "UCB-GLM": UCBGLM(glm, sigma=0.5, horizon=T),
            "GLOC": GLOC(glm, sigma=0.5),
        }
        if glm.linear:
            found |= {
                "Weighted OFUL": WeightedOFUL(noise_bound=NOISE_BOUND),
                "Weighted OFUL+": WeightedOFULPlus(NOISE_BOUND, horizon=T),
                "LOSAN": LOSAN(sigma=0.5),
                "SAVE": SAVE(NOISE_BOUND, horizon=T),
                "AdaOFUL": AdaOFUL(horizon=T),
            }
    return found


def data(cell: dict[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
    """Play every policy on one drawn world; regret at 13 moments, sets and certificate beside."""
    rounds = world(cell["world"], cell["rounds"]).draw(rng)
    moments = np.unique(np.geomspace(1, cell["rounds"], 13).round().astype(int))
    rows = []
    for name, policy in contestants(cell).items():
        played, missed, certified = _play(
            policy, rounds, np.random.default_rng(rng.integers(2**63))
        )
        regret = bandit_regret(rounds, played)
        rows += [
            {
                "world": cell["world"],
                "policy": name,
                "rounds": int(t),
                "regret": float(regret[t - 1]),
                "certificate": float(certified[t - 1]) if name in GUARANTEED else np.nan,
                "missed": bool(missed < t) if hasattr(policy, "confidence") else None,
                "total_variance": float((rounds.sigma[:t] ** 2).sum()),
            }
            for t in moments
        ]
    return rows


def _play(policy: Any, rounds: BanditRounds, rng: np.random.Generator) -> tuple[Any, float, Array]:
    """Return choices, the first round at which a set was seen to miss, and the certificate.

    Sets are looked at in every twentieth round.
    """
    T = len(rounds.means)
    state, first = policy.start(rounds.arms.shape[-1]), np.inf
    played = np.empty(T, dtype=np.int64)
    reach = np.full(T, np.inf)
    for t in range(T):
        arms = rounds.arms if rounds.arms.ndim == 2 else rounds.arms[t]
        k = policy.select(state, arms, rng)
        if hasattr(state, "forms"):
            reach[t] = state.forms.reach(arms[k])
        if t % 20 == 0 and first == np.inf and hasattr(policy, "confidence"):
            inside = all(each.contains(rounds.theta) for each in policy.confidence(state))
            first = first if inside else t
        policy.update(state, arms[k], float(rounds.rewards[t, k]), float(rounds.sigma[t]))
        played[t] = k
    glm = getattr(policy, "glm", None)
    return played, first, reach if glm is None else certificate(glm, reach, np.ones(T))


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """One line a world and policy: mean regret, standard error, worst run, misses, certificate."""
    last = table[table["rounds"] == table["rounds"].max()]
    grouped = last.groupby(["world", "policy"], sort=False)
    lines = grouped["regret"].agg(["mean", "sem", "max"])
    lines.columns = pd.Index(["regret", "standard error", "worst run"])
    lines["certificate"] = grouped["certificate"].mean()
    lines["sets missed"] = grouped["missed"].apply(lambda v: v.astype("float").mean())
    return lines.reset_index()


def holds(table: pd.DataFrame) -> dict[str, Any]:
    """What theory promises, and what was measured on this run."""
    lines = numbers(table).set_index(["world", "policy"])
    sound = table[~table["world"].str.startswith("misreported")]
    last = sound[sound["rounds"] == sound["rounds"].max()]
    sets = last[last["policy"].isin(["FTRL-UCB", *GUARANTEED])]
    certified = sound.dropna(subset="certificate")
    kept = certified["missed"].astype("bool") | (certified["regret"] <= certified["certificate"])
    ends = lines["regret"].unstack("world")
    fall = ends[f"fixed-linear x {min(QUIETER):g}"] / ends["fixed-linear"]
    aware = float(np.exp(np.log(fall[["FTRL-UCB", "weighted LinUCB", "Thompson"]]).mean()))
    unaware = float(fall[list(UNAWARE)].min())
    return {
        "the sets of FTRL-UCB and MOR-UCB hold the parameter as often as they promise": rare(
            sets.set_index(["policy", "trial"])["missed"].astype("bool"), 0.05
        ),
        "wherever the sets held, regret stayed below the certificate": Verdict(
            bool(kept.all()), f"{len(kept)} moments of {', '.join(GUARANTEED)}"
        ),
        "at a tenth of the noise the regret of those who weigh by variance falls to less than "
        "three quarters, that of OFUL and LinUCB does not": Verdict(
            aware < 0.75 < unaware,
            f"to {aware:.0%} (geometric mean of FTRL-UCB, weighted LinUCB, Thompson) and "
            f"{unaware:.0%}",
        ),
        **_printed(table, lines),
    }


def _printed(table: pd.DataFrame, lines: pd.DataFrame) -> dict[str, Any]:
    """Compare MOR-UCB's radii on fresh arms, where the horizon is long enough to tell."""
    worlds = MAIN[:4:3] if table["rounds"].max() >= 5000 else MAIN[:1]
    if table["rounds"].max() < ROUNDS:
        return {}
    ratio = max(
        lines.loc[(w, "MOR-UCB"), "regret"] / lines.loc[(w, "MOR-UCB, printed radius"), "regret"]
        for w in worlds
    )
    return {
        "on fresh arms MOR-UCB with the adaptive radius has at most a tenth of the regret it has "
        "with the printed one": Verdict(ratio <= 0.1, f"{ratio:.1%} ({', '.join(worlds)})")
    }


SHOWN = (
    "FTRL-UCB", "FTRL-UCB, guaranteed", "MOR-UCB", "MOR-UCB, printed radius", "Thompson", "OFUL",
    "LinUCB", "weighted LinUCB", "greedy", "uniform",
)  # fmt: skip


def plot(table: pd.DataFrame) -> Any:
    """A panel a world with regret curves and bands; the last row: regret against the noise."""
    figure, axes = canvas.panels(3, 3, width=11.0, height=3.1)
    styles = {
        name: {"color": colour, "ls": line}
        for name, (line, colour) in zip(
            SHOWN, [(ls, c) for ls in ("-", "--") for c in canvas.COLOURS], strict=False
        )
    }
    for axis, name in zip(axes[:2].flat, MAIN, strict=True):
        part = table[table["world"] == name]
        for policy in SHOWN:
            path = part[part["policy"] == policy].groupby("rounds")["regret"]
            if not path.ngroups:
                continue
            mean, error = path.mean(), 2 * path.sem().fillna(0.0)
            axis.plot(mean.index, mean, lw=1.3, **styles[policy])
            axis.fill_between(
                mean.index, mean - error, mean + error, alpha=0.15, lw=0,
                color=styles[policy]["color"],
            )  # fmt: skip
        axis.set(xscale="log", yscale="symlog", title=name.replace("-", " arms, ").replace(
            "misreported arms,", "fixed arms, misreported,"), xlabel="rounds")  # fmt: skip
        axis.set_ylim(bottom=0)
    for row in axes[:2]:
        row[0].set_ylabel("regret (sum of mean rewards lost)")
    _against_variance(axes[2, 0], table, styles)
    _against_certificate(axes[2, 1], table, styles)
    axes[2, 2].axis("off")
    for policy, style in styles.items():
        axes[2, 2].plot([], [], label=policy, **style)
    axes[2, 2].legend(loc="center", fontsize=8, ncols=1)
    return figure


def _against_variance(axis: Any, table: pd.DataFrame, styles: dict[str, Any]) -> None:
    last = table[(table["rounds"] == table["rounds"].max())]
    last = last[last["world"].str.startswith("fixed-linear")]
    for policy in SHOWN:
        part = last[last["policy"] == policy].groupby("world")
        if policy in ("greedy", "uniform") or not part.ngroups:
            continue
        line = part[["total_variance", "regret"]].mean().sort_values("total_variance")
        axis.plot(
            line["total_variance"], line["regret"], marker="o", ms=3, lw=1.3, **styles[policy]
        )
    axis.set(xscale="log", yscale="log", title="fixed arms, linear: all noise scaled",
             xlabel="total variance of the rewards", ylabel="regret at the end")  # fmt: skip


def _against_certificate(axis: Any, table: pd.DataFrame, styles: dict[str, Any]) -> None:
    part = table[table["world"] == "fixed-linear"]
    for policy in ("FTRL-UCB, guaranteed", "MOR-UCB"):
        mean = part[part["policy"] == policy].groupby("rounds")[["regret", "certificate"]].mean()
        colour = styles[policy]["color"]
        axis.plot(mean.index, mean["regret"], color=colour)
        axis.plot(mean.index, mean["certificate"], color=colour, ls=":")
        end = (mean.index[-1], mean["certificate"].iloc[-1])
        axis.annotate("certificate", end, color=colour, fontsize=7, ha="right", va="bottom")
    axis.set(xscale="log", yscale="log", title="fixed arms, linear: certificate",
             xlabel="rounds", ylabel="regret, and its certificate")  # fmt: skip
