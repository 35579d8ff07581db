"""Where the kernels of an optimistic policy find its numbers: a row for every layer."""

(
    GAIN,  # g of the practical index
    SCALE,  # of the index's bonus or radius
    LIMIT,  # largest squared length of an arm
    PARAMETER,  # bound of the true parameter's norm
    PRICE,  # C log(1/delta)
    SLOPE,  # kappa
    CURVATURE,  # W, the sum of w phi'
    NORM,  # N of the moving ridge
) = range(8)
SIZE = 8

# how far the estimate outgrows N before the ridge moves
GROWTH = 1.1

# the numbers of a mixture, beside the inverse of its matrix
KIND, CONSTANT, PRIOR, STEEPEST, LOG_DET, MIXTURE_SIZE = range(6)
# its kinds: to be recomputed; none, the played loss alone; with a matrix of its own; with the
# solver's, because the ridges agree; for counts, with the solver's
UNKNOWN, PLAYED_ALONE, OWN_MATRIX, SAME_MATRIX, COUNTS = range(5)
