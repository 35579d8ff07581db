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
    int64(LINE, TABLE, STACK, TABLE, LINE, TABLE, PLACES, PLACES, int64, float64, int64, int64,
          int64),
    nogil=False,
)  # fmt: skip
def choose_many(s, v, m, decisions, keys, arms, first, chosen, t, w, family, choose, expect):
    """Choose from offer ``t`` on; return the offer whose arms tie, or their number.

    Offer t has the arms from ``first[t]`` to ``first[t + 1]``. Before it is looked at, the decision
    before it is counted as pending, with weight ``w``. `first_unexpected` finds nothing in them.
    """
    while t < chosen.shape[0]:
        if t > 0:
            played = arms[first[t - 1] + chosen[t - 1]]
            call_expect(expect, s, v, m, decisions, keys, played, w, family)
        chosen[t] = call_choose(choose, s, v, m, arms[first[t] : first[t + 1]])
        if chosen[t] < 0:
            return t
        t += 1
    return t


@entry(int64(TABLE, float64, int64))
def first_unexpected(arms, w, family):
    """Return the first arm whose decision can't be computed with, or the number of all."""
    k = 0
    while k < arms.shape[0] and fits(arms[k], 0.0, w, family):
        k += 1
    return k


@entry(int64(TABLE, LINE, LINE, int64))
def first_refused(x, y, w, family):
    """Return the first reward that can't be computed with, or the number of all."""
    t = 0
    while t < x.shape[0] and fits(x[t], y[t], w[t], family):
        t += 1
    return t


@entry(
    int64(LINE, TABLE, STACK, TABLE, TABLE, LINE, TABLE, LINE, LINE, PLACES, int64, int64),
    nogil=False,
)
def learn_many(s, v, m, rows, decisions, keys, x, y, w, counted, learn, release):
    """Learn rewards that `first_refused` finds nothing in; those ``counted`` are released."""
    for t in range(x.shape[0]):
        call_learn(learn, s, v, m, rows, x[t], y[t], w[t])
        if counted[t] != 0:
            call_release(release, s, v, m, decisions, keys, x[t])
    return x.shape[0]
