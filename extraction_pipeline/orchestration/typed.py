"""What a person typed into the launchpad: each text can be stored, and shown in one line."""

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from dagster import Config
from pydantic import ValidationError

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.orchestration.failures import one_line_failures

SEVERAL_LINES = frozenset({"reason"})
"""Fields in which a person may write more than one line."""

_BREAKS = frozenset("\t\n\r")


class TypedConfig(Config):
    """Config of a job for people. A value that does not do fails the step in one line."""

    def __init__(self, **values: Any) -> None:
        with one_line_failures():
            _require_storable(values)
            try:
                super().__init__(**values)
            except ValidationError as error:
                first = error.errors(include_input=False)[0]
                field = ".".join(map(str, first["loc"]))
                raise ConfigurationError(
                    f"The setting {field} does not do: {first['msg']}; nothing was done.",
                    remedy="Type another one.",
                ) from None


def _require_storable(values: Mapping[str, object]) -> None:
    """Raise `ConfigurationError` where a text holds what no database stores and no page shows: NUL,
    other control characters, half of a pair of UTF-16."""
    for field, text in _texts("", values):
        allowed = _BREAKS if field in SEVERAL_LINES else frozenset[str]()
        for character in text:
            if unicodedata.category(character) in ("Cc", "Cs") and character not in allowed:
                raise ConfigurationError(
                    f"The setting {field} holds a character that cannot be stored "
                    f"(U+{ord(character):04X}); nothing was done.",
                    remedy="Type it again without.",
                )


def _texts(field: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield from _texts(str(name), one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(field, one)
