"""Linear algebra on one thread of BLAS, and special functions."""
