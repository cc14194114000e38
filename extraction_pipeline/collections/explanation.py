"""Turns what pydantic says of a YAML's form into lines that its author can act on."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from extraction_pipeline.collections.defect import Defect
from extraction_pipeline.collections.form import CeilingForm, CollectionForm, VersionForm
from extraction_pipeline.collections.yaml_document import YamlDocument
from extraction_pipeline.documents.sources import FolderSource, ManifestSource

KeysAt: TypeAlias = Callable[[Sequence[str | int]], tuple[str, ...]]
"""Says which keys a form allows in the mapping at a location; none where any is allowed."""

_SOURCES: dict[str, type[BaseModel]] = {"folder": FolderSource, "manifest": ManifestSource}
_PATTERNS = {
    "name": "Use a lower case letter, then lower case letters, digits or underscores, "
    "41 characters at most.",
    "currency": "Write its three capital letters, as USD or EUR.",
    "document_type": "Write it as discharge_summary, my_package.my_type or my_types:Referral.",
}


def explain(error: ValidationError, document: YamlDocument, keys_at: KeysAt) -> list[Defect]:
    """One defect for each error that the document's own defects do not already explain."""
    details = error.errors(include_url=False, include_input=False)
    suggested = {
        (*detail["loc"][:-1], meant)
        for detail in details
        if detail["type"] == "extra_forbidden" and (meant := _meant(detail["loc"], keys_at))
    }
    reported_lines = {defect.line for defect in document.defects}
    return [
        _defect(detail, document, keys_at)
        for detail in details
        if (
            # A misspelt key explains a missing one.
            detail["loc"] not in suggested
            if detail["type"] == "missing"
            else document.line(detail["loc"]) not in reported_lines
        )
    ]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question with the nearest of `known` and a space after it, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"Did you mean {near[0]!r}? " if near else ""


def collection_keys(location: Sequence[str | int]) -> tuple[str, ...]:
    """The keys that a collection allows in the mapping at a pydantic location."""
    match tuple(location):
        case ():
            return tuple(CollectionForm.model_fields)
        case ("source", str(kind)) if kind in _SOURCES:
            return tuple(_SOURCES[kind].model_fields)
        case ("extraction_versions", _):
            return tuple(VersionForm.model_fields)
        case ("extraction_versions", _, "ceiling"):
            return tuple(CeilingForm.model_fields)
        case _:
            return ()


def _meant(location: Sequence[str | int], keys_at: KeysAt) -> str | None:
    near = difflib.get_close_matches(str(location[-1]), keys_at(location[:-1]), n=1)
    return near[0] if near else None


def _defect(detail: ErrorDetails, document: YamlDocument, keys_at: KeysAt) -> Defect:
    location = detail["loc"]
    message, remedy = _sentences(detail, document, keys_at)
    return Defect(document.line(location), message, remedy)


def _sentences(detail: ErrorDetails, document: YamlDocument, keys_at: KeysAt) -> tuple[str, str]:
    location = detail["loc"]
    last = str(location[-1]) if location else "file"
    key = _dotted(location, document)
    context: dict[str, Any] = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            known = keys_at(location[:-1])
            remedy = did_you_mean(last, known) or "Remove it. "
            return f"Unknown key {last!r}.", f"{remedy}The keys here are {', '.join(known)}."
        case "missing":
            return f"The key {last!r} is missing here.", f"Add {last}: with its value."
        case "enum" | "literal_error":
            return f"{key} must be {context['expected']}.", "Write one of these."
        case "union_tag_invalid":
            return f"{key}.kind must be {context['expected_tags']}.", "Write one of these."
        case "union_tag_not_found":
            return f"{key} does not say its kind.", f"Add kind: {' or '.join(_SOURCES)}."
        case _ if document.value(location) is None:
            return f"{key} is empty.", "Give it a value, or remove the key."
        case "string_type":
            return f"{key} must be text.", "Put the value in quotes."
        case "string_pattern_mismatch" if last in _PATTERNS:
            return f"{key} is not of the right form.", _PATTERNS[last]
        case "bool_type":
            return f"{key} must be true or false.", "Write true or false, without quotes."
        case "int_type" | "int_from_float":
            return f"{key} must be a whole number.", "Write it in digits, without quotes."
        case "dict_type" | "model_type" | "model_attributes_type":
            return f"{key} must be keys with values.", "Indent the keys beneath it."
        case "tuple_type" | "list_type":
            return f"{key} must be a list.", "Write each entry in a line of its own after a dash."
        case "value_error" if last == "waiting_budget":
            return f"{key} {context['error']}.", "Write how long a batch may take, as 26h."
        case "value_error":
            return f"{key}: {context['error']}.", "Correct it or remove it."
        case _:
            return f"{key} is not valid: {detail['msg']}.", "Correct the value."


def _dotted(location: Sequence[str | int], document: YamlDocument) -> str:
    return ".".join(map(str, document.known(location))) or "The file"
