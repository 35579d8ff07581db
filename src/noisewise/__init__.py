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
    "MORUCBState": "bandits.mor_ucb",
    "FTRLUCB": "bandits.ftrl_ucb",
    "FTRLUCBState": "bandits.ftrl_ucb",
    "Forms": "bandits.forms",
    "LinUCB": "bandits.linucb",
    "WeightedLeastSquaresUCB": "bandits.weighted_least_squares",
    "WeightedOFUL": "bandits.weighted_oful",
    "WeightedOFULPlus": "bandits.weighted_oful_plus",
    "GLMUCB": "bandits.glm_ucb",
    "GLMUCBState": "bandits.glm_ucb",
    "LinearThompson": "bandits.linear_thompson",
    "LaplaceThompson": "bandits.laplace_thompson",
    "Greedy": "bandits.greedy",
    "Uniform": "bandits.uniform",
    "UniformState": "bandits.uniform",
    "LinearState": "bandits.ridge",
    "choices": "simulate",
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
    from .bandits.forms import Forms
    from .bandits.ftrl_ucb import FTRLUCB, FTRLUCBState
    from .bandits.glm_ucb import GLMUCB, GLMUCBState
    from .bandits.greedy import Greedy
    from .bandits.laplace_thompson import LaplaceThompson
    from .bandits.linear_thompson import LinearThompson
    from .bandits.linucb import LinUCB
    from .bandits.mor_ucb import MORUCB, MORUCBState
    from .bandits.oful import OFUL
    from .bandits.ridge import LinearState
    from .bandits.uniform import Uniform, UniformState
    from .bandits.weighted_least_squares import WeightedLeastSquaresUCB
    from .bandits.weighted_oful import WeightedOFUL
    from .bandits.weighted_oful_plus import WeightedOFULPlus
    from .confidence import Ellipsoid
    from .glm import GLM
    from .links import LINKS, Link
    from .noise import Bounded, Likelihood, SubGaussian
    from .protocols import BanditRounds, Rounds
    from .regression.ftrl import FTRL
    from .regression.rows import Rows
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
