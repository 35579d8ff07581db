"""The numbers of an optimistic policy's kernels: a row for every layer, and its mixture."""

from typing import ClassVar

from ..named import Numbers, record

GROWTH = 1.1  # how far the estimate outgrows N before the ridge moves
# kinds of mixtures: to be recomputed; none, the played loss alone; with a matrix of its own; with
# the solver's, because the ridges agree; for counts, with the solver's
UNKNOWN, PLAYED_ALONE, OWN_MATRIX, SAME_MATRIX, COUNTS = range(5)


class Params(Numbers):
    """What the kernels know of a layer."""

    fields: ClassVar = {
        "gain": "g of the practical index",
        "scale": "of the index's bonus or radius",
        "limit": "largest squared length of an arm",
        "parameter": "bound of the true parameter's norm",
        "price": "C log(1/delta)",
        "slope": "kappa",
        "curvature": "W, the sum of w phi'",
        "norm": "N of the moving ridge",
    }
    __slots__ = ()


class Mixture(Numbers):
    """The numbers of a mixture, beside the inverse of its matrix."""

    fields: ClassVar = {
        "kind": "one of the above",
        "constant": "C",
        "prior": "2 lam0",
        "steepest": "K; for counts log c",
        "log_det": "of its matrix over 2 lam0",
    }
    __slots__ = ()


PARAMS, MIXTURE = record(Params.fields), record(Mixture.fields)
