"""One round for a link of the user's own, whose parts the caller has evaluated."""

import numpy as np
from numba import float64

from .anchor import numbers_of
from .compile_options import entry
from .step import append_row, first_refused, judge, propose, rank_one_update, restep

__all__ = ["feed", "first_refused", "judge", "propose", "restep"]


@entry(
    float64(float64[::1], float64[::1], float64, float64, float64, float64, float64, float64),
    nogil=False,
)
def feed(a, x, y, w, mean_m, slope_m, potential_m, loss):
    """Learn one checked row from mean, slope and potential at the anchor, and the played loss.

    Returns what is asked for.
    """
    s = numbers_of(a)
    sm, su, sx = append_row(s, a, x, np.uint64(0))
    bend, value = s.concordance, w * (potential_m - y * sm)
    return rank_one_update(s, a, y, w, sm, su, sx, mean_m, slope_m, bend, value, loss)
