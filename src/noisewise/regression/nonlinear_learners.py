"""Learners of functions of the features, beside one of the features themselves.

Numbers: one `SelfTuned` on (x, a, q), with a and q those of `nonlinear_features`. Others: a
`RidgeMixture` on (x, a), and one on (x, q). Their predictions are experts of a `SafeMixture` beside
those of the linear learner, with the prior weights of `PRIORS`, the linear one first.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..protocols import Array
from ..storage.states import check_fields, check_type
from ..support.printing import OneLine
from .mixtures import batch_mixture
from .mixtures.ridge_mixture import RidgeMixture
from .mixtures.ridge_mixture_state import RidgeMixtureState
from .nonlinear_features import FeatureMoments, Functions
from .normal_equations import NormalEquations
from .self_tuned import batch_linear
from .self_tuned.self_tuned import SelfTuned, SelfTunedState

PRIORS: dict[type, tuple[float, ...]] = {SelfTuned: (5.0, 4.0), RidgeMixture: (2.0, 1.0, 1.0)}
CAUTION = (
    "coefficients and intervals are those of the linear model; predictions also use functions of "
    "the features"
)
LEAST_WEIGHT = 1e-6  # of a learner after a batch, so that a stream may bring it back


@dataclass(eq=False, repr=False)
class NonlinearLearners(OneLine):
    """The learners of functions of the features, a state for each."""

    method: SelfTuned | RidgeMixture
    moments: FeatureMoments
    states: list[SelfTunedState | RidgeMixtureState]

    def __post_init__(self) -> None:
        check_fields(self, moments=FeatureMoments, states=list)
        if type(self.method) not in PRIORS or len(self.states) != len(self.priors) - 1:
            raise ValueError("NonlinearLearners holds a method or states that are not its own")
        for each in self.states:
            check_type("NonlinearLearners.states", each, type(self.method.start(1)))
        self.check()

    @classmethod
    def start(cls, method: SelfTuned | RidgeMixture, dim: int) -> "NonlinearLearners":
        """Return learners that have learnt nothing."""
        moments = FeatureMoments.start(dim)
        rows = _designs(method, np.zeros((1, dim)), moments.predict(np.zeros((1, dim))))
        return cls(method, moments, [method.start(each.shape[1]) for each in rows])

    @property
    def priors(self) -> tuple[float, ...]:
        """Prior weights: of a linear learner, and of these."""
        return PRIORS[type(self.method)]

    def check(self) -> None:
        """Raise unless states are the method's, of these features."""
        d = (3 if isinstance(self.method, SelfTuned) else 2) * self.moments.dim
        for each in self.states:
            self.method.check_state(each)  # type: ignore[arg-type]
            if each.dim != d:
                raise ValueError(f"a state of NonlinearLearners is of dim {each.dim}, not {d}")

    @property
    def count(self) -> int:
        """How many rows of positive weight were learnt."""
        return self.moments.count

    def learn(self, x: Array, y: Array, w: Array) -> Array:
        """Learn checked rows; return the means before, a row for each learner."""
        designs = _designs(self.method, x, self.moments.learn(x, w))
        update, pairs = self.method.update, zip(self.states, designs, strict=True)
        if len(x) == 1:  # the quick way
            label, weight = float(y[0]), float(w[0])
            return np.array([[update(state, z[0], label, weight)] for state, z in pairs])  # type: ignore[arg-type]
        return np.array([update(state, z, y, w) for state, z in pairs])  # type: ignore[arg-type]

    def predict(self, x: Array) -> Array:
        """Return the mean at each row as if it were the next, a row for each learner."""
        designs = _designs(self.method, x, self.moments.predict(x))
        pairs = zip(self.states, designs, strict=True)
        return np.array([self.method.predict(state, z) for state, z in pairs])  # type: ignore[arg-type]

    def of_numbers(
        self, linear: SelfTunedState, x: Array, y: Array, w: Array
    ) -> tuple["NonlinearLearners", Array]:
        """Return learners of these rows as a batch, and weights: of ``linear``, fitted to them too.

        Weights are by the evidence of all rows.
        """
        assert isinstance(self.method, SelfTuned)
        moments = self.moments.around_mean(x)
        (design,) = _designs(self.method, x, moments.of_own(x))
        counted = self.method.start(design.shape[1])
        batch_linear.count_rows(counted, design, y, w, True)
        sums = NormalEquations.start(design.shape[1], True)
        sums.update(design, y, w)
        state = batch_linear.batch_state(self.method, counted, sums, 1.0)
        logs = [batch_linear.log_evidence(each) for each in (linear, state)]
        return replace(self, moments=moments, states=[state]), self._weights(logs)

    def of_labels(
        self, linear: batch_mixture.BatchFit, x: Array, y: Array, w: Array
    ) -> tuple["NonlinearLearners", Array]:
        """Return what `of_numbers` does, for shares, counts and signs.

        The evidence of all learners is taken at the least dispersion that one of them finds.
        """
        assert isinstance(self.method, RidgeMixture)
        moments = self.moments.around_mean(x)
        fits = [
            batch_mixture.fit_batch(self.method, each - each[0], y, w, each[0])
            for each in _designs(self.method, x, moments.of_own(x))
        ]
        dispersion = max(1.0, min(each.dispersion for each in (linear, *fits)))
        logs = [each.log_evidence(dispersion) for each in (linear, *fits)]
        states: list[SelfTunedState | RidgeMixtureState] = [each.state for each in fits]
        return replace(self, moments=moments, states=states), self._weights(logs)

    def _weights(self, logs: list[float]) -> Array:
        """Return the weights of learners whose rows have these logarithms of the evidence."""
        weights = np.array(self.priors) * np.exp(np.array(logs) - max(logs))
        weights = np.maximum(weights / weights.sum(), LEAST_WEIGHT)
        return np.asarray(weights / weights.sum())


def _designs(method: SelfTuned | RidgeMixture, x: Array, functions: Functions) -> list[Array]:
    """Return the features of each learner."""
    if isinstance(method, SelfTuned):
        return [np.hstack([x, *functions])]
    return [np.hstack([x, each]) for each in functions]
