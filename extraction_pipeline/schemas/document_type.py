"""What makes a document type: a name, a model, a version of its schema, and instructions."""

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.schemas.json_schema import strict_json_schema

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)


@dataclass(frozen=True)
class DocumentType:
    """One type of document, complete enough to ask a model for it and to check the answer.

    `name` is the schema's name in requests (lower case, digits, underscores, 64 at most).
    `schema_version` is `<name>/<number>`, and the number goes up with every change of the model
    or its instructions that a reader of old records has to know of.

    Raises `ConfigurationError` where one of these does not hold, or where the model cannot be
    expressed as a strict JSON Schema.
    """

    name: str
    model: type[BaseModel]
    schema_version: str
    instructions: str = field(repr=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"A document type cannot be named {self.name!r}.",
                remedy="Use a lower case letter, then letters, digits or underscores, "
                "64 characters at most.",
            )
        if not re.fullmatch(rf"{self.name}/[1-9]\d*", self.schema_version, re.ASCII):
            raise ConfigurationError(
                f"The document type {self.name} has the schema version {self.schema_version!r}.",
                remedy=f"Write it as the type's name and a number, such as {self.name}/1.",
            )
        if not self.instructions.strip():
            raise ConfigurationError(
                f"The document type {self.name} has no instructions.",
                remedy="Say in `instructions` what the model is to find.",
            )
        _ = self.json_schema

    @cached_property
    def json_schema(self) -> dict[str, Any]:
        """The strict JSON Schema that requests carry. Not to be changed by the caller."""
        return strict_json_schema(self.model)
