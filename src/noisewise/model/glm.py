"""GLM: a link with norm bounds, from which score bound, slopes and prescribed ridge follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..inputs import coerce_positive, flag, numbers
from ..support.arrays import Array
from .links import LINKS, Function, Link, integrate, quadrature, slope_range


@dataclass(frozen=True)
class GLM:
    r"""The model :math:`E[y \mid x] = \varphi(x\cdot\mu)` with :math:`\|x\| \le A, \|\mu\| \le B`.

    True scores lie in [-S, S], S = AB. Outside, the link is continued along its tangent
    (``extend``), so that :math:`\kappa \le \varphi' \le K` holds on the whole line: no guarantee is
    claimed without. The loss of a row is :math:`\ell(z) = m(z) - yz`, half the square for identity.

    Parameters
    ----------
    link : str or Link
        A name in `LINKS` or a link of your own; checked here for being increasing.
    feature_bound, parameter_bound : float > 0
        A and B.
    extend : bool
        Continue the link linearly outside [-S, S].

    Examples
    --------
    >>> GLM("logistic", parameter_bound=2.0).score_bound
    2.0
    >>> GLM("identity").ridge
    4.0

    References
    ----------
    Zhao, Zhou, He and Gu (2022), arXiv 2202.13603, section 3.
    """

    link: Any = "identity"
    feature_bound: float = 1.0
    parameter_bound: float = 1.0
    extend: bool = True

    def __post_init__(self) -> None:
        link = self.link
        if isinstance(link, str):
            if link not in LINKS:
                raise ValueError(
                    f"link is {link!r}; pass one of {', '.join(LINKS)}, or a noisewise.Link"
                )
            link = LINKS[link]
        if not isinstance(link, Link):
            raise ValueError(f"link is {link!r}; pass a name or a noisewise.Link")
        object.__setattr__(self, "link", link)
        flag("extend", self.extend)
        coerce_positive(self, "feature_bound", "parameter_bound")
        _examine(link, self.score_bound)
        size = max(self.feature_bound, self.parameter_bound, self.score_bound, self.max_slope)
        if size > 1e60 or self.min_slope < 1e-60:
            raise ValueError(
                f"feature_bound {self.feature_bound:g} and parameter_bound "
                f"{self.parameter_bound:g} give numbers too large to compute with; rescale"
            )
        if link.potential is None and not self.extend:
            raise ValueError(
                f"extend is False, but link {link.name!r} has no potential and quadrature needs an "
                "interval; pass the link's potential or keep extend=True"
            )

    @cached_property
    def score_bound(self) -> float:
        """S = AB, the largest true score."""
        return self.feature_bound * self.parameter_bound

    @cached_property
    def _slopes(self) -> tuple[float, float]:
        return slope_range(self.link, self.score_bound)

    @property
    def min_slope(self) -> float:
        """kappa, the least slope on [-S, S]."""
        return self._slopes[0]

    @property
    def max_slope(self) -> float:
        """K, the largest slope on [-S, S]."""
        return self._slopes[1]

    @property
    def ridge(self) -> float:
        """The ridge of the regret theorem, 4 A^2 K^2 / kappa."""
        return 4 * (self.feature_bound * self.max_slope) ** 2 / self.min_slope

    @cached_property
    def self_concordance(self) -> float | None:
        r"""M with :math:`|\varphi''| \le M\varphi'` on [-S, S], or None if unknown."""
        M = self.link.self_concordance
        return float(M(self.score_bound)) if callable(M) else M

    @cached_property
    def third_derivative(self) -> float:
        r"""N with :math:`|\varphi'''| \le N\varphi'` on [-S, S], or what stands in for it."""
        N, M = self.link.third_derivative, self.self_concordance or 0.0
        # with N = M^2 the solver's bound becomes (e^(M rho) - 1 - M rho)/(M rho), which needs no N
        return M * M if N is None else float(N(self.score_bound)) if callable(N) else N

    @cached_property
    def linear(self) -> bool:
        """Whether the link is the identity, for which closed forms exist."""
        return bool(self.link == LINKS["identity"])

    @property
    def _potential(self) -> Function:
        given: Function | None = self.link.potential
        return quadrature(self.link.mean, self.score_bound) if given is None else given

    def _split(self, z: ArrayLike) -> tuple[Array, Array | None]:
        """Return the scores within [-S, S] and what is beyond, None without an extension."""
        z = numbers("z", z, check=False)
        if not self.extend or self.linear:
            return z, None
        inside = np.clip(z, -self.score_bound, self.score_bound)
        return inside, z - inside

    def mean(self, z: ArrayLike) -> Array:
        """Return the mean at score ``z``."""
        c, u = self._split(z)
        return self.link.mean(c) if u is None else self.link.mean(c) + self.link.slope(c) * u

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The least and the largest mean of the link, infinite where there is none."""
        return self.link.ends

    def prediction(self, z: ArrayLike) -> Array:
        """Return the mean at score ``z``, held within the link's range where the extension leaves.

        >>> round(float(GLM("logistic").mean(9.0)), 1), float(GLM("logistic").prediction(9.0))
        (2.3, 1.0)
        """
        return np.clip(self.mean(z), *self.ends)

    def slope(self, z: ArrayLike) -> Array:
        """Return the derivative of the mean at score ``z``."""
        return self.link.slope(self._split(z)[0])

    def potential(self, z: ArrayLike) -> Array:
        """Return the integral of the mean from 0 to ``z``."""
        c, u = self._split(z)
        if u is None:
            return self._potential(c)
        return self._potential(c) + (self.link.mean(c) + 0.5 * self.link.slope(c) * u) * u

    def score(self, mean: ArrayLike) -> Array:
        """Return the score whose mean is ``mean``; the inverse of `mean`.

        Without the extension a mean outside the link's range has score +-inf.

        >>> round(float(GLM("logistic").score(0.5)), 12)
        0.0
        """
        from scipy.optimize import elementwise

        wanted = numbers("mean", mean, check=False)
        if self.linear:
            return +wanted
        S = self.score_bound
        low, high = self.mean(-S), self.mean(S)

        def miss(z: Array, target: Array) -> Array:
            return np.asarray(self.link.mean(z) - target)

        if self.extend:
            found = elementwise.find_root(
                miss, (-S, S), args=(np.clip(wanted, low, high),), tolerances={"xatol": 0.0}
            )
            below = np.minimum(wanted - low, 0) / self.slope(-S)
            above = np.maximum(wanted - high, 0) / self.slope(S)
            return found.x + below + above
        with np.errstate(over="ignore"):
            bracket = elementwise.bracket_root(miss, -S, S, args=(wanted,), maxiter=60)
            found = elementwise.find_root(
                miss, bracket.bracket, args=(wanted,), tolerances={"xatol": 0.0}
            )
        return np.where(found.success, found.x, np.where(wanted > high, np.inf, -np.inf))


def _examine(link: Link, S: float) -> None:
    """Refuse a link whose slope is not positive, or whose parts contradict each other."""
    low, high = slope_range(link, S)
    if not (0 < low <= high < np.inf):
        raise ValueError(
            f"link {link.name!r} has slopes from {low:.3g} to {high:.3g} on [-{S:g}, {S:g}]; the "
            "slope must be positive and finite there: take another link, or smaller feature_bound "
            "and parameter_bound"
        )
    if LINKS.get(link.name) == link:
        return
    z = np.linspace(-S, S, 257)
    for whole, part, names in (
        (link.mean, link.slope, "the integral of slope is not the change of mean"),
        (link.potential, link.mean, "the integral of mean is not the change of potential"),
    ):
        if whole is None:
            continue
        change = np.diff(whole(z))
        area = integrate(part, z[:-1], z[1:])
        if not np.allclose(change, area, rtol=1e-5, atol=1e-5 * high * (z[1] - z[0])):
            worst = int(np.argmax(np.abs(change - area)))
            raise ValueError(
                f"link {link.name!r}: {names} between {z[worst]:.4g} and {z[worst + 1]:.4g} "
                f"({area[worst]:.6g} against {change[worst]:.6g}); correct one of the two"
            )
