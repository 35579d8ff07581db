"""Recursive least squares in plain numpy."""

import numpy as np


def rounds(x, y):
    d = x.shape[1]

    def play():
        P, theta = np.eye(d), np.zeros(d)
        for row, label in zip(x, y, strict=True):
            k = P @ row
            k /= 1 + row @ k
            theta += k * (label - row @ theta)
            P -= np.outer(k, row @ P)

    return play
