"""Study `unknown-variance`: bandits that do not know the noise, and what that costs."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ...agent.agent import Agent
from ...bandits import FTRLUCB, LOSAN, MORUCB, SAVE
from ...bandits.optimistic.optimism_state import OptimismState
from ...bandits.optimistic.variance import INFLATION
from ...confidence import Confident, Ellipsoid
from ...environments import WORLDS, FamilyBandit
from ...model.glm import GLM
from ...protocols import AnyPolicy, Array, BanditRounds
from ...simulate import turns
from ...support.printing import percent
from ...theory.bandits import family_sigma
from ...theory.regret import bandit_regret
from .. import Record, checkpoints, plotting
from ..verdicts import POWER, Verdict, decide, grouped_mean, mean_power, rare

TITLE = "Bandits that do not know the noise"
CLAIM = (
    "Ten features, unit-sphere arms, Gaussian noise of sd 0.05 to 0.5. The sd is a log-linear "
    "function of the features (explained), drawn once for every arm (tied) or in every round "
    "(unexplained); binary rewards are 0 or 1 with probabilities between 0.02 and 0.98. Arms are "
    "fixed except in one world. All policies see the same drawn rewards. One knows every sd; the "
    "others know that none exceeds 1 (1/2 for binary rewards). Of these, 'upper bound' uses that "
    "bound as every sd, 'running sd' one sd of all residuals, as an Agent does, and 'estimated' "
    "the variance that a log-linear model fits to squared one-step-ahead residuals, doubled: "
    'FTRLUCB with noise="estimated". The practical index has no regret proof; known variances or '
    "an upper bound keep its sets valid, a running sd does not. An upper bound loses mostly "
    "because it does not know the level of the noise, which both estimates learn. The model finds "
    "the variances where features explain them, yet on fixed arms one running sd does better, "
    "since the doubling makes the policy explore more; with the index scaled by 0.7, which undoes "
    "it, the model comes close. Where features do not explain the noise, only its level can be "
    "estimated. Guaranteed methods without variances (an upper bound, LOSAN) differ little; SAVE "
    "is still in its first layers. Draws of a family need no sd at all: the likelihood weights "
    "them."
)
TRIALS = 6
ROUNDS = 1000
DECISIONS = True
LARGEST, FLOOR, DELTA = 1.0, 0.05, 0.05
FIXED = ("explained", "explained, logistic", "tied to the arm", "tied, one-hot")
UNEXPLAINED, FRESH, BINARY = "unexplained", "explained, fresh arms", "binary rewards"
KNOWN, ESTIMATED, NARROW = "known", "estimated", "estimated, index × 0.7"
RUNNING, CAPPED, LIKELIHOOD = "running sd", "upper bound", "likelihood"
SURE = {who: f"{who}, guaranteed" for who in (KNOWN, CAPPED, LIKELIHOOD)}
LAYERS = "MOR-UCB, sd from a set"
# Log ratios of regret in a pilot (seeds 0, 1 and 2, four trials each): the mean, the sd of a trial
# over all worlds of the claim, and the degrees of freedom that a trial adds. Six trials decide the
# first three against a ratio of 1 with power 0.996 and more. The third takes nine trials against
# 0.75, the last fourteen against 1.
PILOT = {
    KNOWN: (-0.45, 0.21, 3.6),
    RUNNING: (-0.61, 0.26, 3.6),
    ESTIMATED: (-0.63, 0.21, 3.5),
    SURE[LIKELIHOOD]: (-0.27, 0.20, 1.0),
}


def cells(rounds: int) -> list[Record]:
    """One cell per world."""
    return [{"world": name, "rounds": rounds} for name in (*FIXED, FRESH, UNEXPLAINED, BINARY)]


def draw(name: str, rounds: int, rng: np.random.Generator) -> tuple[GLM, BanditRounds]:
    """Draw a world; its table has the true sd of every arm, (T, K)."""
    linear, tied = WORLDS["explained-linear"], WORLDS["tied-linear"]
    world = {
        "explained": linear,
        "explained, logistic": WORLDS["explained-logistic"],
        "tied to the arm": tied,
        "tied, one-hot": dataclasses.replace(tied, arms=tied.dim),
        FRESH: dataclasses.replace(linear, fixed=False),
        UNEXPLAINED: WORLDS["fixed-linear"],
        BINARY: FamilyBandit(glm=GLM("logistic", parameter_bound=4.0), fixed=True, most=1),
    }[name]
    table = dataclasses.replace(world, rounds=rounds).draw(rng)
    arms, means, noise, sd = table.arms, table.means, table.rewards - table.means, table.sigma
    if name.endswith("one-hot"):
        arms, means = np.eye(tied.dim), np.tile(table.theta, (rounds, 1))  # type: ignore[arg-type]
    if name == BINARY:
        sd = np.sqrt(means * (1 - means))
    sd = np.broadcast_to(sd.reshape(rounds, -1), means.shape)
    return world.glm, BanditRounds(arms, means, means + noise, sd, table.theta)


@dataclass(frozen=True)
class Unaware:
    """An `Agent` that learns rewards without a sd, so that it counts with a running one."""

    policy: FTRLUCB

    def start(self, dim: int) -> Agent:
        """Make an agent."""
        return Agent(self.policy, dim, sigma="estimated")

    def select(
        self,
        state: Agent,
        arms: ArrayLike,
        rng: np.random.Generator,
        sigma: ArrayLike | None = None,
    ) -> int:
        """Ask the agent."""
        return state.choose(arms)

    def update(self, state: Agent, arm: ArrayLike, reward: float, sigma: float = 1.0) -> None:
        """Teach the agent without the standard deviation."""
        state.learn(arm, reward)


Both = tuple[OptimismState, OptimismState]


@dataclass(frozen=True)
class SetThenLayers:
    """`MORUCB`, given for draws of a family the largest sd that a likelihood set allows."""

    glm: GLM

    @cached_property
    def _parts(self) -> tuple[FTRLUCB, MORUCB]:
        half = DELTA / 2
        return FTRLUCB(self.glm, "likelihood", delta=half), MORUCB(self.glm, 1.0, 0.1, half)

    def start(self, dim: int) -> Both:
        """Start both."""
        known, layers = self._parts
        return known.start(dim), layers.start(dim)

    def select(
        self,
        state: Both,
        arms: ArrayLike,
        rng: np.random.Generator,
        sigma: ArrayLike | None = None,
    ) -> int:
        """Ask the layers."""
        return self._parts[1].select(state[1], arms, rng)

    def update(self, state: Both, arm: ArrayLike, reward: float, sigma: float = 1.0) -> None:
        """Teach both."""
        known, layers = self._parts
        x, forms = np.atleast_2d(arm), state[0].forms
        sd = family_sigma(self.glm, -forms.upper(-x), forms.upper(x))
        layers.update(state[1], arm, reward, float(sd[0]))
        known.update(state[0], arm, reward)

    def confidence(self, state: Both) -> tuple[Ellipsoid, ...]:
        """Return the sets of both, which hold together."""
        known, layers = self._parts
        return known.confidence(state[0]) + layers.confidence(state[1])


def bound(name: str) -> float:
    """Return the largest sub-Gaussian scale in a world; a number within [0, 1] has at most 1/2."""
    return 0.5 if name == BINARY else LARGEST


def contestants(name: str, glm: GLM, rounds: int) -> dict[str, AnyPolicy]:
    """Return the policies that play in a world; only `KNOWN` sees a true sd."""
    plain = known = FTRLUCB(glm, noise_floor=FLOOR, delta=DELTA)
    if name == BINARY:  # the sd of a 0/1 reward is no sub-Gaussian scale
        known = FTRLUCB(glm, "bounded", 1.0, FLOOR, DELTA)
    found: dict[str, AnyPolicy] = {
        KNOWN: dataclasses.replace(known, radius="practical"),
        ESTIMATED: FTRLUCB(glm, "estimated", bound(name), FLOOR, DELTA, "practical"),
        NARROW: FTRLUCB(glm, "estimated", bound(name), FLOOR, DELTA, "practical", 0.5**0.5),
        RUNNING: Unaware(dataclasses.replace(plain, radius="practical")),
        CAPPED: dataclasses.replace(plain, radius="practical"),
        SURE[KNOWN]: known,
        SURE[CAPPED]: plain,
    }
    if name == BINARY:
        likely = FTRLUCB(glm, "likelihood", delta=DELTA)
        found |= {
            LIKELIHOOD: dataclasses.replace(likely, radius="practical"),
            SURE[LIKELIHOOD]: likely,
            LAYERS: SetThenLayers(glm),
        }
    if glm.linear:
        found["LOSAN"] = LOSAN(LARGEST, delta=DELTA)
    if name == "explained":  # elsewhere it would be at the start of its first layers just so
        found["SAVE"] = SAVE(LARGEST, rounds, delta=DELTA)
    return found


def data(cell: Record, rng: np.random.Generator) -> list[Record]:
    """Play everyone on one drawn world; regret at 13 moments, and how sets and variances did."""
    name, T = cell["world"], cell["rounds"]
    glm, rounds = draw(name, T, rng)
    rows = []
    for who, policy in contestants(name, glm, T).items():
        sd = rounds.sigma if who.startswith(KNOWN) else np.full_like(rounds.sigma, bound(name))
        played, missed, ratio = _play(policy, rounds, sd)
        regret = bandit_regret(rounds, played)
        late = ratio[T // 2 :]
        rows += [
            {
                "world": name,
                "policy": who,
                "rounds": t,
                "regret": float(regret[t - 1]),
                "missed": missed,
                "near": _share(np.abs(np.log2(late)) <= 1, late),
                "below": _share(INFLATION * late < 1, late),
            }
            for t in checkpoints.spaced(T, 13)
        ]
    return rows


def _share(true: NDArray[np.bool_], among: Array) -> float:
    return float("nan") if np.isnan(among).all() else float(np.mean(true))


def _play(
    policy: AnyPolicy, rounds: BanditRounds, given: Array
) -> tuple[list[int], bool | None, Array]:
    """Return choices, whether a set missed, and the fitted over the true variance of each reward.

    Sets are looked at in every twentieth round.
    """
    state, sure = policy.start(rounds.arms.shape[-1]), isinstance(policy, Confident)
    played, ratio, missed = list[int](), np.full(len(rounds.means), np.nan), False
    table, theta = dataclasses.replace(rounds, sigma=given), np.asarray(rounds.theta)
    for t, arms, k in turns(policy, state, table, np.random.default_rng(0)):  # none here draws
        if t % 20 == 0 and isinstance(policy, Confident) and not missed:
            missed = not all(each.contains(theta) for each in policy.confidence(state))
        if isinstance(policy, FTRLUCB) and policy.noise == "estimated":
            fitted = policy.variances.variance(state.variance, arms[k])
            ratio[t] = fitted / rounds.sigma[t, k] ** 2
        played.append(k)
    return played, missed if sure else None, ratio


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """One line per world and policy: mean regret, standard error, worst run, misses, variances."""
    last = checkpoints.last(table)
    grouped = last.groupby(["world", "policy"], sort=False)
    lines = grouped["regret"].agg(["mean", "sem", "max"])
    lines.columns = pd.Index(["regret", "standard error", "worst run"])
    lines["sets missed"] = grouped["missed"].apply(lambda v: v.astype("float").mean())
    lines["variance within factor 2"] = grouped["near"].mean()
    lines["counted as too small"] = grouped["below"].mean()
    return lines.reset_index()


def holds(table: pd.DataFrame) -> dict[str, Verdict]:
    """What theory promises, and what estimating variances was worth on this run."""
    last = checkpoints.last(table)
    sets = last.dropna(subset="missed").set_index(["policy", "trial"])["missed"].astype("bool")
    fitted = last[last["policy"] == ESTIMATED].groupby("world")["near"].mean()
    explained = fitted[[*FIXED, FRESH]]
    found = bool(explained.min() >= 0.75 and fitted[UNEXPLAINED] < 0.5)
    long = table["rounds"].max() >= ROUNDS
    return {
        "every set that is promised, also with estimated variances, holds the parameter as often "
        "as promised": rare(sets, DELTA),
        "the fitted variance is within a factor of two of the truth for at least three quarters "
        "of late rewards where features explain the noise, and for less than half where nothing "
        "does": (
            Verdict(
                found if long else None,
                f"{percent(explained.min())} at least, and {percent(fitted[UNEXPLAINED])}"
                + ("" if long else f"; undecided, since the model needs {ROUNDS} rounds to learn"),
            )
        ),
        **_bounded(last),
        "known variances reduce it further": _ratio(last, KNOWN, ESTIMATED, FIXED),
        "on all fixed arms, one running sd has less regret than estimated variances": (
            _ratio(last, RUNNING, ESTIMATED, (*FIXED, UNEXPLAINED))
        ),
        **_binary(last),
    }


def power(who: str, trials: int, limit: float = 1.0) -> float:
    """Return the chance that trials decide whether a policy's ratio is below a limit."""
    mean, spread, freedom = PILOT[who]
    return mean_power(np.log(limit) - mean, spread, trials, freedom) if trials > 1 else 0.0


