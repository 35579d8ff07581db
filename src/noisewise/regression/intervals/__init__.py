"""Intervals of coefficients, means and new labels."""
