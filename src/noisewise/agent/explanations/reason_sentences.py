"""Why an action was chosen, in one sentence."""

from collections.abc import Sequence

from .reasons import Reason

TIE = 1e-9  # sums equal to this, relatively, are read as equal


def called(row: Reason) -> str:
    """Return how a sentence calls an arm."""
    return f"'{row.action}'" if row.action else f"arm {row.arm}"


def sum_of(row: Reason) -> float | None:
    """Return estimate and exploration, which decide where the policy has both."""
    if row.estimate is None or row.exploration is None:
        return None
    return row.estimate + row.exploration


def sentence(rows: Sequence[Reason], chosen: tuple[int, ...], past: bool, drawn: bool) -> str:
    """Return why the ``chosen`` rows are or, if ``past``, were chosen; "" where nothing says so.

    >>> rows = [Reason(0, 0.4, exploration=0.3, action="mail"), Reason(1, 0.5, exploration=0.1)]
    >>> sentence(rows, (0,), True, False)
    "'mail' was chosen: estimated 0.4, less than arm 1 with 0.5, but uncertain enough to be worth \
trying."
    """
    if not chosen:
        return ""
    names = " and ".join(
        filter(None, [", ".join(called(rows[k]) for k in chosen[:-1]), called(rows[chosen[-1]])])
    )
    several = len(chosen) > 1
    verb = ("were" if several else "was") if past else "would be"
    head = f"{names} {verb} chosen"
    if drawn:
        return (
            f"{head} by chance: a share of decisions is drawn or held out, to learn from the log."
        )
    estimates = [-1e300 if row.estimate is None else row.estimate for row in rows]
    sums = [sum_of(row) for row in rows]
    if len(rows) == len(chosen):
        return f"{head}: nothing else is on offer."
    if several:
        return f"{head}: the largest sums of estimate and exploration, in this order."
    (k,) = chosen
    best = max(range(len(rows)), key=estimates.__getitem__)
    equal = [
        other is not None and abs(other - mine) <= TIE * abs(mine)
        for other in sums
        if (mine := sums[k]) is not None
    ]
    if sum(equal) > 1:
        if past:
            return f"{head}, one of {sum(equal)} actions with the same sum."
        return f"{sum(equal)} actions have the same sum, and one of them would be chosen."
    if rows[k].estimate is None:
        return f"{head}."
    if estimates[k] >= estimates[best]:
        return f"{head}: it has the highest estimate, {rows[k].estimate:.4g}."
    return (
        f"{head}: estimated {rows[k].estimate:.4g}, less than {called(rows[best])} with "
        f"{estimates[best]:.4g}, but uncertain enough to be worth trying."
    )
