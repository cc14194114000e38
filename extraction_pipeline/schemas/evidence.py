"""Evidence: the words of the document that support an item, and the check that they stand there.

Evidence is a list of quotes, because one statement often rests on two places of a document. An
empty list means that no words were quoted; it says nothing about the item's truth.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from extraction_pipeline.schemas.record import distinct

QUOTING_FIELDS = frozenset({"evidence", "as_written"})
"""The fields of a record, at any depth, whose text is claimed to be the document's own words."""


def _without_blanks(quotes: list[str]) -> list[str]:
    return list(distinct([quote for quote in quotes if quote.strip()]))


Evidence = Annotated[
    list[str],
    AfterValidator(_without_blanks),
    Field(
        description="Short quotes from the document, word for word, that support this item: "
        "each one unbroken piece of text. Empty if there is none."
    ),
]


@dataclass(frozen=True)
class EvidenceCount:
    """How many of a record's quotes stand in the document's text, white space aside."""

    found: int
    total: int


def check_evidence(record: dict[str, Any], text: str) -> EvidenceCount:
    """Count the quotes of `record` (see `QUOTING_FIELDS`), and those that `text` holds.

    White space is left out on both sides, since line breaks are not kept by most readers and
    models. Letters, case and punctuation must agree.
    """
    haystack = _squeezed(text)
    found = total = 0
    for quote in _quotes(record):
        needle = _squeezed(quote)
        if needle:
            total += 1
            found += needle in haystack
    return EvidenceCount(found=found, total=total)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _quotes(record: dict[str, Any]) -> Iterator[str]:
    # Of plain JSON values: this is asked of every record.
    waiting: list[tuple[Any, bool]] = [(record, False)]
    while waiting:
        value, is_quote = waiting.pop()
        if isinstance(value, dict):
            for key, inner in value.items():
                if isinstance(inner, dict | list):
                    waiting.append((inner, key in QUOTING_FIELDS))
                elif isinstance(inner, str) and key in QUOTING_FIELDS:
                    yield inner
        else:
            for inner in value:
                if isinstance(inner, dict | list):
                    waiting.append((inner, is_quote))
                elif isinstance(inner, str) and is_quote:
                    yield inner
