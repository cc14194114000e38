"""What must hold between the keys of a collection, beyond the form of each."""

import re
from collections.abc import Iterator

from extraction_pipeline.collections.collection import Identity
from extraction_pipeline.collections.defect import Defect
from extraction_pipeline.collections.explanation import did_you_mean
from extraction_pipeline.collections.form import VERSION_NAME, CollectionForm
from extraction_pipeline.collections.yaml_document import YamlDocument
from extraction_pipeline.documents.sources import ManifestSource


def inconsistencies(form: CollectionForm, document: YamlDocument) -> Iterator[Defect]:
    """Each rule that the collection breaks, at the line where it is best mended."""
    yield from _version_names(form, document)
    yield from _identity(form, document)


def _version_names(form: CollectionForm, document: YamlDocument) -> Iterator[Defect]:
    for name in form.extraction_versions:
        # Two full stops would be read as a part of the range sign `...` in a partition selection.
        if not re.match(VERSION_NAME, name) or ".." in name:
            yield Defect(
                document.line(("extraction_versions", name)),
                f"An extraction version cannot be called {name!r}.",
                "Use a letter or digit, then letters, digits and single . _ -, "
                "41 characters at most.",
            )
    if form.active_version not in form.extraction_versions:
        known = ", ".join(form.extraction_versions)
        yield Defect(
            document.line(("active_version",)),
            f"There is no extraction version {form.active_version!r}.",
            f"{did_you_mean(form.active_version, form.extraction_versions)}Use one of {known}, "
            "or add it to extraction_versions.",
        )


def _identity(form: CollectionForm, document: YamlDocument) -> Iterator[Defect]:
    if form.identity is Identity.CONTENT:
        if form.source_system is not None:
            yield Defect(
                document.line(("source_system",)),
                "source_system has no meaning with identity: content.",
                "Remove it, or write identity: external_id.",
            )
        return
    line = document.line(("identity",))
    if form.source_system is None:
        yield Defect(
            line,
            "identity: external_id needs a source_system.",
            "Add source_system: with the name of the system that gave the record ids.",
        )
    if not isinstance(form.source, ManifestSource) or form.source.record_id_column is None:
        yield Defect(
            line,
            "identity: external_id needs record ids.",
            "Use a source of kind: manifest with its record_id_column, or identity: content.",
        )
