"""What `SelfTunedUCB` knows, by name, the same in its kernels and in Python.

D is the number of features and one more, the intercept, which stands last. Of the features the last
may be blocks (a, a c), c the context and a the head of the block; those before are plain.
"""

import math
from typing import ClassVar, Generic, NamedTuple, TypeVar

from ..named import Numbers, record

GAUSSIAN, BINOMIAL = 0, 1
TIE = 1e-12  # indices equal to this, relatively, are
PRIOR_SQUARES = 3.0  # of residuals, drawing their correlation towards 0
CERTAIN = 3.0  # standard errors from which on that is beyond chance
T = TypeVar("T")


class KnownNumbers(Numbers):
    """The numbers of a state: counts first, then those that may be negative."""

    fields: ClassVar[dict[str, str]] = {
        "family": "0 for Gaussian, 1 for binomial",
        "count": "rewards learnt",
        "since_restart": "rewards since the last restart",
        "restarts": "so far",
        "last_restart": "the count then",
        "stored": "rows of history",
        "pending": "decisions whose rewards are pending",
        "removed": "decisions taken off their matrix since it was last summed",
        "recent_rows": "rows since the matrix of the forgetting learner was inverted",
        "sds_given": "1 once a standard deviation other than 1 was given",
        "blocks": "how many an arm has",
        "context": "columns of c",
        "shared": "1 where heads are features of actions, 0 where each action has its block",
        "keep_rows": "rows of history at most; older ones are condensed",
        "condensed": "rows that are",
        "mean_reward": "less the origin",
        "weighted_mean": "of rewards less the origin",
        "origin": "the first continuous reward, which is subtracted from all",
        "log_weights": "sum of log w, continuous rewards",
        "log_squares": "sum of log r^2 w over the same rows as the following",
        "log_spread": "sum of log w over rows that tell whether the given sds are right",
        "log_products": "sum of the product of both",
        "lag_products": "of successive residuals of the learner that forgets, capped, summed",
        "last_residual": "standardised and capped",
        "last_recent": "the same of the learner that forgets",
        "next_renewal": "count at which ridges are chosen again",
        "plain_ridge": "2 lambda, of plain features",
        "intercept_ridge": "that of the intercept",
        "information": "W, the sum of weights times slopes",
        "weights": "sum of weights as given",
        "squares": "of rewards around their mean, summed",
        "weighted_squares": "of rewards around their weighted mean",
        "norms": "squared norms of arms, summed",
        "weighted_norms": "the same, weighted by their rewards",
        "arms": "how many they are",
        "typical_weight": "geometric mean of weights when they were last computed",
        "distrust": "b, by which the logarithms of given weights are drawn together",
        "log_count": "rows that tell whether the given sds are right",
        "log_spread_squares": "sum of (log w)^2 over them",
        "novel_residuals": "squared standardised residuals times leverages, summed",
        "novelty": "leverages, summed",
        "residuals": "squared standardised residuals, summed",
        "residual_count": "how many they are",
        "dispersion": "phi",
        "evidence": "E of the restart test",
        "lag_squares": "of the first factors of `lag_products`, summed",
        "condensed_information": "W of condensed rows",
        "tails": "squared standardised residuals since the last restart, not capped, summed",
        "slopes": "what rewards since the last restart count, over their weights, summed",
        "slope_squares": "the same squared, summed",
        "forget_after": "how many rewards all of them count as at most, 0 where none is discounted",
    }


NUMBERS = record(KnownNumbers.fields)
SIZE = len(KnownNumbers.fields)
COUNTS, SIGNED = range(15), range(15, 25)  # whole numbers, and those that may be negative


class Vectors(NamedTuple, Generic[T]):
    """The vectors of a state in order: kernels have their places, Python views."""

    theta: T
    moment: T
    recent_theta: T  # of the learner that forgets
    recent_moment: T
    squares: T  # of each feature, summed over arms
    largest_square: T
    scale: T  # what the ridge of a feature is multiplied by; for a block, at its head
    low: T  # limits of each column of the context
    high: T
    centre: T  # its mean
    rate: T  # 1 over its sd, 0 where it is constant
    apart: T  # ridges of each column of blocks: of differences between them
    together: T  # of their mean
    condensed_moment: T


class Matrices(NamedTuple, Generic[T]):
    """The matrices of a state in order, likewise."""

    gram: T  # G, the weighted rows
    inverse: T  # P = (G + R)^-1
    bonus: T  # (G + R + pending)^-1
    pending: T  # rows of pending decisions, weighted
    recent_gram: T  # of the learner that forgets
    recent_inverse: T
    noise: T  # M, rows weighted by their squared standardised residuals, sds not given
    sandwich: T  # P M P
    penalty: T  # R
    condensed_gram: T


V: Vectors[int] = Vectors(*range(len(Vectors._fields)))
M: Matrices[int] = Matrices(*range(len(Matrices._fields)))
NONNEGATIVE = [V.squares, V.largest_square, V.rate, V.apart, V.together]


def clear_correlation(products: float, squares: float, count: float) -> float:
    """Return the lag correlation of residuals where that is beyond chance, else 0."""
    rho = products / (PRIOR_SQUARES + squares)
    return rho if rho * math.sqrt(1.0 + count) > CERTAIN else 0.0
