"""What a study says of its claims: whether each held, and what was measured.

The text of a claim does not change from run to run; the numbers behind it are the measured text.
What theory promises is tested with false alarms of a few in a million. An order or a share that was
only found is tested both ways with `ERROR`, and a study states it where its trials decide it with
the chance `POWER` at least, as `share_power` or `mean_power` says of a pilot's figures.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..protocols import Array
from ..support.printing import percent

ERRORS = 4.5  # standard errors of a normal mean: a chance of 7 in a million
ERROR = 0.015  # chance of a wrong verdict on an order or a share; four runs against four reach it
POWER = 0.99


@dataclass(frozen=True)
class Verdict:
    """Whether a claim ``held``, None where the run is too small to tell, and what was measured."""

    held: bool | None
    measured: str = ""

    def __bool__(self) -> bool:
        return bool(self.held)


def near(away: pd.Series, trials: int, *, below: bool = True) -> Verdict:
    """Judge means by their distances in standard errors, or only by how far they lie ``below``.

    The limit is 4.5, widened by Student's t to the same chance where trials are few.
    """
    from scipy.stats import norm, t

    if trials < 2:
        return Verdict(None, "needs at least two trials")
    limit = t.isf(norm.sf(ERRORS), trials - 1)
    furthest = away.abs().max() if below else -away.min()
    chance = len(away) * norm.sf(ERRORS) * (2 if below else 1)
    text = f"{furthest:.1f} standard errors at worst in {len(away)} cells, limit {limit:.1f}"
    return Verdict(furthest <= limit, f"{text}; false alarm at most {chance:.1g}")


def rare(failed: pd.Series, share: float) -> Verdict:
    """Judge how often something failed that may fail in a ``share`` of runs.

    The last level of the index is the run, those before it the group. More failures of a group than
    the limit have a chance below one in a million.
    """
    from scipy.stats import binom

    groups = failed.groupby(level=list(range(failed.index.nlevels - 1)), sort=False)
    count, runs = groups.sum().to_numpy(dtype=int), groups.count().to_numpy()
    most = binom.isf(1e-6, runs, share).astype(int)
    at = int(np.argmax(count / (most + 1)))
    text = f"{count[at]} of {runs[at]} runs at worst, limit {most[at]}"
    return Verdict(
        (count <= most).all(), f"{text}; false alarm at most {1e-6 * len(count):.1g} in all"
    )


def decide(mistaken: float, missed: float, measured: str) -> Verdict:
    """Return the verdict on a claim that a test decides with the error `ERROR` either way.

    ``mistaken`` is the chance of such a result, or a clearer one, if the claim is false, ``missed``
    that of one so far on the other side if it is true.
    """
    if mistaken <= ERROR:
        return Verdict(True, f"{measured}; chance {mistaken:.1g} if it were not so")
    if missed <= ERROR:
        return Verdict(False, f"{measured}; chance {missed:.1g} if it were so")
    return Verdict(
        None,
        f"{measured}; undecided, since this has a chance of {percent(mistaken, 1)} if it were not "
        f"so, and {percent(ERROR, 1)} is allowed; more trials decide it",
    )


def more_often(happened: pd.DataFrame, share: float) -> Verdict:
    """Judge whether what each column says happens in more than a ``share`` of the runs, its rows.

    Exact for independent runs, also if their chances differ: then the count is no further from its
    mean than a binomial one (Hoeffding 1956).
    """
    from scipy.stats import binom

    count, runs = happened.sum(), len(happened)
    least = int(count.min())
    text = f"{least} of {runs} runs at least ({count.idxmin()})"
    missed = len(count) * binom.cdf(least, runs, share)  # any column may lie too low
    return decide(float(binom.sf(least - 1, runs, share)), min(1.0, float(missed)), text)


def share_power(true: Mapping[str, float], runs: int, share: float) -> float:
    """Return the chance, or less, that `more_often` confirms ``true`` shares above ``share``."""
    from scipy.stats import binom

    least = binom.isf(ERROR, runs, share) + 1  # P(count >= least) <= ERROR at the share
    return float(1 - sum(binom.cdf(least - 1, runs, each) for each in true.values()))


def less(runs: Mapping[str, tuple[Array, Array]], measured: str) -> Verdict:
    """Judge whether the first of each pair of samples tends to be smaller (exact Mann-Whitney)."""
    from scipy.stats import mannwhitneyu

    chances = [
        [
            float(mannwhitneyu(*pair, alternative=side, method="exact").pvalue)
            for side in ("less", "greater")
        ]
        for pair in runs.values()
    ]
    mistaken, missed = zip(*chances, strict=True)
    return decide(max(mistaken), min(1.0, len(runs) * min(missed)), measured)


class Mean(NamedTuple):
    """A mean over groups of trials, its standard error, and the degrees of freedom of that."""

    value: float
    error: float
    freedom: float

    def chance(self, limit: float) -> float:
        """Return the chance of a mean so low or lower if it were ``limit`` in truth (Student)."""
        from scipy.stats import t

        return float(t.cdf((self.value - limit) / max(self.error, 1e-12), self.freedom))


def grouped_mean(values: pd.Series) -> Mean:
    """Return the mean of the groups' means; the first level of the index is the group.

    Variances are those within groups, the degrees of freedom are Satterthwaite's.
    """
    groups = values.groupby(level=0)
    count = groups.count()
    part = groups.var() / count / len(count) ** 2
    freedom = part.sum() ** 2 / max((part**2 / (count - 1)).sum(), 1e-300)
    return Mean(float(groups.mean().mean()), float(np.sqrt(part.sum())), max(float(freedom), 1.0))


def mean_power(gap: float, spread: float, trials: int, freedom: float = 1.0) -> float:
    """Return the chance that Student's test shows on which side of a limit a mean lies.

    Parameters
    ----------
    gap : float > 0
        Between mean and limit.
    spread : float > 0
        Standard deviation of a trial.
    trials : int >= 2
    freedom : float > 0
        Degrees of freedom that a trial beyond the first adds.
    """
    from scipy.stats import nct, t

    all_of_them = freedom * (trials - 1)
    away = np.sqrt(trials) * gap / spread
    return float(nct.sf(t.isf(ERROR, all_of_them), all_of_them, away))
