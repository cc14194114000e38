"""The names of documents and texts: SHA-256 hashes of 64 hexadecimal characters.

A document's hash is its identity and its partition key. It comes from the bytes of the source
(`content_hash`) or, where a collection says `identity: external_id`, from the record's id in the
source system (`external_document_hash`). A text has its own hash, because two files of different
bytes can hold the same text, and because a better reader can read another text out of the same
bytes. What one request is about is named by `document_key`.
"""

import hashlib
from typing import BinaryIO

_CHUNK_BYTES = 1 << 20


def content_hash(data: bytes) -> str:
    """Hash of the bytes of a source: the same bytes under two names are one document."""
    return hashlib.sha256(data).hexdigest()


def content_hash_of_stream(stream: BinaryIO, *, begun: bytes = b"") -> tuple[str, int]:
    """Hash and length in bytes of a stream, read in pieces of 1 MiB.

    `begun` is what was read of it before.
    """
    digest = hashlib.sha256(begun)
    length = len(begun)
    while chunk := stream.read(_CHUNK_BYTES):
        digest.update(chunk)
        length += len(chunk)
    return digest.hexdigest(), length


def external_document_hash(source_system: str, record_id: str) -> str:
    """Hash of a record's id: source system + NUL + record id.

    NUL keeps the two apart, so that ("a", "bc") and ("ab", "c") are two documents.
    """
    return _hash_joined("source system", source_system, "record id", record_id)


def text_hash(text: str) -> str:
    """Hash of a text as UTF-8. Raises ValueError for a text with lone surrogates."""
    return hashlib.sha256(_utf8(text, "text")).hexdigest()


def document_key(extraction_version: str, text: str) -> str:
    """Hash of extraction version + NUL + text: what one request is about."""
    return _hash_joined("extraction version", extraction_version, "text", text)


def _hash_joined(first_is: str, first: str, second_is: str, second: str) -> str:
    if "\0" in first:
        raise ValueError(f"the {first_is} holds a NUL character, which marks its end in the hash")
    return hashlib.sha256(_utf8(first, first_is) + b"\0" + _utf8(second, second_is)).hexdigest()


def _utf8(text: str, what: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        # The original error carries the whole text in its `object`; it must not travel further.
        position = error.start
    raise ValueError(f"the {what} is not well-formed Unicode: a lone surrogate at {position}")
