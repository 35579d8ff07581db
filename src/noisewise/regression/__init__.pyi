# In the order in which they are shown.
from .ftrl import FTRL as FTRL
from .ridge import Ridge as Ridge
from .forward import Forward as Forward
from .discounted_forward import DiscountedForward as DiscountedForward
from .aggregating import Aggregating as Aggregating
from .minimax import Minimax as Minimax
from .horizon_free import HorizonFreeMinimax as HorizonFreeMinimax
from .descent import GradientDescent as GradientDescent
from .exponentiated import ExponentiatedGradient as ExponentiatedGradient
from .simplex import SimplexFTRL as SimplexFTRL
from .newton_step import NewtonStep as NewtonStep
from .self_tuned import SelfTuned as SelfTuned
from .ridge_mixture import RidgeMixture as RidgeMixture

REGRESSORS: dict[str, str]
