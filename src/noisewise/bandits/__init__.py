"""Bandit policies: one file per algorithm."""

# name -> module and class, so that listing them imports nothing
POLICIES = {
    "MORUCB": "noisewise.bandits.mor_ucb:MORUCB",
    "FTRLUCB": "noisewise.bandits.ftrl_ucb:FTRLUCB",
    "OFUL": "noisewise.bandits.oful:OFUL",
    "LinUCB": "noisewise.bandits.linucb:LinUCB",
    "WeightedLeastSquaresUCB": "noisewise.bandits.weighted_least_squares:WeightedLeastSquaresUCB",
    "WeightedOFUL": "noisewise.bandits.weighted_oful:WeightedOFUL",
    "WeightedOFULPlus": "noisewise.bandits.weighted_oful_plus:WeightedOFULPlus",
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
