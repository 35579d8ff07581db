"""Writes docs/http.md, the reference of the decision service, from its routes and models.

Run it where routes, bodies or settings change: ``python docs/routes.py``. A test compares the two.
"""

import json
from inspect import cleandoc
from pathlib import Path

from noisewise.service.engine import Engine
from noisewise.service.log.events import DecideBody, RewardBody
from noisewise.service.log.store import Store
from noisewise.service.loops import Settings
from noisewise.service.web import api
from noisewise.service.web.answers import CODES

PAGE = Path(__file__).parent / "http.md"
METHODS = "get", "post", "patch", "delete"
SUCCESS = "200", "201", "202", "204"
TEXT = """\
# HTTP reference

For applications in any language that ask the [decision service](howto/service.md). It is made from
the routes of the code by `python docs/routes.py`; a running service has the same at
`/openapi.json`.

Bodies and answers are JSON. Every error is
`{{"error": {{"code": ..., "message": ..., "where": ...}}}}`, where `where` names the field. Where
there are tokens, a request has the header `Authorization: Bearer nw_...`; `/healthz` and `/readyz`
need none. 429 and 503 mean: ask again, nothing was kept. To ask again is always safe with the same
`event_id` or `reward_id`.

## Settings of a loop

`context` says of each field whether it is a "number", lists its words, or gives a number of columns
into which its words are hashed.

{settings}

## A decision

{decision}

## A reward

{reward}

## Status and code of errors

{codes}

## Routes

{routes}
"""


def page():
    """Return the reference in Markdown."""
    return TEXT.format(
        settings=fields(Settings), decision=fields(DecideBody), reward=fields(RewardBody),
        codes=_table(("status", "code, unless a route has one of its own"),
                     [(str(status), f"`{code}`") for status, code in CODES.items()]),
        routes="\n\n".join(_route(*each) for each in routes()),
    )  # fmt: skip


def fields(model):
    """Return a table of the fields of a body."""
    schema = model.model_json_schema()
    rows = [
        (f"`{name}`", kind(held) + _or_null(held),
         "required" if name in schema.get("required", ()) else _usual(held),
         held.get("description", ""))
        for name, held in schema["properties"].items()
    ]  # fmt: skip
    return _table(("field", "type", "default", "meaning"), rows)


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
        (method.upper(), path, cleandoc(known["description"]).replace("``", "`"),
         [each["name"] for each in known.get("parameters", ()) if each["in"] == "query"],
         scopes.get((method.upper(), path)), [s for s in known["responses"] if s in SUCCESS])
        for path, methods in app.openapi()["paths"].items()
        for method, known in sorted(methods.items(), key=lambda each: METHODS.index(each[0]))
    ]  # fmt: skip


def _route(method, path, words, query, scope, statuses):
    asked = f"Query: {', '.join(f'`{each}`' for each in query)}. " if query else ""
    needed = f"Scope {scope}. " if scope else ""
    return f"### `{method} {path}`\n\n{words}\n\n{asked}{needed}Answers {', '.join(statuses)}."


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


def _or_null(held):
    """Return what is said of null where it is another thing than to leave the field out."""
    nullable = any(each.get("type") == "null" for each in held.get("anyOf", ()))
    return " or null" if nullable and held.get("default") is not None else ""


def _usual(held):
    usual = held.get("default", {})
    return "" if usual is None or usual == {} else f"`{json.dumps(usual)}`"


def _table(head, rows):
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    PAGE.write_text(page())
