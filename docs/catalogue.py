"""Pages made from the code: what a registry, a study or a command says of itself."""

import json
import re
from collections import defaultdict
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from pkgutil import iter_modules

from click.testing import CliRunner
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.nodes import nested_parse_with_titles

import noisewise
from noisewise.bandits import POLICIES
from noisewise.cli import main
from noisewise.experiments import EXPERIMENTS
from noisewise.regression import REGRESSORS

PICTURES = Path(__file__).parent / "pictures"
LOG = logging.getLogger(__name__)


class Written(Directive):
    """A directive whose content is reStructuredText that `text` writes."""

    def run(self):
        """Parse what was written, headings included."""
        node = nodes.section()
        node.document = self.state.document
        lines = StringList(self.text(*self.arguments).splitlines(), source=type(self).__name__)
        nested_parse_with_titles(self.state, lines, node)
        return node.children


class Algorithms(Written):
    """Every algorithm of a registry, from its docstring."""

    required_arguments = 1

    def text(self, registry):
        """Write a section an algorithm."""
        module, _, name = registry.rpartition(".")
        return "\n".join(map(_algorithm, getattr(import_module(module), name).values()))


class Public(Written):
    """Every public name but algorithms and rounds, in the groups of the package's docstring."""

    def text(self):
        """Write a section per group, and in it one per module."""
        return "\n".join(
            f"{_heading(group)}\n{_modules(names)}" for group, names in public_names().items()
        )


def public_names():
    """Return the public names but algorithms and rounds, by group, those of no group at the end."""
    algorithms = [*REGRESSORS.values(), *POLICIES.values()]
    elsewhere = {path.rpartition(":")[2] for path in algorithms} | {"Rounds", "BanditRounds"}
    left = [
        name
        for name in noisewise.__all__
        if name not in elsewhere and callable(getattr(noisewise, name))
    ]
    groups = {}
    for group, names in re.findall(r"^    ([\w ]+): ([\w, ]+)$", noisewise.__doc__, re.MULTILINE):
        groups[group] = [name for name in names.split(", ") if name in left]
    listed = [name for names in groups.values() for name in names]
    groups["Others"] = [name for name in left if name not in listed]
    return {group: names for group, names in groups.items() if names}


def _modules(names):
    homes = defaultdict(list)
    for name in names:
        homes[getattr(noisewise, name).__module__].append(name)
    return "\n".join(_module(home, "noisewise", found, "~") for home, found in homes.items())


class Room(Written):
    """Every module of a package: what it says, and what it defines."""

    required_arguments = 1

    def text(self, package):
        """Write a section a module."""
        found = iter_modules(import_module(package).__path__, f"{package}.")
        homes = {module.name: import_module(module.name) for module in found}
        return "\n".join(
            _module(home, home, [n for n in vars(module) if _owns(module, n)])
            for home, module in homes.items()
        )


class Studies(Written):
    """Every study: what it claims, its picture, and how the run behind the picture went."""

    def text(self):
        """Write a section a study."""
        return "\n".join(map(_study, EXPERIMENTS))


class Commands(Written):
    """The help of every command."""

    def text(self):
        """Write a section a command."""
        return "\n".join(map(_command, main.commands))


def _heading(title, line="-"):
    return f"{title}\n{line * len(title)}\n"


def _algorithm(path):
    module, _, name = path.partition(":")
    return f"{_heading(name)}\n{_entry('noisewise' if hasattr(noisewise, name) else module, name)}"


def _owns(module, name):
    thing = getattr(module, name)
    return not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__


def _module(home, shown, names, line="-"):
    entries = "\n".join(_entry(shown, name) for name in names)
    title = home.removeprefix("noisewise.")
    return f"{_heading(title, line)}\n{import_module(home).__doc__}\n\n{entries}"


