"""The lines of a result file, as pieces of at most a thousand, and what each says."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from extraction_pipeline.ledger import answers, items
from extraction_pipeline.providers.base import (
    BatchProvider,
    UndecodableResult,
)
from extraction_pipeline.providers.http_failures import safe_token

MOST_TOKENS = 2**31 - 1
"""Of one request; a provider that says more says nothing. Their sums fit the ledger's columns."""


@dataclass(frozen=True)
class ResultLine:
    """One line without its newline, and where it begins in the file."""

    offset: int
    data: bytes


@dataclass(frozen=True)
class ReadLine:
    """One decoded line: what it calls its request, and its row."""

    custom_id: str | None
    document_hash: str | None
    row: answers.RawRow


def line_chunks(stored: BinaryIO) -> Iterator[list[ResultLine]]:
    """Lines with their offsets, split on newline bytes only, without the newline."""
    offset = 0
    chunk: list[ResultLine] = []
    for line in stored:
        data = line.rstrip(b"\r\n")
        if data:
            chunk.append(ResultLine(offset, data))
        offset += len(line)
        if len(chunk) >= items.CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def read_lines(provider: BatchProvider, lines: list[ResultLine]) -> list[ReadLine]:
    """The lines that can be read; what an envelope says is kept where it can be stored."""
    decoded: list[ReadLine] = []
    for line in lines:
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
