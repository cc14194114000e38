"""Rules for payer notes: coverage policies, determinations, authorizations, denials, appeals."""

import re
from collections.abc import Iterable

from extraction_pipeline.batch_server.baseline.billing_codes import billing_codes
from extraction_pipeline.batch_server.baseline.dates import DATE, first_date, stated_date
from extraction_pipeline.batch_server.baseline.departure import stated
from extraction_pipeline.batch_server.baseline.headings import Vocabulary, concept, words_of
from extraction_pipeline.batch_server.baseline.items import (
    one_line,
    sentences,
    statements,
    unmarked,
)
from extraction_pipeline.batch_server.baseline.negation import Saying, saying
from extraction_pipeline.batch_server.baseline.sections import Section, bodies, split_sections
from extraction_pipeline.schemas.dates import StatedDate
from extraction_pipeline.schemas.payer_note import PayerDecision, PayerNote, PolicyStatement

_MOST_STATEMENTS = 200
_FRONT = 3_000
_LONGEST_SERVICE = 500
_LONGEST_TEXT = 100_000

_VOCABULARY = Vocabulary(
    concepts=(
        concept(
            "other",
            "transmittal revision references bibliography history other",
            companions="number cross reference",
        ),
        concept("payer", "payer insurer insurance", companions="name company primary"),
        concept("payer", "plan", "health", companions="name"),
        concept(
            "policy_number",
            "policy case reference determination authorization claim document",
            "number no id",
            companions="medical",
        ),
        concept("policy_title", "title", companions="policy document"),
        concept("effective_date", "effective", companions="date policy original"),
        concept(
            "service",
            "service services treatment procedure medication drug device item",
            companions="requested description name request required approved denied",
        ),
        concept(
            "decision_reason",
            "reason rationale",
            companions="denial decision determination denied adverse",
        ),
        concept(
            "decision",
            "decision determination outcome",
            companions="appeal final coverage authorization review status",
        ),
        concept("decision", "status", companions="request current"),
        concept("codes", "codes coding", companions="billing procedure diagnosis applicable"),
        concept(
            "documents_required",
            "documentation documents records",
            companions="required requirements needed supporting submission necessary clinical send "
            "submit",
        ),
        concept("documents_required", "send submit", companions="please request"),
        concept("criteria", "indications", "limitations", companions="coverage medical necessity"),
        concept(
            "limitations",
            "limitations limits limitation exclusions contraindications noncovered non excluded "
            "not",
            companions="indications nationally covered services coverage uses general",
        ),
        concept(
            "criteria",
            "criteria indications rationale necessity requirements covered",
            companions="coverage limitations nationally medical clinical approval policy "
            "statement guidelines authorization prior initial continue first after days met",
        ),
    ),
    fillers=words_of("the of at on for and or to from s in a is by with b c d"),
    introductions={
        "documents_required": re.compile(r"must be submitted|documents? (?:is|are) required"),
    },
)