def _bounded(last: pd.DataFrame) -> dict[str, Verdict]:
    """Compare estimated variances with an upper bound, more sharply where trials allow it."""
    sharp = power(ESTIMATED, last["trial"].nunique(), 0.75) >= POWER
    words = "to less than three quarters of" if sharp else "below"
    claim = (
        "on fixed arms whose features explain the noise, estimated variances reduce the regret "
        f"{words} that with an upper bound"
    )
    return {claim: _ratio(last, ESTIMATED, CAPPED, FIXED, 0.75 if sharp else 1.0)}


def _binary(last: pd.DataFrame) -> dict[str, Verdict]:
    """Judge the likelihood's index where trials are enough for it."""
    if power(SURE[LIKELIHOOD], last["trial"].nunique()) < POWER:
        return {}
    claim = (
        "for binary rewards, the guaranteed index of the likelihood has less regret than the one "
        "that knows every sd"
    )
    return {claim: _ratio(last, SURE[LIKELIHOOD], SURE[KNOWN], (BINARY,))}


def _ratio(
    last: pd.DataFrame, who: str, whom: str, worlds: tuple[str, ...], limit: float = 1.0
) -> Verdict:
    """Judge the geometric mean of the ratio of regrets on the same drawn worlds (Student)."""
    part = last[last["world"].isin(worlds)].set_index(["world", "trial", "policy"])["regret"]
    mine, theirs = (part.xs(each, level="policy").clip(lower=1e-9) for each in (who, whom))
    log = np.log(mine / theirs)
    if last["trial"].nunique() < 2:
        return Verdict(None, "needs at least two trials")
    mean = grouped_mean(log)
    chance = mean.chance(np.log(limit))
    text = f"to {np.exp(mean.value):.2f}, geometric mean of {len(log)} pairs"
    return decide(chance, 1 - chance, text)


