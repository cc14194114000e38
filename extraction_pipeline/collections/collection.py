"""What a collection's YAML means, once it has been checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

from extraction_pipeline.collections.defect import Defect, collection_error
from extraction_pipeline.documents.sources import FolderSource, ManifestSource
from extraction_pipeline.errors import CollectionError
from extraction_pipeline.providers.registry import ProviderName


class Identity(StrEnum):
    """What makes two documents of a collection the same one."""

    CONTENT = "content"
    """Their bytes."""
    EXTERNAL_ID = "external_id"
    """Their source system and record id; other bytes under one id are a revision."""


class CeilingPeriod(StrEnum):
    """What a ceiling holds for."""

    TOTAL = "total"
    """All jobs of a version."""
    DAY = "day"
    """The jobs that were made on one day, in the time zone of the installation."""


@dataclass(frozen=True)
class Ceiling:
    """What a version may cost at most, in its own currency, before nothing more is sent."""

    amount: Decimal
    currency: str
    per: CeilingPeriod


@dataclass(frozen=True)
class ExtractionVersion:
    """A named way to extract. `instructions` is `None` where the document type's own are used.

    All but `name`, `max_attempts` and `ceiling` go into the recipe and thus into its fingerprint.
    """

    name: str
    provider: ProviderName
    model: str
    max_output_tokens: int
    max_attempts: int
    """How often the model may be asked about one document before it counts as failed."""
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    instructions: str | None = field(default=None, repr=False)
    ceiling: Ceiling | None = None


@dataclass(frozen=True)
class Collection:
    """Documents of one type from one source, and the versions in which they are extracted.

    `document_type` is a reference that `schemas.registry` resolves; here only its form was checked.
    """

    name: str
    description: str
    document_type: str
    source: FolderSource | ManifestSource
    identity: Identity
    source_system: str | None
    show_paths: bool
    active_version: str
    extraction_versions: tuple[ExtractionVersion, ...]
    waiting_budget: timedelta
    """How long a batch job may be open before a person should look at it."""
    declared_in: Path = field(compare=False)
    """The YAML file, as an absolute path."""
    lines: Mapping[tuple[str | int, ...], int] = field(compare=False, repr=False)
    """The line of each of its keys, from 1, by the keys that lead to it."""

    def version(self, name: str) -> ExtractionVersion:
        """The extraction version called `name`. Raises `CollectionError` if there is none."""
        for version in self.extraction_versions:
            if version.name == name:
                return version
        known = ", ".join(version.name for version in self.extraction_versions)
        raise self.error(
            ("extraction_versions",),
            f"Collection {self.name} has no extraction version {name!r}.",
            f"Use one of: {known}.",
        )

    @property
    def base_dir(self) -> Path:
        """The folder of the YAML file, which `documents.sources` asks for."""
        return self.declared_in.parent

    @property
    def active(self) -> ExtractionVersion:
        """The version that the nightly refresh extracts with."""
        return self.version(self.active_version)

    def error(self, key: tuple[str | int, ...], message: str, remedy: str) -> CollectionError:
        """An error about the value at `key`, for what only later stages can find out."""
        line = self.lines.get(key, 1)
        return collection_error([Defect(line, message, remedy).shown(self.declared_in)])
