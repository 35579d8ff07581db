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
