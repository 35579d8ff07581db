"""Playing a stream: a regressor meets its rows one by one."""

import numpy as np
from numpy.typing import ArrayLike

from .inputs import column, numbers, weights
from .protocols import Array, Regressor


def predictions(
    regressor: Regressor[object],
    x: ArrayLike,
    y: ArrayLike,
    weight: ArrayLike | None = None,
    scores: bool = False,
) -> Array:
    """Return the one-step-ahead mean of every row, ``(T,)``: predicted before its label was seen.

    Parameters
    ----------
    regressor : any regressor, started afresh here
    x, y, weight : (T, d), (T,), (T,) or one number
    scores : bool
        Return the linear scores instead of the means.

    Examples
    --------
    >>> import noisewise as nw
    >>> predictions(nw.FTRL(nw.GLM(), ridge=0.5), [[1.0], [1.0]], [1.0, 1.0])
    array([0. , 0.5])
    """
    x = numbers("x", x)
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(f"x has shape {x.shape}; pass (T, d) with at least one row and column")
    y = column("y", y, len(x), False)
    w = weights(1.0 if weight is None else weight, len(x), False)
    state = regressor.start(x.shape[1])
    glm = getattr(regressor, "glm", None)
    if scores and glm is not None:
        return np.asarray(regressor.update(state, x, y, w, scores=True))  # type: ignore[call-arg]
    return np.asarray(regressor.update(state, x, y, w))
