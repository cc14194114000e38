"""One thing that is wrong in a collection's YAML, and how a set of them is shown."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from extraction_pipeline.errors import CollectionError

_LONGEST_MESSAGE = 300


@dataclass(frozen=True)
class Defect:
    """What is wrong and what to do, without the file's name. `line` counts from 1."""

    line: int
    message: str
    remedy: str

    def shown(self, file: Path) -> str:
        """The defect in one line, in the form that editors and terminals make clickable."""
        # A key may hold line breaks or be of any length; the report stays one line a defect.
        message = self.message
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[:_LONGEST_MESSAGE]}..."
        return f"{file}:{self.line}: " + " ".join(f"{message} {self.remedy}".split())


def collection_error(reports: Iterable[str]) -> CollectionError:
    """One error for all defects, one a line."""
    return CollectionError("\n".join(reports))
