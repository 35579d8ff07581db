"""Why a policy ranks arms as it does: estimate, interval, bonus, index and layer of each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...bandits.arms import candidates, model_of, norm_bound
from ...confidence import Confident, Ellipsoid, score_bounds
from ...model.glm import GLM
from ...numerics.blas import matmul
from ...protocols import AnyPolicy, Array, trait
from ..kinds import (
    is_ftrl_ucb,
    is_indexed,
    is_mor_ucb,
    is_optimism_state,
    is_self_accounting,
)

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


def checked_arms(policy: AnyPolicy, state: object, arms: ArrayLike) -> Array:
    """Return arms if the policy can choose among them."""
    dim = trait(state, "dim", 0) or np.atleast_2d(arms).shape[1]
    return candidates(arms, dim, norm_bound(policy, "feature_bound") or np.inf)


def means(policy: AnyPolicy, state: object, x: Array) -> Array | None:
    """Return the estimated mean of each arm, or None where the policy estimates nothing."""
    scores = _scores(policy, state, x, _layers(policy, state, x))
    return None if scores is None else mean_of(policy, scores)


def mean_of(policy: object, scores: Array) -> Array:
    """Return the mean reward at each score."""
    if is_self_accounting(policy):
        return policy.mean_of(scores)
    return np.asarray((model_of(policy) or GLM()).mean(scores))


def ranked(policy: AnyPolicy, state: object, x: Array) -> tuple[Array | None, Array | None]:
    """Return the estimated score and the index of each arm, None where the policy has none."""
    return _scores(policy, state, x, _layers(policy, state, x)), _index(policy, state, x)


def _index(policy: AnyPolicy, state: object, x: Array) -> Array | None:
    if not is_indexed(policy):
        return None
    index = policy.index(state, x)
    if trait(policy, "index_of", "score") == "mean":
        index = (model_of(policy) or GLM()).score(index)
    return index


def parts(
    policy: AnyPolicy, state: object, names: tuple[str, ...], x: Array
) -> list[tuple[Part, ...]]:
    """Return what the mean of each arm would lose without each of its features, most first.

    Features of the same name, such as the columns of a word, count together.
    """
    scores = _scores(policy, state, x, None)
    if scores is None:
        return [()] * len(x)
    if is_self_accounting(policy):
        added = policy.contributions(state, x)
    else:
        theta = trait(state, "theta", np.empty(0))
        if theta.shape != x.shape[1:]:
            return [()] * len(x)
        added = x * theta
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


def reasons(
    policy: AnyPolicy, state: object, arms: ArrayLike, bounded: bool = True
) -> list[Reason]:
    """Return the reasons of each arm; the state is only read.

    Intervals are cut to the policy's parameter bound only where the parameter is so ``bounded``.
    """
    x = checked_arms(policy, state, arms)
    layer = _layers(policy, state, x)
    scores, notes = _scores(policy, state, x, layer), [""] * len(x)
    estimate = lower = upper = exploration = bonus = index = None
    if scores is not None:
        estimate, index = mean_of(policy, scores), _index(policy, state, x)
        if index is not None:
            bonus, exploration = index - scores, mean_of(policy, index) - estimate
    if is_self_accounting(policy):
        lower, upper = map(np.asarray, policy.interval(state, x))
    elif isinstance(policy, Confident):
        sets = policy.confidence(state)
        lower, upper, notes = _bounds(policy, state, sets, x, scores, bounded)
        if estimate is not None:
            estimate = np.clip(estimate, lower, upper)
    columns = (estimate, lower, upper, exploration, bonus, index)
    layers = [None] * len(x) if layer is None else layer.tolist()
    rows = zip(*(finite_or_none(each, len(x)) for each in columns), layers, notes, strict=True)
    return [Reason(arm, *row) for arm, row in enumerate(rows)]


def finite_or_none(column: Array | None, count: int) -> tuple[float | None, ...]:
    """Return numbers, None where there is none, or where a policy left out a hopeless arm."""
    if column is None:
        return (None,) * count
    return tuple(value if math.isfinite(value) else None for value in column.tolist())


def _bounds(
    policy: AnyPolicy,
    state: object,
    sets: tuple[Ellipsoid, ...],
    x: Array,
    scores: Array | None,
    bounded: bool,
) -> tuple[Array, Array, list[str]]:
    """Return bounds of means over the confidence sets, and why not to rely on each."""
    glm, bound = model_of(policy) or GLM(), norm_bound(policy, "parameter_bound")
    bound = bound if bounded else None
    valid = PRINTED if is_mor_ucb(policy) and policy.as_printed else ""
    valid = ESTIMATED if is_ftrl_ucb(policy) and policy.noise == "estimated" else valid
    if bound is not None and scores is not None:
        length = float(np.linalg.norm(trait(state, "theta", np.empty(0))))
        if _outgrown(policy, state, x, scores, bound):
            valid, bound = OUTGROWN.format(bound), None
        elif length > CLOSE * bound:
            valid = NEAR.format(length, bound)
    lower, upper = score_bounds(sets, x, bound)
    apart = lower > upper
    if apart.any():  # nothing holds in all sets: what holds in any
        lower[apart] = np.min(np.array([each.lower(x) for each in sets]), axis=0)[apart]
        upper[apart] = np.max(np.array([each.upper(x) for each in sets]), axis=0)[apart]
    notes = [DISJOINT if each else valid for each in apart]
    return np.asarray(glm.prediction(lower)), np.asarray(glm.prediction(upper)), notes


def _outgrown(policy: object, state: object, x: Array, scores: Array, bound: float) -> bool:
    """Return whether a score is beyond the bound by more than noise, where its size is known."""
    most = 1.05 * (bound * np.sqrt(np.einsum("ij,ij->i", x, x)))
    if is_ftrl_ucb(policy) and is_optimism_state(state):
        most += policy.bonus(state, x)
    return bool((np.abs(scores) > most + 1e-12).any())


def _layers(policy: AnyPolicy, state: object, x: Array) -> Array | None:
    """Return the layer behind each arm's index; -1 where all are empty."""
    if not (is_mor_ucb(policy) and is_optimism_state(state)):
        return None
    bounds = policy.upper_bounds(state, x)
    if not np.isfinite(bounds).any():
        return np.full(len(x), -1)
    return np.asarray(bounds.argmin(axis=0))


def _scores(policy: AnyPolicy, state: object, x: Array, layer: Array | None) -> Array | None:
    """Return the estimated score of each arm, in the layer behind its index."""
    if is_self_accounting(policy):
        return policy.scores(state, x)
    if layer is not None and is_optimism_state(state):
        thetas = np.array([each.theta for each in state.layers] + [np.zeros(state.dim)])
        return np.asarray(np.einsum("ij,ij->i", x, thetas[layer]))
    none: Array | None = None
    theta = trait(state, "theta", none)
    return None if theta is None else matmul(x, theta)
