"""Payer notes: coverage policies, prior authorizations, determinations, denials and appeals."""

from enum import StrEnum

from pydantic import Field

from extraction_pipeline.schemas.dates import StatedDate
from extraction_pipeline.schemas.document_type import DocumentType
from extraction_pipeline.schemas.evidence import Evidence
from extraction_pipeline.schemas.prompt import compose_instructions
from extraction_pipeline.schemas.record import DistinctList, Name, Record


class CodeSystem(StrEnum):
    """The code systems that payers' documents use."""

    CPT = "CPT"
    HCPCS = "HCPCS"
    ICD_10_CM = "ICD-10-CM"
    ICD_10_PCS = "ICD-10-PCS"
    ICD_9_CM = "ICD-9-CM"
    CDT = "CDT"
    NDC = "NDC"
    MS_DRG = "MS-DRG"
    REVENUE_CODE = "revenue code"
    OTHER = "other"
    NOT_STATED = "not_stated"


class PayerDecision(StrEnum):
    """What the payer, or the reviewer of an appeal, decided."""

    COVERED = "covered"
    COVERED_WITH_CRITERIA = "covered_with_criteria"
    NOT_COVERED = "not_covered"
    APPROVED = "approved"
    PARTLY_APPROVED = "partly_approved"
    DENIED = "denied"
    PENDING = "pending"
    DENIAL_UPHELD = "denial_upheld"
    DENIAL_OVERTURNED = "denial_overturned"
    NOT_STATED = "not_stated"


class BillingCode(Record):
    """A code that the document names."""

    system: CodeSystem = Field(
        description="The code system that the document names for it; not_stated if it names none "
        "and the code's form leaves doubt."
    )
    code: Name = Field(description="The code as written.")
    description: str | None = Field(description="What the document says that it stands for.")
    evidence: Evidence


class PolicyStatement(Record):
    """One criterion, limitation or requirement."""

    text: Name = Field(description="The statement as written, without its bullet or number.")
    evidence: Evidence


class PayerNote(Record):
    """What a coordinator looks up: who decides, on what, by which criteria, with which papers."""

    payer: str | None = Field(description="The health plan or programme, as written.")
    policy_number: str | None = Field(
        description="The number of the policy, determination or case, as written."
    )
    policy_title: str | None = Field(description="The title of the policy, as written.")
    effective_date: StatedDate | None = Field(
        description="From when on the policy or decision applies."
    )
    service: str | None = Field(
        description="The service, drug or device that it is about, as written."
    )
    codes: DistinctList[BillingCode] | None = Field(
        description="Procedure, product and diagnosis codes."
    )
    criteria: DistinctList[PolicyStatement] | None = Field(
        description="Conditions under which the service is covered or necessary."
    )
    limitations: DistinctList[PolicyStatement] | None = Field(
        description="Exclusions, limits of number or time, and what is not covered."
    )
    decision: PayerDecision = Field(
        description="covered, covered_with_criteria, not_covered: what a policy says of its "
        "service. approved, partly_approved, denied, pending: a decision on one request. "
        "denial_upheld, denial_overturned: the outcome of an appeal. not_stated: none of these."
    )
    decision_reason: str | None = Field(description="The reason for the decision, as written.")
    documents_required: DistinctList[PolicyStatement] | None = Field(
        description="Documents that must be sent or kept."
    )


DOCUMENT_TYPE = DocumentType(
    name="payer_note",
    model=PayerNote,
    schema_version="payer_note/1",
    instructions=compose_instructions(
        """
The document comes from a payer or goes to one: a coverage policy or determination, a prior \
authorization with its papers, a denial, an appeal. Find what it states of coverage. Leave out \
the member's name, numbers and address.
"""
    ),
)
