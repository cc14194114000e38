"""Rules for care protocols: treatment guidelines, protocols and standing orders."""

import re

from extraction_pipeline.batch_server.baseline.dates import DATE, first_date, stated_date
from extraction_pipeline.batch_server.baseline.departure import stated
from extraction_pipeline.batch_server.baseline.drug_names import drug_spans
from extraction_pipeline.batch_server.baseline.headings import Vocabulary, concept, words_of
from extraction_pipeline.batch_server.baseline.items import one_line, statements, unmarked
from extraction_pipeline.batch_server.baseline.medications import (
    listed_medications,
    medications_in,
)
from extraction_pipeline.batch_server.baseline.negation import Saying, saying
from extraction_pipeline.batch_server.baseline.sections import Section, bodies, split_sections
from extraction_pipeline.schemas.care_protocol import CareProtocol, ProtocolStatement
from extraction_pipeline.schemas.dates import StatedDate
from extraction_pipeline.schemas.medication import MedicationOrder

_MOST_STATEMENTS = 200
_FRONT = 3_000

_VOCABULARY = Vocabulary(
    concepts=(
        concept("title", "title", companions="guideline protocol document policy"),
        concept(
            "issuing_body",
            "developer developers issuer issued issuing organization organisation publisher",
            companions="guideline body by",
        ),
        concept("version", "version edition revision", companions="number no protocol document"),
        concept(
            "reviewed_date",
            "reviewed revised updated review revision update",
            companions="date last next",
        ),
        concept("effective_date", "effective", companions="date from"),
        concept(
            "published_date",
            "released published publication issued issue release approved",
            companions="date",
        ),
        concept("population", "population patients", companions="target patient group"),
        concept(
            "contraindications",
            "contraindications contraindication exclusion exclusions precautions",
            companions="criteria absolute relative and",
        ),
        concept(
            "indications",
            "indications indication inclusion disease diseases conditions",
            companions="criteria condition s use treatment clinical",
        ),
        concept(
            "monitoring",
            "monitoring monitor reassessment observation followup",
            companions="patient and care reassess",
        ),
        concept(
            "medications",
            "drug drugs medication medications pharmacotherapy pharmacologic dosing dosage doses",
            companions="treatment therapy management dosing options regimen",
        ),
        concept(
            "steps",
            "recommendations recommendation procedure procedures steps step treatment management "
            "orders interventions intervention actions action protocol therapy measures "
            "algorithm assessment order",
            companions="major general standing paramedic emt advanced first responder basic "
            "medical control may non drug pharmacological initial clinical care key practice "
            "supportive emergency patient adjuvant adult pediatric goals considered practices "
            "responder",
        ),
    ),
    fillers=words_of("the of at on upon for and or to from s in a is by with"),
)

_FRONT_TITLE = re.compile(r"^title:\s{0,3}[\"']?([^\"'\n]{3,300})", re.MULTILINE)
_NUMBERED_TITLE = re.compile(
    r"^(?:Protocol|Guideline|Policy)\s[\w.]{1,8}\s{1,4}(\S[^\n]{3,150})", re.M
)
_VERSION = re.compile(r"\b[Vv]ersion:?\s{1,3}([0-9][\w.]{0,12}\w)")
_BODY = re.compile(
    r"\b(?:Department|Ministry|Association|Society|College|Institutes?|Agency|Organization"
    r"|Organisation|Hospital|Cent(?:er|re)s? for|Committee|Academy|Foundation|Authority"
    r"|Health Service|Health System|Task Force)\b"
)
_REVISED = re.compile(
    r"\b(?:revised|reviewed|updated|last reviewed|last updated)[\s:]{1,3}([^)\n]{4,30})",
    re.IGNORECASE,
)
_EFFECTIVE = re.compile(r"\beffective(?: date| from)?[\s:]{1,3}", re.IGNORECASE)
_MONITORS = re.compile(
    r"^(?:continuous(?:ly)?\s)?(?:monitor|reassess|re-assess|recheck|re-check|observe|repeat the)\b"
    r"|\bshould be (?:monitored|reassessed|rechecked)\b|\bmonitoring of\b",
    re.IGNORECASE,
)
_FORBIDS = re.compile(r"\bcontraindicated\b|\bdo not (?:use|give|administer)\b", re.IGNORECASE)


