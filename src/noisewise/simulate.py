"""Playing a world: a regressor meets its rows, a policy its rounds, one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from inspect import signature

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .inputs import integer, numbers, refuse_class, weights
from .protocols import AnyPolicy, AnyRegressor, Array, BanditRounds, Player, Regressor, State, trait


def predictions(
    regressor: AnyRegressor,
    x: ArrayLike,
    y: ArrayLike,
    weight: ArrayLike | None = None,
    scores: bool = False,
    threads: int | None = None,
) -> Array:
    """Return the one-step-ahead mean of every row, ``(T,)``: predicted before its label was seen.

    Parameters
    ----------
    regressor : any regressor, started afresh here
    x, y, weight : (T, d), (T,), (T,) or one number
        With a leading axis of trials, (n, T, d) and (n, T), each trial is played on its own.
    scores : bool
        Return the linear scores instead of the means.
    threads : int, optional
        How many trials to play at once; all cores by default. The compiled loop holds no lock.

    Examples
    --------
    >>> import noisewise as nw
    >>> predictions(nw.FTRL(nw.GLM(), ridge=0.5), [[1.0], [1.0]], [1.0, 1.0])
    array([0. , 0.5])
    """
    refuse_class("regressor", regressor)
    x = numbers("x", x, check=False)  # the regressor looks at the values
    if x.ndim not in (2, 3) or 0 in x.shape:
        raise ValueError(
            f"x has shape {x.shape}; pass (T, d) or (trials, T, d), at least one row and column"
        )
    w = 1.0 if weight is None else weight
    if x.ndim == 2:
        return _play(regressor, x, y, w, scores)
    y = numbers("y", y)
    if y.shape != x.shape[:2]:
        raise ValueError(f"y has shape {y.shape}; pass {x.shape[:2]}, one number per row of x")
    each = numbers("weight", w)
    if each.shape not in ((), y.shape[1:], y.shape):
        raise ValueError(f"weight has shape {each.shape}; pass {y.shape} or one number")
    each = np.broadcast_to(each, y.shape)
    count = os.cpu_count() if threads is None else integer("threads", threads)
    with ThreadPoolExecutor(count) as pool:
        jobs = [pool.submit(_play, regressor, x[i], y[i], each[i], scores) for i in range(len(x))]
        return np.stack([job.result() for job in jobs])


def started(regressor: Regressor[State], x: Array, weight: ArrayLike = 1.0) -> State:
    """Return a fresh state for the rows to come, passed to `start` if it takes a design."""
    if "design" not in signature(regressor.start).parameters:
        return regressor.start(x.shape[1])
    w = weights(weight, len(x), False)
    design = np.sqrt(w[w > 0])[:, None] * x[w > 0]
    return regressor.start(x.shape[1], design=design)  # type: ignore[call-arg]


def _play(
    regressor: AnyRegressor, x: Array, y: ArrayLike, weight: ArrayLike, scores: bool
) -> Array:
    state = started(regressor, x, weight)
    glm: object = trait(regressor, "glm", None)
    if scores and glm is not None:
        if "scores" not in signature(regressor.update).parameters:
            raise ValueError(
                f"scores is True, but {type(regressor).__name__}.update does not take scores=; "
                "add that keyword or ask for means"
            )
        return np.asarray(regressor.update(state, x, y, weight, scores=True))  # type: ignore[call-arg]
    return np.asarray(regressor.update(state, x, y, weight))


def choices(policy: AnyPolicy, rounds: BanditRounds, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the index of the arm played in every round, ``(T,)``; the policy starts afresh.

    Standard deviations of shape ``(T, K)`` are shown before choosing; ``(T,)`` come with the
    reward. A policy with a method ``play(state, rounds, rng)`` plays all rounds by that.

    Examples
    --------
    >>> import noisewise as nw
    >>> two = nw.BanditRounds(np.eye(2), [[0.0, 1.0]] * 3, [[0.0, 1.0]] * 3, [0.1] * 3)
    >>> choices(nw.Greedy(nw.GLM()), two, np.random.default_rng(0))  # nothing makes it try arm 1
    array([0, 0, 0])
    """
    refuse_class("policy", policy)
    if hasattr(rounds, "draw"):
        raise ValueError(f"rounds is the world {type(rounds).__name__}; pass rounds.draw(rng)")
    table = _checked(rounds)
    state = policy.start(table.arms.shape[-1])

    def one_by_one(state: object, rounds: BanditRounds, rng: np.random.Generator) -> list[int]:
        return [k for _, _, k in turns(policy, state, rounds, rng)]

    play = trait(policy, "play", one_by_one)
    return np.asarray(play(state, table, rng), dtype=np.int64)


def turns(
    player: Player[State], state: State, rounds: BanditRounds, rng: np.random.Generator
) -> Iterator[tuple[int, Array, int]]:
    """Play the rounds of a table one by one.

    Yields round, arms and the index of the chosen one before its reward is learnt, which is done
    when the next round is asked for.
    """
    fixed, known = rounds.arms.ndim == 2, rounds.sigma.ndim == 2
    for t in range(len(rounds.means)):
        arms = rounds.arms if fixed else rounds.arms[t]
        k = player.select(state, arms, rng, rounds.sigma[t] if known else None)
        yield t, arms, k
        sigma = rounds.sigma.item(t, k) if known else rounds.sigma.item(t)
        player.update(state, arms[k], rounds.rewards.item(t, k), sigma)


def _checked(rounds: BanditRounds) -> BanditRounds:
    arms, means = numbers("arms", rounds.arms), numbers("means", rounds.means)
    if arms.ndim not in (2, 3) or 0 in arms.shape:
        raise ValueError(f"arms has shape {arms.shape}; pass (T, K, d) or (K, d), none of them 0")
    if means.ndim != 2 or 0 in means.shape:
        raise ValueError(f"means has shape {means.shape}; pass (T, K), at least one round and arm")
    T, K = means.shape
    if arms.shape[:-1] not in ((K,), (T, K)):
        raise ValueError(f"arms has shape {arms.shape}; means asks for ({T}, {K}, d) or ({K}, d)")
    rewards, sigma = numbers("rewards", rounds.rewards), numbers("sigma", rounds.sigma)
    if rewards.shape != (T, K):
        raise ValueError(f"rewards has shape {rewards.shape}; pass {(T, K)}, the shape of means")
    if sigma.shape not in ((T,), (T, K)):
        raise ValueError(f"sigma has shape {sigma.shape}; pass ({T},) or ({T}, {K})")
    if (sigma < 0).any():
        raise ValueError(f"sigma falls to {sigma.min():g}; pass standard deviations >= 0")
    return BanditRounds(arms, means, rewards, sigma)
