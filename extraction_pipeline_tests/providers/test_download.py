"""Downloads by the HTTP client: a whole file or an error, whatever the server does."""

import gzip
import subprocess
import sys

import pytest

from extraction_pipeline.providers.errors import (
    CallFailed,
    CallRefused,
)
from extraction_pipeline_tests.providers.http_client import client
from extraction_pipeline_tests.providers.scripted_server import (
    answer,
    scripted_server,
    send,
    send_and_stay,
)


def downloaded(url: str, expected: int | None = None) -> bytes:
    with client(url, read_timeout=0.5).download("/files/f/content", expected) as chunks:
        return b"".join(chunks)


ROWS = b'{"custom_id": "a"}\n{"custom_id": "b"}\n'
CHUNKED = answer(
    200,
    b"%x\r\n%s\r\n0\r\n\r\n" % (len(ROWS), ROWS),
    "Transfer-Encoding: chunked",
    framed=False,
)


@pytest.mark.parametrize("said", [answer(200, ROWS), CHUNKED], ids=["length", "chunks"])
@pytest.mark.parametrize("expected", [None, len(ROWS)])
def test_a_whole_body_is_downloaded(said, expected):
    with scripted_server(send(said)) as server:
        assert downloaded(server.url, expected) == ROWS


def test_a_body_without_length_is_taken_if_its_size_is_known():
    with scripted_server(send(answer(200, ROWS, framed=False))) as server:
        assert downloaded(server.url, len(ROWS)) == ROWS
        with pytest.raises(CallFailed, match="no length"):
            downloaded(server.url)


CUT = {
    "length": (answer(200, ROWS)[:-5], None),
    "chunks": (CHUNKED[:-12], None),
    "between chunks": (CHUNKED[:-5], None),
    "framed whole but too small": (answer(200, ROWS), len(ROWS) + 1),
    "no length": (answer(200, ROWS[:-5], framed=False), len(ROWS)),
}


@pytest.mark.parametrize(("said", "expected"), CUT.values(), ids=CUT.keys())
def test_a_body_that_was_cut_raises(said, expected):
    with scripted_server(send(said)) as server, pytest.raises(CallFailed):
        downloaded(server.url, expected)


def test_a_download_that_stalls_raises():
    said = send_and_stay(answer(200, ROWS)[:-5])
    with scripted_server(said) as server, pytest.raises(CallFailed, match="after"):
        downloaded(server.url)


@pytest.mark.parametrize(("status", "error"), [(404, CallRefused), (503, CallFailed)])
def test_a_download_that_is_refused_raises(status, error):
    with scripted_server(send(answer(status))) as server, pytest.raises(error) as caught:
        downloaded(server.url)
    assert caught.value.http_status == status


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (gzip.compress(b" " * 1_000_000), ("Content-Encoding: gzip",)),
        (b"123456", ("Content-Encoding: unheard-of",)),
        (b"1234567", ()),
    ],
)
def test_a_download_that_is_compressed_or_longer_than_its_file_is_not_taken(body, headers):
    with (
        scripted_server(send(answer(200, body, *headers))) as server,
        client(server.url).download("/files/f/content", 6) as chunks,
        pytest.raises(CallFailed, match=r"compressed|longer than the file"),
    ):
        list(chunks)


def test_a_download_streams():
    size = 64 * 1024 * 1024
    program = f"""
import resource
from extraction_pipeline_tests.providers.http_client import client
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
from extraction_pipeline_tests.providers.scripted_server import answer, scripted_server
def big(connection):
    connection.sendall(answer(200, b"", "Content-Length: {size}", framed=False))
    for _ in range({size} // 65536):
        connection.sendall(bytes(65536))
with scripted_server(big) as server:
    with client(server.url).download("/files/f/content") as chunks:
        assert sum(map(len, chunks)) == {size}
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
