"""The reference of the decision service, made from its OpenAPI document and its models."""

import json
from functools import cache
from inspect import getdoc

from catalogue import Written, grid
from sphinx.application import Sphinx

from noisewise.service import api
from noisewise.service.answers import CODES
from noisewise.service.engine import Engine
from noisewise.service.events import DecideBody, RewardBody
from noisewise.service.loops import Settings
from noisewise.service.store import Store

MODELS = {model.__name__: model for model in (Settings, DecideBody, RewardBody)}
SUCCESS = "200", "201", "202", "204"


class Routes(Written):
    """Every route with its scope, statuses and words."""

    def text(self):
        """Write a section for each."""
        return "\n".join(_route(*each) for each in routes())


class Fields(Written):
    """The fields of a body."""

    required_arguments = 1

    def text(self, name):
        """Write a table."""
        schema = MODELS[name].model_json_schema()
        lines = [("field", "type", "default", "meaning")]
        for field, held in schema["properties"].items():
            usual = "required" if field in schema.get("required", ()) else _usual(held)
            lines.append((f"``{field}``", kind(held), usual, held.get("description", "")))
        return grid(lines, "numbers")


class Codes(Written):
    """The codes of errors."""

    def text(self):
        """Write a table."""
        lines = [("status", "code, unless a route has one of its own"), *_codes()]
        return grid(lines, "numbers")


@cache
def routes():
    """Return method, path, description, query, scope and statuses of all routes."""
    app = api.application(Engine(Store("sqlite:///noisewise.db")))
    scopes = {
        (method, route.path): api.scopes[each.call]
        for route in app.routes
        for method in getattr(route, "methods", None) or ()
        for each in getattr(getattr(route, "dependant", None), "dependencies", ())
        if each.call in api.scopes
    }
    return [
        (method.upper(), path, getdoc(_Documented(known["description"])),
         [each["name"] for each in known.get("parameters", ()) if each["in"] == "query"],
         scopes.get((method.upper(), path)), [s for s in known["responses"] if s in SUCCESS])
        for path, methods in app.openapi()["paths"].items() for method, known in methods.items()
    ]  # fmt: skip


class _Documented:
    def __init__(self, text):
        self.__doc__ = text


def _route(method, path, words, query, scope, statuses):
    title = f"``{method} {path}``"
    asked = f"Query: {', '.join(f'``{each}``' for each in query)}. " if query else ""
    needed = f"Scope {scope}. " if scope else ""
    return (
        f"{title}\n{'~' * len(title)}\n\n{words}\n\n{asked}{needed}Answers {', '.join(statuses)}.\n"
    )


def kind(schema):
    """Return a type of a JSON schema in words.

    >>> kind({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]})
    'list of strings'
    """
    if "anyOf" in schema:
        return " or ".join(kind(each) for each in schema["anyOf"] if each.get("type") != "null")
    if "enum" in schema or "const" in schema:
        return " or ".join(f'"{each}"' for each in schema.get("enum", [schema.get("const")]))
    if schema["type"] == "array":
        return f"list of {kind(schema['items'])}s"
    if schema["type"] == "object":
        return f"object of ({kind(schema['additionalProperties'])})"
    low, high = schema.get("minimum"), schema.get("maximum")
    return schema["type"] + (f" from {low:g} to {high:g}" if None not in (low, high) else "")


def _usual(held):
    usual = held.get("default", {})
    return "" if usual is None or usual == {} else f"``{json.dumps(usual)}``"


def _codes():
    return [(str(status), f"``{code}``") for status, code in CODES.items()]


def setup(app: Sphinx):
    """Add the directives."""
    for directive in (Routes, Fields, Codes):
        app.add_directive(directive.__name__.lower(), directive)
    return {"parallel_read_safe": True}
