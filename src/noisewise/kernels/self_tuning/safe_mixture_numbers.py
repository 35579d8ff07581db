"""The numbers of a safe mixture by name, and its constants."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...support.arrays import Array
from ..named import Numbers, record


class MixtureNumbers(Numbers):
    """The numbers of a state."""

    fields: ClassVar = {
        "rows": "rows of positive weight learnt",
        "weight": "of all of them",
        "label_mean": "weighted mean of the labels",
        "low": "the least label",
        "high": "the largest label",
        "heaviest": "the largest weight",
        "loss": "the own loss",
        "rounds": "rows that count for the fast rate of squares",
        "capped_loss": "their loss, capped",
        "top": "Y of counts, at least the largest label",
    }


LOSSES = "prior", "loss", "capped_loss"  # of an expert
NUMBERS, EXPERT = record(MixtureNumbers.fields), record(LOSSES)

SQUARES, COUNTS, SHARES = range(3)  # kinds of loss
MARGINS = np.array([0.25, 0.1, 0.0])  # shares of the labels' range by which it is widened
MULTIPLES = np.array([2.0, 1.0])  # of the largest label, one event above which counts are clipped
VERSIONS = len(MARGINS), len(MULTIPLES), 1  # experts of a learner, by kind; the widest limit first


def by_name(experts: Array) -> NDArray[np.void]:
    """Return the numbers of all experts by name: a view."""
    return experts.view(EXPERT)[:, 0]
