"""The theory as functions: regret, its upper and lower bounds, radii, and the lemmas' two sides."""

from . import bounds, lemmas, lower, radii, regret
from .bounds import mean_bound, printed_bound, repaired_bound, sharp_bound
from .lower import basis_lower_bound, glm_lower_bound, lower_bound
from .regret import (
    adversarial_regret,
    bandit_regret,
    design_terms,
    mean_regret,
    pseudo_regret,
    stochastic_regret,
    worst_mean_regret,
)

__all__ = [
    "adversarial_regret",
    "bandit_regret",
    "basis_lower_bound",
    "bounds",
    "design_terms",
    "glm_lower_bound",
    "lemmas",
    "lower",
    "lower_bound",
    "mean_bound",
    "mean_regret",
    "printed_bound",
    "pseudo_regret",
    "radii",
    "regret",
    "repaired_bound",
    "sharp_bound",
    "stochastic_regret",
    "worst_mean_regret",
]
