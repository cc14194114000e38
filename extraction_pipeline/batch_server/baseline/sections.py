"""Splits a document into sections: headings, and the text that stands under them.

A heading is a Markdown heading, a label with a colon at the start of a line, a line in capitals
after a blank one, or capitals with a colon after a full stop in running text (as in dictations).
Labels in mixed case count only where they are known, because any sentence may hold a colon. All
patterns are bounded and look at a text once.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from extraction_pipeline.batch_server.baseline.headings import LONGEST_HEADING, Vocabulary
from extraction_pipeline.batch_server.baseline.items import COLUMN_WORDS

MOST_HEADINGS = 5_000
"""Of one document; what follows belongs to the last one. A text with more is no document."""

_MARKDOWN = re.compile(r"(#{1,6})[ \t]+(\S[^\n]{0,150})")
_LABEL = re.compile(r"([A-Za-z][\w /&()',.\-]{1,70}):(?=[\s,]|$)")
_LABEL_CELL = re.compile(
    r"(?:\|[ \t]{0,3})?\*{0,2}(?P<label>[A-Za-z][\w /&()',.\-]{1,70}?):?\*{0,2}[ \t]{0,3}"
    r"\|[ \t]{0,3}(?P<value>[^|\s][^|]*)\|?$"
)
_CAPITALS_BEFORE_NUMBER = re.compile(r"([A-Z][A-Z /&()\-]{2,60}),(?=\s?1\.\s)")
_CAPITALS_WITHIN = re.compile(r"(?<=[.,;:])[ \t]{0,3}([A-Z][A-Z /&()\-]{2,50})(?::,?|,(?=1\.\s))")
_BULLET = re.compile(r"[ \t]*(?:[-*•・●▪◦\u2013·]|\(?[0-9]{1,2}[.)]|\(?[a-z]{1,4}[.)])\s")
_RULE = re.compile(r"[-=_*~]{3,200}")
_SHORT_LABEL = 4
_NUMBERING = re.compile(r"^(?:\(?[0-9]{1,2}(?:\.[0-9]{1,2})*[.)]?|\(?[A-Za-z][.)])\s+")


@dataclass(frozen=True)
class Section:
    """A heading and the text up to the next one. `body` is a piece of the document as it is."""

    title: str
    concept: str | None
    body: str


@dataclass(frozen=True)
class _Heading:
    title: str
    concept: str | None
    start: int
    end: int
    introduces_list: bool = False
    level: int = 0
    """Of a Markdown heading, 1 to 6; 0 for others."""


def split_sections(text: str, vocabulary: Vocabulary) -> list[Section]:
    """The document's sections in order. What stands before the first heading has the title ""."""
    headings = list(islice(_headings(text, vocabulary), MOST_HEADINGS))
    first = headings[0].start if headings else len(text)
    sections = [Section("", None, text[:first].strip())]
    for position, heading in enumerate(headings):
        following = headings[position + 1].start if position + 1 < len(headings) else len(text)
        body = text[heading.end : following].strip().lstrip(",;").strip()
        sections.append(Section(heading.title, heading.concept, body))
    return [section for section in sections if section.title or section.body]


def bodies(sections: Iterable[Section], *concepts: str) -> list[str]:
    """The texts of the sections of these concepts, in the order of the document."""
    return [section.body for section in sections if section.concept in concepts]


def _headings(text: str, vocabulary: Vocabulary) -> Iterator[_Heading]:
    offset = 0
    after_blank = True
    in_list = False
    outer: _Heading | None = None
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if stripped:
            heading = _heading_of_line(line, offset, after_blank, vocabulary)
            if heading is None and stripped.endswith(":"):
                ends = in_list or (after_blank and len(stripped.split()) <= _SHORT_LABEL)
                heading = _introduction(stripped, offset, len(line), ends, vocabulary)
            if heading is None and _RULE.fullmatch(stripped):
                heading = _Heading(stripped, None, offset, offset + len(line))
            if heading is not None:
                in_list = heading.introduces_list
                if heading.level and not heading.concept and outer and outer.level < heading.level:
                    # A Markdown heading that says nothing by itself belongs to the one above it.
                    heading = replace(heading, concept=outer.concept)
                elif heading.level:
                    outer = heading
                yield heading
            if len(line) > 120:
                begin = heading.end - offset if heading else 0
                yield from _headings_within(line, begin, offset, vocabulary)
        after_blank = not stripped
        offset += len(line)


def _heading_of_line(
    line: str, offset: int, after_blank: bool, vocabulary: Vocabulary
) -> _Heading | None:
    stripped = line.strip()
    start = offset + line.index(stripped[0])
    whole_line = offset + len(line)
    if match := _MARKDOWN.match(stripped):
        title = match[2].rstrip("# \t").strip("*_ ")
        known = vocabulary.concept_of(_unnumbered(title))
        return _Heading(title, known, start, whole_line, level=len(match[1]))
    if match := _LABEL.match(stripped) or _CAPITALS_BEFORE_NUMBER.match(stripped):
        title = match[1].strip()
        concept = vocabulary.concept_of(title)
        if concept is not None or _is_capitals(title):
            return _Heading(title, concept, start, start + match.end())
    if match := _LABEL_CELL.match(stripped):
        # A table of two columns that says one thing in each row.
        concept = vocabulary.concept_of(match["label"])
        value_words = re.findall(r"[a-z]+", match["value"].lower())
        if concept is not None and not (value_words and COLUMN_WORDS.issuperset(value_words)):
            return _Heading(match["label"], concept, start, start + match.start("value"))
    if len(stripped) > LONGEST_HEADING or "|" in stripped or stripped[-1] in ".;,":
        return None
    title = stripped.strip("*_: ")
    concept = vocabulary.concept_of(_unnumbered(title))
    if concept is not None and not _BULLET.match(stripped) and (after_blank or title[0].isupper()):
        return _Heading(title, concept, start, whole_line)
    if after_blank and _is_capitals(title) and not _BULLET.match(stripped):
        return _Heading(title, concept, start, whole_line)
    return None


def _introduction(
    stripped: str, offset: int, length: int, ends_section: bool, vocabulary: Vocabulary
) -> _Heading | None:
    if _BULLET.match(stripped):
        return None
    lowered = stripped[-200:].lower()
    for concept, pattern in vocabulary.introductions.items():
        if pattern.search(lowered):
            return _Heading(stripped, concept, offset, offset + length, introduces_list=True)
    return _Heading(stripped, None, offset, offset + length) if ends_section else None


def _headings_within(
    line: str, begin: int, offset: int, vocabulary: Vocabulary
) -> Iterator[_Heading]:
    for match in _CAPITALS_WITHIN.finditer(line, begin):
        title = match[1].strip()
        if _is_capitals(title):
            yield _Heading(
                title, vocabulary.concept_of(title), offset + match.start(1), offset + match.end()
            )


def _is_capitals(title: str) -> bool:
    letters = [character for character in title if character.isalpha()]
    return len(letters) >= 4 and all(character.isupper() for character in letters)


def _unnumbered(title: str) -> str:
    return _NUMBERING.sub("", title)
