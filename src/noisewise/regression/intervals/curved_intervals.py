"""Intervals of shares and counts around the unregularised fit, from the rows of `RidgeMixture`.

Labels 0 and 1 have no dispersion, and their likelihood is trusted; so is that of others where the
user says so. Else the variance of a score allows for the scatter of labels (`dispersion`), and has
degrees of freedom of its own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...confidence import Interval, joined, noted
from ...inputs import numbers, one_of, probability
from ...model.families import FAMILIES, model
from ...model.noise import Likelihood
from ...numerics import linalg
from ...numerics.blas import matmul, one_thread
from ...protocols import Array
from ...support.ownership import Owned
from ...support.printing import count_of
from ...theory.mixtures import GRID
from ..mixtures.ridge_mixture import RidgeMixture
from ..mixtures.ridge_mixture_state import RidgeMixtureState
from ..mixtures.stream_replay import kept_rows, played
from ..normal_equations import NormalEquations
from . import candidate_mixture, level_sets
from .dispersion import MANY, Dispersion
from .linear_intervals import BEGIN, ORIGIN, OUTSIDE, ROUNDING
from .maximum_likelihood import WIDE, Design, maximise
from .new_labels import new_labels
from .quadratic_intervals import Half, half_width, simultaneous
from .unregularised import KINDS, UnregularisedFit

Mask = NDArray[np.bool_]

LARGEST = float(np.finfo(float).max)
FARTHEST = 1e150  # a score as good as infinite, whose square is a number
METHODS = "mixture", "likelihood"
PLAYED = 0.1  # share of delta that the mixture spends on the losses as they were played
EVENTS = 3.0  # successes and failures, or counts, before the likelihood is taken as quadratic
EXACT = 0.2  # share of delta for the exact set, where the likelihood is trusted
USEFUL = 100.0  # events, from which on the exact set is not the narrower one

SINGLE = "the likelihood of independent labels 0 and 1"
LIKELIHOOD = "the likelihood"
ROBUST = "independent rows, asymptotically, dispersion from residuals"
EXOGENOUS = ", and rows that do not depend on past labels"
FIRST_ROWS = ", and first rows that do not depend on labels"
AT_MOST_TWICE = ", and a dispersion of at most twice the average where few rows tell of it"

FEW_EVENTS = "fewer than {:.6g} {} so far ({:.3g})"
ROUGH = "; a textbook interval is rough then"
SCATTERLESS = "labels lie on the fit up to rounding: their scatter can't be estimated"
FAR = (
    "so far from the data, or so near to collinear columns, that the interval holds nearly every "
    "mean"
)
UNCERTAIN = "the mean is so uncertain that a new label may be of any in its textbook interval"
SURE = "of zero width, since another new label has a probability of less than delta"
ONE_TRIAL = "one trial is 0 or 1; pass trials for a share of more"
SEPARATED = (
    "labels are separated there (all alike, or split by the features): the estimate lies at "
    "infinity until one contradicts that"
)
FEW_TELL = (
    "too few rows tell of the dispersion there (about {}): the interval is infinite until "
    'about {:.0f} do. If labels are known to be {}, pass noise="likelihood"'
)
SPARE = (
    "{} nothing to estimate the dispersion from: more than {} are needed. If labels are known to "
    'be {}, pass noise="likelihood"'
)
NOTHING = "nothing can be said yet"
EXACT_SET = "the interval is that of the exact set for all rows"
POOLED = "only about {} of this direction; twice the average dispersion is assumed"
SCATTER = (
    "labels scatter {:.2g} times as much as {} would, more than chance explains; the interval "
    "allows for it"
)
CONTRADICTED = (
    "no parameter fits the labels as well as they were predicted: the likelihood is contradicted, "
    "and the interval says nothing"
)
ONE_TIME = "the interval of a new label holds at one time"


@one_thread
def solve(mixture: RidgeMixture, state: RidgeMixtureState) -> "CurvedFit":
    """Return the unregularised fit to all rows that a `RidgeMixture` has learnt.

    Thirty successes of a hundred have score log(3/7), with variance 1/(100 * 0.3 * 0.7):

    >>> mixture = RidgeMixture("binomial", fit_intercept=False)
    >>> state = mixture.start(dim=1)
    >>> _ = mixture.update(state, np.ones((100, 1)), np.repeat([1.0, 0.0], [30, 70]))
    >>> fit = solve(mixture, state)
    >>> estimates, errors, _ = fit.coefficients()
    >>> fit.theta.round(3), errors.round(3)
    (array([-0.847]), array([0.218]))
    """
    mixture.check_state(state)
    with Owned(state):
        x, y, w, shift = kept_rows(mixture, state)
        loss = played(mixture, state)
    offset = -float(w @ mixture.log_likelihood(np.zeros(len(y)), y))
    return fit_rows(mixture.family, x, y, w, mixture.fit_intercept, shift, lambda: loss() - offset)


def fit_rows(
    family: str,
    x: Array,
    y: Array,
    w: Array,
    intercept: bool,
    shift: Array,
    as_played: Callable[[], float],
) -> "CurvedFit":
    """Return the unregularised fit to rows x + shift; with an intercept the first x is 0."""
    sums = NormalEquations.start(x.shape[1], intercept)
    sums.update(x, y, w)
    return CurvedFit(
        maximise(Design.of(model(family).link, sums, x, y, w)), family, shift, as_played
    )


@dataclass(frozen=True, eq=False)
class CurvedFit(UnregularisedFit):
    """What the unregularised fit of shares or counts says of means, labels and coefficients.

    Where labels are separated intervals are infinite. ``as_played`` returns the loss of the mixture
    of ridges, in the units of `Design.loss`.
    """

    as_played: Callable[[], float]

    @cached_property
    def played(self) -> float:
        """The loss of the mixture of ridges, computed when it is first asked for."""
        return self.as_played()

    @one_thread
    def interval(
        self,
        x: Array,
        noise: Likelihood | str = "auto",
        delta: float = 0.05,
        anytime: bool = True,
        simultaneous: bool = False,
        kind: str = "mean",
        method: str = "mixture",
        trials: float | Array = 1.0,
        exposure: float | Array = 1.0,
    ) -> Interval:
        """Return the interval of the mean at each row, or of a new label there, with its promise.

        Parameters
        ----------
        x : (n, d) array
            In the user's units.
        noise : "auto", "likelihood", Likelihood or "asymptotic"
            "auto" allows for the dispersion of labels, at least the family's, but takes labels 0
            and 1 as independent; "likelihood" is ``Likelihood()``; "asymptotic" allows any
            variance.
        delta : float in (0, 1)
        anytime, simultaneous : bool
            Whether it holds at all times, and whether for all rows at once; the textbook's Wald
            interval with ``anytime=False``.
        kind : {"mean", "observation"}
            Of the mean, or of a new label, at one time.
        method : {"mixture", "likelihood"}
            For all rows at all times. "likelihood": all parameters whose loss is at most that of
            the mixture of ridges and log(1/delta). "mixture": the mixture around each candidate
            (`candidate_mixture`) with nine tenths of delta, and that set with one tenth, which is
            smaller while events are few. Each row takes some ten passes over the history.
        trials, exposure : float or (n,) array
            Of a new label: the trials that its share is of, or what multiplies a count's mean.
        """
        one_of("kind", kind, ("mean", "observation"))
        z, delta = self._directions(x), probability("delta", delta)
        if kind == "observation":
            sizes = (np.broadcast_to(each, len(z)) for each in (trials, exposure))
            lower, upper, found = self._label(z, noise, delta, *sizes)
            shares = FAMILIES[self.family].label_range[1] == 1.0
            one = ONE_TRIAL if shares and np.all(np.equal(trials, 1)) else ""
            note = joined(ONE_TIME if anytime else "", one, found.note)
            return Interval(lower, upper, "one new label, one time", found.rests_on, note)
        found = self._scores_within(z, noise, delta, anytime, simultaneous, method)
        lower, upper = self._means(found)
        low, high = self.fit.design.link.ends
        every = (upper >= high) & ((lower <= low) | math.isinf(high))
        every &= np.isfinite(found.lower) | np.isfinite(found.upper)
        note = joined(found.note, noted((every, FAR)))
        lower, upper = np.minimum(lower, LARGEST) * exposure, upper * exposure
        return Interval(lower, upper, found.promise, found.rests_on, note)

    def _means(self, scores: Interval) -> tuple[Array, Array]:
        """Return the means at bounds of scores, which may be infinite."""
        with np.errstate(over="ignore"):
            low, high = (
                self.fit.design.link.mean(np.clip(each, -FARTHEST, FARTHEST)) for each in scores
            )
        return low, high

    @one_thread
    def coefficient_interval(
        self, noise: Likelihood | str = "auto", delta: float = 0.05, anytime: bool = True
    ) -> Interval:
        """Return the intervals of the coefficients and, where there is one, the intercept."""
        z, delta = self._unit_directions(), probability("delta", delta)
        found = self._scores_within(z, noise, delta, anytime, False, what="coefficients")
        promise = found.promise.replace("a row", "a coefficient")
        return Interval(found.lower, found.upper, promise, found.rests_on, found.note)

    @one_thread
    def contains(
        self,
        theta: Array,
        intercept: float = 0.0,
        noise: Likelihood | str = "likelihood",
        delta: float = 0.05,
        method: str = "mixture",
    ) -> bool:
        """Return whether a parameter lies in the exact set for all rows at all times."""
        theta = numbers("theta", theta)
        design, law = self.fit.design, self.dispersion(noise)
        if not isinstance(law, float):
            raise ValueError(f"noise is {noise!r}, which gives no set; pass Likelihood()")
        around = np.full(len(self._parameter), intercept + float(self.shift @ theta))
        around[: len(theta)] = theta  # that of rows (x - shift, 1)
        W = (design.V * np.sqrt(design.values)).T * design.s
        scores = matmul(design.u, W @ np.linalg.solve(design.C.T, around))
        return self.fit.rise(scores) <= self._height(law, delta, method)

    def _scores_within(
        self,
        z: Array,
        noise: Likelihood | str,
        delta: float,
        anytime: bool,
        simultaneous: bool,
        method: str = "mixture",
        what: str = "rows",
    ) -> Interval:
        """Return bounds of the score of each direction z, infinite where nothing is known."""
        one_of("method", method, METHODS)
        law = self.dispersion(noise)
        b, seen = self.fit.design.project(z)
        if anytime and simultaneous and isinstance(law, float):
            found = self._exact(b[seen], law, delta, method)
        elif anytime and law == 1.0:
            found = self._trusted(z[seen], b[seen], noise, delta)
        else:
            found = self._quadratic(z[seen], b[seen], noise, delta, anytime, simultaneous)
        zero = (z == 0).all(axis=1)
        lower, upper = np.full(len(z), -math.inf), np.full(len(z), math.inf)
        lower[seen], upper[seen] = found.lower, found.upper
        lower[zero] = upper[zero] = 0.0
        reasons = [(zero, ORIGIN), (~seen & ~zero, OUTSIDE)]
        for where, words in found.reasons:
            everywhere = np.zeros(len(z), dtype=bool)
            everywhere[seen] = where
            reasons.append((everywhere & ~zero, words))
        if what == "rows" and not isinstance(law, float) and self.scatters() > 1:
            words = SCATTER.format(law.pearson, KINDS[self.family])
            reasons.append((np.ones(len(z), dtype=bool), words))
        note = noted(*reasons, what=what)
        return Interval(lower, upper, found.promise, found.rests_on, note)

    def _exact(self, b: Array, dispersion: float, delta: float, method: str) -> "_Bounds":
        """Return the exact set for all rows at all times."""
        height = self._height(dispersion, delta, method)
        rests_on = SINGLE if self.single else LIKELIHOOD
        if method == "mixture":
            rests_on += FIRST_ROWS
        lower, upper = level_sets.bounds(self.fit, b, height)
        words = CONTRADICTED if height < 0 else NOTHING
        infinite, one = np.isinf(lower) & np.isinf(upper), np.isinf(lower) != np.isinf(upper)
        reasons = [(infinite, words), (one, SEPARATED)]
        return _Bounds(lower, upper, "all rows, all times", rests_on, reasons)

    def _trusted(self, z: Array, b: Array, noise: Likelihood | str, delta: float) -> "_Bounds":
        """Return the interval of each row where the likelihood is trusted.

        The exact set for all rows has one fifth of delta, and the quadratic likelihood the rest,
        from three events on; while events are few, the narrower end of both is taken.
        """
        found = self._quadratic(z, b, noise, (1 - EXACT) * delta, True, False)
        late = np.isinf(found.lower)
        wide = late.copy()
        if self.events < USEFUL:
            least = math.log(len(GRID) / ((1 - PLAYED) * EXACT * delta))  # the height, at least
            wide |= self._rise(b, found.lower, found.upper) > least
        if not wide.any():
            return found
        exact = self._exact(b[wide], 1.0, EXACT * delta, "mixture")
        centre = matmul(b[wide], self.centre(noise))
        found.lower[wide] = np.maximum(found.lower[wide], np.minimum(exact.lower, centre))
        found.upper[wide] = np.minimum(found.upper[wide], np.maximum(exact.upper, centre))
        infinite = np.isinf(found.lower) & np.isinf(found.upper)
        reasons = [*found.reasons, (late & ~infinite, EXACT_SET), (infinite, NOTHING)]
        if late.all():
            return _Bounds(found.lower, found.upper, exact.promise, exact.rests_on, reasons)
        return _Bounds(found.lower, found.upper, found.promise, found.rests_on, reasons)

    def _rise(self, b: Array, lower: Array, upper: Array) -> Array:
        r"""Return a bound of how far the loss rises to the ends of an interval, along a line.

        A point t standard errors away on the line :math:`J^{-1}b` has risen by at most
        :math:`(e^{tR} - tR - 1)/R^2`, R the most by which a standard error moves a score.
        """
        inverse = self.fit.inverse
        sd = np.sqrt(np.maximum(linalg.forms(b, inverse), 1e-300))
        R = np.abs(matmul(self.fit.design.u, matmul(inverse, b.T))).max(axis=0, initial=0.0)
        R = np.maximum(R / sd, 1e-6)
        middle = matmul(b, self.fit.beta)
        with np.errstate(over="ignore"):
            x = np.minimum(np.maximum(upper - middle, middle - lower) / sd * R, 700.0)
            return np.asarray((np.expm1(x) - x) / (R * R))

    def _quadratic(
        self,
        z: Array,
        b: Array,
        noise: Likelihood | str,
        delta: float,
        anytime: bool,
        everywhere: bool,
    ) -> "_Bounds":
        """Return intervals from the variance of the estimate."""
        law, sums, known = self.dispersion(noise), self.fit.design.sums, self.fit.known(b)
        times = "all times" if anytime else "one time"
        promise = "all rows, all times" if everywhere else f"a row fixed in advance, {times}"
        rests_on = ROBUST
        if isinstance(law, float):
            rests_on = f"{SINGLE if self.single else LIKELIHOOD}, asymptotically"
        if anytime and not everywhere:
            rests_on += EXOGENOUS
        all_, half = np.ones(len(b), dtype=bool), np.full(len(b), math.inf)
        needed = self._needed(law)
        few = FEW_EVENTS.format(needed, self._rarer, self.events)
        if anytime and self.events < needed:
            reasons = [(all_, few)]
        elif not isinstance(law, float) and law.free and law.average < ROUNDING:
            reasons = [(all_, SCATTERLESS)]
        elif anytime and not sums.frozen:
            reasons = [(all_, BEGIN.format(2 * sums.dim + 10, sums.count))]
        elif not (isinstance(law, float) or law.free):
            rows = count_of(len(law.pull), "row leaves", "rows leave")
            reasons = [(all_, SPARE.format(rows, len(self.fit.values), self._labels))]
        else:
            if everywhere and not isinstance(law, float):
                found = simultaneous(self.fit, b, law, delta)
            else:
                found = half_width(self.fit, z, b, law, delta, anytime)
            half = found.width
            reasons = [(~known, SEPARATED), *self._doubts(found, known)]
            if (found.pooled & known).any():
                rests_on += AT_MOST_TWICE
            if self.events < EVENTS:
                reasons.append((known & np.isfinite(half), few + ROUGH))
        half = np.where(b.any(axis=1), np.where(known, half, math.inf), 0.0)
        centre = np.where(np.isfinite(half), matmul(b, self.centre(noise)), 0.0)
        if not isinstance(law, float) and anytime and self.events < EVENTS:
            reasons.append((all_, NOTHING))
        return _Bounds(centre - half, centre + half, promise, rests_on, reasons)

    def _needed(self, law: Dispersion | float) -> float:
        """Return the events that the quadratic likelihood takes.

        Where the variance is that of the likelihood, and parameters are many, it takes as many
        events as parameters: with fewer the estimate is biased by more than its error.
        """
        p = self.fit.design.rank
        return float(p) if isinstance(law, float) and p > MANY else EVENTS

    def _doubts(self, found: Half, known: Mask) -> list[tuple[Mask, str]]:
        """Return what few rows tell of: by the least of their degrees of freedom."""
        few = known & np.isinf(found.width) & ~np.isnan(found.needed)  # a row of 0 needs none
        doubts = [(few & np.isinf(found.telling), FAR)]
        few = few & np.isfinite(found.telling)
        if few.any():
            tell, needed = _least(found.telling[few]), found.needed[few].max()
            doubts.append((few, FEW_TELL.format(tell, np.ceil(needed), self._labels)))
        pooled = known & found.pooled & ~few
        if pooled.any():
            rows = count_of(_least(found.telling[pooled]), "row tells", "rows tell")
            doubts.append((pooled, POOLED.format(rows)))
        return doubts

    @property
    def _rarer(self) -> str:
        """What events are called."""
        return "events" if self.family == "poisson" else "labels of the rarer kind"

    @property
    def _labels(self) -> str:
        return self.family if self.family in KINDS else "as their link says"

    def _height(self, dispersion: float, delta: float, method: str) -> float:
        """Return how far above its minimum the loss is in the set for all rows at all times."""
        if method == "likelihood":
            if dispersion != 1:
                raise ValueError(
                    f"method is 'likelihood' and noise has dispersion {dispersion:g}; the losses "
                    "were played at dispersion 1, pass method='mixture'"
                )
            return self.played + math.log(1 / delta) - self.fit.loss
        if dispersion != 1:
            return self._level(delta, dispersion)
        height = self._level((1 - PLAYED) * delta, 1.0)
        if self.fit.design.rank > WIDE:  # a batch of rows would have to be learnt one by one
            return height
        return min(height, self._height(1.0, PLAYED * delta, "likelihood"))

    def _level(self, delta: float, dispersion: float) -> float:
        """Return the level of the candidate mixture, computed once."""
        question = delta, dispersion
        if question not in self._levels:
            self._levels[question] = candidate_mixture.level(self.fit, delta, dispersion)
        return self._levels[question]

    @cached_property
    def _levels(self) -> dict[tuple[float, float], float]:
        return {}

    def _label(
        self, z: Array, noise: Likelihood | str, delta: float, trials: Array, exposure: Array
    ) -> tuple[Array, Array, Interval]:
        """Return bounds of a new label at each direction, and those of its score, with notes."""
        low, high = FAMILIES[self.family].label_range
        if high == 1.0 and (trials == 1).all():  # its dispersion does not matter
            found = self._scores_within(z, noise, delta / 2, False, False)
            lower, upper = self._means(found)
            rare = (high - low) * delta / 4
            lower = np.where(high - lower < rare, high, low)
            return lower, np.where(upper - low > rare, high, low), found
        found = self._scores_within(z, noise, delta, False, False)
        known = np.isfinite(found.lower) & np.isfinite(found.upper)
        lower, upper = np.full(len(z), low), np.full(len(z), high if high == 1.0 else math.inf)
        law, b = self.dispersion(noise), self.fit.design.project(z[known])[0]
        v = half_width(self.fit, z[known], b, law, delta, anytime=False).variance
        score = (np.asarray(found.lower)[known] + np.asarray(found.upper)[known]) / 2
        sizes = trials[known], exposure[known]
        lower[known], upper[known] = new_labels(self.fit, score, v, law, delta, *sizes)
        wide = known.copy()
        wide[known] = v > 1 + 1e-9  # the quantiles above would believe the estimate
        sizes, sure = (trials[wide], exposure[wide]), np.zeros(int(wide.sum()))
        least, most = (
            new_labels(self.fit, np.asarray(end)[wide], sure, law, delta, *sizes) for end in found
        )
        lower[wide] = np.minimum(lower[wide], least[0])
        upper[wide] = np.maximum(upper[wide], most[1])
        words = noted((wide, UNCERTAIN), (known & (lower == upper), SURE))
        found.note = joined(found.note, words)
        return lower, upper, found


def _least(telling: Array) -> int:
    """Return the fewest rows that tell of something, at least one."""
    return max(round(float(telling.min())), 1)


class _Bounds(NamedTuple):
    """Bounds of scores, what they promise and rest on, and reasons for notes."""

    lower: Array
    upper: Array
    promise: str
    rests_on: str
    reasons: list[tuple[Mask, str]]
