"""Where the numbers of a safe mixture lie in its arrays, and its constants."""

import numpy as np

SQUARES, COUNTS, SHARES = range(3)  # kinds of loss
# numbers of a state: rows, their weight, mean and range of their labels, the heaviest row, own
# loss; rows that count for the fast rate of squares, and their losses, capped; Y of counts
ROWS, TOTAL, MEAN, LOW, HIGH, HEAVIEST, OWN, ROUNDS, CAPPED, TOP, NUMBERS = range(11)
# numbers of an expert: prior, loss, loss with capped rows
PRIOR, LOSS, CAPPED_LOSS, EXPERT = range(4)

MARGINS = np.array([0.25, 0.1, 0.0])  # shares of the labels' range by which it is widened
MULTIPLES = np.array([2.0, 1.0])  # of the largest label, one event above which counts are clipped
VERSIONS = len(MARGINS), len(MULTIPLES), 1  # experts of a learner, by kind; the widest limit first
BEGIN = 3.0  # rows after which squares are combined by their losses
RATE, CAP, MANY = 0.25, 25.0, 10.0  # of fast weights; cap of a row over the mean, and from when on
SLACK = 1e-9  # of the potential, in units of its rate: where all agree, rounding must not decide
