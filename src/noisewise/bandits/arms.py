"""What policies see, checked, and the rule for ties."""

import math
import warnings
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..inputs import FLOAT, numbers, positive, ready, shown, with_slack
from ..kernels.self_tuned_ucb.self_tuned_ucb_numbers import TIE
from ..model.glm import GLM
from ..protocols import Array, trait

LARGEST = 1e50  # reward
LONGEST = 1e20  # norm of an arm: matrices of squares are still inverted well


@cache
def compiled(part: str = "policies.arm_forms") -> ModuleType:
    """Return kernels, those for arms by default, which are imported on first use."""
    return import_module(f"noisewise.kernels.{part}")


def block(arms: object, dim: int) -> TypeGuard[Array]:
    """Whether arms are as kernels take them: one block of floats, a row an arm."""
    return ready(arms) and arms.ndim == 2 and len(arms) > 0 and arms.shape[1] == dim


def in_form(arm: object, reward: object, sigma: object) -> TypeGuard[Array]:
    """Whether kernels may be given these as they are: a row of floats, and two floats."""
    return (
        type(arm) is np.ndarray
        and arm.ndim == 1
        and (arm.dtype is FLOAT or arm.dtype == FLOAT)
        and arm.flags.carray
        and isinstance(reward, float)
        and isinstance(sigma, float)
    )


def candidates(arms: ArrayLike, dim: int, feature_bound: float = np.inf) -> Array:
    """Return the arms to choose from as ``(K, dim)``, K at least 1, none beyond the bound."""
    most = min(with_slack(feature_bound), LONGEST)
    if block(arms, dim) and compiled().longest(arms) <= most * most:  # NaN fails it too
        return arms
    array = numbers("arms", arms)
    if array.ndim != 2 or array.shape[1] != dim or len(array) == 0:
        raise ValueError(f"arms has shape {array.shape}; pass (K, {dim}) with at least one arm")
    _within("arms", array, feature_bound)
    return np.array(array, order="C")


def candidates_of(
    offers: Sequence[ArrayLike] | Array, dim: int, feature_bound: float = np.inf
) -> tuple[Array, NDArray[np.int64], float]:
    """Return the arms of many offers, where those of each begin, and the largest squared norm.

    They lie one below the other and are checked like `candidates`; ``offers`` are matrices, or one
    array (n, K, dim).

    >>> candidates_of([np.eye(2), 3 * np.eye(2)[:1]], 2)[1:]
    (array([0, 2, 3]), 9.0)
    """
    most = min(with_slack(feature_bound), LONGEST)
    if ready(offers) and offers.ndim == 3 and offers.size and offers.shape[2] == dim:
        n, K, _ = offers.shape
        rows, first = offers.reshape(n * K, dim), np.arange(0, n * K + 1, K)
    elif len(offers) and all(block(each, dim) for each in offers):
        rows, first = np.concatenate(offers), _ends(offers)
    else:
        rows = None
    if rows is not None and (longest := compiled().longest(rows)) <= most * most:  # no NaN either
        return rows, first, longest
    each = [candidates(numbers("arms", arms, check=False), dim, feature_bound) for arms in offers]
    rows = np.concatenate([np.empty((0, dim)), *each])
    return rows, _ends(each), compiled().longest(rows)


def _ends(offers: Sequence[ArrayLike] | Array) -> NDArray[np.int64]:
    sizes = [0, *(len(each) for each in offers)]  # type: ignore[arg-type]
    return np.cumsum(sizes, dtype=np.int64)


def observation(
    arm: ArrayLike, reward: float, sigma: float, dim: int, feature_bound: float = np.inf
) -> tuple[Array, float, float]:
    """Return arm ``(dim,)``, reward and standard deviation, checked."""
    if in_form(arm, reward, sigma) and arm.shape == (dim,):
        most = min(with_slack(feature_bound), LONGEST)
        if np.vdot(arm, arm) <= most * most and abs(reward) <= LARGEST and 0 <= sigma < math.inf:
            return arm.copy(), float(reward), float(sigma)  # own memory: rounds like any other
    x = numbers("arm", arm)
    if x.shape != (dim,):
        raise ValueError(f"arm has shape {x.shape}; pass ({dim},), the features of the arm played")
    _within("arm", x[None], feature_bound)
    r = numbers("reward", reward)
    if r.ndim:
        raise ValueError(f"reward has shape {r.shape}; pass one number")
    if abs(float(r)) > LARGEST:
        raise ValueError(f"reward is {shown(reward)}, too large to compute with; rescale rewards")
    return np.array(x), float(r), positive("sigma", sigma, zero=True)


