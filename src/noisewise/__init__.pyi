# Public names, besides the regressors and policies that the stubs of their rooms list.
from . import adapters as adapters
from . import checks as checks
from . import environments as environments
from . import logs as logs
from . import theory as theory
from .agent.actions.action_features import Arms as Arms
from .agent.agent import Agent as Agent
from .agent.explanations.reasons import Reason as Reason
from .agent.rewards.residuals import ResidualScale as ResidualScale
from .bandits import *
from .bandits.optimistic.variance import VarianceModel as VarianceModel
from .confidence import Ellipsoid as Ellipsoid
from .estimators.online_glm import OnlineGLM as OnlineGLM
from .estimators.online_glm_classifier import OnlineGLMClassifier as OnlineGLMClassifier
from .evaluation.off_policy.off_policy import off_policy_value as off_policy_value
from .evaluation.progressive.progressive import evaluate as evaluate
from .model.glm import GLM as GLM
from .model.links import LINKS as LINKS
from .model.links import Link as Link
from .model.noise import Bounded as Bounded
from .model.noise import Likelihood as Likelihood
from .model.noise import SubGaussian as SubGaussian
from .partitions.fit_partitions import fit_partitions as fit_partitions
from .protocols import BanditRounds as BanditRounds
from .protocols import Rounds as Rounds
from .regression import *
from .regression.ftrl.joining import merge as merge
from .simulate import choices as choices
from .simulate import predictions as predictions
from .storage.archive import load as load
from .storage.archive import save as save

__version__: str
