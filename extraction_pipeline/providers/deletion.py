"""Asking for and deleting what lies at a provider, alike for all of them."""

from http import HTTPStatus

from extraction_pipeline.providers.errors import CallRefused
from extraction_pipeline.providers.http import HttpClient

_NOT_SEEN = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
"""Gemini says 403 of a file that is gone or of another project, OpenAI 404."""


def holds_file(http: HttpClient, path: str) -> bool:
    """Whether the file at `path` is seen with this key. Raises `CallRefused`, `CallFailed`."""
    try:
        http.get(path, lambda body: None)
    except CallRefused as refusal:
        if refusal.http_status in _NOT_SEEN:
            return False
        raise
    return True


def delete(http: HttpClient, path: str) -> None:
    """Delete what is at `path`. Raises `CallRefused`, `CallFailed`.

    That there is no such thing, or no such route (compatible servers leave it out), is no error.
    """
    try:
        http.delete(path)
    except CallRefused as refusal:
        if refusal.http_status not in (*_NOT_SEEN, HTTPStatus.METHOD_NOT_ALLOWED):
            raise
