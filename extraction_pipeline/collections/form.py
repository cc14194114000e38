"""The form of a collection's YAML: which keys there are, of which type, within which bounds."""

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainValidator,
    field_validator,
    model_validator,
)

from extraction_pipeline.collections.collection import CeilingPeriod, Identity
from extraction_pipeline.collections.waiting_budget import DEFAULT, read_budget
from extraction_pipeline.documents.sources import Source
from extraction_pipeline.providers.registry import ProviderName

VERSION_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,40}$"
"""Also the alphabet of a Dagster partition key, which the name becomes."""
CURRENCY = r"^[A-Z]{3}$"
_COLLECTION_NAME = r"^[a-z][a-z0-9_]{0,40}$"
_TYPE_REFERENCE = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*(:[A-Za-z_][A-Za-z0-9_]*)?$"


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CeilingForm(_Form):
    """What a version may cost at most."""

    amount: Annotated[Decimal, Field(ge=0, le=1_000_000_000)]
    currency: Annotated[str, Field(pattern=CURRENCY)]
    per: CeilingPeriod = CeilingPeriod.TOTAL


class VersionForm(_Form):
    """One entry of `extraction_versions`."""

    provider: ProviderName
    model: Annotated[str, Field(min_length=1, max_length=200)]
    max_output_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = 4096
    max_attempts: Annotated[int, Field(ge=1, le=20)] = 3
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    ceiling: CeilingForm | None = None
    instructions: str | None = None
    instructions_file: str | None = None

    @field_validator("instructions", "instructions_file")
    @classmethod
    def not_blank(cls, value: str | None) -> str | None:
        """A key with nothing behind it is a slip, not a wish for no instructions."""
        if value is not None and not value.strip():
            raise ValueError("it must not be blank")
        return value

    @model_validator(mode="after")
    def one_source_of_instructions(self) -> Self:
        """The prompt is written here or in a file, not in both."""
        if self.instructions is not None and self.instructions_file is not None:
            raise ValueError("give either instructions or instructions_file")
        return self


class CollectionForm(_Form):
    """A whole file."""

    name: Annotated[str, Field(pattern=_COLLECTION_NAME)]
    description: str = ""
    document_type: Annotated[str, Field(pattern=_TYPE_REFERENCE)]
    source: Source
    identity: Identity = Identity.CONTENT
    source_system: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    show_paths: bool = False
    waiting_budget: Annotated[timedelta, PlainValidator(read_budget)] = DEFAULT
    active_version: str
    extraction_versions: Annotated[dict[str, VersionForm], Field(min_length=1)]
