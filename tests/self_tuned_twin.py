"""A readable twin of `SelfTunedUCB`: numpy, whole matrices, an inverse whenever one is needed."""

import math

import numpy as np
from numpy.linalg import inv


def sigmoid(z):
    return np.exp(-np.logaddexp(0, -z))


def log_likelihood(score, y, n):
    return n * (y * score - np.logaddexp(0, score))


def implicit_step(score, h, y, n):
    """The root of u = n (y - mean(score + h u)) by bisection."""
    ends = sorted((0.0, n * (y - sigmoid(score))))
    for _ in range(200):
        u = sum(ends) / 2
        ends[int(u > n * (y - sigmoid(score + h * u)))] = u
    return u


def scales(x):
    """What the ridge of each feature is multiplied by, 1 unless features differ clearly."""
    largest, alike = (x**2).max(axis=0), math.log(9) * (1 + x.shape[1] / len(x))
    away = np.log(largest, out=np.zeros(len(largest)), where=largest > 0)
    away = np.where(largest > 0, away - np.median(away[largest > 0]), 0.0)
    return np.exp(np.sign(away) * np.maximum(np.abs(away) - alike, 0.0))


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

    def move(self, A):
        """Sums in new units, in which features are Az."""
        self.G, self.b = A @ self.G @ A.T, A @ self.b

    def learn_binomial(self, z, y, n):
        k, start = self.P @ z / self.gamma, z @ self.theta
        u = implicit_step(start, z @ k, y, n)
        score = start + z @ k * u
        p = sigmoid(score)
        c = n * max(p * (1 - p), 2e-9)
        self.theta = self.theta + u * k
        self.add(z, c, c * score + u)
        return start


class Units:
    """Limits, mean and 1/sd of each column of contexts, the latter 0 where it is constant."""

    def __init__(self, c):
        found = [self.of_column(np.sort(column[np.abs(column) <= 2**53])) for column in c.T]
        self.low, self.high, self.mean, self.rate = np.array(found).T

    def of_column(self, c):
        out = math.ceil(0.02 * len(c)) if len(c) >= 5 else 0
        away = np.abs(c - np.median(c))
        reach = 5 * np.median(away[away > 0]) if away.any() else 0.0
        low, high = c[out] - reach, c[-1 - out] + reach
        inside = np.clip(c, low, high)
        mean, sd = inside.mean(), inside.std()
        return low, high, mean, 1 / sd if sd > 1e-12 * abs(mean) else 0.0

    def __call__(self, c):
        return (np.clip(c, self.low, self.high) - self.mean) * self.rate


