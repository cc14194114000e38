"""Discharge summaries, and the notes and reports that are read in their place."""

from enum import StrEnum

from pydantic import Field

from extraction_pipeline.schemas.dates import StatedDate
from extraction_pipeline.schemas.document_type import DocumentType
from extraction_pipeline.schemas.evidence import Evidence
from extraction_pipeline.schemas.medication import MedicationOrder
from extraction_pipeline.schemas.prompt import compose_instructions
from extraction_pipeline.schemas.record import DistinctList, Name, Record


class MedicationStatus(StrEnum):
    """What the document says happens to a medication at discharge."""

    NEW = "new"
    CONTINUED = "continued"
    CHANGED = "changed"
    STOPPED = "stopped"
    NOT_STATED = "not_stated"


class Diagnosis(Record):
    """A diagnosis of this patient."""

    name: Name = Field(description="The diagnosis as written, without its number in a list.")
    evidence: Evidence


class Procedure(Record):
    """A procedure or operation that was done during this stay or visit."""

    name: Name = Field(description="The procedure as written.")
    evidence: Evidence


class Allergy(Record):
    """An allergy or intolerance of this patient."""

    substance: Name = Field(description="What the patient does not tolerate, as written.")
    reactions: list[Name] = Field(description="The reactions as written; empty if not stated.")
    evidence: Evidence


class DischargeMedication(MedicationOrder):
    """A medication at discharge, with what happens to it."""

    status: MedicationStatus = Field(
        description="new: started during this stay. continued: unchanged from before. "
        "changed: other dose, route or frequency than before. stopped: no longer to be taken. "
        "not_stated: the document does not say."
    )


class DischargeSummary(Record):
    """What a care team looks up after a stay: why, what was done, what to take, what is next."""

    chief_complaint: str | None = Field(
        description="The reason for admission or visit, as written."
    )
    admission_date: StatedDate | None = Field(description="The day of admission.")
    discharge_date: StatedDate | None = Field(description="The day of discharge.")
    encounter_date: StatedDate | None = Field(
        description="The day of a visit without admission, or the date of the document itself."
    )
    diagnoses: DistinctList[Diagnosis] | None = Field(
        description="Discharge, principal, secondary and additional diagnoses. Admission "
        "diagnoses only where no others are given."
    )
    procedures: DistinctList[Procedure] | None = Field(
        description="Procedures and operations done during this stay or visit."
    )
    medications: DistinctList[DischargeMedication] | None = Field(
        description="Medications to take after discharge, and those stopped at discharge. Not "
        "what was given only during the stay."
    )
    allergies: DistinctList[Allergy] | None = Field(
        description="Allergies and intolerances. Empty if the document states that none is known."
    )
    hospital_course: str | None = Field(
        description="The course of the stay in at most five sentences of the document's words."
    )
    condition_at_discharge: str | None = Field(
        description="The patient's condition at discharge, as written."
    )
    disposition: str | None = Field(
        description="Where the patient goes after discharge, as written."
    )
    follow_up: str | None = Field(
        description="Appointments and follow-up after discharge, as written."
    )


DOCUMENT_TYPE = DocumentType(
    name="discharge_summary",
    model=DischargeSummary,
    schema_version="discharge_summary/1",
    instructions=compose_instructions(
        """
The document is a hospital discharge summary, or a clinical note or case report that is kept with \
them. Find what it states of this patient's stay or visit. Leave out the patient's name, numbers \
and address. A plan that was considered and not carried out is not a procedure, and a drug that \
was given only during the stay is not a medication at discharge.
"""
    ),
)
