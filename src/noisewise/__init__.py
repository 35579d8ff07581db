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
    "Rounds": "protocols",
    "SubGaussian": "noise",
    "Bounded": "noise",
    "Likelihood": "noise",
    "Ellipsoid": "confidence",
    "FTRL": "regression.ftrl",
    "FTRLState": "regression.state",
    "Rows": "regression.rows",
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
    from .archive import load, save
    from .confidence import Ellipsoid
    from .glm import GLM
    from .links import LINKS, Link
    from .noise import Bounded, Likelihood, SubGaussian
    from .protocols import Rounds
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
    from .simulate import predictions


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