_NESTED = re.compile(r"[a-z][A-Za-z]{1,30}:(?:\s|$)")
"""The line of a nested structure, such as JSON written out; it is no value by itself."""
_PAYERS = re.compile(
    r"\b(?:Medicare|Medicaid|UnitedHealthcare|United Healthcare|Cigna|Aetna|Humana|Anthem|Kaiser"
    r" Permanente|(?:Blue Cross(?: and)? )?Blue Shield(?: of [A-Z]\w+)?|Blue Cross|TRICARE|Molina"
    r"(?: Healthcare)?|Centene|Oxford|Fidelis Care(?: [A-Z]\w+){0,2}|CMS)\b"
)
_INSURER = re.compile(
    r"\b(?:[A-Z][\w'&-]{2,25} ){1,3}(?i:health (?:plan|alliance|insurance|partners)"
    r"|mutual(?: benefit)?|insurance(?: company)?|medicaid program)\b"
)
"""A name that ends in what only insurers are called."""
_DETERMINATION = re.compile(
    r"\b(?P<kind>NCD|LCD|LOCAL COVERAGE DETERMINATION|NATIONAL COVERAGE DETERMINATION)[ \t]{1,3}"
    r"\(?(?P<number>[A-Z]?[0-9][0-9.]{1,8})\)?"
    r"(?:[ \t]{0,2}[-\u2013:][ \t]{0,3}(?P<title>\S[^\n]{2,200}))?"
)
_POLICY_NUMBER = re.compile(
    r"\b(?:policy|case|reference|claim|authorization)\s(?:number|no\.?|id|#)"
    r"\*{0,2}[ \t]{0,2}[:#|]?\*{0,2}[ \t]{0,3}#?(?P<number>[A-Z0-9][A-Z0-9.\-/]{2,24})",
    re.IGNORECASE,
)
_NAMES_POLICY = re.compile(r"\b(?:policy|coverage determination|guideline)\b", re.IGNORECASE)
_EFFECTIVE = re.compile(
    r"\beffective(?: date| for| from| on| services| performed| or| after|[:|*\s])*",
    re.IGNORECASE,
)
_LIMITS = re.compile(
    r"\b(?:not (?:be )?(?:covered|reasonable|medically necessary)|non-?covered|excluded|exclusions?"
    r"|no more than|limited to|must be discontinued|may not|does not (?:cover|assure)|not exceed"
    r"|maximum of|up to [0-9])\b",
    re.IGNORECASE,
)
_REQUIRES = re.compile(
    r"\b(?:covered|medically necessary|must|required|criteria|coverage"
    r"|only (?:if|when)|indicated)\b",
    re.IGNORECASE,
)
_SAYS_COVERED = re.compile(
    r"\b(?:is|are|will be|may be|be)\s(?:considered\s|only\s)?(?:covered|medically necessary"
    r"|reasonable and necessary)\b|\bwill cover\b",
    re.IGNORECASE,
)
_ON_CONDITION = re.compile(
    r"\b(?:when|if|only|following|criteria|for patients?|under the|provided)\b", re.IGNORECASE
)
_NOT_COVERED = re.compile(
    r"\b(?:is|are|be|considered)\s(?:not\s(?:be\s)?(?:covered|medically necessary)|non-?covered)\b",
    re.IGNORECASE,
)
_OUTCOMES = (
    (PayerDecision.PARTLY_APPROVED, re.compile(r"\bpart(?:ial|ly|\b)", re.IGNORECASE)),
    (PayerDecision.DENIAL_OVERTURNED, re.compile(r"\b(?:overturn|revers)", re.IGNORECASE)),
    (PayerDecision.DENIAL_UPHELD, re.compile(r"\bupheld\b|\buphold", re.IGNORECASE)),
    (PayerDecision.PENDING, re.compile(r"\b(?:pend|under review|in review)", re.IGNORECASE)),
    (PayerDecision.DENIED, re.compile(r"\b(?:denie[ds]|denial|not approved)", re.IGNORECASE)),
    (PayerDecision.APPROVED, re.compile(r"\b(?:approve[ds]?|approval|granted)", re.IGNORECASE)),
)


def payer_note(text: str) -> PayerNote:
    """What headings and patterns give of a payer's document; what they do not, stays `None`."""
    sections = split_sections(text, _VOCABULARY)
    criteria, limitations = _criteria_and_limitations(sections)
    reason = _first_stated(sections, "decision_reason")
    return PayerNote(
        payer=_payer(text, sections),
        policy_number=_policy_number(text),
        policy_title=_policy_title(text, sections),
        effective_date=_effective_date(text, sections),
        service=_service(sections),
        codes=billing_codes(text) or None,
        criteria=criteria,
        limitations=limitations,
        decision=_decision(sections, reason),
        decision_reason=reason,
        documents_required=_documents(sections),
    )


def _first_stated(sections: list[Section], name: str) -> str | None:
    """The value of a labelled line: what follows in other lines belongs to other labels."""
    lines = (body.partition("\n")[0].strip("[]|* \t\r") for body in bodies(sections, name))
    values = (stated(line) for line in lines if not _NESTED.match(line))
    return next((value for value in values if value is not None), None)


def _payer(text: str, sections: list[Section]) -> str | None:
    labelled = _first_stated(sections, "payer")
    if labelled:
        return labelled
    match = _PAYERS.search(text, 0, 400) or _INSURER.search(text, 0, 400)
    return one_line(match[0]) if match else None


