"""Regressors of the literature, one file each."""
