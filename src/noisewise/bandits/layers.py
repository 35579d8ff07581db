"""Layers: estimates with their confidence sets, asked and taught by compiled calls.

MORUCB has one for every level of noise, FTRLUCB a single one. A layer is the state of an FTRL,
places in an `EllipsoidStack` for its global and, where there is one, local ellipsoid, and a row of
numbers for the kernels.
"""

import math
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..glm import GLM
from ..inputs import as_contiguous, with_slack
from ..kernels.policy_params import (
    CURVATURE,
    GAIN,
    LIMIT,
    NORM,
    PARAMETER,
    PRICE,
    SCALE,
    SIZE,
    SLOPE,
)
from ..ownership import Owned, refused
from ..protocols import Array, BanditRounds
from ..regression import solver
from ..regression.ftrl import FTRL
from ..regression.state import FTRLState
from ..states import COUNT, check_fields, check_layout, check_list, check_rows
from .arms import block, candidates, compiled, first_best
from .ellipsoid_stack import EllipsoidStack


@dataclass(eq=False)
class OptimismState:
    """What an optimistic policy knows.

    ``rounds`` counts the rewards, ``clipped`` the standard deviations cut to the noise bound;
    ``variance`` is the state of a `VarianceModel` where the policy has one.
    """

    layers: list[FTRLState]
    forms: EllipsoidStack
    own: EllipsoidStack  # the estimate with the solver's own inverse, of no radius
    numbers: Array
    rounds: int = 0
    clipped: int = 0
    variance: FTRLState | None = None

    def __post_init__(self) -> None:
        check_list("OptimismState.layers", self.layers, FTRLState)
        check_fields(self, forms=EllipsoidStack, own=EllipsoidStack, rounds=COUNT, clipped=COUNT)
        check_layout("OptimismState.numbers", self.numbers, (len(self.layers), SIZE))
        check_rows("OptimismState", self.numbers)
        if np.isnan(self.numbers).any():
            raise ValueError("OptimismState.numbers holds NaN")
        if len(self.own.radii) != 1 or len({layer.head.code for layer in self.layers}) > 1:
            raise ValueError(
                "OptimismState has not one ellipsoid of its own, or layers of several links"
            )
        dims = {forms.centres.shape[1] for forms in (self.own, self.forms)}
        if dims | {layer.dim for layer in self.layers} != {self.own.centres.shape[1]}:
            raise ValueError("OptimismState has layers and ellipsoids of several dims")
        if self.variance is not None:
            check_fields(self, variance=FTRLState)
            if self.variance.dim != self.own.centres.shape[1] + 1:
                raise ValueError(
                    f"OptimismState.variance has dim {self.variance.dim}; one more than dim"
                )
        compiled = bool(self.layers) and self.layers[0].head.code >= 0
        self.kernels: Any = import_module("noisewise.kernels.optimism") if compiled else None
        self.first = self.own.centres[0], self.own.inverses[0], self.numbers[:1].reshape(-1)
        self.stale = False  # whether an update was interrupted, and sets may not fit the layers
        self.begun: Any = None  # a reward that several layers learn, with their counts before

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, without the module of kernels."""
        self._refuse_stale()
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, held: dict[str, Any]) -> None:
        vars(self).update(held)
        self.__post_init__()

    @property
    def dim(self) -> int:
        """The number of features."""
        return len(self.first[0])

    @property
    def count(self) -> int:
        """The number of rewards learnt."""
        self._refuse_stale()
        return self.rounds

    def _refuse_stale(self) -> None:
        if self.stale:
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
        return float(self.numbers[0, CURVATURE])

    @property
    def norm(self) -> float:
        """The length behind the moving ridge of the first layer."""
        return float(self.numbers[0, NORM])


def start(
    glm: GLM,
    ridge: float | None,
    dim: int,
    constants: list[float],
    forms: int,
    *,
    delta: float,
    scale: float,
    gain: float = 1.0,
) -> OptimismState:
    """Return the state before the first reward: a layer for each constant C of its radius, and
    room for so many ellipsoids a layer.
    """
    layers = [FTRL(glm, ridge).start(dim) for _ in constants]
    numbers = np.zeros((len(constants), SIZE))
    numbers[:, GAIN], numbers[:, SCALE] = gain, scale
    numbers[:, LIMIT] = with_slack(glm.feature_bound) ** 2
    numbers[:, PARAMETER] = numbers[:, NORM] = glm.parameter_bound
    numbers[:, PRICE] = math.log(1 / delta) * np.array(constants)
    numbers[:, SLOPE] = glm.min_slope
    sets = EllipsoidStack.empty(forms * len(layers), dim)
    return OptimismState(layers, sets, EllipsoidStack.empty(1, dim), numbers)


def best(state: OptimismState, arms: Array, quads: Array | None = None) -> int:
    """Return the arm whose smallest upper bound is largest; -1 where the arms are bad.

    ``quads`` are the arms' quadratic forms in every ellipsoid, where they are known.
    """
    s = state.first[2]
    forms = state.forms
    if quads is not None:
        return int(state.kernels.best_upper(forms.centres, quads, forms.radii, s, arms))
    return int(state.kernels.choose_upper(forms.centres, forms.inverses, forms.radii, s, arms))


def local(glm: GLM) -> bool:
    """Whether the adaptive radius has a local form."""
    return not glm.linear and glm.self_concordance is not None


@dataclass(eq=False)
class FixedArms:
    """Arms that stay, with their quadratic forms: a reward changes those by rank one.

    ``quads`` (forms, arms) are those of the ellipsoids, ``own`` (1, arms) of the solver's inverse.
    No arms at all stand for arms that do not stay.
    """

    arms: Array
    quads: Array
    own: Array

    def renew(self, state: OptimismState, changed: slice = slice(None)) -> None:
        """Compute the quadratic forms anew, those in the ellipsoids that have ``changed``."""
        if len(self.arms):
            own, sets = state.own.inverses, state.forms.inverses[changed]
            for quads, inverses in ((self.quads[changed], sets), (self.own, own)):
                for row, inverse in zip(quads, inverses, strict=True):
                    compiled().forms_of(self.arms, inverse, row)


NO_ARMS = FixedArms(np.empty((0, 1)), np.empty((1, 0)), np.empty((1, 0)))


class Mending:
    """A policy's state while it is written outside the kernels: by one thread, and marked stale.

    A kernel learns a reward in one step; all else may be interrupted, and is repaired when the
    state is used next.
    """

    def __init__(self, policy: "OptimisticPolicy", state: OptimismState) -> None:
        self.policy, self.state, self.owned = policy, state, Owned(state)

    def __enter__(self) -> None:
        self.owned.__enter__()
        try:
            stale, self.state.stale = self.state.stale, True
            if stale:
                self.policy.repair(self.state)
        except BaseException:
            self.owned.__exit__()
            raise

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        try:
            self.state.stale = error is not None and not refused(error)
        finally:
            self.owned.__exit__()


class OptimisticPolicy:
    """What MORUCB and FTRLUCB share: choosing by the kernels, else readably, and whole worlds.

    They say what ``index`` their arms have, and how the kernels ``_choose`` and ``_teach``.
    """

    glm: GLM

    def select(
        self,
        state: OptimismState,
        arms: ArrayLike,
        rng: np.random.Generator,
        sigma: ArrayLike | None = None,
    ) -> int:
        """Return the arm of the largest index; nothing is random."""
        if state.stale:
            with Mending(self, state):
                pass
        if block(arms, state.dim):
            k = self._choose(state, arms)
            if k >= 0:
                return k
        return first_best(self.index(state, candidates(arms, state.dim, self.glm.feature_bound)))

    def check_state(self, state: OptimismState) -> None:
        """Raise unless the state has as many layers and ellipsoids as the policy writes."""
        found, wanted = (len(state.layers), len(state.forms.radii)), self._size()
        if found != wanted:
            raise ValueError(
                f"the state has {found[0]} layers and {found[1]} ellipsoids and {self} has "
                f"{wanted[0]} and {wanted[1]}; pass a state that this policy started"
            )

    def _size(self) -> tuple[int, int]:
        """Return the number of layers, and of ellipsoids in all."""
        raise NotImplementedError

    def index(self, state: OptimismState, x: Array) -> Array:
        """Return the index of every arm."""
        raise NotImplementedError

    def update(
        self, state: OptimismState, arm: ArrayLike, reward: float, sigma: float = 1.0
    ) -> None:
        """Learn a reward, weighed by its noise."""
        try:
            if state.stale or not self._teach(state, arm, reward, sigma):
                with Mending(self, state):
                    self._learn(state, arm, reward, sigma)
        except BaseException as error:
            if not refused(error):
                state.stale = True
            raise

    def repair(self, state: OptimismState) -> None:
        """Bring a state to rest that was interrupted: layers first, then what is made of them."""
        for layer in state.layers:
            solver.settle(self.glm, layer)
        if state.begun is not None:
            x, y, counts = state.begun
            left = [place for place, n in counts.items() if state.layers[place].count == n]
            for place in left if len(left) < len(counts) else ():  # the others have learnt it
                FTRL(self.glm).update(state.layers[place], x, y)
            state.begun = None
        state.rounds = self._learnt(state)
        self._renew(state)

    def _learnt(self, state: OptimismState) -> int:
        """Return how many rewards the layers have learnt."""
        raise NotImplementedError

    def _renew(self, state: OptimismState) -> None:
        """Bring estimates and sets up to date with the layers."""
        raise NotImplementedError

    def _learn(self, state: OptimismState, arm: ArrayLike, reward: float, sigma: float) -> None:
        """Learn a reward readably, or raise."""
        raise NotImplementedError

    def _choose(self, state: OptimismState, arms: Array, fixed: FixedArms | None = None) -> int:
        """Return the best arm by the kernels; -1 where they do not serve or the arms are bad."""
        raise NotImplementedError

    def _teach(
        self, state: OptimismState, arm: Any, reward: Any, sigma: Any, fixed: FixedArms = NO_ARMS
    ) -> bool:
        """Learn by the kernels where they serve; return whether that is done."""
        raise NotImplementedError

    def play(
        self, state: OptimismState, rounds: BanditRounds, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Play all rounds; arms that stay have their quadratic forms changed by rank one."""
        try:
            return self._play(state, rounds, rng)
        except BaseException as error:
            if not refused(error):
                state.stale = True
            raise

    def _play(
        self, state: OptimismState, rounds: BanditRounds, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        played = np.empty(len(rounds.means), dtype=np.int64)
        fixed = None
        if rounds.arms.ndim == 2 and state.kernels is not None:
            arms = candidates(as_contiguous(rounds.arms), state.dim, self.glm.feature_bound)
            K = len(arms)
            fixed = FixedArms(arms, np.empty((len(state.forms.radii), K)), np.empty((1, K)))
            fixed.renew(state)
        for t, rewards in enumerate(rounds.rewards.tolist()):
            if fixed is not None:
                arms = fixed.arms
            else:
                arms = rounds.arms if rounds.arms.ndim == 2 else rounds.arms[t]
            k = -1 if fixed is None else self._choose(state, arms, fixed)
            if k < 0:
                k = self.select(state, arms, rng)
            sigma = float(rounds.sigma[t] if rounds.sigma.ndim == 1 else rounds.sigma[t, k])
            if fixed is None or not self._teach(state, arms[k], rewards[k], sigma, fixed):
                self.update(state, arms[k], rewards[k], sigma)
                if fixed is not None:
                    fixed.renew(state)
            played[t] = k
        return played
