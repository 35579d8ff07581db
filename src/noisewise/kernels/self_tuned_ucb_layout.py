"""Where the kernels of `SelfTunedUCB` find its numbers, vectors and matrices, and its constants.

D is the number of features and one more, the intercept, which stands last. Of the features the last
may be blocks (a, a c), c the context and a the head of the block; those before are plain. The
families are 0, Gaussian, and 1, binomial.
"""

import math
from typing import TYPE_CHECKING

GAUSSIAN, BINOMIAL = 0, 1
TIE = 1e-12  # indices equal to this, relatively, are
PRIOR_SQUARES = 3.0  # of residuals, drawing their correlation towards 0
CERTAIN = 3.0  # standard errors from which on that is beyond chance

FIELDS = {
    "FAMILY": "0 or 1, see above",
    "COUNT": "rewards learnt",
    "SINCE": "rewards since the last restart",
    "RESTARTS": "so far",
    "LAST_RESTART": "the count then",
    "STORED": "rows of history",
    "PENDING": "decisions whose rewards are pending",
    "REMOVED": "decisions taken off their matrix since it was last summed",
    "RECENT_ROWS": "rows since the matrix of the forgetting learner was inverted",
    "GIVEN": "1 once a standard deviation other than 1 was given",
    "BLOCKS": "how many an arm has",
    "CONTEXT": "columns of c",
    "SHARED": "1 where heads are features of actions, 0 where each action has its block",
    "KEEP": "rows of history at most; older ones are condensed",
    "CONDENSED": "rows that are",
    "MEAN": "of rewards less the origin",
    "LEVEL": "of rewards less the origin, weighted",
    "ORIGIN": "the first continuous reward, which all are taken less of",
    "LOG_WEIGHTS": "sum of log w, continuous rewards",
    "LOG_SQUARES": "sum of log r^2 w over the same rows as the following",
    "LOG_SPREAD": "sum of log w over rows that tell whether the given sds are right",
    "LOG_PRODUCTS": "sum of the product of both",
    "LAG_PRODUCTS": "of residuals in a row of the learner that forgets, capped, summed",
    "LAST": "residual, standardised and capped",
    "LAST_RECENT": "residual of the learner that forgets",
    "NEXT": "count at which the ridge is chosen again",
    "RIDGE": "2 lambda, of plain features",
    "INTERCEPT": "ridge of the intercept",
    "WEIGHT": "W, the sum of weights times slopes",
    "WEIGHTS": "sum of weights as given",
    "SQUARES": "of rewards around their mean, summed",
    "WEIGHTED_SQUARES": "of rewards around their level",
    "LENGTHS": "squared norms of arms, summed",
    "WEIGHTED_LENGTHS": "weighted by those of their rewards",
    "LENGTH_COUNT": "how many they are",
    "TYPICAL": "geometric mean of weights when they were last computed",
    "DISTRUST": "b, by which the logarithms of given weights are drawn together",
    "LOG_COUNT": "rows that tell whether the given sds are right",
    "LOG_SPREAD_SQUARES": "sum of (log w)^2 over them",
    "NOVEL_RESIDUALS": "squared standardised residuals times leverages, summed",
    "NOVELTY": "leverages, summed",
    "RESIDUALS": "squared standardised residuals, summed",
    "RESIDUAL_COUNT": "how many they are",
    "DISPERSION": "phi",
    "EVIDENCE": "E of the restart test",
    "LAG_SQUARES": "of the first ones of these products, summed",
    "OLD_WEIGHT": "W of condensed rows",
    "TAILS": "squared standardised residuals since the last restart, not capped, summed",
}
AT = {name: place for place, name in enumerate(FIELDS)}
globals().update(AT)
if TYPE_CHECKING:

    def __getattr__(name: str) -> int: ...


SIZE = len(FIELDS)
COUNTS = range(15)  # the whole numbers among them
SIGNED = range(15, 25)  # those that may be negative

(
    THETA,
    MOMENT,
    RECENT_THETA,
    RECENT_MOMENT,
    SQUARES_OF,  # of each feature, summed over arms
    LARGEST_OF,  # square of each feature
    SCALE,  # what the ridge of a feature is multiplied by; for a block, at its head
    LOW,  # limits of each column of the context
    HIGH,
    CENTRE,  # its mean
    RATE,  # 1 over its sd, 0 where it is constant
    APART,  # ridges of each column of blocks: of differences between them
    TOGETHER,  # of their mean
    OLD_MOMENT,  # of condensed rows
    VECTORS,
) = range(15)
NONNEGATIVE = [SQUARES_OF, LARGEST_OF, RATE, APART, TOGETHER]
(
    GRAM,  # G, the weighted rows
    INVERSE,  # P = (G + R)^-1
    BONUS,  # (G + R + pending)^-1
    WAITING,  # the pending rows, weighted
    RECENT_GRAM,  # of the forgetting learner
    RECENT_INVERSE,
    NOISE,  # M, rows weighted by their squared standardised residuals, sds not given
    SANDWICH,  # P M P
    PENALTY,  # R
    OLD_GRAM,  # of condensed rows
    MATRICES,
) = range(11)


def clear_correlation(products: float, squares: float, count: float) -> float:
    """Return the lag correlation of residuals where that is beyond chance, else 0."""
    rho = products / (PRIOR_SQUARES + squares)
    return rho if rho * math.sqrt(1.0 + count) > CERTAIN else 0.0
