"""The settings that all programs share, out of the environment (see `Fair.environment`).

It imports nothing but the document type, which needs pydantic alone, so that it can be read in
every tool's environment.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from extraction_pipeline.schemas.discharge_summary import DOCUMENT_TYPE
from extraction_pipeline.schemas.prompt import render_document

PREFIX = "OTHERS_"
MODEL = "rules-baseline"
INSTRUCTIONS = DOCUMENT_TYPE.instructions
RECORD = DOCUMENT_TYPE.model
API_KEY = "none"
"""The batch server asks for none, and the vendor's SDK for any."""
MAX_OUTPUT_TOKENS = 4096


@dataclass(frozen=True)
class Fair:
    """One task for all: the same documents in jobs of the same size, asked about as often.

    `output` is where a program says what came of each document, and `state` the folder in which its
    tool keeps what it needs to go on after it was killed.
    """

    documents: Path
    base_url: str
    output: Path
    state: Path
    batch_size: int
    poll_seconds: int

    def environment(self) -> dict[str, str]:
        """What `fair` reads."""
        return {f"{PREFIX}{name.upper()}": str(value) for name, value in vars(self).items()}

    def texts(self) -> Iterator[tuple[str, str]]:
        """Name and user message of every document, in order."""
        for path in sorted(self.documents.iterdir()):
            yield path.stem, render_document(path.read_text())


def fair() -> Fair:
    """The settings of this process."""
    told = {name: os.environ[f"{PREFIX}{name.upper()}"] for name in Fair.__dataclass_fields__}
    return Fair(
        documents=Path(told["documents"]),
        base_url=told["base_url"],
        output=Path(told["output"]),
        state=Path(told["state"]),
        batch_size=int(told["batch_size"]),
        poll_seconds=int(told["poll_seconds"]),
    )


def tell(output: Path, ends: Iterable[tuple[str, bool]]) -> None:
    """Write what came of documents: a record, or a reason why there is none."""
    lines = [json.dumps({"id": name, "record": record}) + "\n" for name, record in ends]
    output.write_text("".join(lines))
