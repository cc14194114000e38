"""Medication as documents state it, shared by discharge summaries and care protocols."""

from pydantic import Field

from extraction_pipeline.schemas.evidence import Evidence
from extraction_pipeline.schemas.record import Name, Record


class MedicationOrder(Record):
    """A drug with its dose, route and frequency in the document's own words."""

    name: Name = Field(description="The drug as written, without dose, route or frequency.")
    dose: str | None = Field(description="Amount for one dose as written, such as '20 mg'.")
    route: str | None = Field(description="Route as written, such as 'p.o.' or 'IV'.")
    frequency: str | None = Field(
        description="How often as written, such as 'b.i.d.' or 'every 6 hours p.r.n.'."
    )
    evidence: Evidence
