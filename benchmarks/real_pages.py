"""What README and site say of all tasks, from the file of a run; `real_pictures` writes it."""

from textwrap import fill as fill_lines

from . import real_bandits as bandits
from .real_data import FAR, LEVEL, OURS, groups, peers, ratio, standing, worst

WRITTEN = "written by python -m benchmarks.real_pictures -->"
MARKS = {
    "predictions": (f"<!-- {WRITTEN}", "<!-- end of tasks -->"),
    "bandits": (f"<!-- bandits, {WRITTEN}", "<!-- end of bandits -->"),
}
DEFAULT, NONLINEAR = OURS
HISTORY = {
    "open": "The figures are of the half of the tasks that was used in development.",
    "held": "The figures are of the half of the tasks that was not used in development. It was run "
    "three times in all: with earlier code, with a prototype of the present rule, and once with "
    "this code. The first two runs set the targets.",
}


def players(rows):
    """Return all players, ours first, then by how often they are first."""
    others = sorted(set().union(*map(peers, rows)))
    return [*OURS, *sorted(others, key=lambda name: -share_first(rows, name))]


def share_first(rows, player):
    """Return on what share of all tasks a player is first or level."""
    return sum(ratio(row, player) <= LEVEL for row in rows if player in row) / len(rows)


def percent(share):
    """Return a share in words."""
    return f"{100 * share:.0f} %"


def sentence(found):
    """Return what the README says under the picture."""
    rows, decided = (found[kind]["tasks"] for kind in MARKS)
    first = standing(rows, DEFAULT).first
    others = max(share_first(rows, name) for name in players(rows)[len(OURS) :])
    ours, best = bandits.standing(decided), bandits.best_setting(decided)
    return wrapped(
        f"*{len(rows)} prediction tasks and {len(decided)} bandits, made by rules from data sets "
        "that nobody picked. Each row is predicted from those before it, then learnt: without a "
        f"setting, noisewise is best or within 0.5 % of the best on {percent(first)} of the tasks, "
        f"the next on {percent(others)}. As a bandit it chooses a class for each row, and learns "
        f"only whether that was right. It earns {ours.mean:.3f} of 1 on average, the best of six "
        f"fixed settings, {best}, {bandits.standing(decided, best).mean:.3f}. [Which tool when]"
        "(docs/howto/which-tool.md) has the figures, and says where others are ahead.*"
    )


def wrapped(text):
    """Return a text in lines as long as those of the pages."""
    return fill_lines(text, 140, break_long_words=False, break_on_hyphens=False)


def standings(rows):
    """Yield the lines of the table by family and length, both players beside each other."""
    head = ["tasks", "number"]
    for name in ("default", "nonlinear"):
        head += [f"{name}: error over best peer", "first or level", f"above {FAR}", "worst"]
    yield head
    for name, group in groups(rows).items():
        cells = [name, str(len(group))]
        for player in OURS:
            s = standing(group, player)
            far = f"{100 * s.far:.1f} %"
            cells += [f"{s.mean:.3f}", percent(s.first), far, f"{s.worst:.2f}"]
        yield cells


def worst_tasks(rows):
    """Yield the lines of the table of the tasks on which the default is furthest behind."""
    yield ["task", "family", "rows", "features", "default", "nonlinear", "best peer"]
    for row in worst(rows, DEFAULT):
        both = [f"{ratio(row, player):.2f}" for player in OURS]
        best = min(peers(row), key=lambda name: row[name])
        yield [f"`{row['task']}`", row["family"], f"{row['rows']:,}", str(row["dim"]), *both, best]


def markdown(lines):
    """Return the lines of a table as a page shows it."""
    head, *body = lines
    rule = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, rule, *body])


def section(found):
    """Return what the page of tools says of a run."""
    rows = found["tasks"]
    behind = [row for row in rows if ratio(row, DEFAULT) > LEVEL]
    short = [row for row in rows if row["rows"] < 150]
    winners = [min(peers(row), key=lambda name: row[name]) for row in behind]
    wins = ", ".join(
        f"{name} on {winners.count(name)}"
        for name in sorted(set(winners), key=lambda name: -winners.count(name))
    )
    far, most = (standing(rows, player).above_mean for player in OURS)
    behind_words = wrapped(
        f"**Where others are ahead.** On {len(behind)} of {len(rows)} tasks the error of another "
        f"package is smaller by more than 0.5 % than that of noisewise with its defaults: {wins}. "
        "Short streams are the hard ones: on tasks of 80 to 149 rows noisewise is first or level "
        f"on {percent(standing(short, DEFAULT).first)}, since it has to find its ridge from few "
        f"rows. Its error is more than 10 % above that of the running mean of the labels on {far} "
        f"of the tasks, with `nonlinear=True` on {most}. These are the ten tasks on which the "
        "default is furthest behind, with errors over that of the best peer:"
    )
    return "\n\n".join(
        (
            wrapped(f"{HISTORY[found['half']]} The run is of {found['date']}."),
            markdown(standings(rows)),
            behind_words,
            markdown(worst_tasks(rows)),
        )
    )


def bandit_players(rows):
    """Yield the lines of the table of all who play bandits."""
    yield ["player", "mean reward", "first or near", "furthest behind", "with 500 rows or more"]
    for player in (bandits.OURS, *bandits.SETTINGS):
        s = bandits.standing(rows, player)
        ends = [f"{each:+.3f}" for each in (s.worst, s.worst_long)]
        yield [player, f"{s.mean:.4f}", percent(s.near), *ends]


def bandit_sizes(rows):
    """Yield the lines of the table of ours against the best setting, by size."""
    best = bandits.best_setting(rows)
    yield ["tasks", "number", f"reward above {best}", "standard error", "first or near"]
    for name, group in bandits.groups(rows).items():
        more, error = bandits.gain(group, best)
        near = percent(bandits.standing(group).near)
        yield [name, str(len(group)), f"{more:+.4f}", f"{error:.4f}", near]


def worst_bandits(rows):
    """Yield the lines of the table of the tasks on which ours is furthest behind."""
    yield ["task", "rows", "features", "classes", "noisewise", "best setting", "its reward"]
    for row in bandits.worst(rows):
        best = max(bandits.SETTINGS, key=lambda name: row[name])
        sizes = [f"{row[each]:,}" for each in ("rows", "dim", "classes")]
        yield [f"`{row['task']}`", *sizes, f"{row[bandits.OURS]:.3f}", best, f"{row[best]:.3f}"]


def bandit_section(found):
    """Return what the page of tools says of the bandits of a run."""
    rows = found["tasks"]
    behind = sum(bandits.lead(row) < -bandits.NEAR for row in rows)
    return "\n\n".join(
        (
            wrapped(f"{HISTORY[found['half']]} The run is of {found['date']}."),
            markdown(bandit_players(rows)),
            markdown(bandit_sizes(rows)),
            wrapped(
                f"**Where others are ahead.** On {behind} of {len(rows)} tasks the best of the six "
                "settings, chosen in hindsight, earns more than noisewise by over 0.01. These are "
                "the ten tasks on which noisewise is furthest behind it:"
            ),
            markdown(worst_bandits(rows)),
        )
    )


def fill(text, made, kind="predictions"):
    """Return a text with what was made between the two comments of a kind of tasks."""
    begin, end = MARKS[kind]
    before, first, rest = text.partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise ValueError(f"a page lacks {begin} or {end}")
    return f"{before}{begin}\n\n{made}\n\n{end}{after}"
