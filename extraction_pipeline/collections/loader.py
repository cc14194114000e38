"""Reads a folder of collection YAMLs. All that is wrong in it is reported at once, one line each.

Only the files themselves are looked at: whether a source can be reached, or a document type exists,
is found out by those who use them.
"""

import json
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

from pydantic import ValidationError

from extraction_pipeline.collections.collection import Ceiling, Collection, ExtractionVersion
from extraction_pipeline.collections.consistency import inconsistencies
from extraction_pipeline.collections.defect import Defect, collection_error
from extraction_pipeline.collections.explanation import collection_keys, explain
from extraction_pipeline.collections.form import CollectionForm, VersionForm
from extraction_pipeline.collections.places import place_source, stray_references
from extraction_pipeline.collections.yaml_document import (
    MOST_BYTES,
    YamlDocument,
    forbidden_characters,
    parse_yaml,
)
from extraction_pipeline.whole_file import read_whole

_MOST_INSTRUCTIONS = 1_000_000
"""Bytes of an instructions file; a long prompt takes a hundredth of it."""


def load_collections(
    folders: Path | Sequence[Path], environ: Mapping[str, str]
) -> tuple[Collection, ...]:
    """All collections that the `.yaml` and `.yml` files in the folders declare, by name.

    Raises `CollectionError` with one line for each defect of each file, in the form
    `file:line: cause remedy`.
    """
    collections: dict[str, Collection] = {}
    reports: list[str] = []
    given = [folders] if isinstance(folders, Path) else folders
    for file in [file for folder in given for file in _yaml_files(folder.absolute())]:
        collection, defects = read_collection(file, environ)
        reports.extend(defect.shown(file) for defect in defects)
        if collection is None:
            continue
        first = collections.setdefault(collection.name, collection)
        if first is not collection:
            message = f"The name {first.name!r} is taken by {first.declared_in}."
            line = collection.lines[("name",)]
            reports.append(Defect(line, message, "Give one of the two another.").shown(file))
    if reports:
        raise collection_error(reports)
    return tuple(collections[name] for name in sorted(collections))


def read_collection(
    file: Path, environ: Mapping[str, str]
) -> tuple[Collection | None, tuple[Defect, ...]]:
    """The collection that one file declares, or `None` and the defects, by line."""
    try:
        text = read_whole(file, MOST_BYTES).decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        message = f"The file cannot be read ({reason})."
        return None, (Defect(1, message, "Correct it, or take it out of the folder."),)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return None, (Defect(line, "The file is not UTF-8.", "Save it in that encoding."),)
    document = parse_yaml(text)
    if not isinstance(document.data, dict):
        not_keys = Defect(1, "The file holds no keys.", "Begin it with name: and its value.")
        return None, document.defects or (not_keys,)
    source, misplaced = place_source(document, file.parent, environ)
    defects = [*document.defects, *misplaced, *stray_references(document)]
    data = document.data | ({} if source is None else {"source": source})
    try:
        form = CollectionForm.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        defects += explain(error, document, collection_keys)
        return None, _by_line(defects)
    defects += inconsistencies(form, document)
    instructions, unread = _read_instructions(form, file, document)
    defects += unread
    if defects:
        return None, _by_line(defects)
    return _collection(form, instructions, file, document), ()


def _yaml_files(folder: Path) -> list[Path]:
    remedy = "Set EXTRACTION_COLLECTIONS to a folder with at least one collection in it."
    try:
        files = sorted(
            file
            for file in folder.iterdir()
            if file.suffix.lower() in (".yaml", ".yml")
            and not file.name.startswith(".")
            and not file.is_dir()
        )
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise collection_error(
            [f"{folder}: The folder cannot be read ({reason}). {remedy}"]
        ) from error
    if not files:
        raise collection_error([f"{folder}: There is no YAML file in this folder. {remedy}"])
    return files


def _read_instructions(
    form: CollectionForm, file: Path, document: YamlDocument
) -> tuple[dict[str, str | None], list[Defect]]:
    """The own instructions of each version, `None` where it has none."""
    instructions: dict[str, str | None] = {}
    defects = []
    folder = file.parent.resolve()
    for name, version in form.extraction_versions.items():
        instructions[name] = version.instructions and version.instructions.strip()
        if version.instructions_file is None:
            continue
        line = document.line(("extraction_versions", name, "instructions_file"))
        try:
            named = (folder / version.instructions_file).resolve()
            # What is in the file goes to a provider, so the YAML cannot name any file there is.
            if not named.is_relative_to(folder):
                message = "The instructions file lies outside the folder of this YAML."
                remedy = "Put a copy of it into that folder; a link must not lead out of it."
                defects.append(Defect(line, message, remedy))
                continue
            written = read_whole(named, _MOST_INSTRUCTIONS).decode("utf-8-sig")
            # Line ends of every kind are read as one, as in the YAML itself.
            text = StringIO(written, newline=None).read().strip()
        except (OSError, RuntimeError, ValueError) as error:
            # RuntimeError: links in a ring. ValueError: no UTF-8, or a name that no file can have.
            reason = (isinstance(error, OSError) and error.strerror) or "it is not UTF-8 text"
            if isinstance(error, RuntimeError):
                reason = "its links lead in a ring"
            remedy = "Correct the path, which starts at this file's folder, or the file."
            message = f"The instructions file cannot be read ({reason})."
            defects.append(Defect(line, message, remedy))
            continue
        if not text or forbidden_characters(text):
            message = "The instructions file is blank or holds control characters."
            defects.append(Defect(line, message, "Write the instructions in it as plain text."))
        instructions[name] = text
    return instructions, defects


def _collection(
    form: CollectionForm,
    instructions: Mapping[str, str | None],
    file: Path,
    document: YamlDocument,
) -> Collection:
    return Collection(
        name=form.name,
        description=form.description.strip(),
        document_type=form.document_type,
        source=form.source,
        identity=form.identity,
        source_system=form.source_system,
        show_paths=form.show_paths,
        active_version=form.active_version,
        extraction_versions=tuple(
            _version(name, version, instructions[name])
            for name, version in form.extraction_versions.items()
        ),
        waiting_budget=form.waiting_budget,
        declared_in=file,
        lines=document.lines,
    )


def _version(name: str, form: VersionForm, instructions: str | None) -> ExtractionVersion:
    return ExtractionVersion(
        name=name,
        provider=form.provider,
        model=form.model,
        max_output_tokens=form.max_output_tokens,
        max_attempts=form.max_attempts,
        parameters=form.parameters,
        instructions=instructions,
        ceiling=Ceiling(form.ceiling.amount, form.ceiling.currency, form.ceiling.per)
        if form.ceiling
        else None,
    )


def _by_line(defects: list[Defect]) -> tuple[Defect, ...]:
    return tuple(sorted(defects, key=lambda defect: defect.line))
