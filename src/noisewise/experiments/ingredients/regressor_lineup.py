"""The arena of study `regressors`: streams, who plays on them, and what each guarantees there."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ... import environments as env
from ...environments.features import shorten
from ...model.glm import GLM
from ...model.noise import SubGaussian
from ...protocols import AnyRegressor, Array
from ...regression.classics.aggregating import Aggregating
from ...regression.classics.descent import GradientDescent
from ...regression.classics.discounted_forward import DiscountedForward
from ...regression.classics.exponentiated import ExponentiatedGradient
from ...regression.classics.forward import Forward
from ...regression.classics.horizon_free import HorizonFreeMinimax
from ...regression.classics.minimax import Minimax
from ...regression.classics.newton_step import NewtonStep
from ...regression.classics.ridge import Ridge
from ...regression.classics.simplex import SimplexFTRL
from ...regression.ftrl.ftrl import FTRL
from ...regression.mixtures.ridge_mixture import RidgeMixture
from ...regression.self_tuned.self_tuned import SelfTuned
from ...simulate import predictions
from ...theory import bounds, guarantees, regret

DIM, DELTA = 5, 0.05
SD, QUIET, LOUD = 0.5, 0.5, 5.0
WEIGHTED = "heteroscedastic, weighted"
WORLDS = ("stochastic", "adversarial", "heteroscedastic", "mixture", "logistic", "drifting")


@dataclass(frozen=True, eq=False)
class World:
    """A drawn stream, who it is measured against, and what a learner may know of it beforehand.

    ``noise`` is the sub-Gaussian scale of the labels, None under the adversary; ``loss`` what the
    comparator is expected to lose; ``label_bound`` holds for sure. ``theta`` has a row for each
    round where it moves.
    """

    name: str
    x: Array
    y: Array
    weight: Array
    theta: Array
    glm: GLM
    noise: float | None
    loss: float
    label_bound: float

    @property
    def rescaled(self) -> "World":
        """The same with every row and label times the root of its weight, the weights gone."""
        root, one = np.sqrt(self.weight), np.ones(len(self.y))
        return replace(self, x=root[:, None] * self.x, y=root * self.y, weight=one)

    @property
    def unweighted(self) -> "World":
        """The same for learners that ignore the weights: all are as uncertain as the noisiest."""
        sd, one = QUIET / np.sqrt(self.weight), np.ones(len(self.y))
        loss = 0.5 * float(sd @ sd)
        return replace(self, name="heteroscedastic", weight=one, noise=LOUD, loss=loss)

    @cached_property
    def _hindsight(self) -> Array:
        """The loss of the best linear predictor up to every round."""
        return -regret.adversarial_regret(self.x, self.y, np.zeros(len(self.y)))

    def regret(self, scores: Array) -> Array:
        """Return the regret of the scores played, cumulative, all weights taken as 1."""
        if self.noise is None:
            return np.cumsum(0.5 * scores**2 - self.y * scores) - self._hindsight
        return regret.stochastic_regret(self.glm, self.theta, self.x, self.y, scores)

    def expected(self, scores: Array) -> Array:
        """Return the regret with the noise of the labels averaged out, where there is noise."""
        if self.noise is None:
            return self.regret(scores)
        return regret.pseudo_regret(self.glm, self.theta, self.x, scores)


def draw(name: str, T: int, rng: np.random.Generator) -> World:
    """Draw one of the `WORLDS`; all rows have norm at most 1."""
    one, linear = np.ones(T), GLM()
    if name == "adversarial":
        x = env.CyclicBasis().draw(rng, T, DIM)
        y = env.Adversary().label(rng, x)[0]
        best = np.asarray(np.linalg.lstsq(x, y)[0], dtype=np.float64)
        wide = GLM(parameter_bound=math.sqrt(DIM))
        return World(name, x, y, one, best, wide, None, 0.5 * T, 1.0)
    if name == "mixture":
        x, theta = shorten(rng.random((T, DIM)), 1.0), rng.dirichlet(np.full(DIM, 0.5))
        y = (rng.random(T) < x @ theta).astype(np.float64)
        return World(name, x, y, one, theta, linear, 0.5, 0.125 * T, 1.0)
    x = env.Sphere().draw(rng, T, DIM)
    if name == "logistic":
        glm = GLM("logistic", parameter_bound=2.0)
        rounds = env.Family(glm).label(rng, x, env.OnSphere(2.0).draw(rng, DIM))
        assert rounds.theta is not None
        return World(name, x, rounds.y, one, rounds.theta, glm, 0.5, math.log(2) * T, 1.0)
    if name == "drifting":
        plane, angle = np.linalg.qr(rng.normal(size=(DIM, 2)))[0], np.linspace(0, 2 * np.pi, T)
        path = np.column_stack([np.cos(angle), np.sin(angle)]) @ plane.T
        y = np.einsum("ij,ij->i", x, path)
        y += env.ClippedGaussian(4 * SD).draw(rng, np.full(T, SD))
        return World(name, x, y, one, path, linear, SD, 0.5 * T * SD**2, 1 + 4 * SD)
    theta = env.OnSphere().draw(rng, DIM)
    if name == "stochastic":
        labels = env.Noisy(linear, env.ClippedGaussian(4 * SD), env.Levels((SD,)))
        y = labels.label(rng, x, theta).y
        return World(name, x, y, one, theta, linear, SD, 0.5 * T * SD**2, 1 + 4 * SD)
    labels = env.Noisy(linear, env.ClippedGaussian(4 * LOUD), env.LogUniform(QUIET, LOUD))
    rounds = labels.label(rng, x, theta)
    w = rounds.weight * QUIET**2  # at most 1: all methods keep their guarantees
    loss = 0.5 * T * QUIET**2
    return World(WEIGHTED, x, rounds.y, w, theta, linear, QUIET, loss, 1 + 4 * LOUD)


def learners(world: World) -> dict[str, AnyRegressor]:
    """Return who may play: all for whom the stream is legal."""
    glm = world.glm
    if not glm.linear:
        return {
            "FTRL": FTRL(glm, tolerance=0.0),
            "GradientDescent": GradientDescent(glm),
            "NewtonStep": NewtonStep(glm),
            "RidgeMixture": RidgeMixture(),
        }
    norm = glm.parameter_bound
    played: dict[str, AnyRegressor] = {
        "FTRL": FTRL(glm),
        "Ridge": Ridge(),
        "Forward": Forward(),
        "Forward, ridge 0": Forward(0.0),
        "Aggregating": Aggregating((Ridge(0.05), Ridge(0.5), Ridge(5.0)), world.label_bound),
        "Minimax": Minimax(),
        "HorizonFreeMinimax": HorizonFreeMinimax(),
        "GradientDescent": GradientDescent(rate=guarantees.gradient_descent_rate(world.loss, norm)),
        "NewtonStep": NewtonStep(glm),
        "SelfTuned": SelfTuned(),
        "DiscountedForward": DiscountedForward(),
    }
    if world.name == "mixture":
        rate = guarantees.exponentiated_gradient_rate(world.loss, math.log(DIM), 1.0)
        played["ExponentiatedGradient"] = ExponentiatedGradient(1.0, rate=rate)
        return played | {"SimplexFTRL": SimplexFTRL()}
    U = math.sqrt(DIM) * norm  # no parameter of that length has a larger 1-norm
    rate = guarantees.exponentiated_gradient_rate(world.loss, math.log(2 * DIM), 2.0, U)
    return played | {"ExponentiatedGradient": ExponentiatedGradient(2.0, U, rate)}


def play(learner: AnyRegressor, world: World) -> Array:
    """Return the scores a learner plays; means are turned into scores unless it has the link."""
    x, y, w, glm = world.x, world.y, world.weight, world.glm
    if glm.linear:
        return predictions(learner, x, y, w)
    if isinstance(learner, FTRL | GradientDescent | NewtonStep) and learner.glm == glm:
        return predictions(learner, x, y, w, scores=True)
    return np.asarray(glm.score(predictions(learner, x, y, w)))


def guarantee(learner: AnyRegressor, world: World, scores: Array) -> float:
    """Return the bound of the regret at the end on this stream, NaN where no theorem applies.

    Weighted rows are the rows times the root of the weight, for those methods to which they are.
    """
    if isinstance(learner, DiscountedForward):
        return _discounted(learner, world)
    if world.theta.ndim == 2:
        return math.nan  # theorems about one parameter
    if isinstance(learner, Forward | HorizonFreeMinimax) and (world.weight != 1).any():
        return math.nan  # the row to come counts with weight 1
    if isinstance(learner, Aggregating):
        best = min(guarantee(e, world, play(e, world)) for e in learner.experts)
        return best + guarantees.aggregating_bound(learner.label_bound, 1 / len(learner.experts))
    scores, world = np.sqrt(world.weight) * scores, world.rescaled
    x, y, u, glm = world.x, world.y, world.theta, world.glm
    residuals, norm = np.asarray(glm.mean(scores)) - y, float(np.linalg.norm(u))
    label, loss = float(np.abs(y).max()), 0.5 * float(np.sum((y - x @ u) ** 2))
    match learner:
        case FTRL() if world.noise is not None:
            leverages = regret.design_terms(glm, x, glm.ridge)[1]
            return bounds.sharp_bound(
                glm, SubGaussian(world.noise), dim=DIM, horizon=len(x), delta=DELTA,
                leverages=leverages,
            )  # fmt: skip
        case FTRL() | Ridge():
            ridge = learner.ridge or glm.ridge
            growth, worst = guarantees.log_dets(x, ridge)[-1], float(np.abs(residuals).max())
            return float(guarantees.ridge_bound(growth, worst, norm, ridge))
        case Forward(ridge=0.0):
            return float(guarantees.free_forward_bound(x, label)[-1])
        case Forward():
            growth = guarantees.log_dets(x, learner.ridge)[-1]
            return float(guarantees.forward_bound(growth, label, norm, learner.ridge))
        case Minimax():
            return guarantees.minimax_value(x, label)
        case HorizonFreeMinimax():
            return float(guarantees.horizon_free_bound(x, label, norm, learner.budget)[-1])
        case GradientDescent(glm=None):
            return guarantees.gradient_descent_bound(loss, norm, learner.rate)
        case GradientDescent():
            lengths = residuals * np.linalg.norm(x, axis=1)
            return float(guarantees.projected_descent_bound(lengths, glm, learner.rate)[-1])
        case ExponentiatedGradient(bound=None):
            divergence = float(np.sum(u * np.log(np.maximum(DIM * u, 1e-300))))
            return guarantees.exponentiated_gradient_bound(loss, divergence, 1.0, rate=learner.rate)
        case ExponentiatedGradient():
            return guarantees.exponentiated_gradient_bound(
                loss, math.log(2 * DIM), 2.0, learner.bound, learner.rate
            )
        case SimplexFTRL():
            return float(guarantees.simplex_bound(x, y, scores, u)[-1])
        case NewtonStep():
            return float(guarantees.newton_step_bound(glm, x, residuals, norm, learner.initial)[-1])
    return math.nan


def _discounted(learner: DiscountedForward, world: World) -> float:
    """Return the least bound over factors, against parameters that may move."""
    if (world.weight != 1).any() or not isinstance(learner.forgetting, tuple):
        return math.nan
    u = np.broadcast_to(world.theta, world.x.shape)
    rows, k = (world.x, world.y, u, learner.ridge), len(learner.forgetting)
    found = [guarantees.discounted_forward_bound(*rows, each, k)[-1] for each in learner.forgetting]
    return float(min(found))
