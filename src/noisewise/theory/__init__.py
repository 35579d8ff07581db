"""The theory as functions: regret, its upper and lower bounds, radii, and the lemmas' two sides.

Files
    regret      regret of played scores or arms, cumulative
    bounds      upper bounds on FTRL's regret: printed, repaired, sharp, in the mean
    lower       lower bounds: what no learner can beat
    radii       radii of confidence ellipsoids
    mixtures    normal and t mixtures: intervals at one time and at all
    betting     bounds on means at all times, by betting
    guarantees  what the other regressors guarantee
    lemmas      each lemma as two measurable sides
    bandits     certificate and bounds of optimism
"""

from . import bandits as bandits
from . import betting as betting
from . import bounds as bounds
from . import guarantees as guarantees
from . import lemmas as lemmas
from . import lower as lower
from . import mixtures as mixtures
from . import radii as radii
from . import regret as regret
from .bandits import certificate as certificate
from .bandits import family_sigma as family_sigma
from .bandits import ftrl_ucb_bound as ftrl_ucb_bound
from .bandits import mor_ucb_bound as mor_ucb_bound
from .bounds import mean_bound as mean_bound
from .bounds import printed_bound as printed_bound
from .bounds import repaired_bound as repaired_bound
from .bounds import sharp_bound as sharp_bound
from .guarantees import aggregating_bound as aggregating_bound
from .guarantees import discounted_forward_bound as discounted_forward_bound
from .guarantees import exponentiated_gradient_bound as exponentiated_gradient_bound
from .guarantees import exponentiated_gradient_rate as exponentiated_gradient_rate
from .guarantees import forward_bound as forward_bound
from .guarantees import free_forward_bound as free_forward_bound
from .guarantees import gradient_descent_bound as gradient_descent_bound
from .guarantees import gradient_descent_rate as gradient_descent_rate
from .guarantees import horizon_free_bound as horizon_free_bound
from .guarantees import log_dets as log_dets
from .guarantees import minimax_value as minimax_value
from .guarantees import newton_step_bound as newton_step_bound
from .guarantees import projected_descent_bound as projected_descent_bound
from .guarantees import ridge_bound as ridge_bound
from .guarantees import simplex_bound as simplex_bound
from .guarantees import worst_log_det as worst_log_det
from .lower import basis_lower_bound as basis_lower_bound
from .lower import glm_lower_bound as glm_lower_bound
from .lower import lower_bound as lower_bound
from .radii import interval_ridge as interval_ridge
from .regret import adversarial_regret as adversarial_regret
from .regret import bandit_regret as bandit_regret
from .regret import design_terms as design_terms
from .regret import mean_regret as mean_regret
from .regret import pseudo_regret as pseudo_regret
from .regret import stochastic_regret as stochastic_regret
from .regret import worst_mean_regret as worst_mean_regret
