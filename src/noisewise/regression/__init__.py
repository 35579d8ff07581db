"""Online regressors: one file per algorithm.

Files
    ftrl/               FTRL: follow the regularised leader, exactly or with a certified gap
    classics/           Regressors of the literature, one file each
    self_tuned/         Linear regression without tuning parameters
    mixtures/           Shares, counts, signs and classes: mixtures over ridges, nothing to tune
    intervals/          Intervals of coefficients, means and new labels
    history             rows kept once, for one or several learners
    normal_equations    sums of weighted least squares
    safe_mixture        predictions combined, never far behind the running mean
    nonlinear_features  functions of features, standardised as rows come
    nonlinear_learners  what learns them beside the linear learner
"""

from ..support.lazy import importer, listed

# name -> module and class, from the stub beside: one line there is all that an algorithm needs
REGRESSORS = listed(__spec__)
__getattr__ = importer(__name__, REGRESSORS)
