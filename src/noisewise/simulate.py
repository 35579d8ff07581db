"""Playing a stream: a regressor meets its rows one by one."""

import os
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .inputs import numbers, weights
from .protocols import Array, Regressor


def predictions(
    regressor: Regressor[Any],
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
    x = numbers("x", x, check=False)  # the regressor looks at the values
    if x.ndim not in (2, 3) or 0 in x.shape:
        raise ValueError(
            f"x has shape {x.shape}; pass (T, d) or (trials, T, d), at least one row and column"
        )
    w: Any = 1.0 if weight is None else weight
    if x.ndim == 2:
        return _play(regressor, x, y, w, scores)
    y = numbers("y", y)
    if y.shape != x.shape[:2]:
        raise ValueError(f"y has shape {y.shape}; pass {x.shape[:2]}, one number a row of x")
    w = np.broadcast_to(numbers("weight", w), y.shape)
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        jobs = [pool.submit(_play, regressor, x[i], y[i], w[i], scores) for i in range(len(x))]
        return np.stack([job.result() for job in jobs])


def started(regressor: Regressor[Any], x: Array, weight: ArrayLike = 1.0) -> Any:
    """Return a fresh state for the rows to come, which `start` is told if it takes a design."""
    if "design" not in signature(regressor.start).parameters:
        return regressor.start(x.shape[1])
    learnt = weights(weight, len(x), False) > 0
    return regressor.start(x.shape[1], design=x[learnt])  # type: ignore[call-arg]


def _play(
    regressor: Regressor[Any], x: Array, y: ArrayLike, weight: ArrayLike, scores: bool
) -> Array:
    state = started(regressor, x, weight)
    if scores and getattr(regressor, "glm", None) is not None:
        if "scores" not in signature(regressor.update).parameters:
            raise ValueError(
                f"scores is True, but {type(regressor).__name__}.update does not take scores=; "
                "add that keyword or ask for means"
            )
        return np.asarray(regressor.update(state, x, y, weight, scores=True))  # type: ignore[call-arg]
    return np.asarray(regressor.update(state, x, y, weight))
