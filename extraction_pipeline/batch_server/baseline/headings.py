"""What the headings of a type of document mean: words in any order, not fixed phrases.

"Discharge Diagnoses", "DIAGNOSES ON DISCHARGE" and "Final diagnosis:" are one heading to a
reader. A heading is therefore taken as a set of words, and a concept says which words make it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LONGEST_HEADING = 90
_MOST_WORDS = 8
_MOST_REMEMBERED = 4_096
_WORD = re.compile(r"[a-z]+")


def words_of(text: str) -> frozenset[str]:
    """The words of `text` that are parted by white space."""
    return frozenset(text.split())


@dataclass(frozen=True)
class Concept:
    """What a heading can introduce, and the words by which it does.

    A heading belongs to it that has a word of each set in `keys`, where all its other words are
    among the `companions` or the vocabulary's fillers.
    """

    name: str
    keys: tuple[frozenset[str], ...]
    companions: frozenset[str]

    def covers(self, words: frozenset[str]) -> bool:
        """Whether a heading of these words, fillers aside, introduces it."""
        return all(words & key for key in self.keys) and words <= self.companions.union(*self.keys)


@dataclass(frozen=True)
class Vocabulary:
    """The headings of one type of document. The first concept that covers a heading counts."""

    concepts: Sequence[Concept]
    fillers: frozenset[str]
    introductions: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    """Sentences (lower case) that end with a colon and announce a list, by what the list is."""

    _remembered: dict[str, str | None] = field(default_factory=dict, init=False, repr=False)

    def concept_of(self, title: str) -> str | None:
        """What a heading introduces, or `None` if it is not known. Remembers what it has seen."""
        if title not in self._remembered:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[title] = self._look_up(title)
        return self._remembered[title]

    def _look_up(self, title: str) -> str | None:
        words = _title_words(title)
        if not words or len(words) > _MOST_WORDS:
            return None
        words -= self.fillers
        return next((known.name for known in self.concepts if known.covers(words)), None)


def concept(name: str, *keys: str, companions: str = "") -> Concept:
    """A concept from words that are parted by spaces."""
    return Concept(name, tuple(map(words_of, keys)), words_of(companions))


def _title_words(title: str) -> frozenset[str]:
    """The words of a heading in lower case, `follow-up` and its spellings as one word."""
    lowered = title[:LONGEST_HEADING].lower()
    for spelling in ("follow-up", "follow up"):
        lowered = lowered.replace(spelling, "followup")
    return frozenset(_WORD.findall(lowered))
