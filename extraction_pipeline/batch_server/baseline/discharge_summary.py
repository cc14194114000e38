"""Rules for discharge summaries and clinical notes: from sections and sentences to a record."""

import re
from collections.abc import Iterator

from extraction_pipeline.batch_server.baseline import discharge_headings as headings
from extraction_pipeline.batch_server.baseline.allergies import allergies_in, denied_in
from extraction_pipeline.batch_server.baseline.dates import DATE, first_date, stated_date
from extraction_pipeline.batch_server.baseline.departure import (
    disposition_in,
    follow_up_in,
    stated,
)
from extraction_pipeline.batch_server.baseline.diagnoses import (
    diagnoses_in,
    mentioned_in_prose,
    named_in_prose,
)
from extraction_pipeline.batch_server.baseline.items import (
    MOST_ITEMS,
    Listing,
    listing,
    one_line,
    sentences,
)
from extraction_pipeline.batch_server.baseline.medications import (
    FoundMedication,
    listed_medications,
    medications_in,
)
from extraction_pipeline.batch_server.baseline.negation import Saying, saying
from extraction_pipeline.batch_server.baseline.procedures import (
    procedures_in,
    procedures_undergone,
)
from extraction_pipeline.batch_server.baseline.sections import bodies, split_sections
from extraction_pipeline.schemas.dates import StatedDate
from extraction_pipeline.schemas.discharge_summary import (
    Allergy,
    Diagnosis,
    DischargeMedication,
    DischargeSummary,
    MedicationStatus,
    Procedure,
)

_LONGEST_COURSE = 2_000
_LONGEST_PROSE = 60_000
_LONGEST_IMPRESSION = 8
# Both begin with plain letters, which lets a long text be passed over quickly.
_ADMITTED_ON = re.compile(
    r"[Aa](?i:dmitted\b[^.\n]{0,60}?\bon\s{1,3}|dmi(?:tted|ssion|t)(?: date)?[:\s]{1,3})"
)
_DISCHARGED_ON = re.compile(
    r"[Dd](?i:ischarged\b[^.\n]{0,60}?\bon\s{1,3}|ischarged?(?: date)?[:\s]{1,3})"
)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_ALLERGY = re.compile(r"\ballerg", re.IGNORECASE)
_LEAVING = re.compile(r"\bdischarged?\b|\bsent home\b|\bgo(?:ing)? home\b", re.IGNORECASE)
_MEDICATIONS = re.compile(r"\bmedications?\b[^.]{0,60}$", re.IGNORECASE)
_NOT_TAKEN = re.compile(
    r"\b(?:no(?!\.)|not|never|without|denie[sd]|allerg\w+|refused?|declin\w+|levels?|tests?)\b",
    re.IGNORECASE,
)


class _Document:
    """A document's sections, by what they say."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sections = split_sections(text, headings.VOCABULARY)
        # The segments of an HL7 message have no headings either, and are no sentences.
        self.is_prose = not text.startswith("MSH|") and all(
            section.concept is None for section in self.sections
        )

    def bodies(self, *concepts: str) -> list[str]:
        return bodies(self.sections, *concepts)


def discharge_summary(text: str) -> DischargeSummary:
    """What headings and patterns give of a discharge summary; what they do not, stays `None`."""
    document = _Document(text)
    return DischargeSummary(
        chief_complaint=_first_stated(document, headings.CHIEF_COMPLAINT),
        admission_date=_date(document, headings.ADMISSION_DATE, _ADMITTED_ON),
        discharge_date=_date(document, headings.DISCHARGE_DATE, _DISCHARGED_ON),
        encounter_date=_encounter_date(document),
        diagnoses=_diagnoses(document),
        procedures=_procedures(document),
        medications=_medications(document),
        allergies=_allergies(document),
        hospital_course=_course(document),
        condition_at_discharge=_first_stated(document, headings.CONDITION),
        disposition=_disposition(document),
        follow_up=_follow_up(document),
    )


def _first_stated(document: _Document, *concepts: str) -> str | None:
    values = [stated(_BLANK_LINE.split(body, 1)[0]) for body in document.bodies(*concepts)]
    return next((value for value in values if value is not None), None)


def _date(document: _Document, concept: str, in_prose: re.Pattern[str]) -> StatedDate | None:
    for body in document.bodies(concept):
        found = first_date(body[:60], document.text)
        if found:
            return found
    for match in in_prose.finditer(document.text, 0, _LONGEST_PROSE):
        date = DATE.match(document.text, match.end())
        if date:
            return stated_date(date, document.text)
    return None


def _encounter_date(document: _Document) -> StatedDate | None:
    """A labelled date, or the date that is all of the document's first line."""
    for body in document.bodies(headings.ENCOUNTER_DATE):
        found = first_date(body[:60], document.text)
        if found:
            return found
    first_line = document.text.lstrip()[:80].partition("\n")[0].strip()
    match = DATE.fullmatch(first_line)
    return stated_date(match, document.text) if match else None


def _diagnoses(document: _Document) -> list[Diagnosis] | None:
    """The best section that lists some, else what sentences say was diagnosed."""
    main = [item for body in document.bodies(headings.DIAGNOSES) for item in diagnoses_in(body)]
    further = document.bodies(headings.FURTHER_DIAGNOSES)
    added = [item for body in further for item in diagnoses_in(body)]
    if main:
        return _once_each([*main, *added])
    for concept in (headings.ADMISSION_DIAGNOSES, headings.PROBLEMS):
        found = [item for body in document.bodies(concept) for item in diagnoses_in(body)]
        if found or added:
            return _once_each([*found, *added])
    assessments = document.bodies(headings.ASSESSMENT)
    listed = [item for body in assessments for item in diagnoses_in(body)]
    short = [item for item in listed if len(item.name.split()) <= _LONGEST_IMPRESSION]
    prose = assessments or [section.body[:_LONGEST_PROSE] for section in document.sections]
    named = [item for body in prose for item in named_in_prose(body)]
    if document.is_prose:
        named = [item for body in prose for item in mentioned_in_prose(body)]
    return _once_each([*short, *named]) or None


