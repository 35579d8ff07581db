"""Why a policy ranks arms as it does: estimate, interval, bonus, index and layer of each."""

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ..bandits.arms import candidates, model_of, norm_bound
from ..bandits.ftrl_ucb import FTRLUCB
from ..bandits.mor_ucb import MORUCB
from ..blas import matmul
from ..confidence import Confident, score_bounds
from ..glm import GLM
from ..protocols import Array, Policy
from .action_features import Arms
from .offers import Offer

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
    """What speaks for an arm; None where the policy has no such thing.

    Attributes
    ----------
    arm : int
    estimate : float
        Of the mean reward, held within the interval unless that is known not to hold.
    lower, upper : float
        The interval of the mean from the policy's confidence sets and its parameter bound: for all
        arms and rounds at once with its 1 - delta.
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
        What each feature adds to the estimated score, most first, where features have names.
    """

    arm: int
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
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


def means(policy: Policy[Any], state: Any, x: Array) -> Array | None:
    """Return the estimated mean of each arm, or None where the policy estimates nothing."""
    scores = _scores(state, x, _layers(policy, state, x))
    return None if scores is None else np.asarray((model_of(policy) or GLM()).mean(scores))


def ranked(policy: Policy[Any], state: Any, x: Array) -> tuple[Array | None, Array | None]:
    """Return the estimated score and the index of each arm, None where the policy has none."""
    return _scores(state, x, _layers(policy, state, x)), _index(policy, state, x)


def _index(policy: Policy[Any], state: Any, x: Array) -> Array | None:
    if not isinstance(policy, Indexed):
        return None
    index = policy.index(state, x)
    if isinstance(policy, IndexedByMean) and policy.index_of == "mean":
        index = (model_of(policy) or GLM()).score(index)
    return index


def named(
    rows: list[Reason], offer: Offer, arms: Arms | None, theta: Array | None, notes: list[str]
) -> list[Reason]:
    """Return reasons with more notes, and names of actions and features where these are known."""
    rows = [replace(each, note="; ".join(filter(None, (each.note, *notes)))) for each in rows]
    if arms is None or not offer.names:
        return rows
    return [
        replace(each, action=action, parts=_parts(arms.names, x, theta))
        for each, action, x in zip(rows, offer.names, offer.x, strict=True)
    ]


def _parts(names: tuple[str, ...], x: Array, theta: Array | None) -> tuple[Part, ...]:
    """Return what each feature adds to the score, most first; those of value 0 are left out."""
    if theta is None or theta.shape != x.shape:
        return ()
    added = x * theta
    order = np.argsort(-np.abs(added), kind="stable")
    return tuple((names[i], float(added[i])) for i in order if x[i] != 0)


def reasons(policy: Policy[Any], state: Any, arms: ArrayLike, bounded: bool = True) -> list[Reason]:
    """Return the reasons of each arm; the state is only read.

    Intervals are cut to the policy's parameter bound only where the parameter is so ``bounded``.
    """
    x = candidates(arms, state.dim, norm_bound(policy, "feature_bound") or np.inf)
    columns: dict[str, Array] = {}
    glm, layer = model_of(policy) or GLM(), _layers(policy, state, x)
    scores, notes = _scores(state, x, layer), [""] * len(x)
    if layer is not None:
        columns["layer"] = layer
    if scores is not None:
        columns["estimate"] = glm.mean(scores)
    if scores is not None and (index := _index(policy, state, x)) is not None:
        columns["index"], columns["bonus"] = index, index - scores
    if isinstance(policy, Confident):
        bound = norm_bound(policy, "parameter_bound") if bounded else None
        valid = PRINTED if isinstance(policy, MORUCB) and policy.as_printed else ""
        valid = ESTIMATED if isinstance(policy, FTRLUCB) and policy.noise == "estimated" else valid
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
        lower, upper = glm.prediction(lower), glm.prediction(upper)
        columns["lower"], columns["upper"] = lower, upper
        if scores is not None:
            columns["estimate"] = np.clip(columns["estimate"], lower, upper)
        notes = [DISJOINT if each else valid for each in apart]
    return [
        Reason(arm, note=note, **{name: _finite(column[arm]) for name, column in columns.items()})
        for arm, note in enumerate(notes)
    ]


def _outgrown(policy: object, state: Any, x: Array, scores: Array, bound: float) -> bool:
    """Return whether a score is beyond the bound by more than noise, where its size is known."""
    most = bound * np.sqrt(np.einsum("ij,ij->i", x, x))
    noise = policy.bonus(state, x) if isinstance(policy, FTRLUCB) else 0.0
    return bool((np.abs(scores) > 1.05 * most + noise + 1e-12).any())


def _finite(value: Any) -> Any:
    """Return a number, or None where a policy left it out: an arm that can't be the best."""
    return value.item() if np.isfinite(value) else None


def _layers(policy: Policy[Any], state: Any, x: Array) -> Array | None:
    """Return the layer behind each arm's index; -1 where all are empty."""
    if not isinstance(policy, MORUCB):
        return None
    bounds = policy.uppers(state, x)
    if not np.isfinite(bounds).any():
        return np.full(len(x), -1)
    return np.asarray(bounds.argmin(axis=0))


def _scores(state: Any, x: Array, layer: Array | None) -> Array | None:
    """Return the estimated score of each arm, in the layer behind its index."""
    if layer is not None:
        thetas = np.array([each.theta for each in state.layers] + [np.zeros(state.dim)])
        return np.einsum("ij,ij->i", x, thetas[layer])
    return matmul(x, state.theta) if hasattr(state, "theta") else None
