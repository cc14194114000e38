"""Dates as the document writes them, with an ISO date only where there is no doubt.

`03/04/2020` is one day in Boston and another in Lagos. The record therefore keeps the words of
the document, and beside them an ISO date or `null`. An ISO date that the words do not carry (a
day made up for "May 2014", another year) is dropped, while the words stay.
"""

import re
from datetime import date
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from extraction_pipeline.schemas.record import Name, Record

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NUMBER = re.compile(r"\d{1,14}")
_LONGEST_DATE = 120


def iso_or_none(value: Any) -> Any:
    """A full ISO date as it is, any other text as `None`; what is not text is left to the type."""
    if not isinstance(value, str):
        return value
    value = value.strip()
    if not _ISO_DATE.fullmatch(value):
        return None
    try:
        date.fromisoformat(value)
    except ValueError:
        return None
    return value


def words_carry_date(as_written: str, iso: str) -> bool:
    """Whether year and day of `iso` stand in `as_written` as two numbers, or as one (20140909)."""
    numbers = _NUMBER.findall(as_written[:_LONGEST_DATE])
    compact = iso.replace("-", "")
    if any(len(number) >= 8 and number.startswith(compact) for number in numbers):
        return True
    year, _, day = (int(part) for part in iso.split("-"))
    for position, number in enumerate(numbers):
        if int(number) in (year, year % 100):
            others = numbers[:position] + numbers[position + 1 :]
            if any(int(other) == day for other in others):
                return True
    return False


class StatedDate(Record):
    """A date that the document states."""

    as_written: Name = Field(description="The date exactly as the document writes it.")
    iso: Annotated[str | None, BeforeValidator(iso_or_none)] = Field(
        description="The same date as YYYY-MM-DD, or null where day, month or year is in doubt."
    )

    @field_validator("iso", mode="after")
    @classmethod
    def _keep_only_what_the_words_carry(cls, iso: str | None, info: ValidationInfo) -> str | None:
        as_written = info.data.get("as_written")
        if iso is None or as_written is None:
            return None
        return iso if words_carry_date(as_written, iso) else None
