"""Pages about all policies together: when to use which, and how they fared."""

import json
import re
from collections import defaultdict
from importlib import import_module

from catalogue import PICTURES, Written, console, grid, spaced, verdicts
from sphinx.application import Sphinx

from noisewise.bandits import POLICIES
from noisewise.experiments.ingredients import bandit_lineup
from noisewise.experiments.ingredients.agent_lineup import OURS
from noisewise.experiments.ingredients.fixed_settings import SETTINGS


class Overview(Written):
    """Every policy in a line: when to use it and what it costs."""

    def text(self):
        """Write a table."""
        rows = [[_link(name), *advice(name)] for name in POLICIES]
        return grid([["policy", "use it", "costs"], *rows], "overview", ":widths: 22 46 32")


class LeftOut(Written):
    """Why some algorithms are not there, as their room says."""

    def text(self):
        """Write the paragraph."""
        return (
            import_module("noisewise.bandits")
            .__doc__.partition("\n\n")[2]
            .partition("\n\nFiles\n")[0]
        )


class Field(Written):
    """Regret and time of every policy in the worlds of a model: linear, logistic, binomial.

    Those with few noisy rounds are another table, "linear, noisy".
    """

    required_arguments = 1
    final_argument_whitespace = True

    def text(self, model):
        """Write a table."""
        return standings(json.loads((PICTURES / "field.json").read_text())["lines"], model)


class FieldRun(Written):
    """Verdicts and command of the run behind the field."""

    def text(self):
        """Write a list and a command."""
        run = json.loads((PICTURES / "field.json").read_text())
        return f"{verdicts(run)}\n{console(run)}"


class Gallery(Written):
    """The agent in every practical world beside the setting that is best there in hindsight."""

    def text(self):
        """Write two tables: worlds where a setting is ahead, and the others."""
        run = json.loads((PICTURES / "agents.json").read_text())
        behind, ahead = gallery(**run["numbers"])
        head = ["world", "noisewise", "best setting in hindsight", "its regret", "ratio"]
        parts = [
            f"{title}\n\n{grid([head, *lines], 'numbers')}"
            for title, lines in (
                (f"A setting is ahead in {len(behind)} worlds:", behind),
                (f"noisewise is ahead of all of them in {len(ahead)} worlds:", ahead),
            )
            if lines
        ]
        return "\n\n".join([*parts, console(run)])


def gallery(columns, data):
    """Return lines of worlds where a fixed setting is ahead of noisewise, and of the others.

    ``columns`` and ``data`` are the numbers of the study `agents`; the largest ratio comes first.
    """
    found = []
    for world, *cells in data:
        regret = {name: cell for name, cell in zip(columns[1:], cells, strict=True)
                  if name == OURS or name in SETTINGS}  # fmt: skip
        if regret[OURS] == "–":  # a line over all worlds
            continue
        means = {name: float(cell.split()[0]) for name, cell in regret.items()}
        best = min(SETTINGS, key=means.__getitem__)
        ratio = means[OURS] / max(means[best], 1e-9)
        found.append((ratio, [world, regret[OURS], best, regret[best], f"{ratio:.2f}"]))
    found.sort(key=lambda each: -each[0])
    behind = [line for ratio, line in found if ratio > 1]
    return behind, [line for ratio, line in found if ratio <= 1]


def advice(name):
    """Return when to use a policy and what it costs, as its docstring says."""
    module, _, home = POLICIES[name].partition(":")
    words = " ".join(getattr(import_module(module), home).__doc__.split())
    told = [re.search(rf"{first} (.*?)\.(?= [A-Z`*>])", words) for first in ("Use it", "Costs")]
    if None in told:
        raise ValueError(f"the docstring of {name} lacks a sentence with 'Use it' or 'Costs'")
    return [re.sub(r"\^(\w)", r"\\ :sup:`\1`", found[1]) for found in told if found]


def standings(lines, model):
    """Write the table of a model, a line a policy, a column a world; below, who plays in none."""
    played = dict.fromkeys(line["world"] for line in lines)
    worlds = [w for w in played if re.sub(", .* ", ", ", w).endswith(f"-{model}")]
    found = {(line["policy"], line["world"]): line for line in lines}
    best = {w: min(line["mean"] for line in lines if line["world"] == w) for w in worlds}
    away = {w: bandit_lineup.absent(w) for w in worlds}
    rows, nowhere = [["policy", *map(spaced, worlds)]], defaultdict(list)
    for policy in bandit_lineup.ENTRIES:
        cells = [_cell(found.get((policy, w)), best[w], away[w].get(policy)) for w in worlds]
        if any((policy, w) in found for w in worlds):
            rows.append([_entrant(policy, worlds), *cells])
        else:
            nowhere[away[worlds[0]][policy]].append(_entrant(policy, bandit_lineup.WORLDS))
    rest = "; ".join(f"{', '.join(names)} ({why})" for why, names in nowhere.items())
    return f"{grid(rows, 'numbers field', ':stub-columns: 1')}\nNot in these worlds: {rest}.\n"


def _cell(line, best, reason):
    if line is None:
        return f"*{reason}*"
    mean = f"**{_short(line['mean'])}**" if line["mean"] <= best else _short(line["mean"])
    error, worst = _short(line["sem"] or 0.0), _short(line["max"])
    return f"| {mean} ± {error} ({worst})\n       | {_short(line['microseconds'])} µs"


def _short(value):
    return f"{value:.{0 if value >= 99.5 else 1 if value >= 0.95 else 2}f}"


def _entrant(policy, worlds):
    """Return a link to the class that plays under a name, in the first world that has it."""
    for world in worlds:
        told = bandit_lineup.setting(world, 1)
        if told.has.issuperset({*bandit_lineup.ENTRIES[policy].needs} - {"time"}):
            return _link(type(bandit_lineup.ENTRIES[policy].make(told)).__name__, policy)
    raise ValueError(f"no world for {policy}")


def _link(name, shown=None):
    return f":py:obj:`{shown or name} <noisewise.{name}>`"


def setup(app: Sphinx):
    """Register the directives."""
    for directive in (Overview, LeftOut, Field, FieldRun, Gallery):
        app.add_directive(directive.__name__.lower(), directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
