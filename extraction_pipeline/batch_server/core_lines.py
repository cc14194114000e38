"""The requests of a batch in the core's own words: one JSON line each, whatever they came in as.

A line holds `custom_id`, and either `body`, a chat completion body, or `refusal`, the answer to a
request that cannot be put in such words. A wire format whose requests have no id puts there, as
JSON, what its results have to repeat of the request.
"""

import hashlib
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from extraction_pipeline.batch_server.answers import Answered
from extraction_pipeline.batch_server.chat import error_body
from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.records import (
    REQUESTS_PURPOSE,
    InputReport,
    LinePlace,
    StoredFile,
)
from extraction_pipeline.batch_server.state_folder import StateFolder


class Unwritable(ValueError):
    """A request cannot be kept as it is."""

    def __init__(self) -> None:
        super().__init__(
            "A request holds text that is not valid Unicode, a number beyond 64 bits, or objects "
            "in one another beyond all measure."
        )


@dataclass(frozen=True)
class Refusal:
    """Why a request cannot be served as it is. Quotes nothing of it."""

    message: str
    param: str | None = None
    status_code: int = 400

    def answer(self) -> Answered:
        """The answer to the request."""
        return Answered(self.status_code, error_body(self.message, param=self.param))


@dataclass(frozen=True)
class CoreRequest:
    """One request: a chat completion body, or why there is none."""

    custom_id: str
    asked: Mapping[str, Any] | Refusal = field(repr=False)

    def line(self) -> bytes:
        """Its line, with the newline. Raises `Unwritable`."""
        if isinstance(self.asked, Refusal):
            content: dict[str, Any] = {"custom_id": self.custom_id, "refusal": vars(self.asked)}
        else:
            content = {"custom_id": self.custom_id, "body": self.asked}
        return _dumped(content) + b"\n"

    @classmethod
    def read(cls, line: bytes) -> "CoreRequest":
        """The request of a line that was written here."""
        content = orjson.loads(line)
        refusal = content.get("refusal")
        return cls(content["custom_id"], content["body"] if refusal is None else Refusal(**refusal))


def repeated(parts: Mapping[str, Any]) -> str:
    """The custom id of a request without an id: what its result has to repeat, as JSON.

    Raises `Unwritable`.
    """
    return _dumped(parts).decode()


def _dumped(content: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(content)
    except TypeError:
        raise Unwritable from None


@dataclass(frozen=True)
class WrittenRequests:
    """A batch's requests, on disk, in no record and not in their place yet."""

    file: StoredFile
    draft: Path
    total: int
    digest: str

    def keep(self, folder: StateFolder) -> None:
        """Bring them to their place, synced."""
        folder.keep(self.draft, self.file.id)


def write_requests(
    draft: Path, dialect: Dialect, requests: Iterable[CoreRequest]
) -> WrittenRequests:
    """Write requests to `draft` as they come. Raises `Unwritable`."""
    total = size = 0
    digest = hashlib.sha256()
    with draft.open("wb") as file:
        for request in requests:
            line = request.line()
            digest.update(line)
            size += file.write(line)
            total += 1
    file_id = f"requests-{uuid.uuid4().hex}"
    stored = StoredFile(
        id=file_id,
        size=size,
        created_at=time.time(),
        filename=f"{file_id}.jsonl",
        purpose=REQUESTS_PURPOSE,
        dialect=dialect,
    )
    return WrittenRequests(stored, draft, total, digest.hexdigest())


def check_requests(
    lines: Iterable[bytes],
    accept: Callable[[LinePlace], None],
    refuse: Callable[[LinePlace, Refusal], None],
) -> InputReport:
    """Hand the place of every request to `accept`, and those that have their answer already to
    `refuse` after that. They were checked on their way in, so there is no fault to report."""
    offset = 0
    total = 0
    for raw in lines:
        request = CoreRequest.read(raw)
        place = LinePlace(total, request.custom_id, offset, len(raw))
        accept(place)
        if isinstance(request.asked, Refusal):
            refuse(place, request.asked)
        offset += len(raw)
        total += 1
    return InputReport(total)
