"""Study `bandits`: every policy on the same worlds, with and without honest variances."""

import time
from dataclasses import replace

import numpy as np
import pandas as pd

from ...bandits.optimistic.optimism_state import OptimismState
from ...checks import find
from ...confidence import Confident
from ...model.glm import GLM
from ...protocols import AnyPolicy, Array, BanditRounds, trait
from ...simulate import turns
from ...support.printing import percent
from ...theory.bandits import certificate
from ...theory.regret import bandit_regret
from .. import Record, checkpoints, plotting
from ..ingredients import bandit_lineup
from ..verdicts import Verdict, less, more_often, rare

TITLE = "Bandits that know the noise of every reward"
CLAIM = (
    "Ten features, twenty arms on the unit sphere, rewards with Gaussian noise, clipped to ±1, "
    "whose standard deviation takes one of seven values from 0.05 to 0.5 and comes with the "
    "reward. Fresh arms explore for free, fixed arms do not. In the misreported worlds one reward"
    " in ten has the largest standard deviation but reports the smallest. All policies see the "
    "same drawn rewards. FTRL-UCB weights rewards by their precision; its practical index has no "
    "regret proof. The guaranteed index and MOR-UCB have one, and a certificate computed while "
    "playing. Three worlds have two noise levels, the largest and the smallest, and fewer and "
    "fewer high-variance rounds: the total variance falls, the largest noise stays. Policies that"
    " weight by variance profit, the others can't. MOR-UCB profits with the radius of its theorem"
    " (Freedman); the adaptive one is far smaller, and most of it pays for the largest noise. "
    "In the corrupted worlds an adversary mirrors the means of the first rewards, by 50 in sum. "
    "`--policies all` adds three worlds, the noise of every arm known before choosing, and means "
    "of 0/1 draws, and four that are corrupted."
)
TRIALS = 4
ROUNDS = 2000
DECISIONS = True
CLOCKED = ("microseconds",)
MAIN = (
    "fresh-linear", "fixed-linear", "misreported-linear",
    "fresh-logistic", "fixed-logistic", "misreported-logistic",
)  # fmt: skip
NOISY = tuple(f"fixed-linear, {share}% noisy" for share in (100, 30, 3))
FALSE = tuple(f"{arms}-linear{bandit_lineup.CORRUPTED}" for arms in ("fresh", "fixed"))
MORE = (
    "tied-linear", "fresh-binomial", "fixed-binomial",
    *(f"{name}{bandit_lineup.CORRUPTED}"
      for name in ("misreported-linear", "tied-linear", "fresh-binomial", "fixed-binomial")),
)  # fmt: skip
UNAWARE = ("OFUL", "LinUCB")
WEIGHING = ("FTRL-UCB", "FTRL-UCB, guaranteed", "weighted LinUCB", "Thompson")
GUARANTEED = ("FTRL-UCB, guaranteed", "MOR-UCB", "MOR-UCB, nested", "MOR-UCB, Freedman radius")
BLOCK = 100


def cells(rounds: int, policies: str | None = None) -> list[Record]:
    """One cell per world; for all ``policies`` also worlds that some of them need."""
    if policies is None:
        return [{"world": name, "rounds": rounds} for name in (*MAIN, *NOISY, *FALSE)]
    names = (*MAIN, *NOISY, *FALSE, *MORE)
    return [{"world": name, "rounds": rounds, "policies": policies} for name in names]


