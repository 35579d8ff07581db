"""What a study says of its claims: whether each held, and what was measured.

The text of a claim does not change from run to run; the numbers behind it are the measured text.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

ERRORS = 4.5  # standard errors of a normal mean: a chance of 7 in a million


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
