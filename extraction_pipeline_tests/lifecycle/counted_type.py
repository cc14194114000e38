"""A document type of a user's own, with a number in it."""

from pydantic import BaseModel, ConfigDict

from extraction_pipeline.schemas.document_type import DocumentType


class Counted(BaseModel):
    """How many pages a note says it has."""

    model_config = ConfigDict(extra="forbid")

    pages: int


DOCUMENT_TYPE = DocumentType(
    name="counted",
    model=Counted,
    schema_version="counted/1",
    instructions="Find the number of pages.",
)
