"""Reasons as a table: of text, or of HTML in notebooks."""

import math
from collections.abc import Iterable
from dataclasses import replace
from html import escape

from ...confidence import Confident
from ...protocols import AnyPolicy, Array, trait
from ..actions.action_features import Arms
from ..actions.offers import Offer
from ..kinds import is_self_accounting
from ..record.decision_log import Decision, Seen
from .reason_sentences import called, sentence, sum_of
from .reasons import Part, Reason, finite_or_none, mean_of, parts, ranked, reasons

SHOWN, LEAST = 3, 0.01  # features per arm, and the share of the largest that is worth a word
ALL = "with probability 1 - delta for all arms and rounds at once"


class Explanation(list[Reason]):
    """Why each arm is ranked as it is: a list of `Reason`, arm by arm, that prints as a table.

    All its columns are on the scale of rewards. The action with the largest sum of estimate and
    exploration is played; in the table it comes first and has a mark.

    Attributes
    ----------
    chosen : tuple of int
        The arms that would be, or were, chosen, in order; empty where the policy draws.
    sentence : str
        Why, in words.
    advice : list of str
        What `Agent.health` has to say.
    promise : str
        What the intervals promise, empty where there are none.
    learnt : dict
        What else the policy has learnt, by name.
    origin : dict
        The average numbers of contexts, by name: contributions are relative to them.
    """

    def __init__(
        self,
        reasons: Iterable[Reason],
        promise: str = "",
        learnt: dict[str, float] | None = None,
        origin: dict[str, float] | None = None,
        chosen: tuple[int, ...] = (),
        *,
        past: bool = False,
        drawn: bool = False,
    ) -> None:
        super().__init__(reasons)
        self.promise, self.learnt, self.origin = promise, learnt or {}, origin or {}
        self.chosen, self.past = chosen, past
        self.advice: list[str] = []
        self.sentence = sentence(self, chosen, past, drawn)

    def ordered(self) -> list[Reason]:
        """Return the rows of the table: those chosen first, then by estimate and exploration."""
        if not self.chosen:
            return list(self)
        rest = [row for k, row in enumerate(self) if k not in self.chosen]
        return [*(self[k] for k in self.chosen), *sorted(rest, key=_deciding, reverse=True)]

    def columns(self) -> dict[str, list[str]]:
        """Return the table as words, by column; one that no arm has is left out."""
        rows, several = self.ordered(), len(self.chosen) > 1
        marks = [str(i + 1) if several else "*" for i in range(len(self.chosen))]
        table = {
            "chosen": [*marks, *[""] * (len(rows) - len(marks))],
            "action": [each.action or str(each.arm) for each in rows],
            "sum": [_number(sum_of(each)) for each in rows],
            "estimate": [_number(each.estimate) for each in rows],
            "interval": [
                "" if each.lower is None or each.upper is None
                else f"[{_number(each.lower)}, {_number(each.upper)}]"
                for each in rows
            ],
            "exploration": [_number(each.exploration, "+") for each in rows],
            "largest contributions": [
                ", ".join(f"{name} {_number(part, '+')}" for name, part in _largest(each.parts))
                for each in rows
            ],
        }  # fmt: skip
        return {name: cells for name, cells in table.items() if any(cells)}

    def lines(self) -> list[str]:
        """Return what is said below the table."""
        about = [f"interval: {self.promise}"] if self.promise else []
        if any(each.parts for each in self):
            about.append("contributions: what the estimate would lose without the feature")
        if self.origin:
            usual = ", ".join(f"{name} {_number(value)}" for name, value in self.origin.items())
            about[-1] += f"; contexts count relative to the average one ({usual})"
        elif about and self.past:
            about[-1] += "; contexts count relative to the average one of then"
        about += [f"{name}: {_number(value)}" for name, value in self.learnt.items()]
        return [
            *about,
            *dict.fromkeys(f"note: {each.note}" for each in self if each.note),
            *self.advice,
        ]

    def __repr__(self) -> str:
        columns = self.columns()
        width = {name: max(map(len, [name, *cells])) for name, cells in columns.items()}
        left = {"chosen", "action", "largest contributions"}
        rows = [list(columns), *zip(*columns.values(), strict=True)]
        text = [
            "  ".join(
                cell.ljust(width[name]) if name in left else cell.rjust(width[name])
                for name, cell in zip(columns, row, strict=True)
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*filter(None, [self.sentence]), *text, *self.lines()])

    def _repr_html_(self) -> str:
        columns = self.columns()
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in zip(*columns.values(), strict=True)
        )
        below = "".join(f"<li>{escape(line)}</li>" for line in self.lines())
        above = f"<p>{escape(self.sentence)}</p>" if self.sentence else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"{above}{table}<ul>{below}</ul>"


