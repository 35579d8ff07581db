"""Where the numbers of a self-tuned regression lie in its arrays, and its constants."""

import math

import numpy as np

# numbers of a state
COUNT, ORIGIN, LOW, HIGH, SQUARES, ROUNDS, NUMBERS = 0, 1, 2, 3, 4, 5, 6
# rows of its moments of features
FIRST, SUM, SUM_OF_SQUARES, USED, MOMENTS = 0, 1, 2, 3, 4
# numbers of a forgetting factor: c is the ridge over d times the variances
GAMMA, PRIOR, LABELS, SIZE, RIDGE, NEXT, FACTORED, LOSS, SHARE = 0, 1, 2, 3, 4, 5, 6, 7, 8
# P is ``scale`` times what is stored less ``pending`` k k', G what is stored over ``scale``
SCALE, PENDING, SLOT, EXPERT = 9, 10, 11, 12
# vectors before the inverse: two for k in turn, one for the row
ROW, VECTORS = 2, 3

GRID = 10.0 ** np.arange(-3.0, 4.25, 0.5)
LOG_PRIOR = -np.log(1.0 + np.log10(GRID) ** 2)
PRIOR_RIDGE = math.exp(float(np.log(GRID) @ np.exp(LOG_PRIOR) / np.exp(LOG_PRIOR).sum()))
INTERCEPT_RIDGE = 1e-8

WIDE = 64  # features beyond which a moved variance changes its own feature alone
CHANGES = 64  # features for each that is changed by rank one before a factor is quicker
