"""What records can be written as. Apart from the writing, whose imports are heavy."""

from enum import StrEnum


class ExportFormat(StrEnum):
    """What a file is written as."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"
