"""SelfTuned: linear regression that chooses its own ridge and forgetting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...inputs import (
    as_contiguous,
    dimension,
    features,
    finite,
    flag,
    positive,
    probability,
    ready,
    rows,
    shown,
)
from ...kernels.glm.layout import padded
from ...kernels.self_tuning.ridge_rule import INTERCEPT_RIDGE, PRIOR_RIDGE
from ...kernels.self_tuning.self_tuned_numbers import (
    VECTORS,
    WIDE,
    ExpertNumbers,
    Moments,
    StateNumbers,
    by_name,
    inverse_of,
)
from ...numerics.blas import matmul
from ...numerics.linalg import LARGE
from ...protocols import Array, FloatOrArray
from ...storage.states import check_fields, check_rows, check_type, restore_writable
from ...support.interruptible import interruptible
from ...support.ownership import writes
from ...support.printing import OneLine
from .wide_ridge import is_due, look_ahead, renew

patient_renew = interruptible(renew)
FORGETTING = 1.0, 0.99, 0.97


@dataclass(eq=False, repr=False)
class SelfTunedState(OneLine):
    """What `SelfTuned` knows: arrays that its compiled loop reads and writes.

    ``numbers`` holds the count, the origin and range of the labels and the squared errors;
    ``moments`` the first row, sums and squares of the features and the variances in use;
    ``experts`` a row for each forgetting factor, whose matrices are G (lower triangle), b, P and B.
    """

    dim: int
    numbers: Array
    moments: Array
    experts: Array
    gram: Array
    moment: Array
    inverse: Array
    theta: Array

    def __post_init__(self) -> None:
        d = dimension(self.dim)
        for name in ("experts", "moment"):
            check_type(f"SelfTunedState.{name}", vars(self)[name], np.ndarray)
        k = self.experts.shape[0] if self.experts.ndim else 0
        p = d + 1 if self.moment.shape[-1:] == (d + 1,) else d
        check_fields(self, numbers=(len(StateNumbers.fields),), moments=(4, d))
        ld = padded(p)
        check_fields(self, gram=(k, ld * ld), inverse=(k, (VECTORS + ld) * ld))
        check_fields(self, moment=(k, p), theta=(k, p), experts=(k, len(ExpertNumbers.fields)))
        check_rows("SelfTunedState", self.moments, self.experts, self.moment, self.theta)
        check_rows("SelfTunedState", self.gram, self.inverse)
        count, _, low, high, squares, rounds = self.numbers
        _, _, *spread = self.moments
        factors = by_name(self.experts)
        gamma, ridge, scale = factors["gamma"], factors["ridge"], factors["scale"]
        if (
            not k
            or count != int(count)
            or min(count, rounds, squares, high - low, np.min(spread), self.experts.min()) < 0
            or min(gamma.min(), ridge.min(), scale.min()) <= 0
            or max(gamma.max(), factors["slot"].max()) > 1
            or abs(factors["share"].sum() - 1) > 1e-9
            or self.gram[:, :: ld + 1].min() < 0
        ):
            raise ValueError("SelfTunedState holds a number that no stream of rows leads to")

    __setstate__ = restore_writable

    @property
    def count(self) -> int:
        """How many rows of positive weight were learnt."""
        return int(StateNumbers(self.numbers).count)

    @property
    def forgetting(self) -> Array:
        """The forgetting factors that are combined."""
        return np.array(by_name(self.experts)["gamma"])

    @property
    def shares(self) -> Array:
        """The weight of each forgetting factor in the combination."""
        return np.array(by_name(self.experts)["share"])

    @property
    def coef(self) -> Array:
        """The coefficients of the combination."""
        return self.estimate()[0]

    @property
    def intercept(self) -> float:
        """The intercept of the combination."""
        return self.estimate()[1]

    def estimate(self, forgetting: float | None = None) -> tuple[Array, float]:
        """Return coefficients and intercept of one forgetting factor, or of the combination."""
        share = self.shares if forgetting is None else 1.0 * (self.forgetting == forgetting)
        if not share.any():
            raise ValueError(
                f"forgetting is {forgetting!r}; this state has {self.forgetting.tolist()}"
            )
        theta, d = matmul(share, self.theta), self.dim
        origin = StateNumbers(self.numbers).origin + float(theta[d:].sum())
        return theta[:d], origin - float(theta[:d] @ Moments(*self.moments).first)


@dataclass(frozen=True)
class SelfTuned:
    r"""Linear regression without a number to choose, for any units of labels and features.

    For each forgetting factor :math:`\gamma`, ridge regression on the rows less the first one,

    .. math:: \min_\theta\; \tfrac12\sum_s \gamma^{t-s} w_s (y_s - \theta\cdot z_s)^2
              + \tfrac12\, c\,d \sum_i v_i\theta_i^2,

    where :math:`v_i` is the running variance of a feature and c the geometric mean under its
    posterior (empirical Bayes on a grid, renewed whenever the rows have grown by a quarter). The
    factors are combined by exponential weights of their squared errors, and predictions are
    clipped to the range of the labels seen, widened by a quarter. A prediction takes the features
    it is for into the variances, as they are known before the label.

    Parameters
    ----------
    ridge : "auto" or float > 0
        A number is that ridge on features of variance 1, and nothing is chosen.
    forgetting : "auto", float or tuple of floats, in (0, 1]
        "auto" combines 1, 0.99 and 0.97 where :math:`1/(1-\gamma) \ge 2d`. With others, 1 has
        prior weight ``steady`` and they share the rest; without 1 all are alike.
    fit_intercept : bool
        If False, the model goes through the origin and second moments replace variances.
    clip : bool
        Whether predictions stay within the range of the labels seen, widened by a quarter.
    steady : float in (0, 1)
        The prior weight that nothing is to be forgotten.

    Examples
    --------
    The second prediction is the first label; then it learns that y = 2 x + 1:

    >>> method = SelfTuned()
    >>> state = method.start(dim=1)
    >>> x = [[0.0], [1.0], [3.0], [2.0], [4.0], [5.0]]
    >>> method.update(state, x, [1.0, 3.0, 7.0, 5.0, 9.0, 11.0]).round(2)
    array([ 0.  ,  1.  ,  3.03,  4.99,  8.5 , 11.  ])
    >>> state.coef.round(2), round(state.intercept, 2)
    (array([2.]), 1.0)

    Notes
    -----
    A heuristic with the parts of theorems: without the choice of c, clipping and caps, and with
    the noise variance known, the combination loses at most log(1/steady) against no forgetting.
    Costs of order :math:`d^2` per row and forgetting factor. Weights are inverse noise variances:
    variances of features and the number of rows do not depend on them.
    """

    ridge: str | float = "auto"
    forgetting: str | float | tuple[float, ...] = "auto"
    fit_intercept: bool = True
    clip: bool = True
    steady: float = 0.8
    not_promised: ClassVar[tuple[str, ...]] = (
        "weight two equals the row twice",
        "rotation leaves predictions alone",
        "a zero row is legal",
    )

    def __post_init__(self) -> None:
        if not _is_auto(self.ridge):
            object.__setattr__(self, "ridge", positive("ridge", self.ridge))
        flag("fit_intercept", self.fit_intercept)
        flag("clip", self.clip)
        object.__setattr__(self, "steady", probability("steady", self.steady))
        if isinstance(self.forgetting, tuple):
            object.__setattr__(self, "forgetting", tuple(map(_factor, self.forgetting)))
        elif not _is_auto(self.forgetting):
            object.__setattr__(self, "forgetting", _factor(self.forgetting))
        self._priors(1)

    def _priors(self, dim: int) -> dict[float, float]:
        """Return the prior weight of each forgetting factor."""
        rest = round(1 - self.steady, 12)
        if isinstance(self.forgetting, str):
            kept = {
                gamma: self.steady if gamma == 1 else rest / 2
                for gamma in FORGETTING
                if (1 - gamma) * (2 * dim - 1e-9) <= 1
            }
        else:
            given = self.forgetting if isinstance(self.forgetting, tuple) else (self.forgetting,)
            if len(set(given)) < max(len(given), 1):
                raise ValueError(f"forgetting is {given!r}; pass at least one, and none twice")
            others = rest / max(len(given) - 1, 1)
            kept = {gamma: self.steady if gamma == 1 else others for gamma in given}
            if 1.0 not in kept:
                kept = dict.fromkeys(given, 1.0)
        total = sum(kept.values())
        return {gamma: prior / total for gamma, prior in kept.items()}

    @property
    def _fixed(self) -> float:
        """The given ridge as the kernels take it, 0 where it is chosen."""
        return 0.0 if isinstance(self.ridge, str) else 2 * self.ridge

    def start(self, dim: int) -> SelfTunedState:
        """Make the state of a fresh learner."""
        d, priors = dimension(dim), self._priors(dim)
        k, p = len(priors), d + self.fit_intercept
        experts, ld = np.zeros((k, len(ExpertNumbers.fields))), padded(p)
        factors = by_name(experts)
        factors["gamma"], factors["prior"] = list(priors), list(priors.values())
        factors["share"], factors["ridge"] = factors["prior"], self._fixed / d or PRIOR_RIDGE
        factors["choice"] = factors["scale"] = 1.0
        inverse, first = np.zeros((k, (VECTORS + ld) * ld)), [1.0] * d + [1 / INTERCEPT_RIDGE]
        for each in inverse:
            np.fill_diagonal(inverse_of(each, p), first[:p])
        numbers, moments = np.zeros(len(StateNumbers.fields)), np.zeros((4, d))
        gram, moment, theta = np.zeros((k, ld * ld)), np.zeros((k, p)), np.zeros((k, p))
        return SelfTunedState(d, numbers, moments, experts, gram, moment, inverse, theta)

    def check_state(self, state: SelfTunedState) -> None:
        """Raise unless the state has the forgetting factors and the intercept of the spec."""
        priors = self._priors(state.dim)
        factors, p = by_name(state.experts), state.dim + self.fit_intercept
        held = zip(factors["gamma"].tolist(), factors["prior"].tolist(), strict=True)
        if [*held] != [*priors.items()] or state.moment.shape[1] != p:
            raise ValueError("forgetting or fit_intercept of the state are not those of the spec")

    def predict(self, state: SelfTunedState, x: ArrayLike) -> FloatOrArray:
        """Return the predicted mean at each row of ``x``."""
        x, single = features(x, state.dim)
        means = self._predict(state, as_contiguous(x))
        return float(means[0]) if single else means

    def _predict(self, state: SelfTunedState, x: Array) -> Array:
        """Return the mean at each row; one that moves many of many features takes a factor."""
        from ...kernels.self_tuning import self_tuned_rounds

        def go_on(start: int, x: Array, out: Array, moments: Array, theta: Array) -> int:
            return self_tuned_rounds.predict(
                state.numbers, moments, state.experts, state.gram, state.moment, state.inverse,
                theta, self._fixed, self.clip, start, x, out,
            )  # fmt: skip

        means, done = np.empty(len(x)), 0
        while done < len(x):
            done = go_on(done, x, means, state.moments, state.theta)
            if done < 0:
                here = slice(-1 - done, -done)
                known = state.count, state.moments, state.experts, state.gram, state.moment
                go_on(0, x[here], means[here], *look_ahead(*known, x[here][0]))
                done = here.stop
        return means

    @writes
    def update(
        self, state: SelfTunedState, x: ArrayLike, y: ArrayLike, weight: ArrayLike = 1.0
    ) -> FloatOrArray:
        """Learn the rows in order; return the mean predicted for each before its label."""
        from ...kernels.self_tuning import self_tuned_rounds

        x, y, w, single = rows(x, y, weight, state.dim)
        x = x if ready(x) else as_contiguous(x)
        if not single:  # else they were made here
            y, w = as_contiguous(y), as_contiguous(w)
        means, done, wide = np.empty(len(x)), 0, state.dim > WIDE
        while done < len(x):
            done = self_tuned_rounds.learn(
                state.numbers, state.moments, state.experts, state.gram, state.moment,
                state.inverse, state.theta, self._fixed, self.clip, done, x, y, w, means,
            )  # fmt: skip
            if done < 0:
                raise ValueError(
                    "x, y or weight holds a number too large to compute with at row "
                    f"{-1 - done}; rescale it"
                )
            if not wide:
                continue
            if is_due(state.count, state.experts):
                (patient_renew if state.dim > LARGE else renew)(
                    state.count, state.moments, state.experts, state.gram, state.moment,
                    state.inverse, state.theta, self._fixed,
                )  # fmt: skip
            if done < len(x) and not w[done]:
                means[done] = self._predict(state, x[done : done + 1])[0]
                done += 1
        return float(means[0]) if single else means


def _is_auto(given: object) -> bool:
    return isinstance(given, str) and given == "auto"  # a masked number is equal to anything


def _factor(value: object) -> float:
    """Return a forgetting factor as a float in (0, 1]."""
    gamma = finite("forgetting", value, "'auto', a number in (0, 1] or a tuple of them")
    if not 0 < gamma <= 1:
        raise ValueError(f"forgetting is {shown(value)}; pass a number above 0 and at most 1")
    return gamma
