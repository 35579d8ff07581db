"""Online learning and decisions when noise is not constant.

Exact online generalised linear regression with confidence that stays valid however often one
looks, for observations that differ in precision. Names are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "GLM": "glm",
    "LINKS": "links",
    "Link": "links",
    "BanditRounds": "protocols",
    "Rounds": "protocols",
    "SubGaussian": "noise",
    "Bounded": "noise",
    "Likelihood": "noise",
    "Ellipsoid": "confidence",
    "FTRL": "regression.ftrl",
    "FTRLState": "regression.state",
    "Rows": "regression.rows",
    "OFUL": "bandits.oful",
    "MORUCB": "bandits.mor_ucb",
    "FTRLUCB": "bandits.ftrl_ucb",
    "OptimismState": "bandits.optimism_state",
    "EllipsoidStack": "bandits.ellipsoid_stack",
    "LinUCB": "bandits.linucb",
    "WeightedLeastSquaresUCB": "bandits.weighted_least_squares",
    "WeightedOFUL": "bandits.weighted_oful",
    "WeightedOFULPlus": "bandits.weighted_oful_plus",
    "IDS": "bandits.ids",
    "LOSAN": "bandits.losan",
    "LOSANState": "bandits.losan",
    "SAVE": "bandits.save",
    "SAVEState": "bandits.save",
    "AdaOFUL": "bandits.adaoful",
    "AdaOFULState": "bandits.adaoful",
    "NormalUCB": "bandits.normal_ucb",
    "UCB1Normal": "bandits.ucb1_normal",
    "NormalState": "bandits.normal",
    "GLMUCB": "bandits.glm_ucb",
    "GLMUCBState": "bandits.designs",
    "UCBGLM": "bandits.ucb_glm",
    "UCBGLMState": "bandits.ucb_glm",
    "GLOC": "bandits.gloc",
    "GLOCState": "bandits.gloc",
    "GLBOMD": "bandits.glb_omd",
    "GLBOMDState": "bandits.glb_omd",
    "OFUGLB": "bandits.ofuglb",
    "OFUGLBState": "bandits.ofuglb",
    "LinearThompson": "bandits.linear_thompson",
    "LaplaceThompson": "bandits.laplace_thompson",
    "Greedy": "bandits.greedy",
    "Uniform": "bandits.uniform",
    "UniformState": "bandits.uniform",
    "LinearState": "bandits.ridge",
    "ResidualScale": "agent.residuals",
    "VarianceModel": "bandits.variance",
    "Reason": "agent.reasons",
    "Agent": "agent.agent",
    "AgentState": "agent.agent_state",
    "choices": "simulate",
    "Ridge": "regression.ridge",
    "Forward": "regression.forward",
    "ForwardState": "regression.forward",
    "Aggregating": "regression.aggregating",
    "AggregatingState": "regression.aggregating",
    "Minimax": "regression.minimax",
    "MinimaxState": "regression.minimax",
    "HorizonFreeMinimax": "regression.horizon_free",
    "HorizonFreeMinimaxState": "regression.horizon_free",
    "GradientDescent": "regression.descent",
    "GradientDescentState": "regression.descent",
    "ExponentiatedGradient": "regression.exponentiated",
    "ExponentiatedGradientState": "regression.exponentiated",
    "SimplexFTRL": "regression.simplex",
    "SimplexFTRLState": "regression.simplex",
    "NewtonStep": "regression.newton_step",
    "NewtonStepState": "regression.newton_step",
    "predictions": "simulate",
    "save": "archive",
    "load": "archive",
    "theory": "",
    "environments": "",
    "checks": "",
}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from . import checks, environments, theory
    from .agent.agent import Agent
    from .agent.agent_state import AgentState
    from .agent.reasons import Reason
    from .agent.residuals import ResidualScale
    from .archive import load, save
    from .bandits.adaoful import AdaOFUL, AdaOFULState
    from .bandits.designs import GLMUCBState
    from .bandits.ellipsoid_stack import EllipsoidStack
    from .bandits.ftrl_ucb import FTRLUCB
    from .bandits.glb_omd import GLBOMD, GLBOMDState
    from .bandits.glm_ucb import GLMUCB
    from .bandits.gloc import GLOC, GLOCState
    from .bandits.greedy import Greedy
    from .bandits.ids import IDS
    from .bandits.laplace_thompson import LaplaceThompson
    from .bandits.linear_thompson import LinearThompson
    from .bandits.linucb import LinUCB
    from .bandits.losan import LOSAN, LOSANState
    from .bandits.mor_ucb import MORUCB
    from .bandits.normal import NormalState
    from .bandits.normal_ucb import NormalUCB
    from .bandits.ofuglb import OFUGLB, OFUGLBState
    from .bandits.oful import OFUL
    from .bandits.optimism_state import OptimismState
    from .bandits.ridge import LinearState
    from .bandits.save import SAVE, SAVEState
    from .bandits.ucb1_normal import UCB1Normal
    from .bandits.ucb_glm import UCBGLM, UCBGLMState
    from .bandits.uniform import Uniform, UniformState
    from .bandits.variance import VarianceModel
    from .bandits.weighted_least_squares import WeightedLeastSquaresUCB
    from .bandits.weighted_oful import WeightedOFUL
    from .bandits.weighted_oful_plus import WeightedOFULPlus
    from .confidence import Ellipsoid
    from .glm import GLM
    from .links import LINKS, Link
    from .noise import Bounded, Likelihood, SubGaussian
    from .protocols import BanditRounds, Rounds
    from .regression.aggregating import Aggregating, AggregatingState
    from .regression.descent import GradientDescent, GradientDescentState
    from .regression.exponentiated import ExponentiatedGradient, ExponentiatedGradientState
    from .regression.forward import Forward, ForwardState
    from .regression.ftrl import FTRL
    from .regression.horizon_free import HorizonFreeMinimax, HorizonFreeMinimaxState
    from .regression.minimax import Minimax, MinimaxState
    from .regression.newton_step import NewtonStep, NewtonStepState
    from .regression.ridge import Ridge
    from .regression.rows import Rows
    from .regression.simplex import SimplexFTRL, SimplexFTRLState
    from .regression.state import FTRLState
    from .simulate import choices, predictions


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'noisewise' has no attribute {name!r}")
    home = _HOME[name]
    value = (
        getattr(import_module(f"{__name__}.{home}"), name)
        if home
        else import_module(f"{__name__}.{name}")
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
