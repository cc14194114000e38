"""Where the patient goes, and what happens next: disposition and follow-up in sentences."""

import re
from collections.abc import Iterable

from extraction_pipeline.batch_server.baseline.items import listing, one_line, sentences
from extraction_pipeline.batch_server.baseline.negation import Saying, saying

LONGEST_TEXT = 500
# It begins with plain letters, which lets a long text be passed over quickly.
_LEAVES = re.compile(
    r"[Dd](?i:ischarged\s+(?:(?:back\s)?home\b[^.,;\n]{0,60}|to\s[^.,;\n]{3,90}))"
    r"|(?P<order>(?:[Tt](?i:ransfer(?:red)?)|[Dd](?i:ischarge))\sto\s[^.,;\n]{3,90})"
)
_PURPOSE = re.compile(
    r"\s(?:(?:to continue|to complete|where|on the|in (?:stable|good))\b|on (?:[0-9]|p$|oral))"
)
_FOLLOWS_UP = re.compile(
    r"\bfollow(?:ing|s|ed)?[\s-]?up\b"
    r"|\b(?:see|seen) (?:him|her|the patient|me|us)\s(?:back|again)\b"
    r"|\breturn to (?:the )?(?:clinic|office)\b|\bschedule an appointment\b",
    re.IGNORECASE,
)
_SETS_A_TIME = re.compile(
    r"\b(?:in|within|after)\s(?:about\s)?[\w\s-]{1,20}?\b(?:day|week|month|year)s?\b|\bwith\b"
    r"|\b[0-9]{1,2}/|\bdr\b|\boffice\b|\bclinic\b|\bfacility\b",
    re.IGNORECASE,
)


def disposition_in(bodies: Iterable[str]) -> str | None:
    """The last statement in the order of the document of where the patient went."""
    last = None
    for body in bodies:
        for match in _LEAVES.finditer(body):
            before = body[max(0, match.start() - 4) : match.start()].rstrip()
            # "Transfer to" says where to go only where a sentence begins with it.
            if match["order"] and not before.endswith((".", ":")) and before:
                continue
            last = one_line(_PURPOSE.split(match[0], maxsplit=1)[0])
    return last


def follow_up_in(bodies: Iterable[str]) -> str | None:
    """The first sentence that plans a follow-up with somebody, somewhere or at some time."""
    for body in bodies:
        parts = listing(body)
        for passage in (parts.lead, *parts.items):
            for sentence in sentences(passage):
                if (
                    len(sentence) <= LONGEST_TEXT
                    and _FOLLOWS_UP.search(sentence)
                    and _SETS_A_TIME.search(sentence)
                ):
                    return one_line(sentence)
    return None


def stated(body: str) -> str | None:
    """The text of a section of a few words, "" where it is left blank, `None` if it says nothing.

    "None" and the like are statements and are kept.
    """
    line = one_line(body).rstrip(" ,")
    if not line.strip("_. "):
        return ""
    if saying(line) is Saying.NOTHING:
        return None
    return _shortened(line)


def _shortened(line: str) -> str:
    if len(line) <= LONGEST_TEXT:
        return line
    cut = line.rfind(" ", 0, LONGEST_TEXT)
    return line[: cut if cut > 0 else LONGEST_TEXT]
