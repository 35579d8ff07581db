"""Tokens: who may do what. Only their hashes are stored."""

from __future__ import annotations

import hmac
import re
import secrets
import time
from dataclasses import dataclass
from hashlib import sha256

from ..log.store import Connection, Doubled

SCOPES = ("decide", "reward", "read", "admin")


@dataclass(frozen=True)
class Token:
    """A token as the database knows it."""

    name: str
    sha256: str
    scopes: frozenset[str]
    created: float
    revoked: float | None


def create(connection: Connection, name: str, scopes: list[str]) -> str:
    """Return a new token; it can't be read again."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", name):
        raise ValueError(f"name is {name!r}; pass letters, digits, '.', '_' and '-'")
    if not scopes or (unknown := {*scopes} - {*SCOPES}):
        raise ValueError(f"scopes is {sorted(unknown)}; pass some of {', '.join(SCOPES)}")
    token = f"nw_{secrets.token_urlsafe(32)}"
    try:
        connection.change(
            "INSERT INTO tokens (name, sha256, scopes, created) VALUES (?, ?, ?, ?)",
            name, _hash(token), " ".join(sorted({*scopes})), time.time(),
        )  # fmt: skip
    except Doubled:
        raise ValueError(f"name is {name!r}, which another token has; choose another") from None
    return token


def revoke(connection: Connection, name: str) -> None:
    """Let a token do nothing any more."""
    if not connection.change(
        "UPDATE tokens SET revoked = ? WHERE name = ? AND revoked IS NULL", time.time(), name
    ):
        raise ValueError(f"no token {name!r} is in use")


def every(connection: Connection) -> list[Token]:
    """Return all tokens, revoked ones too."""
    rows = connection.rows("SELECT name, sha256, scopes, created, revoked FROM tokens ORDER BY id")
    return [
        Token(name, held, frozenset(scopes.split()), *rest) for name, held, scopes, *rest in rows
    ]


def find(tokens: list[Token], given: str) -> Token | None:
    """Return the token that was given, if it is in use."""
    held, found = _hash(given), None
    for token in tokens:  # all are compared, however early one fits
        if hmac.compare_digest(token.sha256, held) and token.revoked is None:
            found = token
    return found


def _hash(token: str) -> str:
    return sha256(token.encode(errors="surrogatepass")).hexdigest()
