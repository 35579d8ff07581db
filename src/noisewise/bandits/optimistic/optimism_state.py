"""What an optimistic policy over FTRL knows: estimates, their confidence sets, kernel parameters.

MORUCB has a layer for every level of noise, FTRLUCB a single one. A layer is the state of an FTRL,
places in an `EllipsoidStack` for its ellipsoids, and a row of parameters for the kernels.
"""

from copy import deepcopy
from dataclasses import dataclass, fields
from importlib import import_module

import numpy as np

from ...kernels.policies.policy_params import Mixture, Params
from ...protocols import Array
from ...regression.ftrl.state import FTRLState
from ...storage.states import (
    COUNT,
    check_fields,
    check_finite,
    check_layout,
    check_list,
    check_rows,
)
from ...support.printing import OneLine
from ..arms import compiled
from .ellipsoid_stack import EllipsoidStack


@dataclass(eq=False, repr=False)
class OptimismState(OneLine):
    """What an optimistic policy knows.

    ``rounds`` counts the rewards, ``clipped`` the standard deviations cut to the noise bound;
    ``variance`` is the state of a `VarianceModel` where the policy has one; ``mixtures`` and
    ``priors`` are the mixture of each layer and the inverse of its matrix.
    """

    layers: list[FTRLState]
    forms: EllipsoidStack
    own: EllipsoidStack  # the estimate with the solver's own inverse, of no radius
    numbers: Array
    rounds: int = 0
    clipped: int = 0
    variance: FTRLState | None = None
    mixtures: Array | None = None
    priors: Array | None = None

    def __post_init__(self) -> None:
        check_list("OptimismState.layers", self.layers, FTRLState)
        check_fields(self, forms=EllipsoidStack, own=EllipsoidStack, rounds=COUNT, clipped=COUNT)
        check_layout("OptimismState.numbers", self.numbers, (len(self.layers), len(Params.fields)))
        check_rows("OptimismState", self.numbers)
        if np.isnan(self.numbers).any():
            raise ValueError("OptimismState.numbers holds NaN")
        if len(self.own.radii) != 1 or len({layer.head.code for layer in self.layers}) > 1:
            raise ValueError("OptimismState has layers of several links, or many estimates")
        dims = {forms.centres.shape[1] for forms in (self.own, self.forms)}
        if dims | {layer.dim for layer in self.layers} != {self.dim}:
            raise ValueError("OptimismState has layers and ellipsoids of several dims")
        if self.variance is not None:
            check_fields(self, variance=FTRLState)
            if self.variance.dim != self.dim + 1:
                raise ValueError(
                    f"OptimismState.variance has dim {self.variance.dim}; one more than dim"
                )
        compiled = bool(self.layers) and self.layers[0].head.code >= 0
        self.kernels = import_module("noisewise.kernels.policies.optimism") if compiled else None
        self.params = [*map(Params, self.numbers)]  # by name, for each layer
        L, d = len(self.layers), self.dim
        if self.mixtures is None or self.priors is None:
            self.mixtures, self.priors = np.zeros((L, len(Mixture.fields))), np.zeros((L, d, d))
        check_layout("OptimismState.mixtures", self.mixtures, (L, len(Mixture.fields)))
        check_layout("OptimismState.priors", self.priors, (L, d, d))
        check_rows("OptimismState", self.mixtures, self.priors)
        check_finite("OptimismState.mixtures", self.mixtures)
        check_finite("OptimismState.priors", self.priors)
        self.mixture = [*zip(self.mixtures, self.priors, strict=True)]
        self.estimate = self.own.centres[0], self.own.inverses[0]
        self.sets = self.forms.centres, self.forms.inverses, self.forms.radii
        self.shape = self.estimate[0].shape  # of an arm
        self.fixed = NO_ARMS  # arms that stay while rounds are played
        self.checked_for: object = None  # the index whose `check_state` has passed
        self.busy = 0.0  # an update was interrupted, and sets may not fit the layers
        # a reward that several layers learn, with their counts before
        self.begun: tuple[Array, float, dict[int, int]] | None = None

    def __getstate__(self) -> dict[str, object]:
        """Return the fields, without the module of kernels."""
        self._refuse_busy()
        return {field.name: vars(self)[field.name] for field in fields(self)}

    def __setstate__(self, held: dict[str, object]) -> None:
        vars(self).update(held)
        self.__post_init__()

    def copy(self) -> "OptimismState":
        """Return a state of its own that shares the history: one of the two may go on learning."""
        self._refuse_busy()
        variance = None if self.variance is None else _branch(self.variance)
        layers, forms = [_branch(layer) for layer in self.layers], deepcopy(self.forms)
        own, numbers = deepcopy(self.own), self.numbers.copy()
        return OptimismState(
            layers, forms, own, numbers, self.rounds, self.clipped, variance,
            deepcopy(self.mixtures), deepcopy(self.priors),
        )  # fmt: skip

    @property
    def dim(self) -> int:
        """The number of features."""
        return self.own.centres.shape[1]

    @property
    def count(self) -> int:
        """The number of rewards learnt."""
        self._refuse_busy()
        return self.rounds

    def _refuse_busy(self) -> None:
        if self.busy:
            raise ValueError(
                "the last update of this policy was interrupted; let it select or update once "
                "more, which repairs its state, before you count, copy or save it"
            )

    @property
    def theta(self) -> Array:
        """The estimate of the first layer."""
        return self.layers[0].theta

    @property
    def curvature(self) -> float:
        """The sum of w phi' in the first layer, as they were when learnt."""
        return self.params[0].curvature

    @property
    def norm(self) -> float:
        """The length behind the moving ridge of the first layer."""
        return self.params[0].norm


def _branch(layer: FTRLState) -> FTRLState:
    """Return a copy whose passes and new rows the layer does not see."""
    twin = layer.copy()
    twin.rows = layer.rows.copy()
    return twin


class FixedArms:
    """Arms that stay, with their quadratic forms: a reward changes those by rank one.

    ``quads`` (forms, arms) are those of the ellipsoids, ``own`` (arms,) of the solver's inverse.
    No arms at all stand for arms that do not stay.
    """

    def __init__(self, arms: Array, ellipsoids: int) -> None:
        self.arms = arms
        self.quads, self.own = np.empty((ellipsoids, len(arms))), np.empty(len(arms))

    def renew(self, state: OptimismState, changed: slice = slice(None)) -> None:
        """Compute the quadratic forms again, those in the ellipsoids that have ``changed``."""
        if len(self.arms):
            compiled().forms_of(self.arms, state.own.inverses[0], self.own)
            inverses = state.forms.inverses[changed]
            for row, inverse in zip(self.quads[changed], inverses, strict=True):
                compiled().forms_of(self.arms, inverse, row)


NO_ARMS = FixedArms(np.empty((0, 1)), 1)
