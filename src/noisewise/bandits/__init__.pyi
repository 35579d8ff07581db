# In the order in which they are shown.
from .mor_ucb import MORUCB as MORUCB
from .ftrl_ucb import FTRLUCB as FTRLUCB
from .self_tuned_ucb import SelfTunedUCB as SelfTunedUCB
from .oful import OFUL as OFUL
from .linucb import LinUCB as LinUCB
from .weighted_least_squares import WeightedLeastSquaresUCB as WeightedLeastSquaresUCB
from .weighted_oful import WeightedOFUL as WeightedOFUL
from .weighted_oful_plus import WeightedOFULPlus as WeightedOFULPlus
from .ids import IDS as IDS
from .losan import LOSAN as LOSAN
from .save_ucb import SAVE as SAVE
from .adaoful import AdaOFUL as AdaOFUL
from .normal_ucb import NormalUCB as NormalUCB
from .ucb1_normal import UCB1Normal as UCB1Normal
from .glm_ucb import GLMUCB as GLMUCB
from .ucb_glm import UCBGLM as UCBGLM
from .gloc import GLOC as GLOC
from .glb_omd import GLBOMD as GLBOMD
from .ofuglb import OFUGLB as OFUGLB
from .linear_thompson import LinearThompson as LinearThompson
from .laplace_thompson import LaplaceThompson as LaplaceThompson
from .greedy import Greedy as Greedy
from .uniform import Uniform as Uniform

POLICIES: dict[str, str]