def _policy_number(text: str) -> str | None:
    for pattern in (_DETERMINATION, _POLICY_NUMBER):
        for match in pattern.finditer(text, 0, _FRONT):
            if any(map(str.isdigit, match["number"])):
                return match["number"]
    return None


def _policy_title(text: str, sections: list[Section]) -> str | None:
    labelled = _first_stated(sections, "policy_title")
    if labelled:
        return labelled
    match = _DETERMINATION.search(text, 0, _FRONT)
    if match and match["title"]:
        return one_line(match["title"])
    lines = [line.strip() for line in text[:_FRONT].splitlines() if line.strip()][:2]
    if len(lines) == 2 and _NAMES_POLICY.search(lines[0]) and 3 <= len(lines[1]) <= 150:
        is_title = lines[1][0].isalnum() and not {":", "|"} & set(lines[1])
        return one_line(lines[1]) if is_title and not lines[1].endswith(".") else None
    return None


def _effective_date(text: str, sections: list[Section]) -> StatedDate | None:
    for body in bodies(sections, "effective_date"):
        if date := first_date(body[:40], text):
            return date
    for match in _EFFECTIVE.finditer(text, 0, _LONGEST_TEXT):
        if found := DATE.match(text, match.end()):
            return stated_date(found, text)
    return None


def _service(sections: list[Section]) -> str | None:
    for body in bodies(sections, "service"):
        told = [words for words in statements(body.strip("[] ")) if words[0].isalnum()]
        described = [words for words in told if len(words.split()) > 1] or told
        if (
            described
            and saying(described[0]) is Saying.SOMETHING
            and not _NESTED.match(described[0])
        ):
            return one_line(described[0].strip("[]"))[:_LONGEST_SERVICE]
    return None


def _statement(words: str) -> PolicyStatement | None:
    line = unmarked(words)
    if line is None or saying(line) is Saying.NOTHING:
        return None
    return PolicyStatement(text=line, evidence=[words])


def _criteria_and_limitations(
    sections: list[Section],
) -> tuple[list[PolicyStatement] | None, list[PolicyStatement] | None]:
    """Sentences that exclude are limitations wherever they stand; the rest by its heading."""
    criteria: list[PolicyStatement] = []
    limits: list[PolicyStatement] = []
    for section in sections:
        if section.concept == "limitations":
            if saying(section.body) is Saying.SOMETHING:
                limits += [
                    made for words in statements(section.body) if (made := _statement(words))
                ]
        elif section.concept == "criteria":
            told = statements(section.body)
            only_prose = len(section.body) > 0 and told == sentences(section.body)
            for words in told:
                made = _statement(words)
                if made and _LIMITS.search(words):
                    limits.append(made)
                elif made and (not only_prose or _REQUIRES.search(words)):
                    criteria.append(made)
    return criteria[:_MOST_STATEMENTS] or None, limits[:_MOST_STATEMENTS] or None


def _documents(sections: list[Section]) -> list[PolicyStatement] | None:
    found = [
        made
        for body in bodies(sections, "documents_required")
        for words in statements(body)
        if not words.rstrip().endswith(":") and (made := _statement(words))
    ]
    return found[:_MOST_STATEMENTS] or None


def _decision(sections: list[Section], reason: str | None) -> PayerDecision:
    """A labelled outcome, else what the policy's sentences say, else that a denial has a reason."""
    labelled = _first_stated(sections, "decision") or ""
    for decision, pattern in _OUTCOMES:
        if pattern.search(labelled[:200]):
            return decision
    if reason and any(
        section.concept == "decision_reason" and "denial" in section.title.lower()
        for section in sections
    ):
        return PayerDecision.DENIED
    return _coverage(
        body for name in ("criteria", "limitations") for body in bodies(sections, name)
    )


def _coverage(bodies: Iterable[str]) -> PayerDecision:
    told = [sentence for body in bodies for sentence in sentences(body)]
    covered = [sentence for sentence in told if _SAYS_COVERED.search(sentence)]
    if any(_ON_CONDITION.search(sentence) for sentence in covered):
        return PayerDecision.COVERED_WITH_CRITERIA
    if covered:
        return PayerDecision.COVERED
    if any(_NOT_COVERED.search(sentence) for sentence in told):
        return PayerDecision.NOT_COVERED
    return PayerDecision.NOT_STATED
