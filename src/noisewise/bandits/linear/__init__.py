"""Linear rewards: policies on weighted ridge regression.

Files
    linear_state            weighted ridge regression, row by row: what they know
    linear_policy           what all linear policies share
    linucb                  `LinUCB`
    oful                    `OFUL`
    weighted_least_squares  `WeightedLeastSquaresUCB`
    weighted_oful           `WeightedOFUL`
    weighted_oful_plus      `WeightedOFULPlus`
    adaoful                 `AdaOFUL`
    save_ucb                `SAVE`
    losan                   `LOSAN`
    ids                     `IDS`, information-directed sampling
    linear_thompson         `LinearThompson`
"""
