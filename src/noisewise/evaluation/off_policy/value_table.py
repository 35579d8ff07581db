"""What policies are worth, as a table: text, HTML, and numbers by name."""

import math
from dataclasses import dataclass

from ...protocols import Array
from ...support.printing import aligned, as_html, clean, count_of
from .estimates import Estimate

HEADS = ("policy", "estimator", "value", "lower", "upper", "effective sample size", "note")
LEFT = ("policy", "estimator", "note")
PREFERRED = ("dr", "mean")  # and the anytime one where these are unreliable
UNRELIABLE = "unreliable"
GAIN = "gain"
NO_INTERVAL = "the line has no interval, for the reason in the warnings; use the anytime one"
LINES = {
    "played": "what the log's own policy earned",
    "greedy": "takes the action with the largest predicted reward, by a model of the first half of "
    "the log, and is judged on the second half",
}
UNCHECKED = (
    "The log has no column 'probabilities', with the probability of every action, so actions that "
    "were impossible (probability 0) are noticed only if the weights do not average 1."
)


@dataclass(frozen=True, eq=False, repr=False)
class OffPolicyValue:
    """Estimates of the values of policies; prints as a table, and draws one in a notebook.

    ``value``, ``lower``, ``upper``, ``promise`` and ``rests_on`` are those of the doubly robust
    estimate of the policy asked for, or of what was played where none was; of the anytime one where
    that is unreliable.

    Attributes
    ----------
    estimates : tuple of Estimate
        Of what was played, the policy asked for, each single action, and others.
    actions : tuple of str
        The order in which probabilities of actions are passed.
    predictions : (n, K) array
        The reward expected of each action before the reward was seen.
    count : int
        The number of decisions.
    delta : float
    warnings : tuple of str
        Why not to rely on those marked as unreliable.
    checked : bool
        Whether the log has the probability of every action, so that a decision that had
        probability 0 is noticed for certain.
    rival : str
        What the policy asked for is compared with in the lines called "gain".
    """

    policy: str
    estimates: tuple[Estimate, ...]
    actions: tuple[str, ...]
    predictions: Array
    count: int
    delta: float
    warnings: tuple[str, ...]
    checked: bool = True
    rival: str = "played"

    def of(self, policy: str, estimator: str | None = None) -> Estimate:
        """Return an estimate of a policy: doubly robust by default, or anytime if unreliable."""
        own = {each.estimator: each for each in self.estimates if each.policy == policy}
        if estimator is None:
            reliable = (name for name in PREFERRED if name in own and own[name].reliable)
            estimator = next(reliable, "anytime")
        if estimator in own:
            return own[estimator]
        known = sorted({(each.policy, each.estimator) for each in self.estimates})
        raise ValueError(f"there is no {estimator!r} of {policy!r}; there are {known}")

    @property
    def gain(self) -> Estimate | None:
        """The value of the policy asked for less that of ``rival``, on the same decisions."""
        return self.of(GAIN) if any(each.policy == GAIN for each in self.estimates) else None

    @property
    def value(self) -> float:
        """The estimate."""
        return self.of(self.policy).value

    @property
    def lower(self) -> float:
        """The lower end of its interval."""
        return self.of(self.policy).lower

    @property
    def upper(self) -> float:
        """The upper end of its interval."""
        return self.of(self.policy).upper

    @property
    def promise(self) -> str:
        """What the interval promises."""
        return self.of(self.policy).promise

    @property
    def rests_on(self) -> str:
        """What that assumes."""
        return self.of(self.policy).rests_on

    def rows(self) -> list[tuple[str, ...]]:
        """Return the lines of the table as words."""
        return [
            (
                clean(e.policy),
                e.estimator,
                *map(_number, (e.value, e.lower, e.upper)),
                f"{e.effective:.0f}",
                "" if e.reliable else UNRELIABLE,
            )
            for e in self.estimates
        ]

    def notes(self) -> list[str]:
        """Return warnings, what some lines are, and what each kind of interval rests on."""
        shown = {each.policy for each in self.estimates}
        rests = {each.estimator: each for each in self.estimates if each.policy != GAIN}
        rival = "what was played" if self.rival == "played" else self.rival
        said = [
            *(f"Warning: {each}." for each in self.warnings),
            *(f"{name}: {words}." for name, words in LINES.items() if name in shown),
            *(
                [f"{GAIN}: the value of {self.policy} less that of {rival}."]
                if GAIN in shown
                else []
            ),
            *([] if all(e.reliable for e in self.estimates) else [f"{UNRELIABLE}: {NO_INTERVAL}."]),
            *(f"{name}: {e.promise}. Rests on {e.rests_on}." for name, e in rests.items()),
            *([] if self.checked else [UNCHECKED]),
        ]
        return list(map(clean, said))

    @property
    def title(self) -> str:
        """What the table is of."""
        level = f"{100 * (1 - self.delta):g} % intervals"
        return f"Mean reward per decision, {count_of(self.count, 'decision')}, {level}"

    def __repr__(self) -> str:
        left = [HEADS.index(each) for each in LEFT]
        return "\n".join([self.title, *aligned([HEADS, *self.rows()], left), *self.notes()])

    def _repr_html_(self) -> str:
        return as_html(self.title, [HEADS, *self.rows()], self.notes())


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4g}"