def _entry(module, name):
    thing = getattr(import_module(module), name)
    if isinstance(thing, type):
        # fields of a named tuple have no words of their own, scikit-learn's routing too many
        routing = [
            n for n in dir(thing) if re.fullmatch(r"set_\w+_request|get_metadata_routing", n)
        ]
        less = f"   :exclude-members: {', '.join([*getattr(thing, '_fields', ()), *routing])}\n"
        members = f"   :members:\n   :inherited-members: object, tuple\n{less}"
        return f".. autoclass:: {module}.{name}\n{members}"
    return f".. autofunction:: {module}.{name}\n"


def _study(name):
    study = import_module(EXPERIMENTS[name])
    picture, run = PICTURES / f"{name}.svg", PICTURES / f"{name}.json"
    if not (picture.exists() and run.exists()):
        LOG.warning("study %s has no picture; make them with: make pictures", name)
        return ""
    summary = json.loads(run.read_text())
    return f"""{_heading(study.TITLE)}
{study.CLAIM}

.. image:: pictures/{name}.svg
   :alt: {study.TITLE}
   :target: _images/{name}.svg

{verdicts(summary)}
{folded("Numbers", _table(**summary["numbers"])) if "numbers" in summary else ""}
{console(summary)}"""


def folded(title, text):
    """Write a part that opens when its title is clicked."""
    return f"""
.. raw:: html

   <details><summary>{title}</summary>

{text}

.. raw:: html

   </details>
"""


def spaced(text):
    """Return a text with a space before each percent sign; names of worlds have none."""
    return re.sub(r"(?<=\d)%", " %", text)


def verdicts(summary):
    """Write what a run claimed, whether it held and what was measured."""
    marks = {True: "✓", False: "✗", None: "?"}  # None: the run is too small to tell
    held = "\n".join(
        f"- {marks[summary['holds'].get(claim)]} {claim}" + (f" ({found})" if found else "")
        for claim, found in summary["measured"].items()
    )
    return f".. rst-class:: verdicts\n\n{spaced(held)}\n"


def console(summary):
    """Write when a run was made, where that is known, and its command."""
    date = f"Run on {summary['date']} with\n\n" if "date" in summary else ""
    return f"{date}.. code-block:: console\n\n   $ {summary['command']}\n\n"


def _table(columns, data):
    heads = [str(name).replace("_", " ") for name in columns]
    return grid([[_cell(value) for value in line] for line in [heads, *data]], "numbers")


def grid(lines, style, *options):
    """Write a table of cells that are reStructuredText, the first line its head."""
    rows = "\n".join(
        f"   {'  -' if i else '* -'} {cell}" for line in lines for i, cell in enumerate(line)
    )
    settings = "".join(f"   {each}\n" for each in (f":class: {style}", ":header-rows: 1", *options))
    return f".. list-table::\n{settings}\n{rows}\n"


def _cell(value):
    if value is None:
        return "–"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return re.sub(r"([\\*`|_])", r"\\\1", spaced(text))


def _command(name):
    shown = CliRunner().invoke(main, [name, "--help"], prog_name="noisewise", terminal_width=78)
    lines = "\n".join(f"   {line}" for line in shown.output.splitlines())
    return f"{_heading(f'noisewise {name}')}\n.. code-block:: text\n\n{lines}\n"


def defaults(app, what, name, thing, options, signature, returns):
    """Show a default made by a function as a call of it, GLM() and not <factory>."""
    if getattr(thing, "_is_protocol", False):
        return "", returns
    if what == "class" and is_dataclass(thing) and signature:
        for each in fields(thing):
            made = getattr(each.default_factory, "__name__", "")
            made = f"{made}()" if made.isidentifier() else "..."
            signature = signature.replace(f"{each.name}=<factory>", f"{each.name}={made}")
    return signature, returns


def sentences(app, what, name, thing, options, lines):
    """Leave docstrings of properties alone: napoleon takes words before a colon for a type."""
    if what == "property":
        lines[:] = [*(getdoc(thing) or "").splitlines(), ""]


def setup(app: Sphinx):
    """Register the directives."""
    for directive in (Algorithms, Public, Room, Studies, Commands):
        app.add_directive(directive.__name__.lower(), directive)
    app.connect("autodoc-process-signature", defaults)
    app.connect("autodoc-process-docstring", sentences, priority=900)  # after napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
