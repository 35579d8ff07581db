"""Reasons as a table: of text, or of HTML in notebooks."""

from collections.abc import Iterable
from dataclasses import replace
from html import escape
from typing import Any

from ..confidence import Confident
from ..protocols import Array, Policy, trait
from .action_features import Arms
from .offers import Offer
from .reasons import Part, Reason, SelfAccounting, parts, reasons

SHOWN, LEAST = 3, 0.01  # features per arm, and the share of the largest that is worth a word
ALL = "with probability 1 - delta for all arms and rounds at once"


class Explanation(list[Reason]):
    """Why each arm is ranked as it is: a list of `Reason` that prints as a table.

    All its columns are on the scale of rewards. The action with the largest sum of estimate and
    exploration is played.

    Attributes
    ----------
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
    ) -> None:
        super().__init__(reasons)
        self.promise, self.learnt, self.origin = promise, learnt or {}, origin or {}

    def columns(self) -> dict[str, list[str]]:
        """Return the table as words, by column; one that no arm has is left out."""
        table = {
            "action": [each.action or str(each.arm) for each in self],
            "estimate": [_number(each.estimate) for each in self],
            "interval": [
                "" if each.lower is None or each.upper is None
                else f"[{_number(each.lower)}, {_number(each.upper)}]"
                for each in self
            ],
            "exploration": [_number(each.exploration, "+") for each in self],
            "largest contributions": [
                ", ".join(f"{name} {_number(part, '+')}" for name, part in _largest(each.parts))
                for each in self
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
        about += [f"{name}: {_number(value)}" for name, value in self.learnt.items()]
        return [*about, *dict.fromkeys(f"note: {each.note}" for each in self if each.note)]

    def __repr__(self) -> str:
        columns = self.columns()
        width = {name: max(map(len, [name, *cells])) for name, cells in columns.items()}
        left = {"action", "largest contributions"}
        rows = [list(columns), *zip(*columns.values(), strict=True)]
        text = [
            "  ".join(
                cell.ljust(width[name]) if name in left else cell.rjust(width[name])
                for name, cell in zip(columns, row, strict=True)
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*text, *self.lines()])

    def _repr_html_(self) -> str:
        columns = self.columns()
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in zip(*columns.values(), strict=True)
        )
        below = "".join(f"<li>{escape(line)}</li>" for line in self.lines())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><ul>{below}</ul>"


def _largest(shares: tuple[Part, ...]) -> list[Part]:
    return [each for each in shares[:SHOWN] if abs(each[1]) > LEAST * abs(shares[0][1])]


def _number(value: float | None, sign: str = "") -> str:
    return "" if value is None else f"{value:{sign}.4g}"


def explanation(
    policy: Policy[Any],
    state: Any,
    offer: Offer,
    arms: Arms | None,
    bounded: bool,
    notes: list[str],
) -> Explanation:
    """Return the reasons of an offer, with names where these are known; the state is only read."""
    rows = reasons(policy, state, offer.x, bounded)
    rows = [replace(each, note="; ".join(filter(None, (each.note, *notes)))) for each in rows]
    if arms is not None and offer.names:
        shares = parts(policy, state, arms.names, offer.x)
        rows = [
            replace(each, action=action, parts=share)
            for each, action, share in zip(rows, offer.names, shares, strict=True)
        ]
    usual: Array | None = trait(state, "average_context", None)
    origin = None
    if arms is not None and usual is not None and len(usual) and any(each.parts for each in rows):
        origin = arms.numbers_of(usual)
    if isinstance(policy, SelfAccounting):
        promise = policy.interval(state, offer.x).promise
        return Explanation(rows, promise, policy.learnt(state), origin)
    return Explanation(rows, ALL if isinstance(policy, Confident) else "", origin=origin)
