"""fit_partitions: the exact minimiser over rows that no single machine holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice

import numpy as np

from ..inputs import shown
from ..kernels.glm.adaptive_set import EPS
from ..model.glm import GLM
from ..numerics import linalg
from ..numerics.blas import one_thread
from ..protocols import Array
from ..regression.ftrl.ftrl import FTRL
from ..regression.ftrl.joining import state_of_sums
from ..regression.ftrl.newton import Point, descend
from ..regression.ftrl.state import FTRLState
from ..regression.ftrl.sums import Sums, added, sums
from .fingerprints import Fingerprint, Found
from .partition_rows import Columns, Source, blocks, feature_names
from .passes import passes_over
from .sources import sources_of

SAMPLE = 8  # blocks of the first partition from which the search starts


def fit_partitions(
    glm: GLM,
    partitions: object,
    *,
    ridge: float | None = None,
    target: str | None = None,
    weight: str | None = None,
) -> FTRLState:
    r"""Return the FTRL state of rows that lie in partitions.

    .. math:: \hat\mu = \arg\min_\mu \lambda\|\mu\|^2 + \sum w\,[m(x\cdot\mu) - y\,x\cdot\mu]

    exactly, by Newton's method. Each pass reads every partition where the work is done and returns
    value, gradient and Hessian, added in the order of a fixed tree: the result is the same to the
    last bit however many workers there are, as long as they have the same processor and packages.

    Where Dask has a client, or partitions are Dask's own, its workers read and add; else this
    process reads one partition after the other. Of a file 32,768 rows are held at a time.

    Parameters
    ----------
    glm : GLM
    partitions : list, Dask collection, or path
        Each partition is (X, y) or (X, y, weight), a function without arguments that returns that
        or a data frame, a Dask delayed one of these, or the path of a Parquet file. A folder stands
        for its Parquet files by name; a Dask data frame, or a tuple of Dask arrays (X, y), for its
        blocks. What is delayed is computed in every pass, about five times: persist it if it fits.
        A partition that does not hold the same rows in every pass is refused by name.
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
    gradient and Hessian at the minimiser (`regression.ftrl.condensed`). ``state.gap`` bounds
    the distance from the minimiser over all rows, those not kept included: while nothing else is
    learnt it is rounding error, and later it grows with the square of the distance travelled since,
    times the curvature of the link. Sets and intervals include it. With SubGaussian or Likelihood
    noise the adaptive radius rests on the mixture of fixed parameters alone, since what would have
    been predicted is not known; with bounded noise, and for counts, it needs the rows and is
    refused, as is "played". Intervals of one row are refused too.

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
    over, lam = passes_over(sources), ftrl.ridge or glm.ridge
    begin = partial(_begin, glm, lam / len(sources), Columns(target, weight))
    columns, theta, fingerprint = over.first(begin)
    before = list[Array]()

    def look(theta: Array, gram: bool) -> Sums:
        found = over.total(partial(_look, glm, columns, theta, gram, fingerprint))
        before.append(found.prints)
        if len(changed := fingerprint.changed(before[0], found.prints)):
            raise ValueError(
                f"{sources[changed[0]].name} does not hold the rows that it held in an earlier "
                "pass; a fit reads partitions several times, so make them the same every time, or "
                "write them to files first"
            )
        return found.sums

    if glm.linear:
        return state_of_sums(ftrl, look(theta, True), theta)
    return state_of_sums(ftrl, *_minimise(glm, lam, look, theta))


def _begin(
    glm: GLM, ridge: float, columns: Columns, source: Source
) -> tuple[Columns, Array, Fingerprint]:
    """Return the features of the first partition, and a minimiser for its first rows alone.

    The third is how partitions are compared from pass to pass.
    """
    columns = Columns(columns.target, columns.weight, feature_names(source, columns))
    rows = islice(blocks(source, columns, glm), 1 if glm.linear else SAMPLE)
    held = [(x.copy(), y.copy(), w.copy()) for x, y, w in rows]
    theta = np.zeros(held[0][0].shape[1])
    if not glm.linear:

        def look(theta: Array, gram: bool) -> Sums:
            return added(sums(glm, *each, theta, gram) for each in held)

        theta = _minimise(glm, ridge, look, theta)[1]
    return columns, theta, Fingerprint.for_rows_like(held[0])


def _look(
    glm: GLM, columns: Columns, theta: Array, gram: bool, fingerprint: Fingerprint, source: Source
) -> Found:
    """Return what a partition holds; its rows must have the features of the first.

    The first pass, which also adds up the Gram matrix, checks them.
    """
    rows = blocks(source, columns, glm, checked=gram)
    first = next(rows)
    if first[0].shape[1] != len(theta):
        raise ValueError(
            f"{source.name} has {first[0].shape[1]} features and the first partition {len(theta)}; "
            "pass partitions of the same columns"
        )
    with np.errstate(invalid="ignore"):  # rows that were checked are no longer there
        found = added(
            Found(sums(glm, *each, theta, gram), fingerprint(*each)[None])
            for each in chain([first], rows)
        )
    return replace(found, prints=found.prints.sum(axis=0, keepdims=True))


@dataclass(eq=False)
class SummedPoint(Point):
    """What one pass over partitions finds, with the sums themselves."""

    sums: Sums


@one_thread
def _minimise(
    glm: GLM, ridge: float, look: Callable[[Array, bool], Sums], theta: Array
) -> tuple[Sums, Array]:
    """Return the minimiser, started at ``theta``, behind the sums there; both exact to rounding."""
    first, floor = look(theta, True), 2 * ridge * np.eye(len(theta))
    spread = EPS * (len(theta) + np.sqrt(first.count))

    def point(theta: Array, found: Sums) -> SummedPoint:
        length = float(np.linalg.norm(theta))
        value, gradient = ridge * length**2, 2 * ridge * theta
        noise, blur = spread * (found.size + value), spread * (found.blur + 2 * ridge * length)
        known = found.value + value, found.gradient + gradient, found.curvature, noise, blur
        return SummedPoint(theta, *known, found)

    inverse = linalg.safe_inverse(glm.min_slope * first.gram + floor, 2 * ridge)[0]
    best, _ = descend(
        lambda theta: point(theta, look(theta, False)), point(theta, first), ridge, inverse
    )
    return replace(best.sums, gram=first.gram), best.theta
