"""Tells "there is none" from "nothing is said", for sections that hold no items."""

import re
from enum import StrEnum

from extraction_pipeline.batch_server.baseline.items import one_line

_NOTHING_SAID = re.compile(
    r"\b(?:not|un)[ -]?(?:available|specified|stated|recorded|supplied|documented|provided)\b"
    r"|^no\b.{0,60}\b(?:info\w*|data|supplied|recorded|available|report|given|entered)\b"
    r"|^(?:n/?a|unknown|deferred|see above|as above)\W*$",
    re.IGNORECASE,
)
_NONE = re.compile(
    r"^(?:none\b|nil\b|negative\b)|\bn\.?k\.?(?:d\.?)?a\b|\bno known\b|\bnot allergic\b"
    r"|\b(?:no|not on any|without|denies|denied)(?: [a-z]+){0,3}"
    r" (?:allerg|medic|drug|problem|procedure|operation|surger|contraindication|intoleranc"
    r"|adverse|limitation|diagnos|therapy)",
    re.IGNORECASE,
)


_ONLY_WORDS = re.compile(r"[A-Za-z ':]{0,60}")


class Saying(StrEnum):
    """What a short text says of the things that its section is about."""

    NONE = "none"
    NOTHING = "nothing"
    SOMETHING = "something"


def saying(text: str) -> Saying:
    """Whether `text` states that there is none, says nothing at all, or states something."""
    line = one_line(text[:400]).strip("-_.:,*|• ")
    if not line:
        return Saying.NOTHING
    if len(line) > 120:
        return Saying.SOMETHING
    for pattern, said in ((_NOTHING_SAID, Saying.NOTHING), (_NONE, Saying.NONE)):
        match = pattern.search(line)
        # "Aspirin 81 mg, no known side effects" states something before it states a none.
        if match and _ONLY_WORDS.fullmatch(line, 0, match.start()):
            return said
    return Saying.SOMETHING
