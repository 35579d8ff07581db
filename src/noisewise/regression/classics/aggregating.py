"""Aggregating: Vovk's aggregating algorithm over a few regressors."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ...inputs import coerce_positive, dimension, features, positive, rows
from ...protocols import AnyRegressor, Array, FloatOrArray, Regressor, trait
from ...storage.archive import suit
from ...storage.states import COUNT, check_fields
from ...support.ownership import writes
from ...support.printing import OneLine
from ..ftrl.state import FTRLState
from .rowwise import HasDim


@runtime_checkable
class Refusing(Protocol):
    """A regressor that can say beforehand which rows it would not learn."""

    def _refuse(self, state: object, x: Array, y: Array, w: Array) -> None: ...


@dataclass(eq=False, repr=False)
class AggregatingState(OneLine):
    """What `Aggregating` knows: the experts' states and the logarithms of their weights, best 0."""

    dim: int
    states: list[object]
    log_weights: Array
    count: int = 0

    def __post_init__(self) -> None:
        d = dimension(self.dim)
        check_fields(self, states=list, count=COUNT)
        check_fields(self, log_weights=(len(self.states),))
        for each in self.states:
            if isinstance(each, HasDim) and each.dim != d:
                raise ValueError(f"AggregatingState.states holds one of another dim than {d}")

    @property
    def weights(self) -> Array:
        """The weights of the experts, summing to 1."""
        w = np.exp(self.log_weights)
        return w / w.sum()


def _spare(state: object) -> object:
    """Return a copy that learns while the state stays, where fields are set and not written into.

    What an `FTRL` knows is written in place.
    """
    return state if isinstance(state, FTRLState) else copy.copy(state)