def _deciding(row: Reason) -> float:
    total = sum_of(row)
    if total is None:
        total = row.estimate
    return -math.inf if total is None else total


def _largest(shares: tuple[Part, ...]) -> list[Part]:
    return [each for each in shares[:SHOWN] if abs(each[1]) > LEAST * abs(shares[0][1])]


def _number(value: float | None, sign: str = "") -> str:
    if isinstance(value, int):
        return f"{value:,}"  # a count
    return "" if value is None else f"{value:{sign}.4g}"


def explanation(
    policy: AnyPolicy,
    state: object,
    offer: Offer,
    arms: Arms | None,
    bounded: bool,
    notes: list[str],
) -> Explanation:
    """Return the reasons of an offer, with names where these are known; the state is only read."""
    rows = reasons(policy, state, offer.x, bounded)
    rows = [replace(each, note="; ".join(filter(None, (each.note, *notes)))) for each in rows]
    if arms is not None and offer.names:
        shares = parts(policy, state, arms.labels(offer.values), offer.x)
        rows = [
            replace(each, action=action, parts=share)
            for each, action, share in zip(rows, offer.names, shares, strict=True)
        ]
    usual: Array | None = trait(state, "average_context", None)
    origin = None
    if arms is not None and usual is not None and len(usual) and any(each.parts for each in rows):
        origin = arms.numbers_of(usual)
    index = [-math.inf if each.index is None else each.index for each in rows]
    chosen = (index.index(max(index)),) if max(index) > -math.inf else ()
    if is_self_accounting(policy):
        promise = policy.interval(state, offer.x).promise
        return Explanation(rows, promise, policy.learnt(state), origin, chosen)
    promise = ALL if isinstance(policy, Confident) else ""
    return Explanation(rows, promise, origin=origin, chosen=chosen)


def seen(
    policy: AnyPolicy, state: object, offer: Offer, arms: Arms | None, chosen: list[int]
) -> list[Seen]:
    """Return what a record keeps of each chosen arm, so that it can be explained later."""
    scores = index = estimates = explorations = None
    if trait(state, "dim", 0):
        scores, index = ranked(policy, state, offer.x)
    if scores is not None:
        estimates = mean_of(policy, scores)
        explorations = None if index is None else mean_of(policy, index) - estimates
    shares: list[tuple[Part, ...]] = [()] * len(chosen)
    if scores is not None and arms is not None and offer.names:
        shares = parts(policy, state, arms.labels(offer.values), offer.x[chosen])
    K = len(offer.x)
    columns = finite_or_none(estimates, K), finite_or_none(explorations, K)
    return [Seen(*columns, tuple(_largest(each))) for each in shares]


def past_explanation(decisions: list[Decision], arms: Arms | None) -> Explanation:
    """Return why the actions of one decision were chosen, as it was recorded then."""
    first = decisions[0]
    names = [""] * len(first.probabilities)
    if arms is not None and isinstance(first.offer, tuple):
        names = [arms.actions[i] for i in first.offer[1]]
    shares = {each.chosen: each.parts for each in decisions}
    rows = [
        Reason(k, estimate, exploration=more, action=name, parts=shares.get(k, ()))
        for k, (name, estimate, more) in enumerate(
            zip(names, first.estimates, first.explorations, strict=True)
        )
    ]
    learnt: dict[str, float] = {}
    for each in decisions:
        which = f" of {called(rows[each.chosen])}" if len(decisions) > 1 else ""
        learnt[f"probability{which}"] = each.probabilities[each.chosen]
        if each.reward is not None:
            learnt[f"reward{which}"] = each.reward
    drawn = any(each.probabilities[each.chosen] < max(each.probabilities) for each in decisions)
    chosen = tuple(each.chosen for each in decisions)
    return Explanation(rows, "", learnt, chosen=chosen, past=True, drawn=drawn)
