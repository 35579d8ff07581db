"""Why a policy ranks arms as it does: estimate, interval, bonus, index and layer of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..bandits.arms import candidates, model_of, norm_bound
from ..blas import matmul
from ..confidence import Confident, Interval, score_bounds
from ..glm import GLM
from ..protocols import Array, Policy, trait
from .kinds import is_ftrl_ucb, is_mor_ucb

Part = tuple[str, float]

DISJOINT = (
    "the sets contradict each other, and the interval holds them all: standard deviations are "
    "reported too small, or parameter_bound is"
)
OUTGROWN = (
    "the estimate has outgrown parameter_bound {:g}, and the interval does without that bound: "
    "unless that is noise it does not hold, pass a larger bound or rescale the rewards"
)
NEAR = (
    "the estimate has norm {:.3g} and parameter_bound is {:g}, on which the interval relies: pass "
    "a larger bound unless this one is sure"
)
CLOSE = 0.95  # share of the norm bound
PRINTED = "the sets of the published algorithm are not all valid"
ESTIMATED = (
    "variances are estimated: the index has no guarantee, and the interval relies on noise_bound "
    "alone"
)


@dataclass(frozen=True)
class Reason:
    """What speaks for an arm; None where the policy does not have it.

    Attributes
    ----------
    arm : int
    estimate : float
        Of the mean reward, clipped to the interval unless that is known not to hold.
    lower, upper : float
        The interval of the mean from the policy's confidence sets and its parameter bound: for all
        arms and rounds at once with its 1 - delta. That of `SelfTunedUCB` is approximate.
    exploration : float
        What the index adds to the estimate, on the scale of rewards.
    bonus, index : float
        The policy plays the largest index, which is the estimated score plus the bonus; both are
        scores. A greedy policy, or one that draws, has none.
    layer : int
        The layer of MORUCB that gave the index, the quietest being 0; -1 while all are empty.
    note : str
        Why not to rely on the interval, else empty.
    action : str
        The name of the arm, where the agent has `Arms`.
    parts : tuple of (str, float)
        The contributions: what the estimate would lose without each feature, largest first, where
        features have names. By default contexts count relative to the average one; an intercept
        that the policy adds is not listed.
    """

    arm: int
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    exploration: float | None = None
    bonus: float | None = None
    index: float | None = None
    layer: int | None = None
    note: str = ""
    action: str = ""
    parts: tuple[Part, ...] = ()


@runtime_checkable
class Indexed(Protocol):
    """A policy that plays the largest index."""

    def index(self, state: Any, x: Array) -> Array:
        """Return the index of every arm."""


@runtime_checkable
class IndexedByMean(Indexed, Protocol):
    """A policy that says whether its index is a score or a mean."""

    index_of: str


@runtime_checkable
class SelfAccounting(Protocol):
    """A policy that has a link and intervals of its own, and says what it has learnt."""

    def scores(self, state: Any, x: Array) -> Array:
        """Return the estimated score of every arm."""

    def mean_of(self, scores: Array) -> Array:
        """Return the mean reward at each score."""

    def interval(self, state: Any, x: Array) -> Interval:
        """Return an interval of the mean of every arm."""

    def contributions(self, state: Any, x: Array) -> Array:
        """Return what each feature adds to the score of every arm."""

    def learnt(self, state: Any) -> dict[str, float]:
        """Return what was learnt on the way, by name."""


def means(policy: Policy[Any], state: Any, x: Array) -> Array | None:
    """Return the estimated mean of each arm, or None where the policy estimates nothing."""
    scores = _scores(policy, state, x, _layers(policy, state, x))
    return None if scores is None else mean_of(policy, scores)


def mean_of(policy: Policy[Any], scores: Array) -> Array:
    """Return the mean reward at each score."""
    if isinstance(policy, SelfAccounting):
        return policy.mean_of(scores)
    return np.asarray((model_of(policy) or GLM()).mean(scores))


def ranked(policy: Policy[Any], state: Any, x: Array) -> tuple[Array | None, Array | None]:
    """Return the estimated score and the index of each arm, None where the policy has none."""
    return _scores(policy, state, x, _layers(policy, state, x)), _index(policy, state, x)


def _index(policy: Policy[Any], state: Any, x: Array) -> Array | None:
    if not isinstance(policy, Indexed):
        return None
    index = policy.index(state, x)
    if isinstance(policy, IndexedByMean) and policy.index_of == "mean":
        index = (model_of(policy) or GLM()).score(index)
    return index


def parts(
    policy: Policy[Any], state: Any, names: tuple[str, ...], x: Array
) -> list[tuple[Part, ...]]:
    """Return what the mean of each arm would lose without each of its features, most first.

    Features of the same name, such as the columns of a word, count together.
    """
    theta: Array = trait(state, "theta", np.empty(0))
    scores, own = _scores(policy, state, x, None), isinstance(policy, SelfAccounting)
    if scores is None or not (own or theta.shape == x.shape[1:]):
        return [()] * len(x)
    added = policy.contributions(state, x) if isinstance(policy, SelfAccounting) else x * theta
    distinct = {name: i for i, name in enumerate(dict.fromkeys(names))}
    if len(distinct) < len(names):
        together = np.zeros((len(distinct), len(x)))
        np.add.at(together, [distinct[name] for name in names], added.T)
        names, added = tuple(distinct), together.T
    lost = mean_of(policy, scores)[:, None] - mean_of(policy, scores[:, None] - added)
    order = np.argsort(-np.abs(lost), axis=1, kind="stable").tolist()
    return [
        tuple((names[i], float(row[i])) for i in at if arm[i] != 0)
        for row, at, arm in zip(lost, order, added, strict=True)
    ]


def reasons(policy: Policy[Any], state: Any, arms: ArrayLike, bounded: bool = True) -> list[Reason]:
    """Return the reasons of each arm; the state is only read.

    Intervals are cut to the policy's parameter bound only where the parameter is so ``bounded``.
    """
    x = candidates(arms, state.dim, norm_bound(policy, "feature_bound") or np.inf)
    layer = _layers(policy, state, x)
    columns: dict[str, Array] = {} if layer is None else {"layer": layer}
    scores, notes = _scores(policy, state, x, layer), [""] * len(x)
    if scores is not None:
        columns["estimate"] = mean_of(policy, scores)
    if scores is not None and (index := _index(policy, state, x)) is not None:
        columns["index"], columns["bonus"] = index, index - scores
        columns["exploration"] = mean_of(policy, index) - columns["estimate"]
    if isinstance(policy, SelfAccounting):
        lower, upper = policy.interval(state, x)
        columns["lower"], columns["upper"] = np.asarray(lower), np.asarray(upper)
    elif isinstance(policy, Confident):
        lower, upper, notes = _bounds(policy, state, x, scores, bounded)
        columns["lower"], columns["upper"] = lower, upper
        if scores is not None:
            columns["estimate"] = np.clip(columns["estimate"], lower, upper)
    return [
        Reason(arm, note=note, **{name: _finite(column[arm]) for name, column in columns.items()})
        for arm, note in enumerate(notes)
    ]


def _bounds(
    policy: Any, state: Any, x: Array, scores: Array | None, bounded: bool
) -> tuple[Array, Array, list[str]]:
    """Return bounds of means over the confidence sets, and why not to rely on each."""
    glm, bound = model_of(policy) or GLM(), norm_bound(policy, "parameter_bound")
    bound = bound if bounded else None
    valid = PRINTED if is_mor_ucb(policy) and policy.as_printed else ""
    valid = ESTIMATED if is_ftrl_ucb(policy) and policy.noise == "estimated" else valid
    if bound is not None and scores is not None:
        length = float(np.linalg.norm(state.theta))
        if _outgrown(policy, state, x, scores, bound):
            valid, bound = OUTGROWN.format(bound), None
        elif length > CLOSE * bound:
            valid = NEAR.format(length, bound)
    sets = policy.confidence(state)
    lower, upper = score_bounds(sets, x, bound)
    apart = lower > upper
    if apart.any():  # nothing holds in all sets: what holds in any
        lower[apart] = np.min(np.array([each.lower(x) for each in sets]), axis=0)[apart]
        upper[apart] = np.max(np.array([each.upper(x) for each in sets]), axis=0)[apart]
    notes = [DISJOINT if each else valid for each in apart]
    return np.asarray(glm.prediction(lower)), np.asarray(glm.prediction(upper)), notes


def _outgrown(policy: object, state: Any, x: Array, scores: Array, bound: float) -> bool:
    """Return whether a score is beyond the bound by more than noise, where its size is known."""
    most = bound * np.sqrt(np.einsum("ij,ij->i", x, x))
    noise = policy.bonus(state, x) if is_ftrl_ucb(policy) else 0.0
    return bool((np.abs(scores) > 1.05 * most + noise + 1e-12).any())


def _finite(value: Any) -> Any:
    """Return a number, or None where a policy left it out: an arm that can't be the best."""
    return value.item() if np.isfinite(value) else None


def _layers(policy: Policy[Any], state: Any, x: Array) -> Array | None:
    """Return the layer behind each arm's index; -1 where all are empty."""
    if not is_mor_ucb(policy):
        return None
    bounds = policy.uppers(state, x)
    if not np.isfinite(bounds).any():
        return np.full(len(x), -1)
    return np.asarray(bounds.argmin(axis=0))


def _scores(policy: Policy[Any], state: Any, x: Array, layer: Array | None) -> Array | None:
    """Return the estimated score of each arm, in the layer behind its index."""
    if isinstance(policy, SelfAccounting):
        return policy.scores(state, x)
    if layer is not None:
        thetas = np.array([each.theta for each in state.layers] + [np.zeros(state.dim)])
        return np.einsum("ij,ij->i", x, thetas[layer])
    return matmul(x, state.theta) if hasattr(state, "theta") else None
