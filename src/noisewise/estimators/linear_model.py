"""Gaussian labels: `SelfTuned` predicts, and weighted least squares gives intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..confidence import Interval, joined
from ..inputs import flag, shown
from ..kernels.self_tuning.self_tuned_numbers import StateNumbers
from ..model.noise import SubGaussian
from ..protocols import Array
from ..regression.history import History
from ..regression.intervals.linear_intervals import JointTest, LeastSquares, solve
from ..regression.intervals.span import Tie
from ..regression.nonlinear_learners import CAUTION, NonlinearLearners
from ..regression.normal_equations import NormalEquations
from ..regression.safe_mixture import SafeMixture
from ..regression.self_tuned.batch_linear import batch_state, check_sums, count_rows
from ..regression.self_tuned.self_tuned import SelfTuned, SelfTunedState
from ..storage.states import NONNEGATIVE, check_fields, check_type
from ..support.printing import OneLine, count_of

STEADY = 0.95  # measured on the half "open" of benchmarks/real_tasks.py
DISCOUNTED = "predictions discount old rows, but intervals assume that the mean does not change"


@dataclass(eq=False, repr=False)
class LinearModel(OneLine):
    """What `OnlineGLM` asks of a model with the identity link.

    ``unit`` is the first weight, or the mean weight of a batch: predictions do not depend on the
    unit of weights. ``mixture`` is None if a ridge was given. ``nonlinear`` are learners of
    functions of the features, whose batch needs the ``rows``; else both are None.
    """

    method: SelfTuned
    state: SelfTunedState
    sums: NormalEquations
    unit: float = 0.0
    mixture: SafeMixture | None = None
    nonlinear: NonlinearLearners | None = None
    rows: History | None = None

    def __post_init__(self) -> None:
        check_type("LinearModel.method", self.method, SelfTuned)
        check_type("LinearModel.state", self.state, SelfTunedState)
        check_fields(self, sums=NormalEquations, unit=NONNEGATIVE)
        if self.mixture is not None:
            check_type("LinearModel.mixture", self.mixture, SafeMixture)
        if self.nonlinear is not None:
            check_type("LinearModel.nonlinear", self.nonlinear, NonlinearLearners)
            check_type("LinearModel.rows", self.rows, History)
        self.check()

    @classmethod
    def start(
        cls,
        family: str,
        ridge: str | float,
        forgetting: str | float | tuple[float, ...],
        fit_intercept: bool,
        dim: int,
        nonlinear: bool = False,
    ) -> "LinearModel":
        """Return a model that has learnt nothing."""
        own = not isinstance(ridge, str)
        steady = STEADY if isinstance(forgetting, str) else SelfTuned.steady
        method = SelfTuned(ridge, forgetting, flag("fit_intercept", fit_intercept), own, steady)
        sums = NormalEquations.start(dim, method.fit_intercept)
        if not nonlinear:
            mixture = None if own else SafeMixture.start("squares", method.fit_intercept)
            return cls(method, method.start(dim), sums, mixture=mixture)
        other = replace(method, forgetting=1.0) if forgetting == "auto" else method
        learners = NonlinearLearners.start(other, dim)
        mixture = SafeMixture.start("squares", learners=learners.priors)
        return cls(method, method.start(dim), sums, 0.0, mixture, learners, History.start(dim))

    def check(self) -> None:
        """Raise unless all parts have learnt the same rows."""
        self.method.check_state(self.state)
        d, n = self.state.dim, self.state.count
        held = self.sums.dim, self.sums.intercept, self.sums.count
        mixed = n if self.mixture is None else self.mixture.count
        others = (d, n, n)
        if self.nonlinear is not None and self.rows is not None:
            others = self.nonlinear.moments.dim, self.nonlinear.count, self.rows.count
        if (*held, mixed, *others) != (d, self.method.fit_intercept, n, n, d, n, n):
            raise ValueError("an update of this estimator was interrupted half-way; fit it again")
        if self.state.count and not self.unit:
            raise ValueError("LinearModel.unit is 0 after the first row")

    @staticmethod
    def check_noise(noise: object) -> float | None:
        """Return the noise's scale where it is known."""
        if isinstance(noise, SubGaussian):
            return noise.sigma
        if isinstance(noise, str) and noise == "asymptotic":
            raise ValueError(
                "noise is 'asymptotic', but its sandwich variance needs the residual of every row, "
                "and family 'gaussian' keeps sums only; pass 'auto' or SubGaussian(sigma)"
            )
        if not isinstance(noise, str) or noise != "auto":
            raise ValueError(f"noise is {shown(noise)}; pass 'auto' or SubGaussian(sigma)")
        return None

    def learn(self, x: Array, y: Array, w: Array, offset: Array | None = None) -> Array:
        """Learn checked rows, at least one of positive weight if they are the first.

        Return the mean predicted for each before its label.
        """
        if offset is not None:
            y = y - offset
        check_sums(x, y, w)
        if not self.unit:
            self.unit = float(w[w > 0][0]) if self.method.ridge == "auto" else 1.0
        if len(x) == 1:  # the quick way
            means = self.method.update(self.state, x[0], float(y[0]), float(w[0]) / self.unit)
        else:
            means = self.method.update(self.state, x, y, w / self.unit)
        self.sums.update(x, y, w)
        found = np.atleast_1d(means)
        if self.nonlinear is not None:
            found = np.vstack([found, self.nonlinear.learn(x, y, w / self.unit)])
            self._keep(x, y, w)
        if self.mixture is not None:
            found = self.mixture.learn(np.atleast_2d(found), y, w)
        return found if offset is None else found + offset

    def _keep(self, x: Array, y: Array, w: Array) -> None:
        """Keep rows of positive weight, for learners whose batch needs them."""
        assert self.rows is not None
        self.rows.append(x[w > 0], y[w > 0], w[w > 0])

    @property
    def _forgets(self) -> bool:
        """Whether forgetting was asked for: then the order of rows matters."""
        given = self.method.forgetting
        return given not in ("auto", 1.0, (1.0,))

    def gather(self, x: Array, y: Array, w: Array, offset: Array | None = None) -> None:
        """Take in checked rows for `refitted`, without predicting them."""
        if self._forgets:
            self.learn(x, y, w, offset)
            return
        if offset is not None:
            y = y - offset
        count_rows(self.state, x, y, w, self.method.fit_intercept)
        self.sums.update(x, y, w)
        if self.mixture is not None:
            self.mixture.count_rows(y, w)
        if self.nonlinear is not None:
            self.nonlinear.moments.learn(x, w)
            self._keep(x, y, w)
        self.unit = 1.0

    def refitted(self) -> "LinearModel":
        """Return the model of the same rows fitted as a batch, or itself if it forgets."""
        if self._forgets:
            return self
        self.check()
        sums = self.sums
        unit = sums.total / sums.count if self.method.ridge == "auto" else 1.0
        state, mixture = batch_state(self.method, self.state, sums, unit), self.mixture
        nonlinear, weights = self.nonlinear, np.ones(1)
        if nonlinear is not None and self.rows is not None:
            held = self.rows
            nonlinear, weights = nonlinear.of_numbers(
                state, held.rows, held.targets, held.weights / unit
            )
        if mixture is not None:
            fit = StateNumbers(state.numbers)
            mixture = mixture.settled(fit.rounds, unit * fit.squares, weights)
        return replace(self, state=state, unit=unit, mixture=mixture, nonlinear=nonlinear)

    def predict(self, x: Array, offset: Array | None = None) -> Array:
        """Return the mean at each row."""
        means = np.asarray(self.method.predict(self.state, x))
        if self.nonlinear is not None:
            means = np.vstack([means, self.nonlinear.predict(x)])
        if self.mixture is not None:
            means = self.mixture.predict(np.atleast_2d(means))
        return means if offset is None else means + offset

    def spreads(self) -> Array:
        """Return the standard deviation of each feature."""
        sums, d = self.sums, self.sums.dim
        variance = np.diag(sums.gram)[:d] / sums.total - sums.means()[:d] ** 2
        return np.sqrt(np.maximum(variance, 0.0))

    def coefficients(self) -> tuple[Array, float]:
        """Return the coefficients of the predictions and the intercept."""
        return self.state.estimate()

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
        sigma, z = self.check_noise(noise), self.sums.directions(x)
        found = self._least_squares().interval(z, sigma, delta, anytime, simultaneous, kind)
        notes = joined(found.note, self.caution)
        shift = 0.0 if offset is None else offset
        lower, upper = found.lower + shift, found.upper + shift
        return Interval(lower, upper, found.promise, found.rests_on, notes)

    def coefficient_interval(self, noise: object, delta: float, anytime: bool) -> Interval:
        """Return bounds of each coefficient, the intercept last."""
        z, sigma = self._units(), self.check_noise(noise)
        found = self._least_squares().interval(z, sigma, delta, anytime, what="coefficients")
        found.promise = found.promise.replace("a row", "a coefficient")
        return found

    def joint_test(
        self, features: Sequence[int], values: Array, noise: object, anytime: bool
    ) -> JointTest:
        """Test that the coefficients of these features have these values."""
        z, sigma = self._units()[list(features)], self.check_noise(noise)
        return self._least_squares().joint_test(z, values, sigma, anytime)

    def _units(self) -> Array:
        """Return the directions of the coefficients and, where there is one, the intercept."""
        d = self.sums.dim
        z = np.eye(d, d + self.sums.intercept)
        if self.sums.intercept:
            z = np.vstack([z, self.sums.directions(np.zeros((1, d)))])
        return z

    def estimates(self, noise: object) -> tuple[Array, Array, Array]:
        """Return unpenalised coefficients, standard errors and degrees of freedom."""
        z, sigma, fit = self._units(), self.check_noise(noise), self._least_squares()
        share, (sd, freedom) = fit.shares(z), fit.noise(sigma)
        known = np.isfinite(share)
        if sigma is None and fit.noiseless:
            sd = math.nan
        found = fit.means(z), sd * np.sqrt(np.where(known, share, 0.0)), freedom
        estimates, errors, free = (np.where(known, each, math.nan) for each in found)
        return estimates, errors, free

    @property
    def ties(self) -> tuple[Tie, ...]:
        """Columns that are nearly combinations of each other."""
        return self._least_squares().ties

    dispersion = math.nan, math.nan

    def scatter(self, noise: object) -> list[str]:
        """Return the size of the noise, in a sentence."""
        fit = self._least_squares()
        if not fit.freedom or fit.noiseless:
            return []
        free = count_of(fit.freedom, "degree of freedom", "degrees of freedom")
        return [f"Noise sd {math.sqrt(fit.variance):.4g} ({free})."]

    def _least_squares(self) -> LeastSquares:
        self.check()
        return solve(self.sums)

    centre = "least squares without ridge"

    @property
    def quality(self) -> str:
        """How well the model fits."""
        explained = solve(self.sums).explained
        return (
            f", R^2 of least squares {'undefined' if math.isnan(explained) else f'{explained:.3f}'}"
        )

    @property
    def caution(self) -> str:
        """What to keep in mind when an interval is read."""
        kept = float(self.state.shares[self.state.forgetting == 1].sum())
        bent = CAUTION if self.nonlinear is not None else ""
        return joined(bent, DISCOUNTED if kept < 0.5 else "")
