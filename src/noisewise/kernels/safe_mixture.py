"""Predictions combined, compiled: fast while that is safe, see regression/safe_mixture.py.

``raw`` holds a row of predictions for each learner. Experts are these within limits, a few for
each, and last the running mean of the labels. ``experts`` has a row for each of them.
"""

import math

import numpy as np
from numba import float64, int64, njit, void

from . import safe_mixture_layout as at
from .compile_options import INNER, PART, entry
from .dense import log_sum_exp


@njit(**INNER)
def event(numbers):
    """Return the rate of one event in a row of mean weight, at most Y whatever the weights."""
    if not numbers[at.ROWS] > 0.0:
        return 1.0
    return min(numbers[at.ROWS] / numbers[at.TOTAL], numbers[at.TOP])


@njit(**INNER)
def running_mean(kind, numbers):
    """Return the mean of the labels, with half an event more where it is a rate or a share."""
    n, total = numbers[at.ROWS], numbers[at.TOTAL]
    if kind == at.SQUARES:
        return numbers[at.MEAN]
    if kind == at.SHARES:
        return (total * numbers[at.MEAN] + 0.5) / (total + 1.0)
    return (n * numbers[at.MEAN] + 0.5 * event(numbers)) / (n + 1.0)


@njit(**INNER)
def limit(kind, numbers, raw, t, means):
    """Set the mean that each expert predicts for a row."""
    learners, last = raw.shape[0], means.shape[0] - 1
    each = last // learners
    mean = running_mean(kind, numbers)
    means[last] = mean
    one, spread = event(numbers), numbers[at.HIGH] - numbers[at.LOW]
    for k in range(learners):
        for j in range(each):
            p = raw[k, t]
            if kind == at.SQUARES and numbers[at.ROWS] >= 2.0:
                more = at.MARGINS[j] * spread
                p = min(max(p, numbers[at.LOW] - more), numbers[at.HIGH] + more)
            elif kind == at.COUNTS and numbers[at.ROWS] >= 1.0:
                most = at.MULTIPLES[j] * numbers[at.TOP] + one
                p = min(max(p, 0.5 * mean / (numbers[at.ROWS] + 1.0)), most)
            means[k * each + j] = p


@njit(**INNER)
def weigh(experts, column, rate, logs):
    """Set logarithms of prior times exp(-rate loss), losses less the least; return that."""
    least = experts[0, column]
    for i in range(experts.shape[0]):
        least = min(least, experts[i, column])
    for i in range(experts.shape[0]):
        prior = experts[i, at.PRIOR]
        logs[i] = math.log(prior) if prior > 0.0 else -math.inf
        logs[i] -= rate * (experts[i, column] - least)
    return least


@njit(**INNER)
def average(logs, means):
    """Return the mean of predictions by their weights."""
    most, total, found = logs.max(), 0.0, 0.0
    for i in range(logs.shape[0]):
        w = math.exp(logs[i] - most)
        total += w
        found += w * means[i]
    return found / total


@njit(**INNER)
def soft_least(logs, rate, losses):
    """Return -ln(sum of weights times exp(-rate loss))/rate; ``logs`` are normalised."""
    most = -math.inf
    for i in range(logs.shape[0]):
        most = max(most, logs[i] - rate * losses[i])
    total = 0.0
    for i in range(logs.shape[0]):
        total += math.exp(logs[i] - rate * losses[i] - most)
    return -(most + math.log(total)) / rate


