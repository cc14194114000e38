"""Allergies: from a list or table, with reactions, and the statement that none is known."""

import re

from extraction_pipeline.batch_server.baseline.items import listing, one_line, sentences, table
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


def allergies_in(body: str) -> list[Allergy] | None:
    """The allergies of a section that lists them: empty if it states none, `None` if nothing."""
    rows = table(body, _COLUMNS)
    found = []
    said = set()
    for row in rows:
        substance = row.cell("substance", "allergen", "name", "allergy")
        if substance is None:
            continue
        said.add(saying(substance))
        if saying(substance) is Saying.SOMETHING:
            details = row.cell("details") or ""
            stated = _REACTION_CELL.search(details)
            reaction = row.cell("reaction", "reactions") or (stated[1] if stated else None)
            reactions = [_BRACKETED.sub("", reaction).strip()] if reaction else []
            found.append(Allergy(substance=substance, reactions=reactions, evidence=[row.line]))
    if not rows:
        for item in listing(body).items:
            if "|" in item:
                continue
            said.add(saying(item))
            if saying(item) is Saying.SOMETHING and not _NONE_KNOWN.search(item):
                found += _from_sentence(sentences(item)[0] if sentences(item) else item)
    if found:
        return found
    return [] if Saying.NONE in said or _NONE_KNOWN.search(body) else None


def denied_in(text: str) -> bool:
    """Whether running text states that no allergies are known."""
    return _NONE_KNOWN.search(text) is not None


def _from_sentence(sentence: str) -> list[Allergy]:
    found: list[Allergy] = []
    starts = [0]
    for match in _BREAK.finditer(sentence):
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
        substance = _LEADS_IN.sub("", one_line(substance)).strip(" .,:")
        substance = substance.removesuffix(" and").removesuffix(" or")
        if (
            "reaction" not in substance.lower()
            and 2 < len(substance) <= _LONGEST_SUBSTANCE
            and len(substance.split()) <= 5
        ):
            found.append(Allergy(substance=substance, reactions=reactions, evidence=[words]))
    return found
