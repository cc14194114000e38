"""References to the environment in a source's paths: `${NAME}` and `${NAME:-default}`."""

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}")


class UnresolvedReference(ValueError):
    """A reference that has no value; `remedy` says what to do. Holds names, never values."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def has_reference(text: str) -> bool:
    """Whether `text` holds a well-formed reference."""
    return _REFERENCE.search(text) is not None


def referenced_names(text: str) -> set[str]:
    """Names of the variables that `text` refers to."""
    return {match.group(1) for match in _REFERENCE.finditer(text)}


def resolve_references(text: str, environ: Mapping[str, str]) -> str:
    """`text` with its references replaced.

    As in a shell's `:-`, a variable that is set but empty counts as not set. What a variable holds
    is not read for further references. Raises `UnresolvedReference`.
    """
    if "${" in _REFERENCE.sub("", text):
        raise UnresolvedReference(
            "A reference to the environment is malformed.",
            "Write ${NAME} or ${NAME:-default}; a default holds no braces.",
        )

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        found = environ.get(name) or default
        if not found:
            raise UnresolvedReference(
                f"The environment variable {name} is not set.",
                f"Set it, or give a default: ${{{name}:-default}}.",
            )
        return found

    return _REFERENCE.sub(value, text)
