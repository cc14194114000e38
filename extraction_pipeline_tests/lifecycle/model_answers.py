"""What a model may say of a discharge summary."""

from extraction_pipeline.schemas.discharge_summary import DischargeSummary

NOTHING_STATED: dict[str, object] = dict.fromkeys(DischargeSummary.model_fields)
"""A valid record of a document that states nothing."""