def observations(
    arms: Sequence[ArrayLike], rewards: Array, dim: int, feature_bound: float = np.inf
) -> Array:
    """Return the arms of many rewards as ``(n, dim)``, all checked like `observation`."""
    if {*map(type, arms)} == {np.ndarray} and {each.shape for each in arms} == {(dim,)}:  # type: ignore[union-attr]
        most = min(with_slack(feature_bound), LONGEST)
        rows: Array = np.concatenate(arms).reshape(-1, dim)
        fit = rows.dtype == FLOAT and compiled().longest(rows) <= most * most
        if fit and np.abs(rewards).max() <= LARGEST:
            return rows
    pairs = zip(arms, rewards.tolist(), strict=True)
    each = [observation(x, y, 1.0, dim, feature_bound)[0] for x, y in pairs]
    return np.array(each).reshape(-1, dim)


def spreads(sigma: ArrayLike | None, count: int) -> Array:
    """Return the standard deviation of every arm's reward, ``(count,)``, known before choosing."""
    if sigma is None:
        raise ValueError(
            f"sigma is None; this policy must know it before choosing, pass ({count},), the "
            "standard deviation of every arm's reward"
        )
    array = numbers("sigma", sigma)
    if array.shape != (count,):
        raise ValueError(f"sigma has shape {array.shape}; pass ({count},), one number an arm")
    if (array < 0).any():
        raise ValueError(f"sigma falls to {array.min():g}; pass standard deviations >= 0")
    return array


class Clipping(Protocol):
    """A state that counts the standard deviations cut."""

    clipped: int


def clip(state: Clipping, sigma: float, bound: float) -> float:
    """Return ``sigma`` cut to the noise bound; before any was counted as clipped it warns."""
    if sigma <= bound:
        return sigma
    if state.clipped == 0:
        warnings.warn(
            f"sigma {sigma:g} is above noise_bound {bound:g}, which bounds every standard "
            "deviation; it is cut to that, and so are later ones",
            stacklevel=3,
        )
    return bound


def norm_bound(policy: object, name: str) -> float | None:
    """Return the bound of that name, the policy's own or its model's, where there is one."""
    model: float | None = trait(model_of(policy), name, None)
    return trait(policy, name, model)


def model_of(policy: object) -> GLM | None:
    """Return the policy's model, where it has one."""
    model: GLM | None = None
    return trait(policy, "glm", model)


def first_best(index: Array) -> int:
    """Return the lowest position whose index equals the largest to a relative 1e-12.

    >>> first_best(np.array([0.0, 1.0 - 1e-15, 1.0]))
    1
    """
    return int(compiled().best(np.ascontiguousarray(index)))


def best_first(index: Array, top: int, rng: np.random.Generator | None = None) -> NDArray[np.intp]:
    """Return the positions of the ``top`` largest indices, best first.

    Of those equal to a relative 1e-12 the lowest position comes first, or any, drawn from ``rng``.

    >>> best_first(np.array([0.0, 2.0, 1.0 - 1e-15, 1.0]), 3)
    array([1, 2, 3])
    """
    first = np.empty(min(top, len(index)), dtype=np.intp)
    if compiled().set_best(index, first):
        return first
    order = np.argsort(-index, kind="stable")
    best = index[order]
    with np.errstate(invalid="ignore"):  # infinite indices
        tied = best[1:] >= best[:-1] - TIE * np.abs(best[:-1])
    level = np.concatenate([[0], np.cumsum(~tied)])
    among = order if rng is None else rng.permutation(len(index))
    return order[np.lexsort((among, level))[:top]]


def _within(name: str, rows: Array, bound: float) -> None:
    length = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))
    if length > min(with_slack(bound), LONGEST):
        limit, remedy = f"feature_bound {bound:.8g}", " or pass a larger feature_bound"
        if bound > LONGEST:
            limit, remedy = f"{LONGEST:g}, beyond which nothing is computed", ""
        raise ValueError(
            f"{name} holds a vector of norm {length:.8g}, above {limit}; rescale the "
            f"features{remedy}"
        )
