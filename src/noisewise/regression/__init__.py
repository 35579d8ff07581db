"""Online regressors: one file per algorithm."""

from ..support.lazy import importer, listed

# name -> module and class, from the stub beside: one line there is all that an algorithm needs
REGRESSORS = listed(__spec__)
__getattr__ = importer(__name__, REGRESSORS)
