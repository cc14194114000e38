"""Between this project's types and the two files of a service without an API: pure functions.

A request line, in `outbox/<job key>.jsonl`:

    {"custom_id": …, "document_hash": …, "model": …, "instructions": …, "document": …,
     "schema_name": …, "json_schema": {…}, "max_output_tokens": …, "parameters": {…}}

A result line, in `inbox/<job key>.jsonl`, in any order; `custom_id` may stand in it as well:

    {"document_hash": …, "record": {…}}
    {"document_hash": …, "error": "illegible"}
"""

import re

from extraction_pipeline.providers.base import (
    AnswerOutcome,
    DecodedResult,
    ModelRequest,
    TokenUsage,
    UndecodableResult,
)
from extraction_pipeline.providers.json_members import JsonMember, json_members
from extraction_pipeline.providers.request_line import encoded_line

_HASH = re.compile(r"[0-9a-f]{64}")
_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_NOTHING = JsonMember(None, "null")
_OUTCOMES = {"refused": AnswerOutcome.REFUSED, "rejected": AnswerOutcome.REJECTED}
"""Codes that say more than that it did not work: `rejected` is not asked for again."""


def encode_request(request: ModelRequest) -> bytes:
    """One request line, without its newline.

    Raises `ConfigurationError` for what JSON cannot hold.
    """
    line = {
        "custom_id": request.custom_id,
        "document_hash": request.document_hash,
        "model": request.model,
        "instructions": request.instructions,
        "document": request.document,
        "schema_name": request.schema_name,
        "json_schema": request.json_schema,
        "max_output_tokens": request.max_output_tokens,
        "parameters": dict(sorted(request.parameters.items())),
    }
    return encoded_line(line, request.custom_id)


def decode_result(line: bytes) -> DecodedResult:
    """Translate one result line. The record's text is taken as it is written.

    Of an error only a code is kept; words, which may speak of the patient, are not. Raises
    `UndecodableResult` where the line names no document.
    """
    try:
        members = json_members(line)
    except ValueError as fault:
        raise UndecodableResult(f"A result line cannot be read: {fault}.") from None
    custom_id, document_hash = _names(
        members.get("custom_id", _NOTHING).value, members.get("document_hash", _NOTHING).value
    )
    record, error = members.get("record", _NOTHING), members.get("error", _NOTHING)
    outcome, code = _outcome(record, error)
    return DecodedResult(
        custom_id=custom_id,
        document_hash=document_hash,
        outcome=outcome,
        text=record.text if outcome is AnswerOutcome.COMPLETED else None,
        http_status=None,
        request_id=None,
        model=None,
        usage=TokenUsage(),
        error_code=code,
    )


def _names(custom_id: object, document_hash: object) -> tuple[str | None, str | None]:
    """What a line calls its document; one of the two at least."""
    if isinstance(document_hash, str):
        document_hash = document_hash.strip().lower()
        if not _HASH.fullmatch(document_hash):
            raise UndecodableResult("A result line cannot be read: its document hash is none.")
    elif document_hash is not None:
        raise UndecodableResult("A result line cannot be read: its document hash is none.")
    if not isinstance(custom_id, str | None):
        raise UndecodableResult("A result line cannot be read: its custom id is none.")
    if not custom_id and document_hash is None:
        raise UndecodableResult("A result line cannot be read: it names no document.")
    return custom_id or None, document_hash


def _outcome(record: JsonMember, error: JsonMember) -> tuple[AnswerOutcome, str | None]:
    if error.value is None:
        completed = record.value is not None
        return (AnswerOutcome.COMPLETED if completed else AnswerOutcome.EMPTY), None
    if record.value is not None:
        return AnswerOutcome.ERRORED, "record_and_error"
    code = error.value if _is_code(error.value) else None
    return _OUTCOMES.get(code or "", AnswerOutcome.ERRORED), code


def _is_code(given: object) -> bool:
    # Narrower than what vendors use: here people write, and a name is not to pass for a code.
    return isinstance(given, str) and _CODE.fullmatch(given) is not None
