"""Learners that tune themselves: rows of numbers, and of several classes."""
