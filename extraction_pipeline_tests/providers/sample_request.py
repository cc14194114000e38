"""One request with everything in its schema that has to survive a provider's conversion."""

from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from extraction_pipeline.providers.base import ModelRequest
from extraction_pipeline.schemas.json_schema import strict_json_schema

CUSTOM_ID = "0123456789abcdef-0123456789abcdef0123456789abcdef01234567"

DOCUMENT_HASH = "ab" * 32


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Route(StrEnum):
    ORAL = "oral"
    NASAL = "nasal"


class Dose(_Closed):
    amount: float
    unit: str | None = Field(description="As written.")


class Visit(_Closed):
    day: date


class Note(_Closed):
    """Optional, nested, listed, enumerated, dated and mixed fields."""

    title: str | None = Field(description="The title, as written.")
    route: Route | None
    first: Dose
    others: list[Dose] | None = Field(description="All further doses.")
    next_step: Visit | Dose | str | None
    urgent: bool
    count: int


SCHEMA = strict_json_schema(Note)


def sample_request(**changes: Any) -> ModelRequest:
    fields: dict[str, Any] = {
        "custom_id": CUSTOM_ID,
        "model": "some-model",
        "instructions": "Extract what is stated.",
        "document": "<document-1>\nA. Sample, 5 mg, „é“ 漢\u2028🩺\n</document-1>",
        "schema_name": "note",
        "json_schema": SCHEMA,
        "max_output_tokens": 900,
        "parameters": {"temperature": 0},
        "document_hash": DOCUMENT_HASH,
    } | changes
    return ModelRequest(**fields)


def object_of(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """A closed object of these properties, all required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
