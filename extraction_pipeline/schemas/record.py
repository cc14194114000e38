"""What all extracted records have in common: how absence, emptiness and blanks are told apart.

| value in the record | what it says                                                               |
|---------------------|----------------------------------------------------------------------------|
| `null`              | The document does not state this. For a list: there is no such section, or |
|                     | the section says nothing ("not available", "no data") or is left blank: a  |
|                     | list has no blank of its own, and `[]` would deny what was not entered.    |
| `[]`                | The document states that there is none ("No known allergies").             |
| `""`                | The document has a place for this and leaves it blank ("Follow-up: ___").  |

A value that is not in the document is an invention, whichever of the three it replaces. Every
field is required, so a key that an answer leaves out is an error and never a silent `null`.
"""

from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

ItemT = TypeVar("ItemT")


class Record(BaseModel):
    """Base of document types and of the objects in them: closed, frozen, stripped of edge space."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


def _refuse_blank(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("blank", "The value is blank.")
    return value


def _first_of_each(items: list[ItemT]) -> list[ItemT]:
    return list(distinct(items))


def distinct(items: Sequence[ItemT]) -> Sequence[ItemT]:
    """The items without exact repetitions, in order. Items need not be hashable."""
    if len(items) < 2:
        return items
    seen: set[str] = set()
    kept: list[ItemT] = []
    for item in items:
        identity = repr(getattr(item, "__dict__", item))
        if identity not in seen:
            seen.add(identity)
            kept.append(item)
    return kept


Name = Annotated[str, AfterValidator(_refuse_blank)]
"""Text that an item cannot be without."""

DistinctList = Annotated[list[ItemT], AfterValidator(_first_of_each)]
"""A list in which an exact repetition (the whole item, evidence and all) adds nothing."""
