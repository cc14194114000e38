"""Procedures: from a list or table, and from sentences that say what the patient underwent."""

import re

from extraction_pipeline.batch_server.baseline.items import listing, one_line, sentences, table
from extraction_pipeline.batch_server.baseline.names import named
from extraction_pipeline.batch_server.baseline.negation import Saying, saying
from extraction_pipeline.schemas.discharge_summary import Procedure

_LONGEST_NAME = 200
_COLUMNS = frozenset(("procedure", "procedures", "cpt"))
_KIND = (
    r"(?:[a-z]{3,20}(?:ectomy|plasty|otomy|ostomy|scopy|graphy|centesis|desis|pexy|gram|biopsy)"
    r"|biops(?:y|ies)|surgery|repair|replacement|placement|bypass|transplant(?:ation)?|cath"
    r"|catheterization|resection|excision|ablation|drainage|graft(?:ing)?|fusion|mri|ct|scan"
    r"|ultrasound|x-ray|transfusion|dialysis|intubation|reduction|fixation|debridement|removal"
    r"|extraction|exploration|injection|delivery|c-section|study|operation|procedure"
    r"|embolization|approach|incision|amputation|closure|block|pacemaker|stent(?:ing)?)"
)
_UNDERWENT = re.compile(
    r"\b(?:underwent|undergone|undergoing|completed? an?|had an?)\s+"
    r"(?:an?\s|the\s|emergency\s)?([a-zA-Z][^.;,()\n]{3,90})",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\s(?:(?:was|were)\s(?:then\s)?(?:done|performed|obtained|reviewed|carried out|placed"
    r"|completed|negative|positive|normal)|revealed|showed|shows|demonstrated)\b",
    re.IGNORECASE,
)
_WORDS_BEFORE = re.compile(r"[A-Za-z][\w \-]{0,60}$")
_LONGEST_SUBJECT = 4
_IS_PROCEDURE = re.compile(rf"\b{_KIND}\b", re.IGNORECASE)
_ENDS_AS_PROCEDURE = re.compile(rf"\b{_KIND}$", re.IGNORECASE)
_ARTICLE = re.compile(
    r"^(?:an?|the|and|his|her|this|that|initial|subsequent|where|which|with"
    r"|last|repeat|official)\s",
    re.IGNORECASE,
)
_NAME_ENDS = re.compile(
    r"\s(?:and|on|for|to|which|that|without|because|due|after|in|at|under|by|using|when"
    r"|revealing|showing|with(?: no| any)?)\s"
    r"|,\s(?:which|under|with|without|under|by)\s|\sconverted from\s",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"^(?:her|his|their|this|that|these|multiple|surg\w+|procedures?|operations?|uncomplicated"
    r"|extensive|further|an?|the|it|he|she|patient)\b|\b(?:workup|work-up|clearance|evaluation"
    r"|sessions|treatment|tests?)\b",
    re.IGNORECASE,
)
_AFTER_ANOTHER = re.compile(r"\s(?:after|followed by)\s(?:an?\s)?", re.IGNORECASE)
_TAG = re.compile(r"\s*\((?:procedure|regime/therapy)\)\s*$", re.IGNORECASE)
_BESIDE = re.compile(
    r"(?:estimated |total )?blood loss\b|(?:no |without )?complications?\b|\w+ an(?:a)?esthesia\b",
    re.IGNORECASE,
)
"""What stands beside a procedure and is none."""
_PERFORMED = re.compile(r"\s(?:was|were|is)?\s?(?:also\s)?performed\b", re.IGNORECASE)
_DENIED = re.compile(r"\b(?:not|never|refused|declined|no)\b[^.]{0,60}$", re.IGNORECASE)


def procedures_in(body: str) -> list[Procedure] | None:
    """The procedures of a section that lists them: empty if it states none, `None` if nothing."""
    rows = table(body, _COLUMNS)
    cells = [(row.cell("procedure", "procedures", "description", "name"), row.line) for row in rows]
    found = [
        Procedure(name=name, evidence=[line])
        for cell, line in cells
        if cell
        and saying(cell) is Saying.SOMETHING
        and _has_word(cell)
        and (name := named(cell)) is not None
    ]
    if found:
        return found
    parts = listing(body)
    said = {saying(text) for text in (parts.lead, *parts.items) if text}
    for item in parts.items:
        first = sentences(item)[:1]
        if first and "|" not in item and saying(first[0]) is Saying.SOMETHING:
            found += _from_sentence(first[0])
    if found:
        return found
    return [] if Saying.NONE in said else None


def procedures_undergone(text: str) -> list[Procedure]:
    """The procedures that sentences of `text` say were done, unless they deny them."""
    found: dict[str, Procedure] = {}
    for match in _UNDERWENT.finditer(text):
        name = one_line(_NAME_ENDS.split(match[1] + " ", maxsplit=1)[0]).strip(" .,")
        if _IS_PROCEDURE.search(name) and not _is_denied(text, match.start()):
            _add(found, name, match[0].strip())
    for match in _DONE.finditer(text):
        before = _WORDS_BEFORE.search(text, max(0, match.start() - 60), match.start())
        name = " ".join(before[0].split()[-_LONGEST_SUBJECT:]) if before else ""
        if _ENDS_AS_PROCEDURE.search(name) and not _is_denied(text, match.start()):
            _add(found, name, text[before.start() : match.end()] if before else name)
    return list(found.values())


def _add(found: dict[str, Procedure], name: str, words: str) -> None:
    while (shorter := _ARTICLE.sub("", name)) != name:
        name = shorter
    if name and not _VAGUE.search(name):
        found.setdefault(name.casefold(), Procedure(name=name, evidence=[words]))


def _is_denied(text: str, position: int) -> bool:
    return _DENIED.search(text, max(0, position - 60), position) is not None


def _from_sentence(sentence: str) -> list[Procedure]:
    found = []
    for part in _AFTER_ANOTHER.split(sentence):
        name = named(_TAG.sub("", _PERFORMED.split(one_line(part), maxsplit=1)[0]).strip(" .,-•"))
        if name is None or _BESIDE.match(name):
            continue
        if _has_word(name) and len(name) <= _LONGEST_NAME:
            found.append(Procedure(name=name, evidence=[sentence]))
    return found


def _has_word(text: str) -> bool:
    return any(character.isalpha() for character in text) and len(text) > 2
