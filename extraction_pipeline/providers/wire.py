"""Reading what providers send: lenient fields, and lines that name a request or are refused.

Reading is lenient on purpose: providers and compatible servers leave fields out or fill them oddly,
and one odd field must not cost an answer that is paid for. Only what identifies an object is
required.
"""

import json
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

T = TypeVar("T")
Form = TypeVar("Form", bound=BaseModel)


def _none_if_wrong(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    try:
        return handler(value)
    except ValidationError:
        return None


def _none_if_blank(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    return _none_if_wrong(value, handler) or None


Lenient = Annotated[T | None, WrapValidator(_none_if_wrong)]


def _storable(value: str) -> str:
    if not value.isprintable() or len(value) > LONGEST_ID:
        raise ValueError("an id holds what no database keeps")
    return value


LONGEST_ID = 500
Id = Annotated[str, Field(min_length=1), AfterValidator(_storable)]
"""An id of the provider's that is kept and sent back: of text that can be, NUL not among it."""
OptionalId = Annotated[Id | None, WrapValidator(_none_if_blank)]
"""An id that may be null, absent or, as was seen live, an empty string."""
Count = Annotated[int, Field(ge=0, lt=2**63)]
"""A count, which some send as a string."""


class Wire(BaseModel):
    """Base of everything that is read; errors do not quote it."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)


def named(form: type[Form], id_name: str, expected: str) -> Callable[[bytes], Form]:
    """A reading of one object that must be the one that was asked for.

    Behind a proxy that mixes answers up, another job's end would be taken for this one's. The
    reading raises `ValueError`.
    """

    def read(body: bytes) -> Form:
        value = form.model_validate_json(body)
        if getattr(value, id_name) != expected:
            raise ValueError(f"the answer has another {id_name} than was asked for")
        return value

    return read


def parse_line(line: bytes, form: type[Form], id_name: str) -> Form:
    """Read one result line. Raises `ValueError`, without a quote, where it names no request.

    Repeated names in an object: the last one holds, as usual, except for two different ids, which
    could put one patient's answer on another's document.
    """

    def checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs) and _contradicts(pairs, id_name):
            raise ValueError(repeated)
        return value

    repeated = f"it holds two different {id_name}"
    try:
        value = _named_once(line, id_name)
        if value is None:
            value = json.loads(line, object_pairs_hook=checked, parse_int=_bounded_int)
        return form.model_validate(value)
    except ValidationError:
        what = f"it is not an object with a {id_name}"
    except (ValueError, RecursionError) as error:
        what = repeated if str(error) == repeated else "it is not JSON"
    raise ValueError(f"A result line cannot be read: {what}.")


def _named_once(line: bytes, id_name: str) -> dict[str, Any] | None:
    """The object of a line that any parser reads alike: it holds the id's name once, in plain
    letters. `None` for any other line."""
    if line.count(f'"{id_name}"'.encode()) != 1 or b"\\u" in line:
        return None
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def parse_json(body: bytes) -> Any:
    """A JSON document that may hold results, integers of any length among them. Raises
    `ValueError`. An object with two different values for one name keeps neither, so that an id
    given twice names nothing."""

    def checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            value = {name: one for name, one in value.items() if not _contradicts(pairs, name)}
        return value

    try:
        return json.loads(body, object_pairs_hook=checked, parse_int=_bounded_int)
    except (ValueError, RecursionError):
        raise ValueError("the answer is not JSON") from None


def as_line(item: Any) -> bytes:
    """An item of such a document as one line, in ASCII, with its newline."""
    return json.dumps(item, separators=(",", ":")).encode() + b"\n"


def valid_unicode(text: str | None) -> str | None:
    """The text with lone surrogates, which no UTF-8 can hold, replaced by U+FFFD."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _contradicts(pairs: list[tuple[str, Any]], name: str) -> bool:
    return len({str(value) for one, value in pairs if one == name}) > 1


def _bounded_int(digits: str) -> int | float:
    """Integers of any length; Python itself refuses to read those over 4,300 digits."""
    return int(digits) if len(digits) < 20 else float(digits)
