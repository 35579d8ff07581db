"""The numbers of a self-tuned regression by name, and where its vectors lie."""

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...support.arrays import Array
from ..glm.layout import padded
from ..named import Numbers, record


class StateNumbers(Numbers):
    """The numbers of a state."""

    fields: ClassVar = {
        "count": "rows of positive weight learnt",
        "origin": "the first label, which others are taken less",
        "low": "the least label",
        "high": "the largest label",
        "squares": "own squared errors, capped",
        "rounds": "rows that these are of",
    }


class ExpertNumbers(Numbers):
    """The numbers of a forgetting factor: P is ``scale`` times what is stored less a change."""

    fields: ClassVar = {
        "gamma": "the forgetting factor",
        "prior": "its prior weight",
        "labels": "sum of weighted squared labels, discounted",
        "rows": "number of rows, discounted",
        "ridge": "c, the ridge over d times the variances",
        "choice": "the count at which the ridge is chosen again",
        "factored": "the count at which P was computed, -1 where that is due",
        "loss": "squared errors, capped",
        "share": "the weight in the combination",
        "scale": "of P, and one over that of G",
        "pending": "coefficient of a change of P by rank one that is yet to come",
        "slot": "which of two vectors it uses",
    }


NUMBERS, EXPERT = record(StateNumbers.fields), record(ExpertNumbers.fields)


class Moments(NamedTuple):
    """The moments of features: the first row, sums of the rows less that, variances in use."""

    first: Array
    sums: Array
    squares: Array
    used: Array


# before the inverse lie two vectors for its changes, in turn, and one for the row
ROW, VECTORS = 2, 3

WIDE = 64  # features beyond which a moved variance changes its own feature alone
CHANGES = 64  # features for each that is changed by rank one before a factor is quicker


def by_name(experts: Array) -> NDArray[np.void]:
    """Return the numbers of all forgetting factors by name: a view."""
    return experts.view(EXPERT)[:, 0]


def gram_of(flat: Array, p: int) -> Array:
    """Return G of a forgetting factor, its lower half, from where it is stored: a view."""
    return flat.reshape(padded(p), padded(p))[:p, :p]


def inverse_of(flat: Array, p: int) -> Array:
    """Return P of a forgetting factor from where it is stored: a view."""
    return gram_of(flat[VECTORS * padded(p) :], p)
