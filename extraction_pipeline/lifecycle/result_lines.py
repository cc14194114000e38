"""The lines of a result file, as pieces of at most a thousand, and what each says."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from extraction_pipeline.ledger import answers, items
from extraction_pipeline.providers.base import (
    LONGEST_RESULT_LINE,
    BatchProvider,
    UndecodableResult,
)
from extraction_pipeline.providers.http_failures import safe_token

PIECE_BYTES = 1024 * 1024
CHUNK_BYTES = 16 * 1024 * 1024
"""What a piece of lines holds at least of long ones, before the next begins."""

MOST_TOKENS = 2**31 - 1
"""Of one request; a provider that says more says nothing. Their sums fit the ledger's columns."""


@dataclass(frozen=True)
class ResultLine:
    """One line without its newline, and where it begins in the file. No data: it is longer than
    `LONGEST_RESULT_LINE`."""

    offset: int
    data: bytes | None


@dataclass(frozen=True)
class ReadLine:
    """One decoded line: what it calls its request, and its row."""

    custom_id: str | None
    document_hash: str | None
    row: answers.RawRow


def each_line(stored: BinaryIO) -> Iterator[ResultLine]:
    """Lines that hold anything, with their offsets, split on newline bytes only, without the
    newline. Of one that is too long no more is held than of the longest."""
    offset = length = 0
    held: list[bytes] = []

    def line() -> ResultLine | None:
        if length > LONGEST_RESULT_LINE:
            return ResultLine(offset, None)
        data = b"".join(held).rstrip(b"\r")
        return ResultLine(offset, data) if data else None

    while piece := stored.read(PIECE_BYTES):
        *ends, rest = piece.split(b"\n")
        for end in ends:
            length += len(end)
            held.append(end)
            if (one := line()) is not None:
                yield one
            offset += length + 1
            length, held = 0, []
        length += len(rest)
        held = [*held, rest] if length <= LONGEST_RESULT_LINE else []
    if (one := line()) is not None:
        yield one


def line_chunks(stored: BinaryIO) -> Iterator[list[ResultLine]]:
    """The same as pieces of at most a thousand, and of fewer long ones."""
    chunk: list[ResultLine] = []
    size = 0
    for line in each_line(stored):
        chunk.append(line)
        size += len(line.data or b"")
        if len(chunk) >= items.CHUNK or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def read_lines(provider: BatchProvider, lines: list[ResultLine]) -> list[ReadLine]:
    """The lines that can be read; what an envelope says is kept where it can be stored."""
    decoded: list[ReadLine] = []
    for line in lines:
        if line.data is None:
            continue
        try:
            result = provider.decode_result(line.data)
        except UndecodableResult:
            continue
        status = result.http_status
        row = answers.RawRow(
            item_id=0,
            byte_offset=line.offset,
            byte_length=len(line.data),
            body_hash=hashlib.sha256(line.data).hexdigest(),
            outcome=result.outcome.value,
            http_status=status if status is not None and 0 <= status < 1000 else None,
            request_id=safe_token(result.request_id),
            model=safe_token(result.model),
            input_tokens=_tokens(result.usage.input_tokens),
            output_tokens=_tokens(result.usage.output_tokens),
        )
        decoded.append(ReadLine(result.custom_id, result.document_hash, row))
    return decoded


def _tokens(count: int | None) -> int | None:
    return count if count is not None and 0 <= count <= MOST_TOKENS else None
