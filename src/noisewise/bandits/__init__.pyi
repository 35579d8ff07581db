# In the order in which they are shown.
from .optimistic.mor_ucb import MORUCB as MORUCB
from .optimistic.ftrl_ucb import FTRLUCB as FTRLUCB
from .self_tuned_ucb import SelfTunedUCB as SelfTunedUCB
from .linear.oful import OFUL as OFUL
from .linear.linucb import LinUCB as LinUCB
from .linear.weighted_least_squares import WeightedLeastSquaresUCB as WeightedLeastSquaresUCB
from .linear.weighted_oful import WeightedOFUL as WeightedOFUL
from .linear.weighted_oful_plus import WeightedOFULPlus as WeightedOFULPlus
from .linear.ids import IDS as IDS
from .linear.losan import LOSAN as LOSAN
from .linear.save_ucb import SAVE as SAVE
from .linear.adaoful import AdaOFUL as AdaOFUL
from .without_features.normal_ucb import NormalUCB as NormalUCB
from .without_features.ucb1_normal import UCB1Normal as UCB1Normal
from .glm.glm_ucb import GLMUCB as GLMUCB
from .glm.ucb_glm import UCBGLM as UCBGLM
from .glm.gloc import GLOC as GLOC
from .glm.glb_omd import GLBOMD as GLBOMD
from .glm.ofuglb import OFUGLB as OFUGLB
from .linear.linear_thompson import LinearThompson as LinearThompson
from .glm.laplace_thompson import LaplaceThompson as LaplaceThompson
from .glm.greedy import Greedy as Greedy
from .without_features.uniform import Uniform as Uniform

POLICIES: dict[str, str]
