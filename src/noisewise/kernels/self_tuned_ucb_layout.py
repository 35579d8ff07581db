"""Where the kernels of `SelfTunedUCB` find its numbers, vectors and matrices, and its constants.

D is the number of features and one more, the intercept, which stands last. The families are 0,
Gaussian, and 1, binomial.
"""

from typing import TYPE_CHECKING

GAUSSIAN, BINOMIAL = 0, 1
TIE = 1e-12  # indices equal to this, relatively, are

FIELDS = {
    "COUNT": "rewards learnt",
    "SINCE": "rewards since the last restart",
    "RESTARTS": "so far",
    "LAST_RESTART": "the count then",
    "STORED": "rows of history",
    "PENDING": "decisions whose rewards are pending",
    "REMOVED": "decisions taken off their matrix since it was last summed",
    "RECENT_ROWS": "rows since the matrix of the forgetting learner was inverted",
    "GIVEN": "1 once a standard deviation other than 1 was given",
    "MEAN": "of rewards less the origin",
    "LEVEL": "of rewards less the origin, weighted",
    "ORIGIN": "the first continuous reward, which all are taken less of",
    "LOG_WEIGHTS": "sum of log w, continuous rewards",
    "NEXT": "count at which the ridge is chosen again",
    "RIDGE": "2 lambda",
    "INTERCEPT": "ridge of the intercept",
    "WEIGHT": "W, the sum of weights times slopes",
    "WEIGHTS": "sum of weights as given",
    "SQUARES": "of rewards around their mean, summed",
    "WEIGHTED_SQUARES": "of rewards around their level",
    "LENGTHS": "squared norms of arms, summed",
    "WEIGHTED_LENGTHS": "weighted by those of their rewards",
    "LENGTH_COUNT": "how many they are",
    "RESIDUALS": "squared standardised residuals, summed",
    "RESIDUAL_COUNT": "how many they are",
    "DISPERSION": "phi",
    "EVIDENCE": "M of the restart test",
    "RECENT_WEIGHT": "WEIGHT of the forgetting learner",
    "RECENT_RESIDUALS": "RESIDUALS of the forgetting learner",
    "RECENT_RESIDUAL_COUNT": "RESIDUAL_COUNT of the forgetting learner",
}
AT = {name: place for place, name in enumerate(FIELDS)}
globals().update(AT)
if TYPE_CHECKING:

    def __getattr__(name: str) -> int: ...


SIZE = len(FIELDS)
COUNTS = range(9)  # the whole numbers among them
SIGNED = (9, 10, 11, 12)  # those that may be negative

THETA, MOMENT, RECENT_THETA, RECENT_MOMENT, PRIOR_MOMENT, VECTORS = range(6)
(
    GRAM,  # G, the weighted rows
    INVERSE,  # P = (G + R)^-1
    BONUS,  # (G + R + pending)^-1
    WAITING,  # the pending rows, weighted
    RECENT_GRAM,  # of the forgetting learner
    RECENT_INVERSE,
    PRIOR_GRAM,  # what a binomial learner took over at its last restart
    MATRICES,
) = range(8)
