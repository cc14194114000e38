"""What can be the name of a diagnosis, a drug or a procedure, and what only labels one."""

import re

from extraction_pipeline.batch_server.baseline.headings import words_of
from extraction_pipeline.batch_server.baseline.items import COLUMN_WORDS, one_line

_CODE_SYSTEM = re.compile(
    r"(?:icd[ -]?(?:9|10|11|o)?(?:[ -]?(?:cm|pcs|am|gm))?|snomed(?:[ -]?ct)?|hcpcs(?: level ii)?"
    r"|cpt(?:[ -]?4)?|loinc|rxnorm|ndc|cvx|mvx|unii|ndf[ -]?rt|nui|umls|mesh|atc|cdt|ms[ -]?drg|drg"
    r"|nddf|medispan|hl7|ucum|read)(?: codes?)?",
    re.IGNORECASE,
)
_CODE = re.compile(r"[A-Z][0-9][0-9A-Z](?:\.[0-9A-Z]{1,4})?|[0-9][0-9./\-: ]*")
_LABEL_WORDS = COLUMN_WORDS | words_of(
    "health concerns concern goals goal section functional mental cognitive status results result "
    "vital vitals signs immunization immunizations encounters encounter payers payer insurance "
    "medication medications medicine medicines drug drugs diagnosis diagnoses problem problems "
    "procedure procedures allergy allergies at discharge admission and of list stopped continued "
    "new changed unchanged was were is are taken given prescribed principal primary secondary main"
)
_WORD = re.compile(r"[a-z]+")


def plain(text: str) -> str:
    """A text without Markdown's emphasis."""
    return text.replace("**", "").replace("__", "")


def named(text: str) -> str | None:
    """A name on one line, without Markdown's emphasis; `None` if it names nothing.

    The words of a table's or a section's heading, a coding system, a code and a date say what
    stands beside them, and are no name.
    """
    name = one_line(plain(text)).strip("*_ ")
    if not name or "|" in name or _CODE_SYSTEM.fullmatch(name) or _CODE.fullmatch(name):
        return None
    words = _WORD.findall(name.lower())
    return name if words and not _LABEL_WORDS.issuperset(words) else None
