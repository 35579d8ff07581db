"""Arms without features, and no learning at all.

Files
    normal       a mean and a variance for each arm
    normal_ucb   `NormalUCB`
    ucb1_normal  `UCB1Normal`
    uniform      `Uniform`
"""
