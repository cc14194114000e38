"""The wire formats that the server speaks, and which one a call is in."""

import re
from enum import StrEnum


class Dialect(StrEnum):
    """A wire format. Every file and every batch belongs to the one that it was made in."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    INFRAI = "infrai"


_PATHS = (
    ("/v1/messages", Dialect.ANTHROPIC),
    ("/v1beta", Dialect.GEMINI),
    ("/upload/v1beta", Dialect.GEMINI),
    ("/download/v1beta", Dialect.GEMINI),
    ("/v1/ai", Dialect.INFRAI),
    ("/v1/discovery", Dialect.INFRAI),
)


def dialect_of(path: str) -> Dialect:
    """The wire format of a call to this path; OpenAI's where no other one claims it."""
    for prefix, dialect in _PATHS:
        if path == prefix or path.startswith(f"{prefix}/"):
            return dialect
    return Dialect.OPENAI


_GOOGLE_ALONE = re.compile(r"/(?:(?:upload|download)/v1/.*|v1/models/[^/]+:batchGenerateContent)")
_SHARED = re.compile(r"/v1/(?:files|batches)(?:[/:].*)?")
_VERSION = re.compile(r"/v1/")


def google_path(path: str, *, has_google_key: bool) -> str:
    """The path of a call as the routes know it.

    Google serves the same under `v1` and `v1beta`, and its own client has begun to ask for `v1`.
    Two of the paths are OpenAI's too; there, what carries a key in Google's way is Gemini's.
    """
    if _GOOGLE_ALONE.fullmatch(path) or (has_google_key and _SHARED.fullmatch(path)):
        return _VERSION.sub("/v1beta/", path, count=1)
    return path
