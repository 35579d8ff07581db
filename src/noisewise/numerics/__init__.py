"""Linear algebra on one thread of BLAS, and special functions.

Files
    linalg  positive definite matrices, projections, spectra that do not see units
    blas    one BLAS thread inside our calls, and the caller's setting afterwards
    bessel  priors of the lower bounds, and the first zero of a Bessel function
"""
