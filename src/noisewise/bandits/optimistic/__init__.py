"""Optimism over FTRL: `MORUCB` and `FTRLUCB`.

Files
    mor_ucb           `MORUCB`: rewards of similar noise in layers
    ftrl_ucb          `FTRLUCB`: one weighted FTRL
    optimistic        what both share: choosing, learning, repair
    optimism_state    what they know
    ellipsoid_stack   several ellipsoids that hold together
    guaranteed_index  the smallest upper bound over confidence sets
    practical_index   curvature at the estimate, a ridge that follows its norm
    reward_weights    what a reward weighs
    variance          the variance of rewards as a function of the arm
"""
