"""Study `bandits`: every policy on the same worlds, with and without honest variances."""

import time
from dataclasses import replace

import numpy as np
import pandas as pd

from ..bandits.optimism_state import OptimismState
from ..confidence import Confident
from ..glm import GLM
from ..protocols import AnyPolicy, Array, BanditRounds, trait
from ..theory.bandits import certificate
from ..theory.regret import bandit_regret
from ..turns import turns
from . import Record, bandit_lineup, checkpoints, plotting
from .verdicts import Verdict, rare

TITLE = "Bandits that know the noise of every reward"
CLAIM = (
    "Ten features, twenty arms on the unit sphere, rewards with Gaussian noise, clipped to ±1, "
    "whose standard deviation takes one of seven values from 0.05 to 0.5 and is told with the "
    "reward. Fresh arms explore for free, fixed "
    "arms do not; in the misreported worlds a tenth of the rewards has the largest noise and tells "
    "the smallest. All policies meet the same drawn rewards. FTRL-UCB weighs rewards by their "
    "precision; its practical index has no regret proof, the guaranteed one and MOR-UCB have, "
    "and a certificate computed while playing. Three worlds have two levels of noise, the largest "
    "and the smallest, and ever fewer loud rounds: the total variance falls, the largest noise "
    "stays. Policies that weigh by variance profit, the others can't. MOR-UCB profits with the "
    "radius of its theorem (Freedman); the adaptive one is far smaller, and most of it is the "
    "price of the largest noise. With all policies there are three worlds "
    "more: the noise of every arm told before choosing, and means of 0/1 draws."
)
TRIALS = 4
ROUNDS = 2000
DECISIONS = True
CLOCKED = ("microseconds",)
MAIN = (
    "fresh-linear", "fixed-linear", "misreported-linear",
    "fresh-logistic", "fixed-logistic", "misreported-logistic",
)  # fmt: skip
LOUD = tuple(f"fixed-linear, {share}% loud" for share in (100, 30, 3))
MORE = ("tied-linear", "fresh-binomial", "fixed-binomial")
UNAWARE = ("OFUL", "LinUCB")
WEIGHING = ("FTRL-UCB", "FTRL-UCB, guaranteed", "weighted LinUCB", "Thompson")
GUARANTEED = ("FTRL-UCB, guaranteed", "MOR-UCB", "MOR-UCB, nested", "MOR-UCB, Freedman radius")
BLOCK = 100


def cells(rounds: int, policies: str | None = None) -> list[Record]:
    """One cell a world; for all ``policies`` also worlds that some of them need."""
    if policies is None:
        return [{"world": name, "rounds": rounds} for name in (*MAIN, *LOUD)]
    names = (*MAIN, *LOUD, *MORE)
    return [{"world": name, "rounds": rounds, "policies": policies} for name in names]


def data(cell: Record, rng: np.random.Generator) -> list[Record]:
    """Play every policy on one drawn world; regret at 13 moments, sets and certificate beside."""
    rounds = bandit_lineup.world(cell["world"], cell["rounds"]).draw(rng)
    everyone = cell.get("policies") == "all"
    rows = []
    for name, policy in bandit_lineup.contestants(cell["world"], cell["rounds"], everyone).items():
        played, missed, certified, spent = _play(
            policy, rounds, np.random.default_rng(rng.integers(2**63))
        )
        regret = bandit_regret(rounds, played)
        sd = rounds.sigma if rounds.sigma.ndim == 1 else rounds.sigma[range(len(played)), played]
        rows += [
            {
                "world": cell["world"],
                "policy": name,
                "rounds": t,
                "regret": float(regret[t - 1]),
                "certificate": float(certified[t - 1]) if name in GUARANTEED else np.nan,
                "missed": bool(missed < t) if isinstance(policy, Confident) else None,
                "total_variance": float((sd[:t] ** 2).sum()),
                "microseconds": spent,
            }
            for t in checkpoints.spaced(cell["rounds"], 13)
        ]
    return rows


def _play(
    policy: AnyPolicy, rounds: BanditRounds, rng: np.random.Generator
) -> tuple[list[int], float, Array, float]:
    """Return choices, the first round at which a set was seen to miss, the certificate, and the
    CPU time of a decision with its update, the median over blocks of rounds.

    Sets are looked at in every twentieth round.
    """
    T, K = rounds.means.shape
    if trait(policy, "one_hot", False):
        rounds = replace(rounds, arms=np.eye(K))
    state, theta = policy.start(rounds.arms.shape[-1]), np.asarray(rounds.theta)
    played, spent, reach, first = list[int](), np.empty(T), np.full(T, np.inf), np.inf
    began = time.process_time_ns()
    for t, arms, k in turns(policy, state, rounds, rng):
        spent[t] = time.process_time_ns() - began  # the update before, and this choice
        if isinstance(state, OptimismState):
            reach[t] = state.forms.reach(arms[k])
        if t % 20 == 0 and first == np.inf and isinstance(policy, Confident):
            inside = all(each.contains(theta) for each in policy.confidence(state))
            first = first if inside else t
        played.append(k)
        began = time.process_time_ns()
    blocks = [spent[t : t + BLOCK].mean() for t in range(0, T, BLOCK)]
    certified = certificate(trait(policy, "glm", GLM()), reach, np.ones(T))
    return played, first, certified, float(np.median(blocks)) / 1000


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """One line a world and policy: mean regret, standard error, worst run, misses, certificate."""
    last = checkpoints.last(table)
    grouped = last.groupby(["world", "policy"], sort=False)
    lines = grouped["regret"].agg(["mean", "sem", "max"])
    lines.columns = pd.Index(["regret", "standard error", "worst run"])
    lines["certificate"] = grouped["certificate"].mean()
    lines["sets missed"] = grouped["missed"].apply(lambda v: v.astype("float").mean())
    return lines.reset_index()