def care_protocol(text: str) -> CareProtocol:
    """What headings and patterns give of a care protocol; what they do not, stays `None`."""
    sections = split_sections(text, _VOCABULARY)
    steps = _statements(sections, "steps")
    told = [statement.text for statement in steps or ()]
    return CareProtocol(
        title=_title(text, sections),
        issuing_body=_issuing_body(text, sections),
        version=_version(text, sections),
        published_date=_date(text, sections, "published_date"),
        reviewed_date=_reviewed(text, sections),
        effective_date=_date(text, sections, "effective_date") or _effective(text),
        population=_first_stated(sections, "population"),
        indications=_statements(sections, "indications"),
        contraindications=_contraindications(sections, told),
        steps=steps,
        medications=_medications(sections, told),
        monitoring=_monitoring(sections, told),
    )


def _first_stated(sections: list[Section], name: str) -> str | None:
    values = (stated(body) for body in bodies(sections, name))
    return next((value for value in values if value is not None), None)


def _title(text: str, sections: list[Section]) -> str | None:
    labelled = _first_stated(sections, "title")
    if labelled:
        return labelled
    for pattern in (_FRONT_TITLE, _NUMBERED_TITLE):
        if match := pattern.search(text, 0, _FRONT):
            return one_line(match[1])
    first = text.lstrip()[:200].partition("\n")[0].strip("#*_ \t\r")
    return one_line(first) if 3 <= len(first) <= 150 and not first.endswith((".", ":")) else None


def _issuing_body(text: str, sections: list[Section]) -> str | None:
    labelled = _first_stated(sections, "issuing_body")
    if labelled:
        return labelled.strip("-•* ")
    for line in text[:_FRONT].splitlines()[:6]:
        if len(line) <= 160 and _BODY.search(line) and not line.rstrip().endswith("."):
            return one_line(line)
    return None


def _version(text: str, sections: list[Section]) -> str | None:
    labelled = _first_stated(sections, "version")
    if labelled:
        return labelled[:80]
    match = _VERSION.search(text, 0, _FRONT)
    return match[1] if match else None


def _date(text: str, sections: list[Section], name: str) -> StatedDate | None:
    dates = (first_date(body[:80], text) for body in bodies(sections, name))
    return next((date for date in dates if date is not None), None)


def _reviewed(text: str, sections: list[Section]) -> StatedDate | None:
    labelled = _date(text, sections, "reviewed_date")
    if labelled:
        return labelled
    for body in bodies(sections, "published_date"):
        if match := _REVISED.search(body[:200]):
            words = match[1].strip(" .")
            if any(character.isdigit() for character in words):
                return first_date(words, text) or StatedDate(as_written=words, iso=None)
    return None


def _effective(text: str) -> StatedDate | None:
    for match in _EFFECTIVE.finditer(text, 0, _FRONT):
        if date := DATE.match(text, match.end()):
            return stated_date(date, text)
    return None


def _statement(words: str) -> ProtocolStatement | None:
    line = unmarked(words)
    if line is None or saying(line) is Saying.NOTHING:
        return None
    return ProtocolStatement(text=line, evidence=[words])


def _statements(sections: list[Section], name: str) -> list[ProtocolStatement] | None:
    """Empty if a section of that name states that there is none, `None` if none says anything."""
    found: list[ProtocolStatement] = []
    none_stated = False
    for body in bodies(sections, name):
        if saying(body) is not Saying.SOMETHING:
            none_stated |= saying(body) is Saying.NONE
            continue
        found += [made for words in statements(body) if (made := _statement(words))]
    return found[:_MOST_STATEMENTS] or ([] if none_stated else None)


def _contraindications(sections: list[Section], told: list[str]) -> list[ProtocolStatement] | None:
    listed = _statements(sections, "contraindications")
    if listed is not None:
        return listed
    return [
        made for words in told if _FORBIDS.search(words) and (made := _statement(words))
    ] or None


def _monitoring(sections: list[Section], told: list[str]) -> list[ProtocolStatement] | None:
    listed = _statements(sections, "monitoring")
    if listed is not None:
        return listed
    return [
        made for words in told if _MONITORS.search(words) and (made := _statement(words))
    ] or None


def _medications(sections: list[Section], told: list[str]) -> list[MedicationOrder] | None:
    found = []
    none_stated = False
    for body in bodies(sections, "medications"):
        listed = listed_medications(body)
        none_stated |= listed == []
        found += [item for item in listed or () if item.dose or drug_spans(item.name)]
    dosed = [item for words in told for item in medications_in(words) if item.dose]
    orders = [
        MedicationOrder(
            name=item.name,
            dose=item.dose,
            route=item.route,
            frequency=item.frequency,
            evidence=[item.words],
        )
        for item in [*found, *dosed]
    ]
    return orders[:_MOST_STATEMENTS] or ([] if none_stated else None)