@dataclass(frozen=True)
class Aggregating:
    r"""Mix experts so that the loss stays within a constant of the best one's.

    With :math:`\eta = 1/(2Y^2)`, experts' predictions :math:`\xi_i` clipped to [-Y, Y] and weights
    :math:`p_i \propto \pi_i e^{-\eta L_i}`, L the sum of weighted squares:

    .. math:: \hat y = \frac{G(-Y) - G(Y)}{4Y},\quad
              G(y) = -\frac1\eta\log\sum_i p_i e^{-\eta(y - \xi_i)^2}

    Parameters
    ----------
    experts : tuple of regressors
        One that needs a design to start is not taken. An expert of your own should refuse no row
        that `noisewise.inputs` takes: those asked before it have then learnt the row.
    label_bound : float > 0
        Y; a label outside [-Y, Y] is weighed as the nearer end, with a warning.
    prior : tuple of float > 0, optional
        Sums to 1; uniform by default.

    Examples
    --------
    One expert is returned as it is:

    >>> import noisewise as nw
    >>> nw.predictions(Aggregating((nw.Ridge(0.5),), 1.0), [[1.0], [1.0]], [1.0, 1.0])
    array([0. , 0.5])

    References
    ----------
    Vovk (2001), Competitive on-line statistics: regret to expert i at most Y^2 log(1/prior_i) for
    weights at most 1 (`theory.aggregating_bound`); with all linear functions as experts and a
    Gaussian prior it is `Forward`.
    """

    experts: tuple[AnyRegressor, ...]
    label_bound: float
    prior: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        experts = self.experts
        if not isinstance(experts, tuple | list) or not experts:
            raise ValueError(f"experts is {experts!r}; pass a tuple of at least one regressor")
        for expert in experts:
            if isinstance(expert, type) or not isinstance(expert, Regressor):
                raise ValueError(f"experts holds {expert!r}; pass regressors, such as Ridge()")
        object.__setattr__(self, "experts", tuple(experts))
        coerce_positive(self, "label_bound")
        if self.prior is None:
            return
        given = self.prior if isinstance(self.prior, tuple | list) else (self.prior,)
        prior = tuple(positive("prior", p) for p in given)
        if len(prior) != len(experts) or abs(sum(prior) - 1) > 1e-9:
            raise ValueError(
                f"prior is {self.prior!r}; pass {len(experts)} numbers that sum to 1, one an expert"
            )
        object.__setattr__(self, "prior", prior)

    @property
    def not_promised(self) -> tuple[str, ...]:
        """A row twice is two losses of two predictions; for the rest, what the experts promise."""
        none: tuple[str, ...] = ()
        theirs = (name for e in self.experts for name in trait(e, "not_promised", none))
        return tuple(dict.fromkeys(("weight two equals the row twice", *theirs)))

    def start(self, dim: int) -> AggregatingState:
        """Make the state of a fresh learner."""
        d = dimension(dim)
        logs = np.log(self.prior or np.ones(len(self.experts)))
        return AggregatingState(d, [e.start(d) for e in self.experts], logs - logs.max())

    def predict(self, state: AggregatingState, x: ArrayLike) -> FloatOrArray:
        """Return the predicted mean at each row of ``x``."""
        x, single = features(x, state.dim)
        pairs = zip(self.experts, state.states, strict=True)
        xi = self._clipped([expert.predict(each, x) for expert, each in pairs])
        mean = self._mix(state.log_weights[:, None], xi)
        return float(mean[0]) if single else mean

    @writes
    def update(
        self, state: AggregatingState, x: ArrayLike, y: ArrayLike, weight: ArrayLike = 1.0
    ) -> FloatOrArray:
        """Learn the rows in order; return the mean predicted for each before its label."""
        x, y, w, single = rows(x, y, weight, state.dim)
        self._refuse(state, x, y, w)
        Y = self.label_bound
        if (outside := (np.abs(y) > Y) & (w > 0)).any():
            at = int(np.argmax(outside))
            warnings.warn(
                f"y is {y[at]:g} at row {at}, outside label_bound {Y:g}; experts are weighed by "
                "the nearer end and the guarantee is void, pass a larger label_bound",
                stacklevel=2,
            )
        states = [_spare(each) for each in state.states]
        xi = self._learn(states, *((x[0], float(y[0]), float(w[0])) if single else (x, y, w)))
        loss = w * (np.clip(y, -Y, Y) - xi) ** 2 / (2 * Y * Y)
        after = state.log_weights[:, None] - np.cumsum(loss, axis=1)
        before = np.column_stack([state.log_weights, after[:, :-1]])
        mean = self._mix(before, xi)
        state.states = states
        if len(x):
            state.log_weights = after[:, -1] - after[:, -1].max()
        state.count += int((w > 0).sum())
        return float(mean[0]) if single else mean

    def _learn(self, states: list[object], x: ArrayLike, y: ArrayLike, w: ArrayLike) -> Array:
        """Let the experts learn, those first whose states are spare: others refuse no more."""
        xi: list[FloatOrArray] = [0.0] * len(states)
        for i in sorted(range(len(states)), key=lambda i: isinstance(states[i], FTRLState)):
            xi[i] = self.experts[i].update(states[i], x, y, w)
        return self._clipped(xi)

    def check_state(self, state: AggregatingState) -> None:
        """Raise unless every expert has a state of its own kind."""
        if len(state.states) != len(self.experts):
            raise ValueError(f"{len(self.experts)} experts have {len(state.states)} states")
        for expert, each in zip(self.experts, state.states, strict=True):
            suit(expert, each)

    def _refuse(self, state: AggregatingState, x: Array, y: Array, w: Array) -> None:
        """Let every expert object before any has learnt."""
        for expert, each in zip(self.experts, state.states, strict=True):
            if isinstance(expert, Refusing):
                expert._refuse(each, x, y, w)

    def _clipped(self, xi: list[FloatOrArray]) -> Array:
        return np.clip(np.array(xi), -self.label_bound, self.label_bound).reshape(len(xi), -1)

    def _mix(self, log_weights: Array, xi: Array) -> Array:
        """Return the prediction for each column of log weights and experts' predictions."""
        Y = self.label_bound
        # exp(-eta (y - xi)^2) at both ends, with the factor they share taken out
        lean = xi / Y
        common = log_weights - log_weights.max(axis=0) - 0.5 * lean**2
        high, low = (np.logaddexp.reduce(common + sign * lean, axis=0) for sign in (1, -1))
        return 0.5 * Y * (high - low)
