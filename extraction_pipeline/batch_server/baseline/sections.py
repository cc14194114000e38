"""Splits a document into sections: headings, and the text that stands under them.

A heading is a Markdown heading, a label with a colon at the start of a line, a line in capitals
after a blank one, or capitals with a colon after a full stop in running text (as in dictations).
Labels in mixed case count only where they are known, because any sentence may hold a colon. All
patterns are bounded and look at a text once.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

Classify = Callable[[str], str | None]
"""From a heading's text to the name of what stands under it, or `None` if it is not known."""

_LONGEST_HEADING = 90
_MARKDOWN = re.compile(r"#{1,6}[ \t]+(\S[^\n]{0,150})")
_LABEL = re.compile(r"([A-Z][\w /&()',.\-]{1,70}):(?=[\s,]|$)")
_CAPITALS_BEFORE_NUMBER = re.compile(r"([A-Z][A-Z /&()\-]{2,60}),(?=\s?1\.\s)")
_CAPITALS_WITHIN = re.compile(r"(?<=[.,;:])[ \t]{0,3}([A-Z][A-Z /&()\-]{2,50})(?::,?|,(?=1\.\s))")
_BULLET = re.compile(r"[ \t]*(?:[-*•・●▪◦–·]|\(?[0-9]{1,2}[.)]|\(?[a-z]{1,4}[.)])\s")
_NUMBERING = re.compile(r"^(?:\(?[0-9]{1,2}(?:\.[0-9]{1,2})*[.)]?|\(?[A-Za-z][.)])\s+")
_WORD = re.compile(r"[a-z]+")


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


@dataclass(frozen=True)
class Concept:
    """What a heading can introduce, and the words by which it does.

    A heading belongs to it that has a word of each set in `keys`, where all its other words are
    among the `companions` or the vocabulary's fillers.
    """

    name: str
    keys: tuple[frozenset[str], ...]
    companions: frozenset[str] = frozenset()

    def covers(self, words: frozenset[str], fillers: frozenset[str]) -> bool:
        """Whether a heading of these words introduces it."""
        return all(words & key for key in self.keys) and words <= (
            frozenset().union(*self.keys) | self.companions | fillers
        )


@dataclass(frozen=True)
class Vocabulary:
    """The headings of one type of document. The first concept that covers a heading counts."""

    concepts: Sequence[Concept]
    fillers: frozenset[str]
    introductions: Mapping[str, re.Pattern[str]]
    """Sentences (lower case) that end with a colon and announce a list, by what the list is."""


def concept(name: str, *keys: str, companions: str = "") -> Concept:
    """A concept from words that are parted by spaces."""
    return Concept(
        name, tuple(frozenset(key.split()) for key in keys), frozenset(companions.split())
    )


def classifier(vocabulary: Vocabulary) -> Classify:
    """The function that classifies headings by `vocabulary`; it remembers what it has seen."""

    @lru_cache(maxsize=4096)
    def classify(title: str) -> str | None:
        words = title_words(title)
        if not words or len(words) > 8:
            return None
        return next(
            (known.name for known in vocabulary.concepts if known.covers(words, vocabulary.fillers)),
            None,
        )

    return classify


def title_words(title: str) -> frozenset[str]:
    """The words of a heading in lower case, `follow-up` and its spellings as one word."""
    lowered = title[:_LONGEST_HEADING].lower()
    for spelling in ("follow-up", "follow up"):
        lowered = lowered.replace(spelling, "followup")
    return frozenset(_WORD.findall(lowered))


def split_sections(text: str, classify: Classify, vocabulary: Vocabulary) -> list[Section]:
    """The document's sections in order. What stands before the first heading has the title ""."""
    headings = list(_headings(text, classify, vocabulary))
    first = headings[0].start if headings else len(text)
    sections = [Section("", None, text[:first].strip())]
    for position, heading in enumerate(headings):
        following = headings[position + 1].start if position + 1 < len(headings) else len(text)
        body = text[heading.end : following].strip().lstrip(",;").strip()
        sections.append(Section(heading.title, heading.concept, body))
    return [section for section in sections if section.title or section.body]


def _headings(text: str, classify: Classify, vocabulary: Vocabulary) -> Iterator[_Heading]:
    offset = 0
    after_blank = True
    in_list = False
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if stripped:
            heading = _heading_of_line(line, offset, after_blank, classify)
            if heading is None and stripped.endswith(":"):
                heading = _introduction(stripped, offset, len(line), in_list, vocabulary)
            if heading is not None:
                in_list = heading.introduces_list
                yield heading
            if len(line) > 120:
                begin = heading.end - offset if heading else 0
                yield from _headings_within(line, begin, offset, classify)
        after_blank = not stripped
        offset += len(line)


def _heading_of_line(
    line: str, offset: int, after_blank: bool, classify: Classify
) -> _Heading | None:
    stripped = line.strip()
    start = offset + line.index(stripped[0])
    whole_line = offset + len(line)
    if match := _MARKDOWN.match(stripped):
        title = match[1].rstrip("# \t").strip("*_ ")
        return _Heading(title, classify(_unnumbered(title)), start, whole_line)
    if match := _LABEL.match(stripped) or _CAPITALS_BEFORE_NUMBER.match(stripped):
        title = match[1].strip()
        concept = classify(title)
        if concept is not None or _is_capitals(title):
            return _Heading(title, concept, start, start + match.end())
    if len(stripped) > _LONGEST_HEADING or "|" in stripped or stripped[-1] in ".;,":
        return None
    title = stripped.strip("*_: ")
    concept = classify(_unnumbered(title))
    if concept is not None and not _BULLET.match(stripped):
        return _Heading(title, concept, start, whole_line)
    if after_blank and _is_capitals(title) and not _BULLET.match(stripped):
        return _Heading(title, concept, start, whole_line)
    return None


def _introduction(
    stripped: str, offset: int, length: int, in_list: bool, vocabulary: Vocabulary
) -> _Heading | None:
    if _BULLET.match(stripped):
        return None
    lowered = stripped[-200:].lower()
    for concept, pattern in vocabulary.introductions.items():
        if pattern.search(lowered):
            return _Heading(stripped, concept, offset, offset + length, introduces_list=True)
    # An unknown introduction ends a known list, and otherwise belongs to its section.
    return _Heading(stripped, None, offset, offset + length) if in_list else None


def _headings_within(
    line: str, begin: int, offset: int, classify: Classify
) -> Iterator[_Heading]:
    for match in _CAPITALS_WITHIN.finditer(line, begin):
        title = match[1].strip()
        if _is_capitals(title):
            yield _Heading(title, classify(title), offset + match.start(1), offset + match.end())


def _is_capitals(title: str) -> bool:
    letters = [character for character in title if character.isalpha()]
    return len(letters) >= 4 and all(character.isupper() for character in letters)


def _unnumbered(title: str) -> str:
    return _NUMBERING.sub("", title)
