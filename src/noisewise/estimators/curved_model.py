"""Shares, counts and signs: `RidgeMixture` predicts, and likelihoods give intervals."""

from dataclasses import dataclass

import numpy as np

from ..confidence import Interval
from ..inputs import flag, shown
from ..noise import Likelihood
from ..printing import OneLine
from ..protocols import Array
from ..regression import curved_intervals
from ..regression.ridge_mixture import RidgeMixture
from ..regression.ridge_mixture_state import RidgeMixtureState
from ..states import check_type

PROVED = "binomial", "poisson"  # intervals by likelihood
LARGEST_OFFSET = 200.0  # of a logarithm: its exponential is still a weight


@dataclass(eq=False, repr=False)
class CurvedModel(OneLine):
    """What `OnlineGLM` and `OnlineGLMClassifier` ask of a model with a curved link."""

    method: RidgeMixture
    state: RidgeMixtureState

    def __post_init__(self) -> None:
        check_type("CurvedModel.method", self.method, RidgeMixture)
        check_type("CurvedModel.state", self.state, RidgeMixtureState)
        self.check()

    @classmethod
    def start(
        cls,
        family: str,
        ridge: str | float,
        forgetting: str | float | tuple[float, ...],
        fit_intercept: bool,
        dim: int,
    ) -> "CurvedModel":
        """Return a model that has learnt nothing."""
        if not (forgetting == "auto" if isinstance(forgetting, str) else forgetting in (1, (1,))):
            raise ValueError(
                f"forgetting is {shown(forgetting)}, but only family 'gaussian' forgets; pass "
                "'auto' or 1.0"
            )
        auto = isinstance(ridge, str) and ridge == "auto"
        method = RidgeMixture(
            family,
            flag("fit_intercept", fit_intercept),
            None if auto else ridge,  # type: ignore[arg-type]
        )
        return cls(method, method.start(dim))

    def check(self) -> None:
        """Raise unless the state is the method's."""
        self.method.check_state(self.state)

    def check_noise(self, noise: object) -> Likelihood | str:
        """Return what intervals rest on: where it is proved for the family, the likelihood."""
        family = self.method.family
        if isinstance(noise, str) and noise in ("auto", "asymptotic"):
            return Likelihood() if noise == "auto" and family in PROVED else "asymptotic"
        if isinstance(noise, Likelihood) and family not in PROVED:
            raise ValueError(
                f"noise is {noise!r}, whose intervals are proved for families "
                f"{' and '.join(map(repr, PROVED))}; pass 'auto' or 'asymptotic' with {family!r}"
            )
        if not isinstance(noise, Likelihood):
            raise ValueError(
                f"noise is {shown(noise)}; pass 'auto', Likelihood(dispersion) or 'asymptotic'"
            )
        return noise

    def learn(self, x: Array, y: Array, w: Array, offset: Array | None = None) -> Array:
        """Learn checked rows; return the mean predicted for each before its label.

        A count of mean e^(offset + score) and weight w is one of mean e^score and weight w
        e^offset, divided by e^offset: the likelihoods differ by a constant.
        """
        exposure = np.ones(1) if offset is None else self._exposure(offset)
        means = self.method.update(self.state, x, y / exposure, w * exposure)
        return np.asarray(means) * exposure

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
        means = np.asarray(self.method.predict(self.state, x))
        return means if offset is None else means * self._exposure(offset)

    def spreads(self) -> Array:
        """Return the standard deviation of each feature."""
        state = self.state
        mean = state.total / state.count
        return np.sqrt(np.maximum(state.squares / state.count - mean**2, 0.0))

    def coefficients(self) -> tuple[Array, float]:
        """Return the coefficients, averaged over the mixture, and the intercept."""
        return self.state.theta, self.state.intercept

    def __getstate__(self) -> dict[str, object]:
        """Return the fields alone."""
        return {"method": self.method, "state": self.state}

    def _fit(self) -> curved_intervals.CurvedFit:
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
    ) -> Interval:
        """Return bounds of the mean, or of a new label, at each row."""
        scale = 1.0 if offset is None else self._exposure(offset)
        if offset is not None and kind != "mean":
            raise ValueError("offset was passed, but intervals of new labels take none")
        found = self._fit().interval(x, self.check_noise(noise), delta, anytime, simultaneous, kind)
        lower, upper = found.lower * scale, found.upper * scale
        return Interval(lower, upper, found.promise, found.rests_on, found.note)

    def coefficient_interval(self, noise: object, delta: float, anytime: bool) -> Interval:
        """Return bounds of each coefficient, the intercept last."""
        return self._fit().coefficient_interval(self.check_noise(noise), delta, anytime)

    centre = "the fit without ridge"
    quality = caution = ""
