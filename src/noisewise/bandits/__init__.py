"""Bandit policies: one file per algorithm.

Three that are often named are left out. VOFUL (Zhang, Yang, Ji and Du 2021) keeps the parameters
that pass a test in every direction: a set that is not convex, for which nets of parameters and of
directions are searched, exponential in the dimension. `SAVE` has the same aim with sets that can be
computed. LOFAV (Jun and Kim 2024) follows the variance of every round; it needs bounded noise and
the horizon, keeps log T estimates, and its constants can't be derived here as those of `LOSAN` can.
That follows one level of the noise, and is what to play in place of both. RS-GLinCB (Sawarni, Das,
Barman and Sinha 2024) renews its estimate only when a determinant has doubled, after a warm-up that
looks at no reward. Its theorem was not seen; with the constants that the code of Lee, Yun and Jun
(2024) has for it (25 and 150), the warm-up of a logistic model with 10 features and norms of 1
takes millions of rounds, and its authors' own code has smaller ones, set by hand. `OFUGLB` has its
regret, and `GLBOMD` costs less per round.

Files
    optimistic/             Optimism over FTRL: `MORUCB` and `FTRLUCB`
    linear/                 Linear rewards: policies on weighted ridge regression
    glm/                    Rewards with a link, or of a known family
    without_features/       Arms without features, and no learning at all
    checked_policy          what most policies share: arms and rewards checked first
    arms                    what policies see, checked, and the rule for ties
    self_tuned_ucb          `SelfTunedUCB`, the default agent's policy
    self_tuned_ucb_state    what it knows
    self_tuned_diagnostics  what it can say of it
"""

from ..support.lazy import importer, listed

# name -> module and class, from the stub beside: one line there is all that an algorithm needs
POLICIES = listed(__spec__)
__getattr__ = importer(__name__, POLICIES)
