"""Receiving the bodies of calls, within limits."""

from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request

from extraction_pipeline.batch_server.api_errors import ApiError

LARGEST_JSON_BODY = 1024 * 1024


async def read_body(request: Request) -> bytes:
    """A small body, whole. Raises `ApiError` (413) for one that is not small."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_JSON_BODY:
            raise ApiError(413, "The body is too large.")
    return bytes(body)


async def receive_body(
    request: Request, path: Path, most_bytes: int, too_large: Callable[[], ApiError]
) -> None:
    """Write a body to a file as it comes. Raises what `too_large` makes where it is too long."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > most_bytes:
        raise too_large()
    received = 0
    with path.open("wb") as file:
        async for chunk in request.stream():
            received += len(chunk)
            if received > most_bytes:
                raise too_large()
            file.write(chunk)
