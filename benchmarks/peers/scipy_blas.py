"""Recursive least squares with scipy's BLAS wrappers, in place."""

import numpy as np
from scipy.linalg.blas import ddot, dsymv, dsyr


def rounds(x, y):
    d = x.shape[1]

    def play():
        P, theta = np.asfortranarray(np.eye(d)), np.zeros(d)
        for row, label in zip(x, y, strict=True):
            k = dsymv(1.0, P, row, lower=1)
            shrink = 1 / (1 + ddot(row, k))
            theta += k * (shrink * (label - ddot(row, theta)))
            P = dsyr(-shrink, k, a=P, lower=1, overwrite_a=1)

    return play
