"""Regressors of the literature, one file each.

Files
    ridge               `Ridge`
    forward             `Forward`, the Vovk-Azoury-Warmuth forecaster
    discounted_forward  `DiscountedForward`, which forgets
    aggregating         `Aggregating`, Vovk's algorithm over regressors
    minimax             `Minimax`, for features known beforehand
    horizon_free        `HorizonFreeMinimax`
    descent             `GradientDescent`
    exponentiated       `ExponentiatedGradient`, for sparse parameters
    simplex             `SimplexFTRL`, mixtures of the features
    newton_step         `NewtonStep`, the online Newton step
    rowwise             `predict` and `update` for methods that learn row by row
"""
