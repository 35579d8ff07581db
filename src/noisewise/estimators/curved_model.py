"""Shares, counts and signs: `RidgeMixture` predicts, and likelihoods give intervals."""

import math
import warnings
from dataclasses import dataclass

import numpy as np

from ..confidence import Interval, joined
from ..inputs import flag, rows, shown
from ..model.noise import Likelihood
from ..protocols import Array
from ..regression.intervals import curved_intervals
from ..regression.intervals.span import Tie
from ..regression.intervals.unregularised import KINDS
from ..regression.mixtures.batch_mixture import fit_batch
from ..regression.mixtures.ridge_mixture import LIGHTEST, RidgeMixture
from ..regression.mixtures.ridge_mixture_state import RidgeMixtureState
from ..regression.mixtures.stream_replay import kept_rows
from ..regression.nonlinear_learners import CAUTION, NonlinearLearners
from ..regression.safe_mixture import SafeMixture
from ..storage.states import check_type, field_values
from ..support.ownership import Owned
from ..support.printing import OneLine

PROVED = "binomial", "poisson"  # intervals by likelihood
BEYOND = (
    "Dispersion {0}: labels scatter {0} times as much as {1} would, more than chance explains. "
    "Intervals {2}."
)
CHANCE = "Dispersion {}: not clearly more scatter than {} have by chance."
BELOW = (
    "Labels scatter less than {} would (dispersion {}): intervals are wider than they need be; "
    'noise="asymptotic" uses the scatter seen.'
)
UNEVEN = (
    "Rows of large weight scatter more than others (dispersion {}, unweighted {}): trials within a "
    "row are not independent, and a row of {} tells little more than a smaller one."
)
UNSEEN = "Labels are 0 and 1: their dispersion cannot be seen. Intervals assume independent rows."
LARGEST_OFFSET = 200.0  # of a logarithm: its exponential is still a weight


