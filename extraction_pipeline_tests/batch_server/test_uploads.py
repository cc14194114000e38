"""Reading forms, at the limit of their size."""

import asyncio
from pathlib import Path

import pytest
from starlette.requests import Request

from extraction_pipeline.batch_server.api_errors import ApiError
from extraction_pipeline.batch_server.openai.uploads import uploads


def upload(folder: Path, content: bytes, most: int, chunk: int = 7) -> bytes:
    """Send a form in small pieces; the content that was read."""
    body = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        + content
        + b"\r\n--x--\r\n"
    )
    pieces = [body[start : start + chunk] for start in range(0, len(body), chunk)]

    async def receive():
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    headers = [(b"content-type", b"multipart/form-data; boundary=x")]
    request = Request({"type": "http", "method": "POST", "headers": headers}, receive)
    with uploads(folder, most) as reader:
        form = asyncio.run(reader.read(request))
        return form.content.read_bytes()


@pytest.mark.parametrize("content", [b"x", b"\r\n--", b"\r\n--y\r\n", bytes(range(256))])
@pytest.mark.parametrize("chunk", [1, 7, 10_000])
def test_a_content_arrives_as_it_was_sent(tmp_path, content, chunk):
    assert upload(tmp_path, content, most=1000, chunk=chunk) == content
    assert list(tmp_path.iterdir()) == []


def test_the_limit_is_exact(tmp_path):
    assert upload(tmp_path, b"x" * 10, most=10) == b"x" * 10
    for size in (11, 200_000):
        with pytest.raises(ApiError) as caught:
            upload(tmp_path, b"x" * size, most=10, chunk=1000)
        assert caught.value.status_code == 413
    assert list(tmp_path.iterdir()) == []
