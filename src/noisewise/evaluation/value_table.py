"""What policies are worth, as a table: text, HTML, and numbers by name."""

import math
from dataclasses import dataclass
from html import escape

from ..protocols import Array
from .estimates import Estimate

HEADS = ("policy", "estimator", "value", "lower", "upper", "decisions that count")
PREFERRED = ("dr", "ips", "mean")


@dataclass(frozen=True, eq=False, repr=False)
class OffPolicyValue:
    """Estimates of the values of policies; prints as a table, and draws one in a notebook.

    ``value``, ``lower``, ``upper``, ``promise`` and ``rests_on`` are those of the doubly robust
    estimate of the policy asked for, or of what was played where none was.

    Attributes
    ----------
    estimates : tuple of Estimate
        Of what was played, the policy asked for, each single action, and others.
    gain : Estimate or None
        The value of the policy asked for less that of what was played, on the same decisions.
    actions : tuple of str
        The order in which probabilities of actions are passed.
    predictions : (n, K) array
        The reward expected of each action before the reward was seen.
    count : int
        The number of decisions.
    delta : float
    warnings : tuple of str
        Why not to rely on some of them.
    """

    policy: str
    estimates: tuple[Estimate, ...]
    gain: Estimate | None
    actions: tuple[str, ...]
    predictions: Array
    count: int
    delta: float
    warnings: tuple[str, ...]

    def of(self, policy: str, estimator: str | None = None) -> Estimate:
        """Return an estimate of a policy, by default the doubly robust one."""
        own = {each.estimator: each for each in self.estimates if each.policy == policy}
        for name in PREFERRED if estimator is None else (estimator,):
            if name in own:
                return own[name]
        known = sorted({(each.policy, each.estimator) for each in self.estimates})
        raise ValueError(f"there is no {estimator!r} of {policy!r}; there are {known}")

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
        lines = [*self.estimates, *([self.gain] if self.gain else [])]
        return [
            (
                e.policy,
                e.estimator,
                *map(_number, (e.value, e.lower, e.upper)),
                f"{e.effective:.0f}",
            )
            for e in lines
        ]

    def notes(self) -> list[str]:
        """Return warnings, and what each kind of interval rests on."""
        rests = {each.estimator: each for each in self.estimates}
        kinds = [f"{name}: {e.promise}. Rests on {e.rests_on}." for name, e in rests.items()]
        return [f"Warning: {each}" for each in self.warnings] + kinds

    @property
    def title(self) -> str:
        """What the table is of."""
        return f"Mean reward per decision, {self.count} decisions, {1 - self.delta:.4g} intervals"

    def __repr__(self) -> str:
        table = [HEADS, *self.rows()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(
                (*map(str.ljust, row[:2], widths[:2]), *map(str.rjust, row[2:], widths[2:]))
            ).rstrip()
            for row in table
        ]
        return "\n".join([self.title, *lines, *self.notes()])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{each}</th>" for each in HEADS)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows()
        )
        notes = "<br>".join(map(escape, self.notes()))
        return (
            f"<table><caption>{escape(self.title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table><p>{notes}</p>"
        )


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4g}"