def holds(table: pd.DataFrame) -> dict[str, Verdict]:
    """What theory promises, and what was measured on this run."""
    lines = numbers(table).set_index(["world", "policy"])
    sound = table[~table["world"].str.startswith("misreported")]
    last = checkpoints.last(sound)
    sets = last[last["policy"].isin(["FTRL-UCB", *GUARANTEED])]
    certified = sound.dropna(subset="certificate")
    kept = certified["missed"].astype("bool") | (certified["regret"] <= certified["certificate"])
    ends = lines["regret"].unstack("world")
    fall = ends[LOUD[-1]] / ends[LOUD[0]]
    weighing, unaware = fall[list(WEIGHING)].max(), fall[list(UNAWARE)].min()
    layered = fall["MOR-UCB, Freedman radius"]
    return {
        "the sets of FTRL-UCB and MOR-UCB hold the parameter as often as they promise": rare(
            sets.set_index(["policy", "trial"])["missed"].astype("bool"), 0.05
        ),
        "wherever the sets held, regret stayed below the certificate": Verdict(
            bool(kept.all()), f"{len(kept)} moments of {', '.join(GUARANTEED)}"
        ),
        "with 3% of the rounds loud instead of all, the regret of each policy that weighs by "
        "variance falls to less than half; that of OFUL and LinUCB stays above three quarters": (
            Verdict(
                bool(weighing < 0.5 and unaware > 0.75),
                f"to {weighing:.0%} or less ({', '.join(WEIGHING)}); {unaware:.0%} or more",
            )
        ),
        "and that of MOR-UCB with the radius of its theorem falls to less than three "
        "quarters": Verdict(bool(layered < 0.75), f"to {layered:.0%}"),
        **_printed(table, lines),
        **_others(last),
    }


def _others(last: pd.DataFrame) -> dict[str, Verdict]:
    """Judge the sets of the policies beyond the usual ones, where they played."""
    usual = bandit_lineup.contestants(MAIN[1], 1)
    sets = last[last["missed"].notna() & ~last["policy"].isin([*usual, "MOR-UCB, as printed"])]
    if sets.empty:
        return {}
    missed = sets.set_index(["policy", "trial"])["missed"].astype("bool")
    claim = "the sets of the other policies hold the parameter as often as they promise"
    return {claim: rare(missed, 0.05)}


def _printed(table: pd.DataFrame, lines: pd.DataFrame) -> dict[str, Verdict]:
    """Compare MOR-UCB's radii on fresh arms, where the horizon is long enough to tell."""
    horizon = table["rounds"].max()
    if horizon < ROUNDS:
        return {}
    worlds = ("fresh-linear", "fresh-logistic") if horizon >= 5000 else ("fresh-linear",)
    ratio = max(
        lines.loc[(w, "MOR-UCB"), "regret"] / lines.loc[(w, "MOR-UCB, printed radius"), "regret"]
        for w in worlds
    )
    return {
        "on fresh arms MOR-UCB with the adaptive radius has at most a tenth of the regret it has "
        "with the printed one": Verdict(ratio <= 0.1, f"{ratio:.1%} ({', '.join(worlds)})")
    }


SHOWN = (
    "FTRL-UCB", "FTRL-UCB, guaranteed", "MOR-UCB", "MOR-UCB, Freedman radius", "Thompson", "OFUL",
    "LinUCB", "weighted LinUCB", "greedy", "uniform", "MOR-UCB, printed radius",
)  # fmt: skip


def plot(table: pd.DataFrame) -> plotting.Figure:
    """A panel a world with regret curves and bands; the last row: regret against the noise."""
    figure, axes = plotting.panels(3, 3, width=11.0, height=3.1)
    styles = {
        name: {"color": colour, "ls": line}
        for name, (line, colour) in zip(
            SHOWN, [(ls, c) for ls in ("-", "--") for c in plotting.COLOURS], strict=False
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
            least = np.maximum(mean - error, path.min())  # regret has a long tail upwards only
            axis.fill_between(
                mean.index, least, mean + error, alpha=0.15, lw=0,
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


def _against_variance(
    axis: plotting.Axes, table: pd.DataFrame, styles: dict[str, dict[str, str]]
) -> None:
    last = checkpoints.last(table)
    last = last[last["world"].isin(LOUD)]
    for policy in SHOWN:
        part = last[last["policy"] == policy].groupby("world")
        if policy in ("greedy", "uniform") or not part.ngroups:
            continue
        line = part[["total_variance", "regret"]].mean().sort_values("total_variance")
        axis.plot(
            line["total_variance"], line["regret"], marker="o", ms=3, lw=1.3, **styles[policy]
        )
    axis.set(xscale="log", yscale="log", title="fixed arms, linear: loud rounds rare",
             xlabel="total variance; all rounds loud: right",
             ylabel="regret at the end")  # fmt: skip
    axis.set_xlim(left=10 ** np.floor(np.log10(last["total_variance"].min())))
    axis.xaxis.set_minor_formatter("")


def _against_certificate(
    axis: plotting.Axes, table: pd.DataFrame, styles: dict[str, dict[str, str]]
) -> None:
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