BARE = (ESTIMATED, NARROW, RUNNING, CAPPED, LIKELIHOOD)
ORDER = (KNOWN, *BARE, *SURE.values(), LAYERS, "LOSAN", "SAVE")


def plot(table: pd.DataFrame) -> plotting.Figure:
    """A panel per world: the regret of every run, a row per policy; last: fitted variances."""
    last = checkpoints.last(table)
    figure, axes = plotting.panels(4, 2, width=9.5, height=2.7)
    known, bare, sound = plotting.BLACK, plotting.BLUE, plotting.VERMILION
    worlds = list(dict.fromkeys(last["world"]))
    least = max(0.8 * last["regret"].quantile(0.01), 1e-3)  # below it a run is an arrow
    for axis, world in zip(axes.flat, worlds, strict=False):
        part = last[last["world"] == world].groupby("policy")["regret"]
        present = [who for who in ORDER if who in part.groups]
        for place, who in enumerate(present):
            colour = known if who.startswith(KNOWN) else bare if who in BARE else sound
            _dots(axis, part.get_group(who), place, colour, least)
        axis.axvline(part.get_group(KNOWN).mean(), color=known, ls="--", lw=0.8)
        axis.set(
            xscale="log", xlim=(least, 1.25 * last["regret"].max()), title=world, xlabel="regret"
        )
        plotting.plain_logs(axis.xaxis)
        _rows(axis, present)
    axis = axes.flat[-1]
    fitted = last[last["policy"] == ESTIMATED].groupby("world")["near"]
    for place, world in enumerate(worlds):
        _dots(axis, 100 * fitted.get_group(world), place, bare)
    axis.set(xlim=(-3, 103), title="fitted variance within 2× of the truth",
             xlabel="% of late rewards")  # fmt: skip
    _rows(axis, worlds)
    labels = {
        "every sd known (dots: runs, bars: means)": known,
        "no sd known, no regret guarantee": bare,
        "no sd known, guaranteed": sound,
    }
    for name, colour in labels.items():
        axes[0, 0].plot([], [], "o", ms=5, mew=0, color=colour, label=name)
    axes[0, 0].plot([], [], "--", lw=0.8, color=known, label="its mean")
    if (last["regret"] < least).any():
        axes[0, 0].plot([], [], "<", ms=5, mew=0, color=bare, alpha=0.35, label="less regret still")
    figure.legend(loc="outside lower center", ncols=3)
    means = last.groupby(["world", "policy"])["regret"].mean().unstack()
    price = (means[RUNNING] / means[KNOWN]).median()
    plotting.headline(
        figure,
        f"Without any known sd, one running sd has {price:.1f} times the regret of knowing all "
        "(median world)",
    )
    return figure


def _dots(
    axis: plotting.Axes, values: pd.Series, place: float, colour: str, least: float = 0.0
) -> None:
    """Draw a dot per run, an arrow where it is below ``least``, and a line at the mean."""
    low = values < least
    for shown, marker in ((values[~low], "o"), (0 * values[low] + 1.08 * least, "<")):
        axis.plot(shown, np.full(len(shown), place), marker, ms=4, alpha=0.35, mew=0, color=colour)
    axis.plot(values.mean(), place, "|", ms=9, mew=2, color=colour)


def _rows(axis: plotting.Axes, labels: Sequence[str]) -> None:
    plotting.name_rows(axis, labels)
    axis.set_ylim(len(labels) - 0.5, -0.7)
    axis.tick_params(axis="y", length=0, labelsize=8)
