"""The rule for intervals of shares and counts, written with n x n matrices and for one direction.

Slow and plain; `test_dispersion.py` compares. Fits are scipy's.
"""

import math

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import t as student


def fit(family, z, y, w):
    """Return the maximum-likelihood parameter, by scipy and two Newton steps."""

    def loss(theta):
        s = z @ theta
        return w @ ((np.logaddexp(0, s) if family == "binomial" else np.exp(s)) - y * s)

    theta = np.zeros(z.shape[1])
    theta[-1] = math.log(np.average(y, weights=w))
    theta = minimize(loss, theta, method="BFGS").x
    for _ in range(6):
        m, slope = means(family, z @ theta)
        theta = theta + np.linalg.solve(z.T @ np.diag(w * slope) @ z, z.T @ (w * (y - m)))
    return theta


def means(family, s):
    """Return means and slopes."""
    m = expit(s) if family == "binomial" else np.exp(s)
    return m, m * (1 - m) if family == "binomial" else m


class Twin:
    """The fit to rows x with an intercept, and intervals along a direction (x, 1)."""

    def __init__(self, family, x, y, w, least=1.0):
        n, d = x.shape
        self.family, self.n, self.d, self.p = family, n, d, d + 1
        z = np.column_stack([x, np.ones(n)])
        self.theta = fit(family, z, y, w)
        m, slope = means(family, z @ self.theta)
        info, pull = w * slope, w * (y - m)
        self.z, self.info, self.pull = z, info, pull
        self.inverse = np.linalg.inv(z.T @ np.diag(info) @ z)
        root = np.sqrt(info)[:, None] * z
        self.hat = root @ self.inverse @ root.T
        self.h = np.diag(self.hat)
        self.pearson = (pull**2 / info).sum() / (n - self.p)
        self.weighted = (pull**2 / (1 - self.h)).sum() / info.sum()
        self.phi = max(least, self.pearson, self.weighted)
        first = slice(0, 2 * d + 10)
        self.centre = np.average(x[first], axis=0, weights=w[first])
        about = np.column_stack([x[first] - self.centre, np.ones(2 * d + 10)])
        self.M = about.T @ np.diag(w[first]) @ about / len(about)
        self.unit = 0.25 if family == "binomial" else 1 / np.mean(w[first])
        half = m - 0.5 if family == "binomial" else np.full(n, -0.5)
        events = w @ y if family == "poisson" else min(w @ y, w @ (1 - y))
        self.bias = np.zeros(self.p)
        if events / self.phi >= max(25, self.p):
            self.bias = self.phi * self.inverse @ (z.T @ (half * self.h))

    def variances(self, a):
        """Return v0 and pairs of variance and degrees of freedom, of which the narrower counts."""
        n, p, h = self.n, self.p, self.h
        c = self.z @ self.inverse @ a
        v0 = a @ self.inverse @ a
        robust = (c**2 * self.pull**2 / (1 - h) ** 2).sum()
        q, scaled = c**2 * self.info, c**2 * self.info / (1 - h)
        K = np.sqrt(np.outer(scaled, scaled)) * self.hat
        design = v0**2 / ((q**2).sum() + (K**2).sum() - (np.diag(K) ** 2).sum())
        t = c**2 * self.pull**2 / (1 - h)
        found = [(max(robust, self.phi * v0), min(n - p, design, 6 * t.sum() ** 2 / (t**2).sum()))]
        if design < 10:
            r2 = self.pull**2
            spread = self.info.sum() ** 2 / (self.info**2).sum()
            shared = min(n - p, spread, 6 * r2.sum() ** 2 / (r2**2).sum())
            found.append((max(robust, 2 * self.phi * v0), shared))
        return v0, found

    def interval(self, a, delta, anytime):
        """Return bounds of the score along a."""
        v0, found = self.variances(a)
        around = a - a[-1] * np.append(self.centre, 0.0)
        u = 10 * self.unit * v0 / (around @ np.linalg.inv(self.M) @ around)
        best = math.inf
        for v, nu in found:
            if anytime:
                ratio = u / (1 + u)
                g = (delta**2 * ratio) ** (1 / (nu + 1))
                square = v * nu * (1 - g) / (g - ratio) if g > ratio else math.inf
            else:
                square = v * student.ppf(1 - delta / 2, nu) ** 2
            best = min(best, math.sqrt(square))
        at = a @ (self.theta - self.bias)
        return at - best, at + best

    def everywhere(self, a, delta):
        """Return half the interval along a that holds for all directions at once."""
        values, vectors = np.linalg.eigh(np.linalg.inv(self.inverse))
        root, p = (vectors * np.sqrt(values)) @ vectors.T, self.p
        meat = self.z.T @ np.diag((self.pull / (1 - self.h)) ** 2) @ self.z
        half = np.linalg.inv(root)
        sizes, turn = np.linalg.eigh(half @ meat @ half)
        shift = np.eye(p)
        shift[:-1, -1] = self.centre  # rows are shift times rows around the centre
        D = shift @ self.M @ shift.T * self.unit / self.phi
        best = math.inf
        for i, (_, nu) in enumerate(self.variances(a)[1]):
            floored = np.maximum(sizes, self.phi * (1 + i))
            G = root @ (turn / floored) @ turn.T @ root
            for rho in 10 * 30.0 ** np.arange(4):
                level = 2 * math.log(4 / delta)
                level += np.linalg.slogdet(np.eye(p) + np.linalg.inv(rho * D) @ G)[1]
                kappa = 1 - math.exp(-level / (nu + p))
                M = G @ np.linalg.inv(G + rho * D) @ G - kappa * G
                if np.linalg.eigvalsh((M + M.T) / 2)[0] > 0:
                    best = min(best, math.sqrt(kappa * nu * (a @ np.linalg.inv(M) @ a)))
        return best
