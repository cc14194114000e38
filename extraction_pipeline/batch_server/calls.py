"""One call to the server: its wire format, its id, and the key that it carries."""

import time
import uuid
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import Scope

from extraction_pipeline.batch_server.dialects import Dialect, dialect_of, google_path

UPLOAD_PATH = "/upload/v1beta/files"
UPLOAD_ID = "upload_id"
_SCOPE_KEY = "extraction_pipeline.call"
_OPEN_PATHS = frozenset({"/health"})
_OPEN_PREFIX = "/v1/discovery"
"""Infrai's description of its own API is public."""


@dataclass(frozen=True)
class Call:
    """What the gate knows of a call. `started` is of the monotonic clock."""

    dialect: Dialect
    request_id: str
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, scope: Scope) -> "Call":
        """The call of an ASGI scope; made when it is first asked for."""
        call = scope.get(_SCOPE_KEY)
        if not isinstance(call, cls):
            dialect = dialect_of(scope["path"])
            call = scope[_SCOPE_KEY] = cls(dialect, _new_id(dialect))
        return call

    @property
    def id_header(self) -> str | None:
        """The response header that carries the id, in wire formats that have one."""
        match self.dialect:
            case Dialect.OPENAI:
                return "x-request-id"
            case Dialect.ANTHROPIC:
                return "request-id"
            case Dialect.GEMINI | Dialect.INFRAI:
                return None

    @property
    def milliseconds(self) -> int:
        """How long it took up to now."""
        return int((time.monotonic() - self.started) * 1000)


def use_google_path(scope: Scope) -> None:
    """Put the path into the scope that the routes know; see `google_path`."""
    key = _google_key(scope)
    scope["path"] = google_path(scope["path"], has_google_key=key is not None)


def is_open(scope: Scope) -> bool:
    """Whether a call needs no key."""
    path = scope["path"]
    if path in _OPEN_PATHS or path == _OPEN_PREFIX or path.startswith(f"{_OPEN_PREFIX}/"):
        return True
    # The second call of an upload carries an id that only who made the first one knows; Google's
    # own client sends no key with it.
    return bool(path == UPLOAD_PATH and UPLOAD_ID in _query(scope))


def given_key(scope: Scope) -> str | None:
    """The key that a call carries where its wire format has it."""
    headers = Headers(scope=scope)
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = token if scheme.lower() == "bearer" else None
    match dialect_of(scope["path"]):
        case Dialect.ANTHROPIC:
            return headers.get("x-api-key", bearer)
        case Dialect.GEMINI:
            return _google_key(scope)
        case Dialect.OPENAI | Dialect.INFRAI:
            return bearer


def _google_key(scope: Scope) -> str | None:
    given = Headers(scope=scope).get("x-goog-api-key")
    return given or next(iter(_query(scope).get("key", [])), None)


def uuid7() -> str:
    """A UUID of version 7 (RFC 9562): ids that sort by time, as Infrai's request ids do."""
    number = (time.time_ns() // 1_000_000) << 80 | uuid.uuid4().int & ((1 << 80) - 1)
    number = number & ~(0xF << 76) | 7 << 76
    number = number & ~(0x3 << 62) | 2 << 62
    return str(uuid.UUID(int=number))


def _new_id(dialect: Dialect) -> str:
    return uuid7() if dialect is Dialect.INFRAI else f"req_{uuid.uuid4().hex}"


def _query(scope: Scope) -> dict[str, list[str]]:
    return parse_qs(scope["query_string"].decode("latin-1"))
