# Public names, besides the regressors and policies that the stubs of their rooms list.
from . import adapters as adapters
from . import checks as checks
from . import environments as environments
from . import logs as logs
from . import theory as theory
from .agent.action_features import Arms as Arms
from .agent.agent import Agent as Agent
from .agent.reasons import Reason as Reason
from .agent.residuals import ResidualScale as ResidualScale
from .archive import load as load
from .archive import save as save
from .bandits import *
from .bandits.variance import VarianceModel as VarianceModel
from .confidence import Ellipsoid as Ellipsoid
from .estimators.online_glm import OnlineGLM as OnlineGLM
from .estimators.online_glm_classifier import OnlineGLMClassifier as OnlineGLMClassifier
from .evaluation.off_policy import off_policy_value as off_policy_value
from .evaluation.progressive import evaluate as evaluate
from .glm import GLM as GLM
from .links import LINKS as LINKS
from .links import Link as Link
from .noise import Bounded as Bounded
from .noise import Likelihood as Likelihood
from .noise import SubGaussian as SubGaussian
from .partitions.fitting import fit_partitions as fit_partitions
from .protocols import BanditRounds as BanditRounds
from .protocols import Rounds as Rounds
from .regression import *
from .regression.joining import merge as merge
from .simulate import choices as choices
from .simulate import predictions as predictions

__version__: str
