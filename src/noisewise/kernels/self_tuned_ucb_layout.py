"""Where the kernels of `SelfTunedUCB` find its numbers, vectors and matrices.

D is the number of features and one more, the intercept, which stands last.
"""

NAMES = (
    "COUNT",  # rewards learnt
    "STORED",  # rows in the history: binomial rewards since the last restart
    "NEXT",  # the count at which the ridge is chosen again
    "RIDGE",  # 2 lambda
    "INTERCEPT",  # the ridge of the intercept
    "WEIGHT",  # W, the sum of weights, or of slopes
    "ORIGIN",  # the first reward, which continuous ones are less of
    "MEAN",  # of rewards, and their sum of squares around it
    "SQUARES",
    "LEVEL",  # of rewards, weighted: mean, sum of squares around it, sum of weights
    "WEIGHTED_SQUARES",
    "TOTAL",
    "LENGTHS",  # sums of the arms' squared norms, plain and weighted, and their number
    "WEIGHTED_LENGTHS",
    "LENGTH_COUNT",
    "RESIDUALS",  # sum of squared standardised residuals, capped, and their number
    "RESIDUAL_COUNT",
    "DISPERSION",  # phi
    "EVIDENCE",  # M of the restart test
    "SINCE",  # rewards since the last restart
    "RESTARTS",
    "LAST_RESTART",  # the count at the last restart
    "RECENT_WEIGHT",  # of the learner that forgets: W, residuals, their number
    "RECENT_RESIDUALS",
    "RECENT_RESIDUAL_COUNT",
    "RECENT_ROWS",  # rows since its matrix was last inverted
    "PENDING",  # decisions that wait for a reward
    "REMOVED",  # decisions taken off the pending matrix since it was last summed
)
SIZE = len(NAMES)
for _place, _name in enumerate(NAMES):
    globals()[_name] = _place

THETA, MOMENT, RECENT_THETA, RECENT_MOMENT, PRIOR_MOMENT = range(5)
VECTORS = 5
(
    GRAM,  # G, the weighted rows, and P = (G + R)^-1
    INVERSE,
    BONUS,  # (G + R + pending)^-1
    WAITING,  # the pending rows, weighted
    SPREAD,  # weighted rows times their squared standardised residuals
    SANDWICH,  # P SPREAD P
    RECENT_GRAM,  # of the learner that forgets
    RECENT_INVERSE,
    PRIOR_GRAM,  # what a binomial learner took over at its last restart
) = range(9)
MATRICES = 9
