# In the order in which they are shown.
from .ftrl.ftrl import FTRL as FTRL
from .classics.ridge import Ridge as Ridge
from .classics.forward import Forward as Forward
from .classics.discounted_forward import DiscountedForward as DiscountedForward
from .classics.aggregating import Aggregating as Aggregating
from .classics.minimax import Minimax as Minimax
from .classics.horizon_free import HorizonFreeMinimax as HorizonFreeMinimax
from .classics.descent import GradientDescent as GradientDescent
from .classics.exponentiated import ExponentiatedGradient as ExponentiatedGradient
from .classics.simplex import SimplexFTRL as SimplexFTRL
from .classics.newton_step import NewtonStep as NewtonStep
from .self_tuned.self_tuned import SelfTuned as SelfTuned
from .mixtures.ridge_mixture import RidgeMixture as RidgeMixture

REGRESSORS: dict[str, str]
