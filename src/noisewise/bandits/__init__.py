"""Bandit policies: one file per algorithm.

Two that are often named are left out. VOFUL (Zhang, Yang, Ji and Du 2021) keeps the parameters that
pass a test in every direction: a set that is not convex, for which nets of parameters and of
directions are searched, exponential in the dimension. `SAVE` has the same aim with sets that can be
computed. LOFAV (Jun and Kim 2024) follows the variance of every round; it needs bounded noise and
the horizon, keeps log T estimates, and its constants can't be derived here as those of `LOSAN` can.
That follows one level of the noise, and is what to play in place of both.
"""

# name -> module and class, so that listing them imports nothing
POLICIES = {
    "MORUCB": "noisewise.bandits.mor_ucb:MORUCB",
    "FTRLUCB": "noisewise.bandits.ftrl_ucb:FTRLUCB",
    "OFUL": "noisewise.bandits.oful:OFUL",
    "LinUCB": "noisewise.bandits.linucb:LinUCB",
    "WeightedLeastSquaresUCB": "noisewise.bandits.weighted_least_squares:WeightedLeastSquaresUCB",
    "WeightedOFUL": "noisewise.bandits.weighted_oful:WeightedOFUL",
    "WeightedOFULPlus": "noisewise.bandits.weighted_oful_plus:WeightedOFULPlus",
    "IDS": "noisewise.bandits.ids:IDS",
    "LOSAN": "noisewise.bandits.losan:LOSAN",
    "SAVE": "noisewise.bandits.save:SAVE",
    "AdaOFUL": "noisewise.bandits.adaoful:AdaOFUL",
    "NormalUCB": "noisewise.bandits.normal_ucb:NormalUCB",
    "UCB1Normal": "noisewise.bandits.ucb1_normal:UCB1Normal",
    "GLMUCB": "noisewise.bandits.glm_ucb:GLMUCB",
    "UCBGLM": "noisewise.bandits.ucb_glm:UCBGLM",
    "GLOC": "noisewise.bandits.gloc:GLOC",
    "GLBOMD": "noisewise.bandits.glb_omd:GLBOMD",
    "OFUGLB": "noisewise.bandits.ofuglb:OFUGLB",
    "LinearThompson": "noisewise.bandits.linear_thompson:LinearThompson",
    "LaplaceThompson": "noisewise.bandits.laplace_thompson:LaplaceThompson",
    "Greedy": "noisewise.bandits.greedy:Greedy",
    "Uniform": "noisewise.bandits.uniform:Uniform",
}