@dataclass(eq=False, repr=False)
class CurvedModel(OneLine):
    """What `OnlineGLM` and `OnlineGLMClassifier` ask of a model with a curved link.

    ``mixture`` is None if a ridge was given, ``nonlinear`` are learners of functions of the
    features, or None.
    """

    method: RidgeMixture
    state: RidgeMixtureState
    mixture: SafeMixture | None = None
    nonlinear: NonlinearLearners | None = None

    def __post_init__(self) -> None:
        check_type("CurvedModel.method", self.method, RidgeMixture)
        check_type("CurvedModel.state", self.state, RidgeMixtureState)
        if self.mixture is not None:
            check_type("CurvedModel.mixture", self.mixture, SafeMixture)
        if self.nonlinear is not None:
            check_type("CurvedModel.nonlinear", self.nonlinear, NonlinearLearners)
        self.check()
        self._gathered: list[tuple[Array, Array, Array]] = []

    @classmethod
    def start(
        cls,
        family: str,
        ridge: str | float,
        forgetting: str | float | tuple[float, ...],
        fit_intercept: bool,
        dim: int,
        nonlinear: bool = False,
    ) -> "CurvedModel":
        """Return a model that has learnt nothing."""
        if not (forgetting == "auto" if isinstance(forgetting, str) else forgetting in (1, (1,))):
            raise ValueError(
                f"forgetting is {shown(forgetting)}, but only family 'gaussian' forgets; pass "
                "'auto' or 1.0"
            )
        own = own_ridge(ridge)
        method = RidgeMixture(family, flag("fit_intercept", fit_intercept), own)
        learners = NonlinearLearners.start(method, dim) if nonlinear else None
        mixture = _mixture(method, learners) if own is None else None
        return cls(method, method.start(dim), mixture, learners)

    def check(self) -> None:
        """Raise unless the state is the method's, and all parts have learnt the same rows."""
        self.method.check_state(self.state)
        others = self.mixture, self.nonlinear
        if any(each is not None and each.count != self.state.count for each in others):
            raise ValueError("an update of this estimator was interrupted half-way; fit it again")

    def check_noise(self, noise: object) -> Likelihood | str:
        """Return what intervals rest on; other links than canonical ones allow any variance."""
        family = self.method.family
        if isinstance(noise, str) and noise in ("auto", "asymptotic"):
            return noise if family in PROVED else "asymptotic"
        if isinstance(noise, str) and noise == "likelihood":
            noise = Likelihood()
        if isinstance(noise, Likelihood) and family not in PROVED:
            raise ValueError(
                f"noise is {noise!r}, whose intervals are proved for families "
                f"{' and '.join(map(repr, PROVED))}; pass 'auto' or 'asymptotic' with {family!r}"
            )
        if not isinstance(noise, Likelihood):
            raise ValueError(
                f"noise is {shown(noise)}; pass 'auto', 'likelihood', Likelihood(dispersion) or "
                "'asymptotic'"
            )
        return noise

    def learn(self, x: Array, y: Array, w: Array, offset: Array | None = None) -> Array:
        """Learn checked rows; return the mean predicted for each before its label.

        A count of mean e^(offset + score) and weight w is one of mean e^score and weight w
        e^offset, divided by e^offset: the likelihoods differ by a constant.
        """
        exposure = np.ones(1) if offset is None else self._exposure(offset)
        y, w = y / exposure, w * exposure
        means = np.atleast_2d(self.method.update(self.state, x, y, w))
        if self.nonlinear is not None:
            means = np.vstack([means, self.nonlinear.learn(x, y, w)])
        if self.mixture is None:
            return means[0] * exposure
        w = np.where(w > 0, np.maximum(w, LIGHTEST), 0.0)
        mixed = self.mixture.learn(self._share(means), self._share(y), w)
        return self._label(mixed) * exposure

    def _share(self, y: Array) -> Array:
        """Return labels as shares, where they are of one of two; counts as they are."""
        low, high = self.method.label_range
        return np.ascontiguousarray(y if low == 0 else (y - low) / (high - low))

    def _label(self, share: Array) -> Array:
        """Return what `_share` was given."""
        low, high = self.method.label_range
        return share if low == 0 else low + (high - low) * share

    def gather(self, x: Array, y: Array, w: Array, offset: Array | None = None) -> None:
        """Take in checked rows for `refitted`, without predicting them."""
        exposure = np.ones(1) if offset is None else self._exposure(offset)
        x, y, w, _ = rows(x, y / exposure, w * exposure, self.state.dim)
        self.method.refuse(self.state.dim, x, y, w)
        self._gathered.append((x[w > 0], y[w > 0], np.maximum(w[w > 0], LIGHTEST)))

    def refitted(self) -> "CurvedModel":
        """Return the model of the same rows fitted as a batch."""
        self.check()
        if not self._gathered:
            with Owned(self.state):
                found = kept_rows(self.method, self.state)
        else:
            x, y, w = map(np.concatenate, zip(*self._gathered, strict=True))
            found = x - x[0], y, w, x[0]
            if not self.method.fit_intercept:
                found = x, y, w, np.zeros(x.shape[1])
        fitted, nonlinear, weights = fit_batch(self.method, *found), self.nonlinear, np.ones(1)
        z, y, w, origin = found
        if nonlinear is not None:
            nonlinear, weights = nonlinear.of_labels(fitted, z + origin, y, w)
        mixture = self.mixture
        if mixture is not None:
            mixture = _mixture(self.method, nonlinear)
            mixture.count_rows(self._share(y), w)
            mixture = mixture.settled(learners=weights)
        return CurvedModel(self.method, fitted.state, mixture, nonlinear)

    def _exposure(self, offset: Array) -> Array:
        if self.method.family != "poisson":
            raise ValueError(
                f"offset was passed, but for family {self.method.family!r} there is no exact way "
                "to learn with one; families 'gaussian' and 'poisson' take it"
            )
        if np.abs(offset).max() > LARGEST_OFFSET:
            at = int(np.argmax(np.abs(offset)))
            raise ValueError(
                f"offset is {offset[at]:g} at row {at}, too large to compute with; pass logarithms "
                f"of exposures, from -{LARGEST_OFFSET:g} to {LARGEST_OFFSET:g}"
            )
        return np.asarray(np.exp(offset))

    def predict(self, x: Array, offset: Array | None = None) -> Array:
        """Return the mean at each row."""
        means = np.atleast_2d(self.method.predict(self.state, x))
        if self.nonlinear is not None:
            means = np.vstack([means, self.nonlinear.predict(x)])
        mixed = means[0]
        if self.mixture is not None:
            mixed = self._label(self.mixture.predict(self._share(means)))
        return mixed if offset is None else mixed * self._exposure(offset)

    def spreads(self) -> Array:
        """Return the standard deviation of each feature."""
        state = self.state
        mean = state.total / state.count
        return np.sqrt(np.maximum(state.squares / state.count - mean**2, 0.0))

    def coefficients(self) -> tuple[Array, float]:
        """Return the coefficients, averaged over the mixture, and the intercept."""
        return self.state.theta, self.state.intercept

    __getstate__ = field_values

    def __setstate__(self, held: dict[str, object]) -> None:
        vars(self).update(held, _gathered=[])

    def fitted(self) -> curved_intervals.CurvedFit:
        """Return the unregularised fit, kept until more rows are learnt."""
        kept: curved_intervals.CurvedFit | None = vars(self).get("_kept")
        if kept is None or kept.count != self.state.count:
            self._kept = kept = curved_intervals.solve(self.method, self.state)
        return kept

    def interval(
        self,
        x: Array,
        noise: object,
        delta: float,
        anytime: bool,
        simultaneous: bool,
        kind: str,
        offset: Array | None = None,
        trials: Array | float = 1.0,
    ) -> Interval:
        """Return bounds of the mean, or of a new label, at each row."""
        assumed, fit = self.check_noise(noise), self.fitted()
        self._warn(assumed, fit)
        exposure = 1.0 if offset is None else self._exposure(offset)
        found = fit.interval(
            x, assumed, delta, anytime, simultaneous, kind, trials=trials, exposure=exposure
        )
        found.note = joined(found.note, self.caution)
        return found

    @staticmethod
    def _warn(noise: Likelihood | str, fit: curved_intervals.CurvedFit) -> None:
        """Warn where labels scatter more than the likelihood that is taken for granted."""
        if isinstance(noise, Likelihood) and fit.scatters(noise.dispersion) > 1:
            assert fit.scatter is not None
            warnings.warn(
                f"labels scatter {fit.scatter.pearson:.2g} times as much as "
                f"{KINDS[fit.family]} would; these intervals assume "
                f"{f'{noise.dispersion:g} times' if noise.dispersion != 1 else 'they do not'} and "
                'will miss. Pass noise="auto"',
                stacklevel=4,
            )

    def coefficient_interval(self, noise: object, delta: float, anytime: bool) -> Interval:
        """Return bounds of each coefficient, the intercept last."""
        return self.fitted().coefficient_interval(self.check_noise(noise), delta, anytime)

    def estimates(self, noise: object) -> tuple[Array, Array, Array]:
        """Return unpenalised coefficients, standard errors and degrees of freedom."""
        assumed, fit = self.check_noise(noise), self.fitted()
        self._warn(assumed, fit)
        return fit.coefficients(assumed)

    @property
    def ties(self) -> tuple[Tie, ...]:
        """Columns that are nearly combinations of each other."""
        return self.fitted().fit.design.ties

    @property
    def dispersion(self) -> tuple[float, float]:
        """Pearson's dispersion and the one weighted by information, nan where it can't be seen."""
        found = self.fitted().scatter
        return (math.nan, math.nan) if found is None else (found.pearson, found.weighted)

    def scatter(self, noise: object) -> list[str]:
        """Return what the scatter of labels around the fit means, in sentences."""
        fit, assumed = self.fitted(), self.check_noise(noise)
        if fit.single:
            return [UNSEEN]
        phi, weighted = self.dispersion
        if not math.isfinite(phi) or fit.family not in KINDS:
            return []
        labels, beyond, does = KINDS[fit.family], fit.scatters(), "allow for it"
        if isinstance(assumed, Likelihood):
            does = f"assume that it is {assumed.dispersion:g}"
        if beyond > 1:
            said = [BEYOND.format(f"{phi:.2g}", labels, does)]
        elif beyond < -1 and phi < 0.5 and assumed != "asymptotic":
            said = [BELOW.format(labels, f"{phi:.2g}")]
        else:
            said = [CHANCE.format(f"{phi:.3g}", labels)]
        if weighted > 2 * phi and beyond > 1:
            largest = float(fit.fit.design.w.max())
            said.append(UNEVEN.format(f"{weighted:.2g}", f"{phi:.2g}", f"{largest:.6g}"))
        return said

    @property
    def quality(self) -> str:
        """How many events there were."""
        design = self.fitted().fit.design
        total = float(design.w @ design.y)
        if self.method.family == "poisson":
            return f", {total:.6g} event{'s' if total != 1 else ''}"
        if self.method.label_range[0] < 0:
            return ""
        return f", {total:.6g} successes in {float(design.w.sum()):.6g} trials"

    @property
    def centre(self) -> str:
        """What estimates are."""
        bias = ", its first-order bias removed where there are enough events"
        return "the fit without ridge" + bias * (self.method.family in PROVED)

    @property
    def caution(self) -> str:
        """What to keep in mind when an interval is read."""
        return "" if self.nonlinear is None else CAUTION


def own_ridge(ridge: str | float) -> float | None:
    """Return a ridge that was given, None for "auto"."""
    return None if isinstance(ridge, str) and ridge == "auto" else ridge  # type: ignore[return-value]


def _mixture(method: RidgeMixture, nonlinear: NonlinearLearners | None) -> SafeMixture:
    """Return the mixture of a family that has learnt nothing."""
    priors = (1.0,) if nonlinear is None else nonlinear.priors
    kind = "counts" if method.family == "poisson" else "shares"
    return SafeMixture.start(kind, method.fit_intercept, priors)
