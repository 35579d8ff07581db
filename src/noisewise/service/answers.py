"""Answers as HTTP has them: a body, or an error that says what is wrong and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from .events import Answer
from .loops import NameTaken, dumped
from .store import Unavailable

CODES = {400: "bad_request", 401: "no_token", 403: "forbidden", 404: "not_found",
         405: "method_not_allowed", 409: "conflict", 413: "body_too_large", 422: "invalid",
         429: "too_many", 503: "unavailable"}  # fmt: skip
AGAIN = {"retry-after": "1"}
MORE = {401: {"www-authenticate": 'Basic realm="noisewise"'}, 429: AGAIN, 503: AGAIN}


class Cause(BaseModel):
    """What was wrong, and where."""

    code: str
    message: str
    where: str


class Failure(BaseModel):
    """The body of every error."""

    error: Cause


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str, where: str = "", code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.where = status, message, where
        self.code = code or CODES.get(status, "error")

    @property
    def cause(self) -> dict[str, str]:
        """What is wrong, and where."""
        return {"code": self.code, "message": self.message, "where": self.where}


def refusal(error: Any) -> Refused:
    """Return an error as an answer."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, RequestValidationError | ValidationError):
        first = error.errors()[0]
        where = ".".join(str(each) for each in first["loc"] if each != "body")
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "json_invalid":
            message = f"the body is no JSON: {first['ctx']['error']} at character {where}"
        return Refused(400 if first["type"] == "json_invalid" else 422, message, where)
    if isinstance(error, HTTPException):
        return Refused(error.status_code, str(error.detail))
    if isinstance(error, Unavailable):
        return Refused(503, f"nothing was stored; try again ({error})")
    return Refused(500, "an error of the service, see its log")  # which has the trace


def refusing(where: str, task: Callable[..., Any], *values: Any) -> Any:
    """Run a task whose ValueError says what is wrong with a field."""
    try:
        return task(*values)
    except ValidationError:
        raise
    except ValueError as error:
        status = 409 if isinstance(error, NameTaken) else 422
        raise Refused(status, str(error), where) from None


def answer_errors(app: FastAPI) -> None:
    """Let every error of an application be JSON with a cause."""

    async def answer(_: Request, error: Any) -> Response:
        known = refusal(error)
        return Response(
            dumped({"error": known.cause}), known.status, media_type="application/json",
            headers={**MORE.get(known.status, {}), **(getattr(error, "headers", None) or {})},
        )  # fmt: skip

    for kind in (RequestValidationError, ValidationError, HTTPException, Unavailable, Refused):
        app.add_exception_handler(kind, answer)
    app.add_exception_handler(Exception, answer)


def item(answer: Answer | Refused) -> dict[str, Any]:
    """Return an answer as an item of a list."""
    if isinstance(answer, Answer) and answer.code:
        answer = Refused(answer.status, answer.message, answer.where, answer.code)
    if isinstance(answer, Refused):
        return {"status": answer.status, "error": answer.cause}
    return {**(answer.body or {}), "status": answer.status}


def response(answer: Answer) -> Response:
    """Return an answer as a response, or raise it if it is an error."""
    if answer.code:
        raise Refused(answer.status, answer.message, answer.where, answer.code)
    if answer.body is None:
        return Response(status_code=answer.status)
    return Response(dumped(answer.body), answer.status, media_type="application/json")
