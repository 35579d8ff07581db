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
        ends[int(u > n * (y - sigmoid(score + h * u)))] = u
    return u


class Learner:
    """G, b and theta of rows whose past is discounted; P where only rank one has changed it."""

    def __init__(self, size, gamma):
        self.gamma, self.G, self.b = gamma, np.zeros((size, size)), np.zeros(size)
        self.W = 0.0

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


class Twin:
    """What `SelfTunedUCB` does, for one family and number of features."""

    def __init__(self, family, dim):
        self.binomial, self.d, self.D = family == "binomial", dim, dim + 1
        self.window = max(30.0, 3.0 * dim)
        self.full = Learner(self.D, 1.0)
        self.recent = Learner(self.D, 1 - 1 / self.window)
        self.M, self.residuals, self.residual_count = np.zeros((self.D, self.D)), 0.0, 0.0
        self.rows, self.rewards, self.weights, self.arms, self.log_rows = [], [], [], [], []
        self.scale = np.ones(dim)
        self.pending, self.novel, self.novelty = [], 0.0, 0.0
        self.phi, self.b, self.typical = 0.0, 0.0, 1.0
        self.ridge, self.intercept = 1.0, 1.0
        self.next = self.since = self.restarts = self.recent_rows = 0
        self.evidence = self.origin = 0.0
        self.residual_pairs = []  # of both learners, standardised, since the last restart

    @property
    def count(self):
        return len(self.rewards)

    @property
    def R(self):
        return np.diag(np.append(self.ridge * self.scale, self.intercept))

    def trusted(self, w):
        return self.typical * (min(w, 16 * self.typical) / self.typical) ** (1 - self.b)

    def dispersion(self):
        v = 1.0
        if all(w == 1 for w in self.weights):
            v = np.var(self.rewards, ddof=1) if self.count > 1 else 0.0
        return (3 * v + self.residuals) / (3 + self.residual_count)

    def distrust(self):
        if len(self.log_rows) < 2:
            return 0.0
        x, y = np.array(self.log_rows).T
        square = np.sum((x - x.mean()) ** 2)
        if not square > 0:
            return 0.0
        slope = (x - x.mean()) @ (y - y.mean()) / square
        return float(np.clip(slope - 2 * math.pi / math.sqrt(2 * square), 0, 1))

    def reweigh(self):
        def weighed():
            u = np.array([self.trusted(w) * f for *_, w, f in self.rows])
            z, y = (np.array([row[i] for row in self.rows]) for i in (0, 1))
            return u, z, y, u @ (y - z @ self.full.theta) ** 2

        before = weighed()[3] if self.rows else 0.0
        self.typical = math.exp(np.mean(np.log(self.weights)))
        self.b = self.distrust()
        if not self.rows:
            return
        u, z, y, after = weighed()
        self.full.G, self.full.b, self.full.W = z.T @ (u[:, None] * z), z.T @ (u * y), u.sum()
        if before > 0 and len(self.rows) > self.D:
            self.residuals *= after / before
            self.novel *= after / before
            self.phi = self.dispersion()

    def choose_ridge(self):
        if self.binomial:
            self.intercept = 0.04
        arms, weights = (np.array(each) for each in zip(*self.arms, strict=True))
        P, before = self.full.P[:-1, :-1] if self.count > 1 else None, self.scale
        self.set_scale(arms)
        square, phi, v = np.sum(arms**2 / self.scale, axis=1).mean(), 1.0, 1.0
        if not self.binomial:
            phi, v = self.phi, np.var(self.rewards, ddof=1) if self.count > 1 else 0.0
        if self.count <= 1 or not phi > 0 or not v > 0:
            lengths = np.sum(arms**2, axis=1)
            self.ridge = square * (weights @ lengths) / lengths.sum()
            if not self.binomial:
                self.intercept = 1e-6 * self.ridge / square
            return
        if not self.binomial:
            self.intercept = 1e-6 * phi / v
        theta = self.full.theta[:-1]
        gamma = max(self.d - self.ridge * before @ np.diag(P), 0.0)
        share = min(self.d / 2, 5)
        self.ridge = phi * (gamma + share) / (self.scale @ theta**2 + share * v / square)

    def set_scale(self, arms):
        largest, alike = (arms**2).max(axis=0), math.log(9) * (1 + self.d / len(arms))
        away = np.log(largest, out=np.zeros(self.d), where=largest > 0)
        away = np.where(largest > 0, away - np.median(away[largest > 0]), 0.0)
        self.scale = np.exp(np.sign(away) * np.maximum(np.abs(away) - alike, 0.0))

    def renew(self):
        if not self.binomial and any(w != 1 for w in self.weights) and self.count:
            self.reweigh()
        self.choose_ridge()
        if self.binomial:
            self.solve_history()
        else:
            self.full.solve(self.R)
        self.next = max(self.count + 1, math.ceil(1.1 * self.count))

    def solve_history(self):
        """Newton's method; undamped, which is enough where the data are tame."""
        for _ in range(12):
            g, G = self.R @ self.full.theta, np.zeros((self.D, self.D))
            for z, y, n, _ in self.rows:
                p = sigmoid(z @ self.full.theta)
                G += n * max(p * (1 - p), 2e-9) * np.outer(z, z)
                g = g + n * (p - y) * z
            self.full.G, self.full.P, self.full.W = G, inv(G + self.R), G[-1, -1]
            step = self.full.P @ g
            self.full.theta = self.full.theta - step
            if g @ step < 1e-4:
                break

    def restart(self):
        """Start over with the rows from which on the forgetting learner is likeliest."""
        self.evidence, self.since, self.restarts = 0.0, 0, self.restarts + 1
        self.residual_pairs = []
        gains = [self.gain(*row[:3]) for row in self.rows]
        kept = 1 + int(np.argmax(np.cumsum(gains[::-1])))
        self.rows, again = [], self.rows[-kept:]
        if self.binomial:
            self.rows, self.full.theta = again, self.recent.theta
        else:
            self.full = Learner(self.D, 1.0)
            self.full.solve(self.R)
            self.M = np.zeros((self.D, self.D))
            share = min(1.0, 50 / self.residual_count)
            self.residuals, self.residual_count = (
                share * self.residuals,
                share * self.residual_count,
            )
            share = min(1.0, self.D / self.novelty)
            self.novel, self.novelty = share * self.novel, share * self.novelty
            for z, y, given, _ in again:
                self.learn(z, y, given, trusting=not self.rows)
            self.phi = self.dispersion()
        self.renew()

    def gain(self, z, y, w):
        """The log likelihood of a row by the forgetting learner over that by the other."""
        old, new = z @ self.full.theta, z @ self.recent.theta
        if self.binomial:
            return log_likelihood(new, y, w) - log_likelihood(old, y, w)
        scale = 2 * self.phi / self.trusted(w)
        return 1.5 * math.log((1 + (y - old) ** 2 / scale) / (1 + (y - new) ** 2 / scale))

    def most(self):
        return 9 * self.dispersion() if self.residual_count >= 10 else math.inf

    def learn(self, z, y, given, trusting=False):
        """A row of the learner of all rewards."""
        w, W = self.trusted(given), self.full.W
        r, q, square = self.full.learn_gaussian(z, y, w, math.inf if trusting else self.most())
        self.rows.append((z, y, given, (self.full.W - W) / w))
        self.residuals += square
        self.residual_count += 1
        if all(w == 1 for w in self.weights):
            self.M += square * np.outer(z, z)
        return r, q, square

    def update(self, x, y, sigma=1.0):
        z, w = np.append(x, 1.0), sigma**-2.0
        self.arms.append((x, 1.0 if self.binomial else w))
        if not self.count:
            self.typical, self.origin = w, 0.0 if self.binomial else y
            self.choose_ridge()
            self.full.solve(self.R)
            self.recent.solve(self.R)
        y -= self.origin
        self.rewards.append(y)
        self.weights.append(w)
        self.since += 1
        L = self.binomial_round(z, y, w) if self.binomial else self.gaussian_round(z, y, w)
        self.evidence = (self.evidence + 1) * L
        enough = (5e5 if self.binomial else 1e5) * max(self.since / 3000, 1) ** 2
        if self.evidence > enough and self.since > self.D:
            self.restart()
        elif self.count >= self.next:
            self.renew()
        self.recent_rows += 1
        if self.recent_rows >= self.window or self.count < 10:
            self.recent_rows = 0
            self.recent.solve(self.R)

    def gaussian_round(self, z, y, given):
        w, before = self.trusted(given), self.phi
        recent, recent_q, _ = self.recent.learn_gaussian(z, y, w, self.most())
        r, q, square = self.learn(z, y, given)
        if self.count > 1:
            self.novel += w * q / (1 + w * q) * square
            self.novelty += w * q / (1 + w * q)
        if w * q < 1 and r != 0:
            self.log_rows.append((math.log(given), math.log(r * r * given)))
        self.phi = self.dispersion()
        if not before > 0:
            return 1.0
        sd = math.sqrt(before * (1 / w + max(q, recent_q)))
        expected = self.expected()
        self.residual_pairs.append((r / sd, recent / sd))
        squares = sum(min(a * a, 1e6) for a, _ in self.residual_pairs)
        scale = 2 * max(1.0, (3 + squares) / (3 + self.since))
        x, y = np.array(self.residual_pairs[-1]) - expected
        return math.exp(min(1.5 * math.log((1 + x * x / scale) / (1 + y * y / scale)), 3.0))

    def expected(self):
        """What the last residuals, within 3, predict of the next."""
        if not self.residual_pairs:
            return np.zeros(2)
        return self.correlation() * np.clip(self.residual_pairs[-1], -3, 3)

    def correlation(self):
        """The lag correlation of residuals of the forgetting learner, a clear one with a margin."""
        a, n = np.clip(self.residual_pairs, -3, 3).reshape(-1, 2)[:, 1], self.since
        last = a[:-1]
        rho = a[1:] @ last / (3 + last @ last)
        if rho > 3 / math.sqrt(1 + n):
            rho = 1.1 * rho + 2 * math.sqrt((1 - rho * rho) / (1 + n))
        return min(max(rho, 0.0), 0.95)

    def binomial_round(self, z, y, n):
        recent = self.recent.learn_binomial(z, y, n)
        score = self.full.learn_binomial(z, y, n)
        self.rows.append((z, y, n, 1.0))
        p = np.array([sigmoid(score), sigmoid(recent)])
        sd = np.sqrt(p * (1 - p))
        rho = self.correlation()
        old, new = np.clip(p + sd * self.expected(), p / 4, 1 - (1 - p) / 4)
        self.residual_pairs.append(tuple((y - p) / sd * math.sqrt(n)))
        gain = y * math.log(new / old) + (1 - y) * math.log((1 - new) / (1 - old))
        return math.exp(min(n * gain * (1 - rho) / (1 + rho), 3.0))

    def expect(self, x, sigma):
        z, w = np.append(x, 1.0), sigma**-2.0
        if self.binomial:
            p = sigmoid(z @ self.full.theta)
            w *= p * (1 - p)
        self.pending.append((z, w))

    def release(self, x):
        at = [np.array_equal(z[:-1], x) for z, _ in self.pending].index(True)
        del self.pending[at]

    def index(self, x):
        z = np.c_[x, np.ones(len(x))]
        H = self.full.G + self.R + sum(w * np.outer(row, row) for row, w in self.pending)
        if not self.pending:
            H = inv(self.full.P)
        h, phi, more = np.einsum("ij,jk,ik->i", z, inv(H), z), self.phi or 1.0, 0.0
        share, far = 0.7, 1 / 16
        if not self.binomial and all(w == 1 for w in self.weights):
            share, far = 0.8, 1.0
            more = max(self.novel / self.novelty - phi, 0.0) if self.novelty else 0.0
        u = self.full.W * h / self.D
        phi = phi + more * u / (1 + u)
        own = np.einsum("ij,jk,ik->i", z, self.full.P, z)
        f = np.einsum("ij,jk,ik->i", z, self.full.P @ self.M @ self.full.P, z)
        if share == 0.8:
            phi = np.maximum(phi, (f / own + own * phi) / (1 + own))
        spread = phi * h
        late = np.log(max(self.since / 3000, 1)) * u / (1 + u)
        bonus = np.sqrt(spread * (2 + share * (np.log1p(u) + np.log1p(far * u)) + late))
        return self.origin + z @ self.full.theta + bonus
