"""Many decisions and many rewards of `SelfTunedUCB` in one call, compiled.

The kernels of one decision and one reward are called by their addresses: what is chosen and learnt
is the same as one by one, to the last bit.
"""

from functools import cache

from numba import float64, int64

from . import self_tuned_ucb as one
from . import self_tuned_ucb_layout as at
from .by_address import address, caller
from .compile_options import entry
from .dense import set_line
from .self_tuned_ucb import CHOOSE, EXPECT, LEARN, LINE, RELEASE, STACK, TABLE, fits

PLACES = int64[::1]
call_choose, call_expect = caller(CHOOSE), caller(EXPECT)
call_learn, call_release = caller(LEARN), caller(RELEASE)


@cache
def choosing():
    """Return the addresses that `choose_many` takes."""
    return address(one.choose), address(one.expect)


@cache
def learning(family):
    """Return the addresses that `learn_many` takes."""
    learn = one.learn_number if family == at.GAUSSIAN else one.learn_share
    return address(learn), address(one.release)


@entry(
    int64(LINE, TABLE, STACK, TABLE, LINE, TABLE, PLACES, PLACES, TABLE, int64, float64, int64,
          int64, int64),
    nogil=False,
)  # fmt: skip
def choose_many(
    s, v, m, decisions, keys, arms, first, chosen, played, t, w, family, choose, expect
):
    """Choose from offer ``t`` on, and set the arms played; return the offer whose arms tie, or n.

    Offer t has the arms from ``first[t]`` to ``first[t + 1]``. Before it is looked at, the decision
    before it is counted as pending, with weight ``w``; arms must be such that they can be counted.
    """
    while t < chosen.shape[0]:
        if t > 0:
            call_expect(expect, s, v, m, decisions, keys, played[t - 1], w, family)
        k = call_choose(choose, s, v, m, arms[first[t] : first[t + 1]])
        if k < 0:
            return t
        chosen[t] = k
        set_line(arms[first[t] + k], played[t])
        t += 1
    return t


@entry(int64(LINE, TABLE, LINE, LINE, int64))
def first_refused(s, x, y, w, family):
    """Return the first reward that can't be computed with, or the number of all."""
    t = 0
    while t < x.shape[0] and fits(s, x[t], y[t], w[t], family):
        t += 1
    return t


@entry(
    int64(LINE, TABLE, STACK, TABLE, TABLE, LINE, TABLE, LINE, LINE, PLACES, int64, int64),
    nogil=False,
)
def learn_many(s, v, m, rows, decisions, keys, x, y, w, counted, learn, release):
    """Learn rewards that `first_refused` finds nothing in; those ``counted`` are released."""
    for t in range(x.shape[0]):
        call_learn(learn, s, v, m, rows, decisions, x[t], y[t], w[t])
        if counted[t] != 0:
            call_release(release, s, v, m, decisions, keys, x[t])
    return x.shape[0]
