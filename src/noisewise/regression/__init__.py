"""Online regressors: one file per algorithm."""

# name -> module and class, so that listing them imports nothing
REGRESSORS = {
    "FTRL": "noisewise.regression.ftrl:FTRL",
    "Ridge": "noisewise.regression.ridge:Ridge",
    "Forward": "noisewise.regression.forward:Forward",
    "Aggregating": "noisewise.regression.aggregating:Aggregating",
    "Minimax": "noisewise.regression.minimax:Minimax",
    "HorizonFreeMinimax": "noisewise.regression.horizon_free:HorizonFreeMinimax",
    "GradientDescent": "noisewise.regression.descent:GradientDescent",
    "ExponentiatedGradient": "noisewise.regression.exponentiated:ExponentiatedGradient",
    "SimplexFTRL": "noisewise.regression.simplex:SimplexFTRL",
    "NewtonStep": "noisewise.regression.newton_step:NewtonStep",
}