def data(cell: Record, rng: np.random.Generator) -> list[Record]:
    """Play every policy on one drawn world; regret at 13 moments, sets and certificate beside."""
    rounds = bandit_lineup.world(cell["world"], cell["rounds"]).draw(rng)
    everyone = cell.get("policies") == "all"
    players = bandit_lineup.contestants(cell["world"], cell["rounds"], everyone)
    players |= {each["name"]: find(each["target"]) for each in cell.get("own", ())}
    rows = []
    for name, policy in players.items():
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
    """Regret per world and policy: mean, standard error, worst run, misses, certificate."""
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
    honest = table[~table["world"].str.startswith("misreported")]
    corrupted = honest["world"].str.endswith(bandit_lineup.CORRUPTED)
    sound = honest[~corrupted]
    last = checkpoints.last(sound)
    sets = last[last["policy"].isin(["FTRL-UCB", *GUARANTEED])]
    certified = sound.dropna(subset="certificate")
    kept = certified["missed"].astype("bool") | (certified["regret"] <= certified["certificate"])
    ends = lines["regret"].unstack("world")
    fall = ends[NOISY[-1]] / ends[NOISY[0]]
    weighing, unaware = fall[list(WEIGHING)].max(), fall[list(UNAWARE)].min()
    layered = "MOR-UCB, Freedman radius"
    regret = last.groupby(["world", "policy"])["regret"].apply(np.array)
    noisy, calm = regret[NOISY[0]], regret[NOISY[-1]]
    return {
        "the sets of FTRL-UCB and MOR-UCB hold the parameter as often as they promise": rare(
            sets.set_index(["policy", "trial"])["missed"].astype("bool"), 0.05
        ),
        "wherever the sets held, regret stayed below the certificate": Verdict(
            bool(kept.all()), f"{len(kept)} moments of {', '.join(GUARANTEED)}"
        ),
        "with 3 % high-variance rounds instead of 100 %, the regret of each policy that weights by "
        "variance falls to less than half": less(
            {each: (calm[each], noisy[each] / 2) for each in WEIGHING},
            f"to {percent(weighing)} or less on average ({', '.join(WEIGHING)})",
        ),
        "there that of OFUL and LinUCB stays above a third": less(
            {each: (noisy[each] / 3, calm[each]) for each in UNAWARE},
            f"at {percent(unaware)} or more on average",
        ),
        "there the regret of MOR-UCB with the radius of its theorem falls": less(
            {layered: (calm[layered], noisy[layered])}, f"to {percent(fall[layered])} on average"
        ),
        **_printed(table, lines),
        **_corrupted(checkpoints.last(honest[corrupted])),
        **_others(last),
    }


def _corrupted(last: pd.DataFrame) -> dict[str, Verdict]:
    """Judge sets and regret where rewards are corrupted."""
    insured, plain = bandit_lineup.INSURED, "GLB-OMD, weighted"
    without = [plain, "FTRL-UCB, guaranteed"]
    sets = last[last["policy"].isin([*without, insured])].set_index(["policy", "world", "trial"])
    missed = sets["missed"].astype("bool")
    regret = sets["regret"].xs(FALSE[0], level="world").groupby("policy").apply(np.array)
    more = regret[insured].mean() / regret[plain].mean()
    return {
        "where rewards are corrupted, the sets of policies without a budget for it miss the "
        "parameter in more than a quarter of the runs": more_often(
            missed.unstack("policy")[without], 0.25
        ),
        "there the sets of GLB-OMD with the budget hold it as often as they promise": rare(
            missed[[insured]].droplevel("world"), 0.05
        ),
        "there, on fresh arms, GLB-OMD with the budget has more regret than without": less(
            {insured: (regret[plain], regret[insured])}, f"{more:.1f} times on average"
        ),
    }


def _others(last: pd.DataFrame) -> dict[str, Verdict]:
    """Judge the sets of the policies beyond the usual ones, where they played."""
    usual = bandit_lineup.contestants(MAIN[1], 1)
    judged = [*(bandit_lineup.ENTRIES.keys() - usual.keys() - {"MOR-UCB, as printed"})]
    sets = last[last["missed"].notna() & last["policy"].isin(judged)]
    if sets.empty:
        return {}
    missed = sets.set_index(["policy", "trial"])["missed"].astype("bool")
    claim = "the sets of the other policies hold the parameter as often as they promise"
    return {claim: rare(missed, 0.05)}


def _printed(table: pd.DataFrame, lines: pd.DataFrame) -> dict[str, Verdict]:
    """Compare MOR-UCB's radii on fresh arms, where the horizon is long enough."""
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
        "with the printed one": Verdict(ratio <= 0.1, f"{percent(ratio, 1)} ({', '.join(worlds)})")
    }


STYLES = {
    "FTRL-UCB": plotting.BLUE,
    "FTRL-UCB, guaranteed": plotting.VERMILION,
    "MOR-UCB": plotting.GREEN,
    "Thompson": plotting.ORANGE,
    "LinUCB": plotting.BLACK,
    "greedy": plotting.PINK,
    "GLB-OMD, weighted": plotting.SKY,
    bandit_lineup.INSURED: plotting.SKY,
    **dict.fromkeys(
        ("OFUL", "weighted LinUCB", "MOR-UCB, Freedman radius", "MOR-UCB, printed radius",
         "uniform"), plotting.FAINT,
    ),
}  # fmt: skip
FIRST = 10  # rounds before which nobody has learnt much


