"""Fits to rows that lie in partitions: files, Dask's collections, or what functions return.

Files
    fit_partitions  `fit_partitions`: the exact minimiser
    sources         what a user may pass
    partition_rows  a partition as blocks of checked rows
    passes          sums over partitions, here or on Dask
    fingerprints    are rows those of the first pass?
"""
