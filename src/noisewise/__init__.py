"""Online learning and decisions when noise is not constant.

Exact online generalised linear regression with confidence that stays valid however often one
looks, for observations that differ in precision. Names are imported on first use.

For data scientists
    Estimators: OnlineGLM, OnlineGLMClassifier
    Agent: Agent, Arms, Reason
    Evaluation: evaluate, off_policy_value
    Data on clusters: fit_partitions, merge
    Files: save, load, logs

For researchers
    Model and noise: GLM, Link, LINKS, SubGaussian, Bounded, Likelihood
    Confidence: Ellipsoid
    Streams and rounds: predictions, choices, Rounds, BanditRounds
    Variance and scale: VarianceModel, ResidualScale
    Algorithms: the regressors in REGRESSORS and the policies in POLICIES, such as FTRL and MORUCB
    Modules: theory, environments, checks, adapters
"""

from .bandits import POLICIES
from .regression import REGRESSORS
from .support.lazy import importer, listed
from .support.supported import check_python

check_python()
__version__ = "0.1.0"

_NAMES = {**listed(__spec__), **REGRESSORS, **POLICIES}
__all__ = ["__version__", *_NAMES]
__getattr__ = importer(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
