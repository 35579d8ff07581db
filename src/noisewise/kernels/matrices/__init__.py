"""Small matrices, vectors and elementary functions.

Files
    dense            products, Cholesky factor, inverses and their change by rank one
    blocked_inverse  inverses by blocks, and bounds on their eigenvalues
    vectors          vector loops of a round
    vector_sweep     the sweep over an inverse in vector code
    exponential      exponential and logarithm that loops can vectorise
"""
