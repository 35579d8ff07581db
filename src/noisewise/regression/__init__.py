"""Online regressors: one file per algorithm."""

# name -> module and class, so that listing them imports nothing
REGRESSORS = {"FTRL": "noisewise.regression.ftrl:FTRL"}
