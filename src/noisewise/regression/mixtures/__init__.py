"""Shares, counts, signs and classes: mixtures over ridges, nothing to tune."""
