"""A rules baseline: what headings and patterns give of a document, without any model.

It answers a request in the place of a model: deterministic, without downloads, at about a
thousand documents a second. What the rules do not find stays `null`; every item carries the
words that it was read from. It depends on the text alone.
"""

from collections.abc import Callable, Mapping
from typing import Any

from extraction_pipeline.batch_server.baseline.care_protocol import care_protocol
from extraction_pipeline.batch_server.baseline.discharge_summary import discharge_summary
from extraction_pipeline.batch_server.baseline.empty import empty_instance
from extraction_pipeline.batch_server.baseline.payer_note import payer_note
from extraction_pipeline.schemas.prompt import extract_document
from extraction_pipeline.schemas.record import Record

__all__ = ["empty_instance", "extract", "schema_names"]

_RULES: Mapping[str, Callable[[str], Record]] = {
    "care_protocol": care_protocol,
    "discharge_summary": discharge_summary,
    "payer_note": payer_note,
}


def schema_names() -> tuple[str, ...]:
    """The schemas that there are rules for, sorted."""
    return tuple(sorted(_RULES))


def extract(schema_name: str, text: str) -> dict[str, Any] | None:
    """The record that the rules of `schema_name` find in `text`; `None` if there are no rules.

    `text` is the user's message of a request: a document as `schemas.prompt.render_document`
    makes it is unwrapped, anything else is read as it is. The result is plain JSON values and
    valid for the model of that name. Where there are no rules, see `empty_instance`.
    """
    rules = _RULES.get(schema_name)
    if rules is None:
        return None
    return rules(_document(text)).model_dump(mode="json")


def _document(text: str) -> str:
    try:
        return extract_document(text)
    except ValueError:
        return text
