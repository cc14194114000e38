"""Where a source lies: its paths made absolute and its references to the environment resolved."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import JsonValue

from extraction_pipeline.collections.defect import Defect
from extraction_pipeline.collections.environment import (
    UnresolvedReference,
    has_reference,
    resolve_references,
)
from extraction_pipeline.collections.yaml_document import Location, YamlDocument

_PLACES: tuple[Location, ...] = (("source", "path"), ("source", "root"), ("source", "url"))
"""What holds a path or a URL, and may thus refer to the environment."""
_OWN_WORDS = ("description", "instructions")
"""Keys whose text may hold `${...}` and mean just that."""


def place_source(
    document: YamlDocument, base: Path, environ: Mapping[str, str]
) -> tuple[dict[str, JsonValue] | None, list[Defect]]:
    """The `source` block with every place resolved, relative ones against `base`; `None` where
    the document has no such block.

    A path that a reference made a URL becomes the source's `url`, so that one setting moves a
    corpus from a folder to an object store.
    """
    source = document.data.get("source") if isinstance(document.data, dict) else None
    if not isinstance(source, dict):
        return None, []
    placed = dict(source)
    defects: list[Defect] = []
    for location in _PLACES:
        key = str(location[-1])
        written = source.get(key)
        if not isinstance(written, str):
            continue
        resolved = _resolved(written, base, environ, document.line(location), f"source.{key}")
        if isinstance(resolved, Defect):
            defects.append(resolved)
        else:
            placed[key] = resolved
    if _is_url(placed.get("path")) and "url" not in placed:
        placed["url"] = placed.pop("path")
    return placed, defects


def stray_references(document: YamlDocument) -> list[Defect]:
    """References where none is resolved: they would be taken as they stand."""
    message = "A reference to the environment is not allowed here."
    allowed = ", ".join(".".join(map(str, place)) for place in _PLACES)
    remedy = f"Write the value itself; only {allowed} may refer to it."
    return [
        Defect(document.line(location), message, remedy)
        for location, text in _texts(document.data, ())
        if has_reference(text) and location not in _PLACES and location[-1] not in _OWN_WORDS
    ]


def _resolved(
    written: str, base: Path, environ: Mapping[str, str], line: int, key: str
) -> str | Defect:
    """A URL as it is, a path as an absolute one."""
    try:
        place = resolve_references(written, environ)
        if not place.strip():
            return Defect(line, f"{key} must not be blank.", "Write a path, or a dot for here.")
        return place if _is_url(place) else str((base / Path(place).expanduser()).resolve())
    except UnresolvedReference as error:
        return Defect(line, error.message, error.remedy)
    except (RuntimeError, OSError):
        # What pathlib raises for `~nobody` and for links that lead in a circle.
        message = f"{key} cannot be made an absolute path."
        return Defect(line, message, "Write it out, without ~ or such links.")


def _is_url(place: JsonValue) -> bool:
    return isinstance(place, str) and "://" in place


def _texts(value: JsonValue, location: Location) -> Iterator[tuple[Location, str]]:
    if isinstance(value, str):
        yield location, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*location, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*location, index))
