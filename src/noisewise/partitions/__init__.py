"""Fits to rows that lie in partitions: files, Dask's collections, or what functions return."""
