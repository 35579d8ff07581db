"""The fit of shares or counts without a ridge: estimates, standard errors and dispersion."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...inputs import features
from ...model.families import FAMILIES
from ...model.noise import Likelihood
from ...numerics.blas import matmul, one_thread
from ...protocols import Array
from .dispersion import MANY, Dispersion
from .maximum_likelihood import Estimate
from .quadratic_intervals import half_width

ASYMPTOTIC = "asymptotic"
NOISES = "auto", "likelihood", ASYMPTOTIC
KINDS = {"binomial": "binomial shares", "poisson": "poisson counts"}


@dataclass(frozen=True, eq=False)
class UnregularisedFit:
    """The unregularised fit to rows that are shifted by ``shift``.

    Where labels are separated it lies at infinity in some directions, and what is shown of it there
    is a point on the way.
    """

    fit: Estimate
    family: str
    shift: Array

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.fit.design.sums.count

    @cached_property
    def events(self) -> float:
        """The counts, or the successes or failures, whichever are fewer."""
        w, (low, high) = self.fit.design.w, FAMILIES[self.family].label_range
        y = self.fit.design.y - low
        events = float(w @ y)
        if high == 1.0:
            events = min(events, float(w @ (high - low - y))) / (high - low)
        return events

    @cached_property
    def single(self) -> bool:
        """Whether labels are 0 and 1, of one trial each."""
        y, w = self.fit.design.y, self.fit.design.w
        return self.family == "binomial" and bool(((w == 1) & ((y == 0) | (y == 1))).all())

    def dispersion(self, noise: Likelihood | str = "auto") -> Dispersion | float:
        """Return the scatter that intervals allow for, or the dispersion that is taken for granted.

        Labels 0 and 1 have dispersion 1, whatever they do.
        """
        if isinstance(noise, Likelihood):
            return noise.dispersion
        if noise not in NOISES:
            raise ValueError(
                f"noise is {noise!r}; pass 'auto', 'likelihood', Likelihood(dispersion) or "
                f"{ASYMPTOTIC!r}"
            )
        if noise == "likelihood" or (noise == "auto" and self.single):
            return 1.0
        return self._floored if noise == "auto" else self._free

    @cached_property
    def _floored(self) -> Dispersion:
        return Dispersion(self.fit, 1.0)

    @cached_property
    def _free(self) -> Dispersion:
        return Dispersion(self.fit, 0.0)

    @property
    def scatter(self) -> Dispersion | None:
        """The scatter of labels, None where it can't be seen."""
        unseen = self.single or not self.fit.exists or not self._floored.free
        return None if unseen else self._floored

    def scatters(self, dispersion: float = 1.0) -> float:
        """Return how far labels scatter beyond a dispersion: above 1 by more than chance.

        Below -1 it is less than chance, and nan where it can't be seen.
        """
        if self.scatter is None or self.family not in KINDS:
            return math.nan
        above, chance = self.scatter.excess(self.family == "binomial", dispersion)
        return above / chance

    @cached_property
    def _parameter(self) -> Array:
        """The parameter of rows (x - shift, 1)."""
        design = self.fit.design
        return design.C.T @ (design.lift @ self.fit.beta)

    @property
    def theta(self) -> Array:
        """The coefficients; of several that fit alike, the shortest in units of the features."""
        return self._parameter[: len(self.shift)].copy()

    @property
    def intercept(self) -> float:
        """The score at x = 0."""
        return float(self.scores(np.zeros((1, len(self.shift))))[0])

    def scores(self, x: Array) -> Array:
        """Return the score of each row."""
        return matmul(self._directions(x), self._parameter)

    def _directions(self, x: Array) -> Array:
        x, _ = features(x, len(self.shift))
        return self.fit.design.sums.directions(x - self.shift)

    def _unit_directions(self) -> Array:
        """Return the directions of the coefficients and, where there is one, the intercept."""
        d = len(self.shift)
        z = np.eye(len(self._parameter))
        z[d:, :d] = -self.shift
        return z

    def centre(self, noise: Likelihood | str) -> Array:
        """Return the estimate in coordinates u, less its first-order bias where events allow.

        Of families other than shares and counts it is the fit itself.
        """
        law = self.dispersion(noise)
        average = law if isinstance(law, float) else law.average
        enough = self.events >= average * max(MANY, len(self.fit.values))
        if self.family in KINDS and enough:
            return self.fit.beta - average * self._floored.bias(self.family)
        return self.fit.beta

    @one_thread
    def coefficients(self, noise: Likelihood | str = "auto") -> tuple[Array, Array, Array]:
        """Return estimates, standard errors and degrees of freedom, nan where nothing is known."""
        b, seen = self.fit.design.project(z := self._unit_directions())
        found = half_width(self.fit, z, b, self.dispersion(noise), 0.05, anytime=False)
        known = seen & self.fit.known(b)
        estimates, errors = matmul(b, self.centre(noise)), np.sqrt(found.variance)
        at, error, freedom = (
            np.where(known, each, math.nan) for each in (estimates, errors, found.freedom)
        )
        return at, error, freedom
