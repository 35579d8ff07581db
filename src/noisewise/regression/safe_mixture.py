r"""Predictions combined: by fast weights while that is safe, else by those of a theorem.

Experts i predict :math:`p_i`, have prior :math:`\pi_i` and cumulative losses :math:`L_i`; a row of
weight w costs w times its loss. With W the largest weight so far and a rate :math:`\eta`, the
potential is

.. math:: \Phi = -\frac W\eta \ln\sum_i \pi_i e^{-\eta L_i/W},\qquad
          q_i \propto \pi_i e^{-\eta L_i/W}.

The **safe** prediction costs at most what :math:`\Phi` grows by:

===========  ======================  =============================================================
loss         rate                    prediction
===========  ======================  =============================================================
(p - y)^2    :math:`2/(h - l)^2`     :math:`\frac{l + h}2 - \frac{g(h) - g(l)}{2(h - l)}`, with
                                     :math:`g(y) = -\frac1\eta\ln\sum q_i e^{-\eta(p_i - y)^2}`
p - y ln p   :math:`1/Y`             :math:`-Y\ln\sum q_i e^{-p_i/Y}`
log loss     1                       :math:`\sum q_i p_i`
===========  ======================  =============================================================

for labels within [l, h], or at most Y, and weights at most W, those of the rows before. It does not
depend on the weight of the row. The **fast** one is the mean of predictions by
:math:`\pi_i e^{-rL_i}`, with r a quarter of the rows over the own squared errors, these capped, or
1. It is used while the own loss is at most :math:`\Phi`.

Then for every expert i the own loss is at most :math:`L_i + (W/\eta)\ln(1/\pi_i)` and the cost of a
row, once, and once for each label or weight that is a record; docs/theory/predictions.md proves it.

Experts are the predictions of learners within limits, and the running mean of the labels. Squares
are clipped at the labels seen, at their range widened by a tenth, and by a quarter; counts at one
event above the largest label, and above twice that, and below at half the running mean over n + 1.

References
----------
Vovk (1998), A game of prediction with expert advice. Haussler, Kivinen and Warmuth (1998),
Sequential prediction of individual sequences under general loss functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..inputs import as_contiguous, one_of, ready
from ..kernels.self_tuning.safe_mixture_numbers import (
    COUNTS,
    LOSSES,
    SHARES,
    SQUARES,
    VERSIONS,
    MixtureNumbers,
    by_name,
)
from ..protocols import Array
from ..storage.states import check_fields, check_rows, check_type, restore_writable
from ..support.printing import OneLine

KINDS = {"squares": SQUARES, "counts": COUNTS, "shares": SHARES}
MEAN_PRIOR = {"squares": 0.1, "counts": 0.1, "shares": 0.05}


@dataclass(eq=False, repr=False)
class SafeMixture(OneLine):
    """Predictions of learners within limits and the running mean, combined.

    ``numbers`` and ``experts`` are arrays that the compiled loop reads and writes.
    """

    kind: str
    numbers: Array
    experts: Array

    def __post_init__(self) -> None:
        kind = KINDS[one_of("SafeMixture.kind", self.kind, tuple(KINDS))]
        check_type("SafeMixture.experts", self.experts, np.ndarray)
        k = self.experts.shape[0] if self.experts.ndim else 0
        check_fields(self, numbers=(len(MixtureNumbers.fields),), experts=(k, len(LOSSES)))
        check_rows("SafeMixture", self.experts)
        s, priors = self.known, self.priors
        if (
            k < 2
            or (k - 1) % VERSIONS[kind]
            or min(s.rows, s.weight, s.high - s.low, s.heaviest, s.rounds, priors.min()) < 0
            or (kind == SQUARES and min(s.capped_loss, self.experts.min()) < 0)
            or (kind != SQUARES and s.low < 0)
            or (kind == SHARES and s.high > 1)
            or (s.rows > 0) != (s.heaviest > 0)
            or (s.rows > 0 and s.top < s.high)
            or abs(priors.sum() - 1) > 1e-9
        ):
            raise ValueError("SafeMixture holds a number that no stream of rows leads to")

    __setstate__ = restore_writable

    @classmethod
    def start(
        cls, kind: str, mean: bool = True, learners: Sequence[float] = (1.0,)
    ) -> "SafeMixture":
        """Return a mixture of learners with these prior weights, and of the running mean."""
        each, prior = VERSIONS[KINDS[kind]], MEAN_PRIOR[kind] if mean else 0.0
        shares = np.repeat(learners, each) * (1 - prior) / (each * sum(learners))
        experts = np.zeros((len(shares) + 1, len(LOSSES)))
        by_name(experts)["prior"] = np.append(shares, prior)
        return cls(kind, np.zeros(len(MixtureNumbers.fields)), experts)

    @property
    def known(self) -> MixtureNumbers:
        """The numbers by name: a view."""
        return MixtureNumbers(self.numbers)

    @property
    def count(self) -> int:
        """How many rows of positive weight were learnt."""
        return int(self.known.rows)

    @property
    def loss(self) -> float:
        """The own loss so far, up to what does not depend on predictions."""
        return self.known.loss

    @property
    def losses(self) -> Array:
        """The losses of the experts, the running mean last."""
        return np.array(by_name(self.experts)["loss"])

    @property
    def priors(self) -> Array:
        """Their prior weights."""
        return np.array(by_name(self.experts)["prior"])

    def learn(self, raw: Array, y: Array, w: Array) -> Array:
        """Return the prediction of each row before its label; ``raw`` has a row a learner."""
        from ..kernels.self_tuning import safe_mixture_rounds

        y, w = (each if ready(each) else as_contiguous(each) for each in (y, w))
        out = np.empty(len(y))
        safe_mixture_rounds.learn(KINDS[self.kind], self.numbers, self.experts, raw, y, w, out)
        return out

    def predict(self, raw: Array) -> Array:
        """Return the prediction of each row, as if it were the next."""
        nothing = np.zeros(raw.shape[1])
        return self.learn(raw, nothing, nothing)  # rows of weight 0

    def count_rows(self, y: Array, w: Array) -> None:
        """Take note of labels alone: nothing was predicted for them."""
        y, w, s = y[w > 0], w[w > 0], self.known
        if not len(y):
            return
        first = s.rows == 0
        s.low = y.min() if first else min(s.low, y.min())
        s.high = y.max() if first else max(s.high, y.max())
        s.weight += w.sum()
        s.label_mean += float((w / s.weight) @ (y - s.label_mean))
        s.heaviest = max(s.heaviest, w.max())
        s.rows += len(y)
        s.top = max(min(1.0, s.rows / s.weight), s.high, 0.0 if first else s.top)

    def settled(
        self, rounds: float = 0.0, squares: float = 0.0, learners: Sequence[float] | Array = (1.0,)
    ) -> "SafeMixture":
        """Return the mixture of the same labels once learners were fitted to all of them.

        The fit has weighed large ridges against small ones, so the running mean has no weight, and
        of the limits the widest is left. Losses begin at 0. ``squares`` are those that the fit
        leaves in a number of ``rounds``; ``learners`` are the weights that it gives to them.
        """
        s, experts = MixtureNumbers(self.numbers.copy()), np.zeros_like(self.experts)
        s.loss, s.rounds, s.capped_loss = 0.0, rounds, squares
        by_name(experts)["prior"][: -1 : VERSIONS[KINDS[self.kind]]] = learners
        by_name(experts)["prior"] /= sum(learners)
        return SafeMixture(self.kind, s.array, experts)