@njit(**PART)
def combine(kind, numbers, experts, means, logs, scratch):
    """Return the prediction: fast while the loss so far is at most the potential, else safe."""
    spread = numbers[at.HIGH] - numbers[at.LOW]
    if kind == at.SQUARES:
        if numbers[at.ROWS] < at.BEGIN or not spread * spread > 0.0:
            weigh(experts, at.LOSS, 0.0, logs)
            return average(logs, means)
        rate = 2.0 / (spread * spread)
    else:
        rate = 1.0 / numbers[at.TOP] if kind == at.COUNTS and numbers[at.TOP] > 0.0 else 1.0
    slow = rate / numbers[at.HEAVIEST] if numbers[at.HEAVIEST] > 0.0 else rate
    least = weigh(experts, at.LOSS, slow, logs)
    norm = log_sum_exp(logs)
    if slow * (numbers[at.OWN] - least) <= at.SLACK - norm:
        if kind == at.SQUARES:
            left = numbers[at.CAPPED]
            fast = at.RATE * numbers[at.ROUNDS] / left if left > 1e-280 else 0.0
            weigh(experts, at.CAPPED_LOSS, fast, logs)
        else:
            weigh(experts, at.LOSS, 1.0, logs)
        return average(logs, means)
    for i in range(logs.shape[0]):
        logs[i] -= norm
    if kind == at.SHARES:
        return average(logs, means)
    if kind == at.COUNTS:
        return soft_least(logs, rate, means)
    for i in range(logs.shape[0]):
        scratch[i] = (means[i] - numbers[at.HIGH]) ** 2
    high = soft_least(logs, rate, scratch)
    for i in range(logs.shape[0]):
        scratch[i] = (means[i] - numbers[at.LOW]) ** 2
    low = soft_least(logs, rate, scratch)
    found = 0.5 * (numbers[at.LOW] + numbers[at.HIGH]) - (high - low) / (2.0 * spread)
    return min(max(found, numbers[at.LOW]), numbers[at.HIGH])


@njit(**INNER)
def loss(kind, mean, y):
    """Return the loss of a label of weight 1, up to what does not depend on the mean."""
    if kind == at.SQUARES:
        return (mean - y) * (mean - y)
    if kind == at.COUNTS:
        return mean - y * math.log(mean)
    found = 0.0
    if y > 0.0:
        found -= y * math.log(mean)
    if y < 1.0:
        found -= (1.0 - y) * math.log1p(-mean)
    return found


@njit(**PART)
def add_row(kind, numbers, experts, means, mean, y, w):
    """Add the losses of a row, and the label to what is known of labels."""
    first = not numbers[at.ROWS] > 0.0
    numbers[at.LOW] = y if first else min(numbers[at.LOW], y)
    numbers[at.HIGH] = y if first else max(numbers[at.HIGH], y)
    numbers[at.TOP] = max(min(1.0, 1.0 / w) if first else numbers[at.TOP], y)
    numbers[at.HEAVIEST] = max(numbers[at.HEAVIEST], w)
    numbers[at.ROWS] += 1.0
    numbers[at.TOTAL] += w
    numbers[at.MEAN] += w / numbers[at.TOTAL] * (y - numbers[at.MEAN])
    if first and kind == at.SQUARES:
        return  # nobody could know its size
    m, spread, cap = numbers[at.ROUNDS], numbers[at.HIGH] - numbers[at.LOW], math.inf
    if m >= at.MANY:
        mean_weight = numbers[at.TOTAL] / numbers[at.ROWS]
        cap = max(at.CAP * numbers[at.CAPPED], mean_weight * spread * spread) / m
    own = w * loss(kind, mean, y)
    numbers[at.OWN] += own
    numbers[at.CAPPED] += min(own, cap)
    numbers[at.ROUNDS] = m + 1.0
    for i in range(experts.shape[0]):
        found = w * loss(kind, means[i], y)
        experts[i, at.LOSS] += found
        experts[i, at.CAPPED_LOSS] += min(found, cap)


TABLE, LINE = float64[:, ::1], float64[::1]


@entry(void(int64, LINE, TABLE, TABLE, LINE, LINE, LINE))
def learn(kind, numbers, experts, raw, y, w, out):
    """Combine predictions of rows in order, each before its label; weight 0 teaches nothing."""
    k = experts.shape[0]
    means, logs, scratch = np.empty(k), np.empty(k), np.empty(k)
    for t in range(y.shape[0]):
        limit(kind, numbers, raw, t, means)
        out[t] = combine(kind, numbers, experts, means, logs, scratch)
        if w[t] > 0.0:
            add_row(kind, numbers, experts, means, out[t], y[t], w[t])


@entry(void(int64, LINE, TABLE, TABLE, LINE))
def predict(kind, numbers, experts, raw, out):
    """Combine predictions of rows, each as if it were the next; the state is only read."""
    k = experts.shape[0]
    means, logs, scratch = np.empty(k), np.empty(k), np.empty(k)
    for t in range(out.shape[0]):
        limit(kind, numbers, raw, t, means)
        out[t] = combine(kind, numbers, experts, means, logs, scratch)
