"""Answers as HTTP has them: a body, or an error that says what is wrong and where."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from ..log.store import Unavailable
from ..loops import NameTaken, dumped

CODES = {400: "bad_request", 401: "no_token", 403: "forbidden", 404: "not_found",
         405: "method_not_allowed", 409: "conflict", 413: "body_too_large", 422: "invalid",
         429: "too_many", 503: "unavailable"}  # fmt: skip
AGAIN = {"retry-after": "1"}
MORE = {401: {"www-authenticate": 'Basic realm="noisewise"'}, 429: AGAIN, 503: AGAIN}
LONGEST = 80  # letters of a value that an error shows
WANTED = {  # what to pass instead, by the name that pydantic has for what is wrong
    "string_type": "text",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "literal_error": "{expected}",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number of at least {ge:g}",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "a number of at most {le:g}",
    "too_short": "at least {min_length}",
    "too_long": "at most {max_length}",
    "string_too_long": "at most {max_length} letters",
    "string_pattern_mismatch": "text that matches {pattern}",
}

P = ParamSpec("P")
R = TypeVar("R")


class Cause(BaseModel):
    """What was wrong, and where."""

    code: str
    message: str
    where: str


class Failure(BaseModel):
    """The body of every error."""

    error: Cause


@dataclass(frozen=True)
class Answer:
    """A status, and the body that goes with it."""

    status: int
    body: dict[str, object] | None = None

    @property
    def item(self) -> dict[str, object]:
        """The answer as an item of a list."""
        return {**(self.body or {}), "status": self.status}

    @property
    def response(self) -> Response:
        """The answer as a response of its own."""
        if self.body is None:
            return Response(status_code=self.status)
        return Response(dumped(self.body), self.status, media_type="application/json")


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str, where: str = "", code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.where = status, message, where
        self.code = code or CODES.get(status, "error")

    @property
    def item(self) -> dict[str, object]:
        """The error as an item of a list."""
        cause = {"code": self.code, "message": self.message, "where": self.where}
        return {"status": self.status, "error": cause}

    @property
    def response(self) -> Response:
        """The error as a response of its own."""
        body, more = dumped({"error": self.item["error"]}), MORE.get(self.status)
        return Response(body, self.status, more, media_type="application/json")


def refusal(error: Exception, given: object = None) -> Refused:
    """Return an error as an answer; ``given`` is the item of a list that it is about."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            message = f"{first['ctx']['error']} at character {first['loc'][-1]}"
            return Refused(400, f"the body is no JSON: {message}", str(first["loc"][-1]))
        return _wrong(error.errors(), {"body": error.body})
    if isinstance(error, ValidationError):
        return _wrong(error.errors(), given)
    if isinstance(error, HTTPException):
        return Refused(error.status_code, str(error.detail))
    if isinstance(error, Unavailable):
        return Refused(503, f"nothing was stored; try again ({error})")
    return Refused(500, "an error of the service, see its log")  # which has the trace


def _wrong(errors: Sequence[Mapping[str, Any]], given: object) -> Refused:
    """Return what pydantic has found first, in our words.

    A value that may be of several types has an error for each, under the name of the type.
    """
    places = [_place(each["loc"], each["type"], given) for each in errors]
    first = places[0]
    place = max((each for each in places if each[: len(first)] == first), key=len)  # the innermost
    same = [each for each, where in zip(errors, places, strict=True) if where == place]
    where = ".".join(str(each) for each in place if each not in ("body", "query", "path"))
    kind, name = same[0]["type"], where or "the body"
    if kind == "value_error":
        return Refused(422, str(same[0]["ctx"]["error"]), where)
    if kind == "missing":
        return Refused(422, f"{name} is missing; pass it", where)
    if kind == "extra_forbidden":
        return Refused(422, f"{name} is no field that is known here; leave it out", where)
    value = json.dumps(same[0]["input"], default=str)
    value = value if len(value) <= LONGEST else f"{value[: LONGEST - 4]} ..."
    wanted = [
        WANTED[each["type"]].format(**each.get("ctx", {})) if each["type"] in WANTED
        else f"another value ({each['msg']})"
        for each in same
    ]  # fmt: skip
    message = f"{name} is {value}; pass {' or '.join(dict.fromkeys(wanted))}"
    if isinstance(same[0]["input"], str | bytes) and not where:
        message += " as JSON, with the header content-type: application/json"
    return Refused(422, message, where)


def _place(loc: tuple[str | int, ...], kind: str, given: object) -> tuple[str | int, ...]:
    """Return where an error is in what was given, without the names of types."""
    if loc[:1] in (("path",), ("query",)):
        return loc
    found = list[str | int]()
    for part in loc:
        match given:
            case list() if isinstance(part, int):
                given = given[part]
            case dict() if part in given:
                given = given[part]
            case _:
                continue
        found.append(part)
    if kind == "missing" and loc != ("body",):
        found.append(loc[-1])
    return tuple(found)


def refusing(where: str, task: Callable[P, R], *values: P.args, **more: P.kwargs) -> R:
    """Run a task whose ValueError says what is wrong with a field."""
    try:
        return task(*values, **more)
    except ValidationError:
        raise
    except ValueError as error:
        status = 409 if isinstance(error, NameTaken) else 422
        raise Refused(status, str(error), where) from None


def answer_errors(app: FastAPI) -> None:
    """Let every error of an application be JSON with a cause."""

    async def answer(_: Request, error: Exception) -> Response:
        found = refusal(error).response
        if isinstance(error, HTTPException):
            found.headers.update(error.headers or {})
        return found

    for kind in (RequestValidationError, HTTPException, Unavailable, Refused, Exception):
        app.add_exception_handler(kind, answer)