class Twin:
    """What `SelfTunedUCB` does, for one family and shape of arms."""

    def __init__(self, family, dim, blocks=0, context=0, shared=False, forget_after=None):
        self.lasting = forget_after
        self.blocks, self.context, self.shared = blocks, context, shared
        self.e = dim - blocks * (context + 1)
        self.heads = self.e + np.arange(blocks) * (context + 1)
        self.units = None
        self.apart, self.together = np.ones(context + 1), np.ones(context + 1)
        self.binomial, self.d, self.D = family == "binomial", dim, dim + 1
        self.window = max(30.0, 3.0 * dim)
        self.full = Learner(self.D, 1 - 1 / forget_after if forget_after else 1.0)
        self.recent = Learner(self.D, 1 - 1 / self.window)
        self.M, self.residuals, self.residual_count = np.zeros((self.D, self.D)), 0.0, 0.0
        self.rows, self.rewards, self.weights, self.arms, self.log_rows = [], [], [], [], []
        self.scale, self.head_scale = np.ones(self.e), np.ones(blocks)
        self.pending, self.novel, self.novelty = [], 0.0, 0.0
        self.phi, self.b, self.typical = 0.0, 0.0, 1.0
        self.ridge, self.intercept = 1.0, 1.0
        self.since = self.restarts = self.recent_rows = 0
        self.next = 2
        self.evidence, self.origin, self.slopes = 0.0, 0.0, []
        self.residual_pairs = []  # of both learners, standardised, since the last restart

    @property
    def count(self):
        return len(self.rewards)

    @property
    def R(self):
        R = np.diag(np.append(np.zeros(self.d), self.intercept))
        R[: self.e, : self.e] = np.diag(self.ridge * self.scale)
        for j in range(self.context + 1 if self.blocks else 0):
            own = self.apart[j] * np.diag(self.head_scale)
            if not self.shared:
                mean = np.full((self.blocks, self.blocks), 1 / self.blocks)
                own = own + (self.together[j] - self.apart[j]) * mean
            R[np.ix_(self.heads + j, self.heads + j)] = own
        return R

    def contexts(self, x):
        """The context of each arm, by its largest head."""
        parts = x[:, self.e :].reshape(len(x), self.blocks, -1)
        largest = np.abs(parts[:, :, 0]).argmax(axis=1)
        own = parts[np.arange(len(x)), largest]
        return np.divide(own[:, 1:], own[:, :1], np.zeros_like(own[:, 1:]), where=own[:, :1] != 0)

    def features(self, x):
        """Arms in units of now; before the first, contexts are 0."""
        x = np.asarray(x)
        z = np.c_[x, np.full(len(x), 1.0 if self.shared or not self.blocks else 0.0)]
        if self.blocks:
            c = np.zeros((len(x), self.context))
            if self.units:
                c = self.units(self.contexts(x))
            z[:, self.e : -1] = np.einsum(
                "ti,tj->tij", x[:, self.heads], np.c_[np.ones(len(x)), c]
            ).reshape(len(x), -1)
        return z

    def renew_units(self):
        """New units of contexts; what is not summed from the rows is moved to them."""
        if not self.blocks or not self.rows:
            return
        before, x = self.units, self.history()[0]
        x = x[np.arange(min(len(x), 512)) * len(x) // min(len(x), 512)]
        x = x[x[:, self.heads].any(axis=1)]
        if not len(x):
            return
        self.units = Units(self.contexts(x))
        if before is None:
            before = Units(np.zeros((1, self.context)))
        old, new = before.rate, self.units.rate
        factor = np.divide(new, old, np.zeros_like(new), where=old > 0)
        shift = (before.mean - self.units.mean) * new
        leaps = (factor > 1e3) | ((factor > 0) & (factor < 1e-3)) | (np.abs(shift) > 1e3)
        leaps = leaps | (len(self.rows) <= 5)
        factor, shift = np.where(leaps, 0.0, factor), np.where(leaps, 0.0, shift)
        A = np.eye(self.D)
        for head in self.heads:
            for j in range(self.context):
                at = head + 1 + j
                A[at, at], A[at, head] = factor[j], shift[j]
                theta = self.full.theta
                theta[at] = theta[at] / factor[j] if factor[j] > 0 else 0.0
                theta[head] -= shift[j] * theta[at]
        self.recent.move(A)
        self.M = A @ self.M @ A.T

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
            x, y, given, f = self.history()
            u, z = np.array([self.trusted(w) for w in given]) * f, self.features(x)
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

    def history(self):
        """Arms, rewards, given weights and what they count, of the rows."""
        x, y, given, f = (np.array(each) for each in zip(*self.rows, strict=True))
        return x, y, given, f * self.ages()

    def ages(self):
        """What rows count by their age."""
        return self.full.gamma ** np.arange(len(self.rows) - 1.0, -1, -1)

    def choose_ridge(self):
        if self.binomial:
            self.intercept = 0.04
        arms, weights = (np.array(each) for each in zip(*self.arms, strict=True))
        plain, heads = arms[:, : self.e], arms[:, self.heads]
        phi, v = 1.0, 1.0
        if not self.binomial:
            phi, v = self.phi, np.var(self.rewards, ddof=1) if self.count > 1 else 0.0
        early = self.count <= 1 or not phi > 0 or not v > 0
        lengths = np.sum(plain**2, axis=1) + np.sum(heads**2, axis=1)
        usual = weights @ lengths / lengths.sum()
        if not self.binomial:
            self.intercept = 1e-6 * (usual if early else phi / v)
        if self.e:
            before, self.scale = self.scale, scales(plain)
            square = np.sum(plain**2 / self.scale, axis=1).mean()
            self.ridge = square * usual if early else self.plain_ridge(before, phi, v, square)
        if self.blocks:
            before, self.head_scale = self.head_scale, scales(heads)
            square = np.sum(heads**2 / self.head_scale, axis=1).mean()
            if early:
                self.apart = np.full(self.context + 1, (self.context + 1) * square * usual)
                self.together = self.apart.copy()
            else:
                self.choose_columns(before, phi, v, square)
            self.together[0] = self.intercept

    def plain_ridge(self, scale, phi, v, square):
        theta = self.full.theta[: self.e]
        trace = scale @ np.diag(self.full.P)[: self.e]
        gamma, share = max(self.e - self.ridge * trace, 0.0), min(self.e / 2, 5)
        return phi * (gamma + share) / (self.scale @ theta**2 + share * v / square)

    def choose_columns(self, scale, phi, v, square):
        """The ridges of each column: of differences between blocks, and of their mean."""
        K, p = self.blocks, self.context + 1
        mean = np.full((K, K), 1 / K)
        at = [self.heads + j for j in range(p)]
        P, theta = [self.full.P[np.ix_(i, i)] for i in at], [self.full.theta[i] for i in at]
        sizes = {"apart": [b @ (scale * b) for b in theta]}
        traces = {"apart": [scale @ np.diag(a) for a in P]}
        counts = {"apart": K}
        if not self.shared:
            rest = np.eye(K) - mean
            sizes = {
                "apart": [b @ rest @ b for b in theta],
                "together": [b @ mean @ b for b in theta],
            }
            traces = {
                "apart": [np.trace(rest @ a) for a in P],
                "together": [np.trace(mean @ a) for a in P],
            }
            counts = {"apart": K - 1, "together": 1}
        for name, count in counts.items():
            gamma = count - getattr(self, name) * traces[name]
            q = min(self.context * count / 2, 5)
            common = (sum(sizes[name][1:]) + q * v / (p * square)) / (max(sum(gamma[1:]), 0) + q)
            prior = np.append(v / square, np.full(self.context, common))
            setattr(self, name, phi * (np.maximum(gamma, 0) + 1) / (sizes[name] + prior))

    def renew(self):
        theta = self.full.theta.copy()
        self.renew_units()
        again = self.blocks or any(w != 1 for w in self.weights)
        if not self.binomial and again and self.count:
            self.reweigh()
        self.full.theta = theta
        self.choose_ridge()
        if self.binomial:
            self.solve_history()
        else:
            self.full.solve(self.R)
        if self.blocks:
            self.renew_recent()
        n = len(self.rows)
        due = max(n + 1, math.ceil(1.1 * n)) - n
        self.next = self.count + (min(due, math.ceil(self.lasting / 4)) if self.lasting else due)

    def solve_history(self):
        """Newton's method, steps halved while the loss grows."""
        x, y, n, counted = self.history()
        z, n = self.features(x), n * counted
        best, part, step = math.inf, 1.0, np.zeros(self.D)
        for _ in range(30):
            loss = self.full.theta @ self.R @ self.full.theta / 2
            loss -= log_likelihood(z @ self.full.theta, y, n).sum()
            if loss > best + 1e-9 * abs(best) and part > 1e-3:
                part /= 2
                self.full.theta = self.full.theta + part * step
                continue
            best, part = loss, 1.0
            p = sigmoid(z @ self.full.theta)
            c = n * np.maximum(p * (1 - p), 2e-9)
            g = self.R @ self.full.theta + z.T @ (n * (p - y))
            self.full.G, self.full.W = z.T @ (c[:, None] * z), c.sum()
            self.full.P = inv(self.full.G + self.R)
            step = self.full.P @ g
            self.full.theta = self.full.theta - step
            if g @ step < 1e-4:
                break

    def restart(self):
        """Start over with the rows from which on the forgetting learner is likeliest."""
        self.evidence, self.since, self.restarts = 0.0, 0, self.restarts + 1
        self.slopes = []
        self.residual_pairs = []
        gains = [self.gain(*row[:3]) for row in self.rows]
        kept = 1 + int(np.argmax(np.cumsum(gains[::-1])))
        self.rows, again = [], self.rows[-kept:]
        if self.binomial:
            self.rows, self.full.theta = again, self.recent.theta.copy()
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
            for x, y, given, _ in again:
                self.learn(x, y, given, trusting=not self.rows)
            self.phi = self.dispersion()
        self.renew()

    def gain(self, x, y, w):
        """The log likelihood of a row by the forgetting learner over that by the other."""
        z = self.features([x])[0]
        old, new = z @ self.full.theta, z @ self.recent.theta
        if self.binomial:
            return log_likelihood(new, y, w) - log_likelihood(old, y, w)
        scale = 2 * self.phi / self.trusted(w)
        return 1.5 * math.log((1 + (y - old) ** 2 / scale) / (1 + (y - new) ** 2 / scale))

    def most(self):
        return 9 * self.dispersion() if self.residual_count >= 10 else math.inf

    def learn(self, x, y, given, trusting=False):
        """A row of the learner of all rewards."""
        z = self.features([x])[0]
        w, W = self.trusted(given), self.full.W
        r, q, square = self.full.learn_gaussian(z, y, w, math.inf if trusting else self.most())
        self.rows.append((x, y, given, (self.full.W - self.full.gamma * W) / w))
        self.residuals += square
        self.residual_count += 1
        if all(w == 1 for w in self.weights):
            self.M = self.full.gamma * self.M + square * np.outer(z, z)
        return r, q, square

    def update(self, x, y, sigma=1.0):
        w = sigma**-2.0
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
        W = self.full.W
        L = self.binomial_round(x, y, w) if self.binomial else self.gaussian_round(x, y, w)
        own = (self.full.W - self.full.gamma * W) / w if self.binomial else self.rows[-1][3]
        self.slopes.append(own)
        self.evidence = (self.evidence + 1) * L
        enough = (3e4 if self.binomial else 1e5) * max(self.since / 3000, 1) ** 2
        if self.evidence > enough and self.since > self.D and not self.lasting:
            self.restart()
        elif self.count >= self.next:
            self.renew()
        self.recent_rows += 1
        if self.recent_rows >= self.window or self.count < 10:
            self.renew_recent()

    def renew_recent(self):
        self.recent_rows = 0
        self.recent.solve(self.R)

    def gaussian_round(self, x, y, given):
        w, before, z = self.trusted(given), self.phi, self.features([x])[0]
        recent, recent_q, _ = self.recent.learn_gaussian(z, y, w, self.most())
        r, q, square = self.learn(x, y, given)
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

    def binomial_round(self, x, y, n):
        z = self.features([x])[0]
        recent = self.recent.learn_binomial(z, y, n)
        score = self.full.learn_binomial(z, y, n)
        self.rows.append((x, y, n, 1.0))
        p = np.array([sigmoid(score), sigmoid(recent)])
        sd = np.sqrt(p * (1 - p))
        rho = self.correlation()
        old, new = np.clip(p + sd * self.expected(), p / 4, 1 - (1 - p) / 4)
        self.residual_pairs.append(tuple((y - p) / sd * math.sqrt(n)))
        gain = y * math.log(new / old) + (1 - y) * math.log((1 - new) / (1 - old))
        return math.exp(min(n * gain * (1 - rho) / (1 + rho) - 0.02, 3.0))

    def expect(self, x, sigma):
        w = sigma**-2.0
        if self.binomial:
            p = sigmoid(self.features([x])[0] @ self.full.theta)
            w *= p * (1 - p)
        self.pending.append((x, w))

    def release(self, x):
        at = [np.array_equal(arm, x) for arm, _ in self.pending].index(True)
        del self.pending[at]

    def index(self, x):
        z, H = self.features(x), inv(self.full.P)
        if self.pending:
            arms, w = (np.array(each) for each in zip(*self.pending, strict=True))
            rows = self.features(arms)
            H = self.full.G + self.R + rows.T @ (w[:, None] * rows)
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
        slopes = np.array(self.slopes) * self.full.gamma ** np.arange(
            len(self.slopes) - 1.0, -1, -1
        )
        n = slopes.sum() ** 2 / (slopes @ slopes) if self.slopes else 0
        late = np.log(max(n / 3000, 1)) * u / (1 + u)
        bonus = np.sqrt(spread * (2 + share * (np.log1p(u) + np.log1p(far * u)) + late))
        return self.origin + z @ self.full.theta + bonus
