"""Names of a package that are imported on first use, listed once: in the type stub beside it.

Type checkers and editors read ``__init__.pyi``, a line a name; so does the package when it is
imported, and thus knows its names without importing their modules.
"""

import re
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from typing import cast


def listed(package: ModuleSpec) -> dict[str, str]:
    """Return ``module:name`` for each name that the stub of a package imports, in its order.

    A name imported from the package itself is a module, ``module:``.
    """
    loader = cast(SourceFileLoader, package.loader)  # or that of a zip file
    stub = loader.get_data(f"{package.origin}i").decode()
    found = re.findall(r"^from \.([\w.]*) import (\w+) as", stub, re.MULTILINE)
    return {
        name: f"{package.name}.{module}:{name}" if module else f"{package.name}.{name}:"
        for module, name in found
    }


def importer(package: str, names: dict[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package with these names."""

    def find(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        path, _, attribute = names[name].partition(":")
        home = import_module(path)
        value = vars(home)[attribute] if attribute else home
        vars(import_module(package))[name] = value
        return value

    return find
