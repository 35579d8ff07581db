r"""Intervals of class probabilities, from the logistic regressions of two classes at a time.

If classes follow a multinomial model, :math:`p_k \propto e^{s_k(x)}` with s linear in x, then among
the rows whose class is j or k, that it is j has log odds :math:`s_j(x) - s_k(x)`, whatever the
other rows were: a logistic regression with an interval [l, u] of its own (`curved_intervals`). By

.. math:: p_k = \frac1{1 + \sum_{j\ne k}e^{s_j - s_k}}

the sums of :math:`e^u` and of :math:`e^l` over j bound p_k, if none of the K - 1 intervals misses;
each has :math:`\delta/(K-1)`, or with ``simultaneous``, for all classes too, one of K(K - 1)/2
parts.

References
----------
Begg and Gray (1984), Calculation of polychotomous logistic regression parameters using
individualized regressions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...confidence import Interval
from ...inputs import probability
from ...protocols import Array
from ..mixtures.ridge_mixture import RidgeMixture
from .curved_intervals import SINGLE, CurvedFit, fit_rows

MODEL = ", and log odds of any two classes that are linear in the features"
OF_CLASSES = "the likelihood of independent classes"
UNSEEN = "neither class was seen"


@dataclass(eq=False)
class ClassPairs:
    """Rows of several classes, and the fits of two of them at a time, made when asked for."""

    z: Array  # rows less ``shift``
    labels: Array  # 0, ..., classes - 1
    w: Array
    shift: Array
    classes: int
    fit_intercept: bool
    _fits: dict[tuple[int, int], CurvedFit | None] = field(default_factory=dict)

    def fit(self, j: int, k: int) -> CurvedFit | None:
        """Return the unregularised fit of class j against class k, None if neither was seen."""
        if (j, k) not in self._fits:
            self._fits[j, k] = self._fitted(j, k)
        return self._fits[j, k]

    def _fitted(self, j: int, k: int) -> CurvedFit | None:
        here = (self.labels == j) | (self.labels == k)
        if not here.any():
            return None
        z, y, w = self.z[here], 1.0 * (self.labels[here] == j), self.w[here]
        shift = self.shift
        if self.fit_intercept:
            z, shift = z - z[0], shift + z[0]
        mixture = RidgeMixture("binomial", self.fit_intercept)

        def as_played() -> float:
            state = mixture.start(z.shape[1])
            mixture.update(state, z + shift, y, w)
            return state.loss + float(w @ mixture.log_likelihood(np.zeros(len(y)), y))

        return fit_rows("binomial", z, y, w, self.fit_intercept, shift, as_played)

    def interval(
        self,
        x: Array,
        delta: float = 0.05,
        anytime: bool = True,
        simultaneous: bool = False,
        names: Sequence[object] | None = None,
    ) -> Interval:
        """Return bounds of the probability of each class at each row, (n, K), with their promise.

        ``anytime`` and ``simultaneous`` are as in `CurvedFit.interval`; ``names`` are for notes.
        """
        names = names or range(self.classes)
        K, delta = self.classes, probability("delta", delta)
        part = delta / (K * (K - 1) / 2 if simultaneous else K - 1)
        least, most = np.ones((len(x), K)), np.ones((len(x), K))  # 1/p
        grounds: dict[str, None] = {}
        notes: dict[str, list[str]] = {}
        for j in range(K):
            for k in range(j):
                fit = self.fit(j, k)
                if fit is None:
                    low, high, note = np.zeros(len(x)), np.ones(len(x)), UNSEEN
                else:
                    found = fit.interval(x, "auto", part, anytime, simultaneous)
                    (low, high), note = map(np.asarray, found), found.note
                    grounds[found.rests_on] = None
                if note:
                    notes.setdefault(note, []).append(f"{names[k]} and {names[j]}")
                with np.errstate(divide="ignore", over="ignore"):
                    least[:, k] += low / (1 - low)
                    most[:, k] += high / (1 - high)
                    least[:, j] += (1 - high) / high
                    most[:, j] += (1 - low) / low
        rows = "all rows and classes" if simultaneous else "a row and a class fixed in advance"
        promise = f"{rows}, {'all times' if anytime else 'one time'}"
        rests_on = "; ".join(grounds).replace(SINGLE, OF_CLASSES) + MODEL
        note = "; ".join(f"classes {', '.join(pairs)}: {why}" for why, pairs in notes.items())
        return Interval(1 / most, 1 / least, promise, rests_on, note)
