"""fit_partitions: the exact minimiser over rows that no single machine holds."""

from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np

from .. import linalg
from ..blas import one_thread
from ..glm import GLM
from ..inputs import shown
from ..kernels.adaptive_set import EPS
from ..protocols import Array
from ..regression.ftrl import FTRL
from ..regression.joining import state_of_sums
from ..regression.state import FTRLState
from ..regression.sums import Sums, added, sums
from .passes import Here, passes_over
from .reading import Columns, Source, blocks, feature_names
from .sources import sources_of

SAMPLE = 8  # blocks of the first partition from which the search starts


def fit_partitions(
    glm: GLM,
    partitions: Any,
    *,
    ridge: float | None = None,
    target: str | None = None,
    weight: str | None = None,
) -> FTRLState:
    r"""Return the FTRL state of rows that lie in partitions: the exact minimiser of

    .. math:: \lambda\|\mu\|^2 + \sum w\,[m(x\cdot\mu) - y\,x\cdot\mu]

    by Newton's method. Each pass reads every partition where the work is done and returns value,
    gradient and Hessian, added in the order of a fixed tree: the result is the same to the last
    bit however many workers there are, as long as they have the same processor and packages.

    Where Dask has a client, or partitions are Dask's own, its workers read and add; else this
    process reads one partition after the other. Of a file 65,536 rows are held at a time.

    Parameters
    ----------
    glm : GLM
    partitions : list, Dask collection, or path
        Each partition is (X, y) or (X, y, weight), a function without arguments that returns that
        or a data frame, a Dask delayed one of these, or the path of a Parquet file. A folder stands
        for its Parquet files by name; a Dask data frame, or a tuple of Dask arrays (X, y), for its
        blocks. What is delayed is computed in every pass, about five times: persist it if it fits.
    ridge : float > 0, optional
        The theorem's `GLM.ridge` by default.
    target, weight : str, optional
        Columns of a table with labels and weights. All others are features, in the order of the
        first table.

    Returns
    -------
    FTRLState
        It goes on learning with ``FTRL(glm, ridge)``.

    Notes
    -----
    Identity link: the state is that of the rows, except that none of them was predicted before its
    label: for confidence sets their scores were 0.

    Curved links: the rows are not kept. In their place stand at most d rows whose loss has the same
    gradient and Hessian at the minimiser (`noisewise.regression.condensed`). ``state.gap`` bounds
    the distance from the minimiser over all rows, those not kept included: while nothing else is
    learnt it is rounding error, and later it grows with the square of the distance travelled since,
    times the curvature of the link. Sets and intervals of the radii "self-normalised", "freedman"
    and "printed" include it; others need the rows and are refused.

    Examples
    --------
    >>> import numpy as np, noisewise as nw
    >>> glm = nw.GLM("logistic", feature_bound=2.0)
    >>> parts = [(np.array([[1.0], [2.0]]), [0.0, 1.0]), (np.array([[-1.0]]), [0.0], [3.0])]
    >>> state = nw.fit_partitions(glm, parts, ridge=0.5)
    >>> state.count, state.gap < 1e-12
    (3, True)
    >>> round(nw.FTRL(glm, ridge=0.5).update(state, [1.0], 1.0), 2)
    0.67
    """
    ftrl = FTRL(glm, ridge)
    for name, given in (("target", target), ("weight", weight)):
        if not isinstance(given, str | None):
            raise ValueError(f"{name} is {shown(given)}; pass the name of a column")
    sources = sources_of(partitions)
    over, half = passes_over(sources), ftrl.start(1).ridge
    begin = partial(_begin, glm, half / len(sources), Columns(target, weight))
    columns, theta = over.first(begin)
    if glm.linear:
        return state_of_sums(ftrl, over.total(partial(_sums, glm, columns, theta, True)), theta)
    return _newton(ftrl, over, columns, theta, half)


def _begin(glm: GLM, ridge: float, columns: Columns, source: Source) -> tuple[Columns, Array]:
    """Return the features of the first partition, and a minimiser for its first rows alone."""
    columns = Columns(columns.target, columns.weight, feature_names(source, columns))
    rows = islice(blocks(source, columns, glm), 1 if glm.linear else SAMPLE)
    first = next(rows)
    theta = np.zeros(first[0].shape[1])
    if not glm.linear:
        held = [first, *rows]
        work = [partial(_add, glm, block) for block in held]
        theta = _search(lambda at, gram: added(each(at, gram) for each in work), theta, ridge, glm)[
            0
        ]
    return columns, theta


def _add(glm: GLM, rows: tuple[Array, Array, Array], theta: Array, gram: bool) -> Sums:
    return sums(glm, *rows, theta, gram)


def _sums(glm: GLM, columns: Columns, theta: Array, gram: bool, source: Source) -> Sums:
    """Return the sums over a partition, whose rows must have the features of the first."""
    rows = blocks(source, columns, glm)
    first = next(rows)
    if first[0].shape[1] != len(theta):
        raise ValueError(
            f"{source.name} has {first[0].shape[1]} features and the first partition {len(theta)}; "
            "pass partitions of the same columns"
        )
    return added(sums(glm, *each, theta, gram) for each in chain([first], rows))


def _newton(ftrl: FTRL, over: Here, columns: Columns, theta: Array, ridge: float) -> FTRLState:
    def visit(theta: Array, gram: bool) -> Sums:
        return over.total(partial(_sums, ftrl.glm, columns, theta, gram))

    return state_of_sums(ftrl, *reversed(_search(visit, theta, ridge, ftrl.glm)))


@one_thread
def _search(visit: Any, theta: Array, ridge: float, glm: GLM) -> tuple[Array, Sums]:
    r"""Return the minimiser, and the sums there, with the Gram matrix.

    As `noisewise.regression.newton.minimise`: Armijo's rule guards Newton's steps, and the search
    ends where the gradient is rounding error in the norm of the inverse of :math:`\underline H`.
    """
    d = len(theta)
    here = visit(theta, True)
    gram, count = here.gram, here.count
    inverse = linalg.safe_inverse(glm.min_slope * gram + 2 * ridge * np.eye(d), 2 * ridge)[0]
    stretch, spread = float(np.sqrt(np.trace(inverse))), EPS * (d + np.sqrt(count))

    def measured(theta: Array, found: Sums) -> tuple[float, Array, float, float, float]:
        length = float(np.linalg.norm(theta))
        g = found.gradient + 2 * ridge * theta
        noise = spread * (found.size + ridge * length**2)
        blur = stretch * spread * (found.blur + 2 * ridge * length)
        return found.value + ridge * length**2, g, linalg.norm(g, inverse), noise, blur

    value, g, left, noise, blur = measured(theta, here)
    for _ in range(200):
        if left <= blur:
            break
        step = -linalg.solve(linalg.factor(here.curvature + 2 * ridge * np.eye(d)), g)
        decrement, s = -float(g @ step), 1.0
        while s > 1e-12:
            trial = theta + s * step
            there = visit(trial, False)
            if there.count != count:
                raise ValueError(
                    f"partitions held {count} rows and then {there.count}; they must not change "
                    "while they are fitted"
                )
            known = measured(trial, there)
            # below the rounding of the value only the gradient can tell progress
            settled = decrement <= 100 * noise and known[2] < left
            if value - known[0] >= 1e-4 * s * decrement or settled:
                break
            s /= 2
        else:
            break
        theta, here = trial, there
        value, g, left, noise, blur = known
    return theta, Sums(**{**vars(here), "gram": gram})
