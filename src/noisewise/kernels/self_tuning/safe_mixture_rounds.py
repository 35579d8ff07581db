"""Predictions combined, compiled: fast while that is safe, see regression/safe_mixture.py.

``raw`` holds a row of predictions for each learner. Experts are these within limits, a few for
each, and last the running mean of the labels. ``experts`` has a row for each of them.
"""

import math

import numpy as np
from numba import float64, int64, njit, void

from ..compiling.compile_options import INNER, PART, entry
from ..matrices.dense import largest, log_sum_exp
from .safe_mixture_numbers import COUNTS, EXPERT, MARGINS, MULTIPLES, NUMBERS, SHARES, SQUARES

BEGIN = 3.0  # rows after which squares are combined by their losses
RATE, CAP, MANY = 0.25, 25.0, 10.0  # of fast weights; cap of a row over the mean, and from when on
SLACK = 1e-9  # of the potential, in units of its rate: where all agree, rounding must not decide


@njit(**INNER)
def event(s):
    """Return the rate of one event in a row of mean weight, at most Y whatever the weights."""
    if not s.rows > 0.0:
        return 1.0
    return min(s.rows / s.weight, s.top)


@njit(**INNER)
def running_mean(kind, s):
    """Return the mean of the labels, with half an event more where it is a rate or a share."""
    n, total = s.rows, s.weight
    if kind == SQUARES:
        return s.label_mean
    if kind == SHARES:
        return (total * s.label_mean + 0.5) / (total + 1.0)
    return (n * s.label_mean + 0.5 * event(s)) / (n + 1.0)


@njit(**INNER)
def limit(kind, s, raw, t, means):
    """Set the mean that each expert predicts for a row."""
    learners, last = raw.shape[0], means.shape[0] - 1
    each = last // learners
    mean = running_mean(kind, s)
    means[last] = mean
    one, spread = event(s), s.high - s.low
    for k in range(learners):
        for j in range(each):
            p = raw[k, t]
            if kind == SQUARES and s.rows >= 2.0:
                more = MARGINS[j] * spread
                p = min(max(p, s.low - more), s.high + more)
            elif kind == COUNTS and s.rows >= 1.0:
                most = MULTIPLES[j] * s.top + one
                p = min(max(p, 0.5 * mean / (s.rows + 1.0)), most)
            means[k * each + j] = p


@njit(**INNER)
def weigh(experts, capped, rate, logs):
    """Set logarithms of prior times exp(-rate loss), losses less the least; return that."""
    least = math.inf
    for i in range(experts.shape[0]):
        logs[i] = experts[i].capped_loss if capped else experts[i].loss
        least = min(least, logs[i])
    for i in range(experts.shape[0]):
        prior = experts[i].prior
        logs[i] = (math.log(prior) if prior > 0.0 else -math.inf) - rate * (logs[i] - least)
    return least


@njit(**INNER)
def average(logs, means):
    """Return the mean of predictions by their weights."""
    most, total, found = largest(logs), 0.0, 0.0
    for i in range(logs.shape[0]):
        w = math.exp(logs[i] - most)
        total += w
        found += w * means[i]
    return found / total


@njit(**INNER)
def soft_least(logs, rate, power, means, y, scratch):
    """Return -ln(sum of weights times exp(-rate (mean - y)^power))/rate, ``logs`` normalised."""
    for i in range(logs.shape[0]):
        away = means[i] - y
        scratch[i] = logs[i] - rate * (away if power == 1 else away * away)
    return -log_sum_exp(scratch) / rate


@njit(**PART)
def combine(kind, s, experts, means, logs, scratch):
    """Return the prediction: fast while the loss so far is at most the potential, else safe."""
    spread = s.high - s.low
    if kind == SQUARES:
        if s.rows < BEGIN or not spread * spread > 0.0:
            weigh(experts, False, 0.0, logs)
            return average(logs, means)
        rate = 2.0 / (spread * spread)
    else:
        rate = 1.0 / s.top if kind == COUNTS and s.top > 0.0 else 1.0
    slow = rate / s.heaviest if s.heaviest > 0.0 else rate
    least = weigh(experts, False, slow, logs)
    norm = log_sum_exp(logs)
    if slow * (s.loss - least) <= SLACK - norm:
        if kind == SQUARES:
            left = s.capped_loss
            fast = RATE * s.rounds / left if left > 1e-280 else 0.0
            weigh(experts, True, fast, logs)
        else:
            weigh(experts, False, 1.0, logs)
        return average(logs, means)
    for i in range(logs.shape[0]):
        logs[i] -= norm
    if kind == SHARES:
        return average(logs, means)
    if kind == COUNTS:
        return soft_least(logs, rate, 1, means, 0.0, scratch)
    high = soft_least(logs, rate, 2, means, s.high, scratch)
    low = soft_least(logs, rate, 2, means, s.low, scratch)
    found = 0.5 * (s.low + s.high) - (high - low) / (2.0 * spread)
    return min(max(found, s.low), s.high)


@njit(**INNER)
def loss(kind, mean, y):
    """Return the loss of a label of weight 1, up to what does not depend on the mean."""
    if kind == SQUARES:
        return (mean - y) * (mean - y)
    if kind == COUNTS:
        return mean - y * math.log(mean)
    found = 0.0
    if y > 0.0:
        found -= y * math.log(mean)
    if y < 1.0:
        found -= (1.0 - y) * math.log1p(-mean)
    return found


@njit(**PART)
def add_row(kind, s, experts, means, mean, y, w):
    """Add the losses of a row, and the label to what is known of labels."""
    first = not s.rows > 0.0
    s.low = y if first else min(s.low, y)
    s.high = y if first else max(s.high, y)
    s.top = max(min(1.0, 1.0 / w) if first else s.top, y)
    s.heaviest = max(s.heaviest, w)
    s.rows += 1.0
    s.weight += w
    s.label_mean += w / s.weight * (y - s.label_mean)
    if first and kind == SQUARES:
        return  # nobody could know its size
    m, spread, cap = s.rounds, s.high - s.low, math.inf
    if m >= MANY:
        mean_weight = s.weight / s.rows
        cap = max(CAP * s.capped_loss, mean_weight * spread * spread) / m
    own = w * loss(kind, mean, y)
    s.loss += own
    s.capped_loss += min(own, cap)
    s.rounds = m + 1.0
    for i in range(experts.shape[0]):
        found = w * loss(kind, means[i], y)
        experts[i].loss += found
        experts[i].capped_loss += min(found, cap)


TABLE, LINE = float64[:, ::1], float64[::1]


@entry(void(int64, LINE, TABLE, TABLE, LINE, LINE, LINE))
def learn(kind, numbers, table, raw, y, w, out):
    """Combine predictions of rows in order, each before its label.

    Rows of weight 0 leave the state alone.
    """
    k = table.shape[0]
    s, experts = numbers.view(NUMBERS)[0], table.view(EXPERT).reshape(k)
    means, logs, scratch = np.empty(k), np.empty(k), np.empty(k)
    for t in range(y.shape[0]):
        limit(kind, s, raw, t, means)
        out[t] = combine(kind, s, experts, means, logs, scratch)
        if w[t] > 0.0:
            add_row(kind, s, experts, means, out[t], y[t], w[t])