def _once_each(diagnoses: list[Diagnosis]) -> list[Diagnosis]:
    """Each diagnosis once; one whose words are part of another's adds nothing."""
    kept: dict[str, Diagnosis] = {}
    for diagnosis in diagnoses:
        name = f" {diagnosis.name.casefold()} "
        if not any(name in other for other in kept):
            kept[name] = diagnosis
    return list(kept.values())[:MOST_ITEMS]


def _procedures(document: _Document) -> list[Procedure] | None:
    listed = [procedures_in(body) for body in document.bodies(headings.PROCEDURES)]
    found = [item for items in listed if items for item in items]
    if found:
        return found[:MOST_ITEMS]
    if any(items is not None for items in listed):
        return []
    told = document.bodies(headings.COURSE)
    if document.is_prose:
        told = [section.body[:_LONGEST_PROSE] for section in document.sections]
    done = [item for body in told for item in procedures_undergone(body)]
    return done[:MOST_ITEMS] or None


def _medications(document: _Document) -> list[DischargeMedication] | None:
    """The discharge list, else the current one, else what sentences tell to take."""
    plans = [listing(body) for body in document.bodies(headings.INSTRUCTIONS)]
    in_plans = ["\n".join(plan.items) for plan in plans if _lists_medications(plan)]
    for group in (
        document.bodies(headings.DISCHARGE_MEDICATIONS),
        in_plans,
        document.bodies(headings.MEDICATIONS),
    ):
        listed = [listed_medications(body) for body in group]
        found = [item for items in listed if items for item in items]
        if found:
            return _orders(found)
        if any(items is not None for items in listed):
            return []
    told = [item for sentence in _telling(document) for item in medications_in(sentence)]
    return _orders([item for item in told if not _NOT_TAKEN.search(item.words)]) or None


def _lists_medications(plan: Listing) -> bool:
    return plan.is_marked and _MEDICATIONS.search(plan.lead) is not None


def _telling(document: _Document) -> Iterator[str]:
    """Sentences that may tell what is taken after the stay."""
    if document.is_prose:
        for section in document.sections:
            yield from (words for words in sentences(section.body) if not _ALLERGY.search(words))
        return
    for body in document.bodies(
        headings.INSTRUCTIONS, headings.FOLLOW_UP, headings.DISPOSITION, headings.ASSESSMENT
    ):
        yield from sentences(body)
    for body in document.bodies(headings.COURSE):
        leaving = False
        for sentence in sentences(body):
            leaving = leaving or _LEAVING.search(sentence) is not None
            if leaving:
                yield sentence


def _orders(found: list[FoundMedication]) -> list[DischargeMedication]:
    """One entry for each drug and dose, from the mention that says most.

    A mention without a dose adds nothing to one that has it.
    """
    by_name: dict[str, dict[str | None, FoundMedication]] = {}
    for item in found:
        doses = by_name.setdefault(item.name.casefold(), {})
        if item.dose not in doses or item.details > doses[item.dose].details:
            doses[item.dose] = item
    return [
        DischargeMedication(
            name=item.name,
            dose=item.dose,
            route=item.route,
            frequency=item.frequency,
            evidence=[item.words],
            status=_status(item),
        )
        for doses in by_name.values()
        for dose, item in doses.items()
        if dose is not None or len(doses) == 1
    ][:MOST_ITEMS]


def _status(item: FoundMedication) -> MedicationStatus:
    if item.is_stopped:
        return MedicationStatus.STOPPED
    if item.is_changed:
        return MedicationStatus.CHANGED
    if item.is_continued:
        return MedicationStatus.CONTINUED
    return MedicationStatus.NEW if item.is_new else MedicationStatus.NOT_STATED


def _allergies(document: _Document) -> list[Allergy] | None:
    listed = [allergies_in(body) for body in document.bodies(headings.ALLERGIES)]
    found = [item for items in listed if items for item in items]
    if found or any(items is not None for items in listed):
        return found[:MOST_ITEMS]
    if any(saying(body) is Saying.SOMETHING for body in document.bodies(headings.ALLERGIES)):
        # The section names one that the rules cannot read, whatever is said elsewhere.
        return None
    return [] if denied_in(document.text[:_LONGEST_PROSE]) else None


def _course(document: _Document) -> str | None:
    value = next(
        (body for body in document.bodies(headings.COURSE) if stated(body) is not None), None
    )
    return None if value is None else one_line(value)[:_LONGEST_COURSE]


def _disposition(document: _Document) -> str | None:
    labelled = _first_stated(document, headings.DISPOSITION)
    if labelled is None:
        # "Discharged: 3 May" is a date, "Discharged to: home" a place.
        places = [
            body.partition("\n")[0]
            for body in document.bodies(headings.DISCHARGE_DATE)
            if not DATE.search(body[:60])
        ]
        labelled = next((stated(place) for place in places if place), None)
    if labelled is not None:
        return labelled
    telling = (
        headings.COURSE,
        headings.INSTRUCTIONS,
        headings.DISCHARGE_MEDICATIONS,
        headings.FOLLOW_UP,
    )
    return disposition_in(document.bodies(*telling))


def _follow_up(document: _Document) -> str | None:
    labelled = _first_stated(document, headings.FOLLOW_UP)
    if labelled is not None:
        return labelled
    return follow_up_in(
        document.bodies(headings.INSTRUCTIONS, headings.DISCHARGE_MEDICATIONS, headings.COURSE)
    )
