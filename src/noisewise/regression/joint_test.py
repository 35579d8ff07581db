"""JointTest: are several coefficients, together, what a hypothesis says?"""

import math
from dataclasses import dataclass

import numpy as np

from .. import linalg
from ..protocols import Array


@dataclass(frozen=True)
class JointTest:
    """The test that several coefficients have given values.

    Attributes
    ----------
    statistic : float
        F, nan where rows and labels tell nothing; ``note`` says why. With noise of known sd it is
        chi-squared over its degrees of freedom.
    count : int
    freedom : float
        Degrees of freedom of F: ``count`` and these, infinite where the noise is known.
    p_value : float
        If ``anytime``, with probability 1 - p it is never below p, however often you look; else at
        one sample size fixed in advance.
    evidence : float
        How many times better a mixture of alternatives explains the labels: an e-value, whose mean
        is at most 1 at any stopping time. 1/p_value if ``anytime`` and above 1.
    anytime : bool
    rests_on, note : str
    """

    statistic: float
    count: int
    freedom: float
    p_value: float
    evidence: float
    anytime: bool
    rests_on: str
    note: str


def mixture_evidence(away: Array, root: Array, first: Array, freedom: float) -> tuple[float, float]:
    r"""Return :math:`q = e^\top S^{-1}e` and the log of the evidence against e = 0.

    S = ``root root'`` is the variance of the estimates e and :math:`\Phi^{-1}` = ``first first'``
    that of the mixture, fixed before the data, both over that of the noise. With
    :math:`q_0 = e^\top(S + \Phi^{-1})^{-1}e`, :math:`\nu` degrees of freedom and k estimates it is

    .. math:: -\tfrac12\log\det(I + \Phi^{-1}S^{-1})
              + \tfrac{\nu + k}2\log\frac{1 + q/\nu}{1 + q_0/\nu}

    (Lindon, Ham, Tingley and Bojinov, 2022), and :math:`\frac12(q - q_0)` is the last term where
    the noise is known.
    """
    c = linalg.factor(root @ root.T)
    lower = np.linalg.solve(c, np.column_stack([away, first]))
    e, wide = lower[:, 0], lower[:, 1:]
    spread, vectors = np.linalg.eigh(wide @ wide.T)
    spread = np.maximum(spread, 0.0)
    square, less = float(e @ e), float((vectors.T @ e) ** 2 @ (1 / (1 + spread)))
    if freedom == math.inf:
        gain = (square - less) / 2
    else:
        gain = (freedom + len(e)) / 2 * (math.log1p(square / freedom) - math.log1p(less / freedom))
    return square, gain - 0.5 * float(np.log1p(spread).sum())


def f_tail(statistic: float, count: int, freedom: float) -> float:
    """Return the probability that F is larger, of chi-squared over ``count`` without freedom."""
    from scipy.special import chdtrc, fdtrc

    if freedom == math.inf:
        return float(chdtrc(count, count * statistic))
    return float(fdtrc(count, freedom, statistic))
