"""Allergies: from a list or table, with reactions, and the statement that none is known."""

import re

from extraction_pipeline.batch_server.baseline.headings import words_of
from extraction_pipeline.batch_server.baseline.items import listing, one_line, sentences, table
from extraction_pipeline.batch_server.baseline.names import named
from extraction_pipeline.batch_server.baseline.negation import Saying, saying
from extraction_pipeline.schemas.discharge_summary import Allergy

_COLUMNS = frozenset(
    ("substance", "allergen", "allergy", "allergies", "reaction", "reactions", "s", "adverse")
)
_NONE_KNOWN = re.compile(
    r"[Nn](?i:o known (?:drug |food |medication |medicine )?allerg|KD?A\b|o allergies\b)"
)
_BREAK = re.compile(r",\s+(?:and\s+)?|;\s*|\s+and\s+")
_CAUSES = re.compile(r"\s*\b(?:which|that)?\s?(?:causes?|leads? to|gives? (?:her|him))\s", re.I)
_REACTION_CELL = re.compile(
    r"Reactions?:\s*([A-Za-z][A-Za-z ,]{2,60}?)(?=\s+(?:Status|Severity)\b|$)"
)
_BRACKETED = re.compile(r"\(([^)]{2,60})\)")
_LEADS_IN = re.compile(
    r"^(?:(?:the )?patient is|he is|she is|has|allergic|allerg(?:y|ies)|to|is|an?|the|drug"
    r"|known)\s+(?:allergic to\s+)?(?:an?\s+)?",
    re.IGNORECASE,
)
_LONGEST_SUBSTANCE = 60
_MOST_WORDS = 5
_TO = re.compile(r"^(?:allergy|allergic|intolerance|sensitivity) to\s", re.IGNORECASE)
_REACTS = re.compile(r"\s*([^:;,()\n]{2,60}?)(?::\s|\s[-\u2013\u2014]\s)\s*(\S.*)", re.DOTALL)
"""A substance, a colon or a dash, and what it does."""
_REACTION_ENDS = re.compile(r";|\.\s|[\u201c\"]")
_LABELS = words_of(
    "drug drugs food medication medications environmental allergy allergies known to"
)
_TELLS = re.compile(
    r"^(?:he|she|they|it|we|no|not|never|but|however|see|unable)\b"
    r"|\b(?:is|was|were|has|have|had|been|says|said|reports?|denie[sd]|tolerate[sd]?|tested)\b",
    re.IGNORECASE,
)


def allergies_in(body: str) -> list[Allergy] | None:
    """The allergies of a section that lists them: empty if it states none, `None` if nothing.

    `None` too if it states something that the rules cannot read: that is not the same as none.
    """
    rows = table(body, _COLUMNS)
    found = []
    said = set()
    for row in rows:
        cell = row.cell("substance", "allergen", "name", "allergy", "description")
        if cell is None:
            continue
        said.add(saying(cell))
        substance = named(_TO.sub("", cell))
        if saying(cell) is Saying.SOMETHING and substance is not None:
            details = row.cell("details") or ""
            stated = _REACTION_CELL.search(details)
            reaction = row.cell("reaction", "reactions") or (stated[1] if stated else None)
            reactions = [_BRACKETED.sub("", reaction).strip()] if reaction else []
            found.append(Allergy(substance=substance, reactions=reactions, evidence=[row.line]))
    if not rows:
        for item in listing(body).items:
            if "|" in item:
                continue
            if _NONE_KNOWN.search(item):
                said.add(Saying.NONE)
                continue
            said.add(saying(item))
            if saying(item) is Saying.SOMETHING:
                found += _from_sentence(sentences(item)[0] if sentences(item) else item)
    if found:
        return found
    return [] if Saying.NONE in said and Saying.SOMETHING not in said else None


def denied_in(text: str) -> bool:
    """Whether running text states that no allergies are known."""
    return _NONE_KNOWN.search(text) is not None


def _from_sentence(sentence: str) -> list[Allergy]:
    reacts = _REACTS.match(sentence)
    if reacts and _LABELS.issuperset(re.findall(r"[a-z]+", reacts[1].lower())):
        return _from_sentence(sentence[reacts.start(2) :])
    if reacts and (substance := _substance(reacts[1])):
        reaction = one_line(_REACTION_ENDS.split(reacts[2], maxsplit=1)[0]).strip(" .*")
        return [
            Allergy(
                substance=substance,
                reactions=[reaction] if reaction else [],
                evidence=[sentence],
            )
        ]
    found: list[Allergy] = []
    starts = [0]
    for match in _BREAK.finditer(sentence):
        # "Vancomycin (itching, flushing)" names one substance.
        if sentence.count("(", 0, match.start()) > sentence.count(")", 0, match.start()):
            continue
        # "which causes nausea and vomiting": a bare "and" goes on with the reactions.
        if match[0].strip() != "and" or not _CAUSES.search(sentence, starts[-1], match.start()):
            starts.append(match.end())
    for start, end in zip(starts, [*starts[1:], len(sentence)], strict=True):
        words = sentence[start:end].strip(" ,.;").removesuffix(" and").strip(" ,")
        causes = _CAUSES.search(words)
        if causes and not words[: causes.start()].strip() and found:
            # "Bactrim, which causes nausea": the reaction belongs to what stands before it.
            reaction = one_line(words[causes.end() :])
            before = found.pop()
            found.append(
                Allergy(
                    substance=before.substance,
                    reactions=[reaction],
                    evidence=[*before.evidence, words],
                )
            )
            continue
        substance, reactions = words, []
        if causes:
            substance, reactions = words[: causes.start()], [one_line(words[causes.end() :])]
        elif bracketed := _BRACKETED.search(words):
            substance, reactions = words[: bracketed.start()], [bracketed[1]]
        if name := _substance(substance):
            found.append(Allergy(substance=name, reactions=reactions, evidence=[words]))
    return found


def _substance(words: str) -> str | None:
    """The substance that some words name, `None` if they tell something else."""
    name = _LEADS_IN.sub("", one_line(words)).strip(" .,:")
    name = named(name.removesuffix(" and").removesuffix(" or")) or ""
    tells = "reaction" in name.lower() or _TELLS.search(name) is not None
    fits = 2 < len(name) <= _LONGEST_SUBSTANCE and len(name.split()) <= _MOST_WORDS
    return name if fits and not tells else None