def plot(table: pd.DataFrame) -> plotting.Figure:
    """Regret per world; then against the share of noisy rounds, and with its certificate."""
    figure, axes = plotting.panels(5, 2, width=9.5, height=2.7)
    for axis, name in zip(axes[:3].T.flat, MAIN, strict=True):
        arms, _, link = name.partition("-")
        arms = {"misreported": "fixed arms, one reward in ten misreported"}.get(
            arms, f"{arms} arms"
        )
        _regret(axis, table[table["world"] == name])
        axis.set_title(f"{link}, {arms}")
    for axis, name in zip(axes[3], FALSE, strict=True):
        _regret(axis, table[table["world"] == name])
        arms = name.partition("-")[0]
        axis.set_title(f"linear, {arms} arms, first rewards corrupted")
    for axis in axes[:4, 0]:
        axis.set_ylabel("regret")
    _against_variance(axes[4, 0], table)
    _against_certificate(axes[4, 1], table)
    trials = table["trial"].nunique()
    ends = checkpoints.last(table).groupby(["world", "policy"])["regret"].mean()
    best = [ends[name].idxmin() for name in MAIN]
    most = max(best, key=best.count)
    plotting.headline(
        figure, f"{most} has the least regret in {best.count(most)} of {len(MAIN)} worlds"
    )
    plotting.caption(
        figure, f"Lines: means of {trials} runs. Bands: two standard errors of the mean. Grey: "
        "other policies, named in the table. Dashed: with a budget for corruption.",
    )  # fmt: skip
    return figure


def _regret(axis: plotting.Axes, table: pd.DataFrame) -> None:
    ends = {}
    own = [name for name in table["policy"].unique() if name not in bandit_lineup.ENTRIES]
    styles = STYLES | dict.fromkeys(own, plotting.SKY)
    for policy, colour in reversed(styles.items()):
        path = table[table["policy"] == policy].groupby("rounds")["regret"]
        if not path.ngroups:
            continue
        mean, error = path.mean(), 2 * path.sem().fillna(0.0)
        named = colour != plotting.FAINT
        dashes = "--" if policy == bandit_lineup.INSURED else "-"
        axis.plot(mean.index, mean, dashes, lw=1.6 if named else 1.0, color=colour)
        if named:
            least = np.maximum(mean - error, path.min())  # regret has a long tail upwards only
            axis.fill_between(mean.index, least, mean + error, alpha=0.15, lw=0, color=colour)
        if named or policy == "uniform":
            ends[policy] = float(mean.iloc[-1]), colour
    axis.set(xscale="log", yscale="log", ylim=(1, None))
    plotting.log_rounds(axis, table["rounds"].max(), FIRST)
    plotting.plain_logs(axis.yaxis)
    plotting.label_ends(axis, ends)


def _against_variance(axis: plotting.Axes, table: pd.DataFrame) -> None:
    last = checkpoints.last(table)
    shares = {name: float(name.split(", ")[1].partition("%")[0]) for name in NOISY}
    last = last.assign(share=last["world"].map(shares)).dropna(subset="share")
    ends = {}
    for policy, colour in reversed(STYLES.items()):
        mean = last[last["policy"] == policy].groupby("share")["regret"].mean()
        if policy not in ("greedy", "uniform") and len(mean):
            axis.plot(mean.index, mean, marker="o", ms=3, lw=1.3, color=colour)
            if colour != plotting.FAINT:
                ends[policy] = float(mean.iloc[-1]), colour
    axis.set(xscale="log", yscale="log", title="linear, fixed arms: fewer high-variance rounds",
             xlabel="high-variance rounds", ylabel="regret at the end")  # fmt: skip
    axis.set_xticks(sorted(shares.values()))
    axis.xaxis.set_major_formatter("{x:g} %")
    axis.minorticks_off()
    plotting.plain_logs(axis.yaxis)
    plotting.label_ends(axis, ends)


def _against_certificate(axis: plotting.Axes, table: pd.DataFrame) -> None:
    part, ends = table[table["world"] == "fixed-linear"], {}
    for policy in ("FTRL-UCB, guaranteed", "MOR-UCB"):
        mean = part[part["policy"] == policy].groupby("rounds")[["regret", "certificate"]].mean()
        colour = STYLES[policy]
        for column, dashes in (("regret", "-"), ("certificate", ":")):
            axis.plot(mean.index, mean[column], color=colour, ls=dashes)
            label = policy if column == "regret" else f"{column} of {policy.split(',')[0]}"
            ends[label] = float(mean[column].iloc[-1]), colour
    axis.set(xscale="log", yscale="log", title="linear, fixed arms: regret and its certificate",
             ylim=(1, None))  # fmt: skip
    plotting.log_rounds(axis, part["rounds"].max(), FIRST)
    plotting.plain_logs(axis.yaxis)
    plotting.label_ends(axis, ends)
