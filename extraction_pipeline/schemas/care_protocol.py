"""Care protocols: clinical guidelines, treatment protocols and standing orders."""

from pydantic import Field

from extraction_pipeline.schemas.dates import StatedDate
from extraction_pipeline.schemas.document_type import DocumentType
from extraction_pipeline.schemas.evidence import Evidence
from extraction_pipeline.schemas.medication import MedicationOrder
from extraction_pipeline.schemas.prompt import compose_instructions
from extraction_pipeline.schemas.record import DistinctList, Name, Record


class ProtocolStatement(Record):
    """One statement of a protocol: a condition, a step, something to watch."""

    text: Name = Field(description="The statement as written, without its bullet or number.")
    evidence: Evidence


class CareProtocol(Record):
    """What a clinician looks up in a protocol: for whom, when, when not, what to do and watch."""

    title: str | None = Field(description="The protocol's title, as written.")
    issuing_body: str | None = Field(
        description="The organization that issues the protocol, as written."
    )
    version: str | None = Field(description="Its version or edition, as written.")
    published_date: StatedDate | None = Field(description="When it was published or released.")
    reviewed_date: StatedDate | None = Field(
        description="When it was last reviewed, revised or updated."
    )
    effective_date: StatedDate | None = Field(description="From when on it applies.")
    population: str | None = Field(description="The patients whom it is for, as written.")
    indications: DistinctList[ProtocolStatement] | None = Field(
        description="Conditions and findings for which it is to be used."
    )
    contraindications: DistinctList[ProtocolStatement] | None = Field(
        description="Conditions in which it, or a treatment in it, is not to be used."
    )
    steps: list[ProtocolStatement] | None = Field(
        description="What is to be done, in the order of the document; a repeated step is "
        "repeated here."
    )
    medications: DistinctList[MedicationOrder] | None = Field(
        description="Medications that it tells to give, one entry for each dose or route."
    )
    monitoring: DistinctList[ProtocolStatement] | None = Field(
        description="What to monitor, check again or follow up, with its interval if stated."
    )


DOCUMENT_TYPE = DocumentType(
    name="care_protocol",
    model=CareProtocol,
    schema_version="care_protocol/1",
    instructions=compose_instructions(
        """
The document is a care protocol, a treatment guideline or standing orders. Find what it tells \
clinicians to do, for which patients, and when not. Leave out how the document was made: methods, \
ratings of evidence, committees, funding, references.
"""
    ),
)
