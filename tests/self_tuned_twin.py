"""A readable twin of `SelfTunedUCB`: numpy, whole matrices, an inverse whenever one is needed."""

import math

import numpy as np
from numpy.linalg import inv


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def log_likelihood(score, y, n):
    return n * (y * score - np.logaddexp(0, score))


def implicit_step(score, h, y, n):
    """The root of u = n (y - mean(score + h u)) by bisection."""
    ends = sorted((0.0, n * (y - sigmoid(score))))
    for _ in range(200):
        u = sum(ends) / 2
        ends[u > n * (y - sigmoid(score + h * u))] = u
    return u


class Learner:
    """G, b and theta of rows whose past is discounted; P where only rank one has changed it."""

    def __init__(self, size, gamma):
        self.gamma, self.G, self.b = gamma, np.zeros((size, size)), np.zeros(size)
        self.W = self.residuals = self.residual_count = 0.0

    def solve(self, R):
        self.P = inv(self.G + R)
        self.theta = self.P @ self.b

    def add(self, z, c, b):
        g = self.gamma
        self.P = inv(g * inv(self.P) + c * np.outer(z, z))
        self.G, self.b, self.W = g * self.G + c * np.outer(z, z), g * self.b + b * z, g * self.W + c

    def learn_gaussian(self, z, y, w, most):
        r, q = y - z @ self.theta, z @ self.P @ z
        square, u = r * r / (1 / w + q), w
        if square > most:
            u, square = w * math.sqrt(most / square), most
        self.theta = self.theta + u / (self.gamma + u * q) * r * self.P @ z
        self.add(z, u, u * y)
        self.residuals = self.gamma * self.residuals + square
        self.residual_count = self.gamma * self.residual_count + 1
        return r, q, square

    def learn_binomial(self, z, y, n):
        k, start = self.P @ z / self.gamma, z @ self.theta
        u = implicit_step(start, z @ k, y, n)
        score = start + z @ k * u
        p = sigmoid(score)
        c = n * max(p * (1 - p), 2e-9)
        self.theta = self.theta + u * k
        self.add(z, c, c * score + u)
        return start
