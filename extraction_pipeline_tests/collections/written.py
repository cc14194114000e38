"""A valid collection as text, and a folder to change it in."""

from pathlib import Path

VALID = """\
name: referral_letters
description: Letters between clinics.
document_type: discharge_summary
source:
  kind: folder
  path: letters
  include: ["*.txt"]
identity: content
show_paths: false
active_version: v1
extraction_versions:
  v1:
    provider: local
    model: rules-baseline
    max_output_tokens: 2048
    max_attempts: 2
    parameters:
      temperature: 0
"""

BY_RECORD = """\
name: imported_letters
document_type: discharge_summary
source:
  kind: manifest
  path: ${LETTERS}/manifest.csv
  path_column: file
  record_id_column: record
identity: external_id
source_system: letters-archive
active_version: "2024.1"
extraction_versions:
  "2024.1": {provider: openai, model: some-model, instructions_file: prompt.txt}
"""


def write(folder: Path, text: str, name: str = "referral_letters.yaml") -> Path:
    """Put one YAML into `folder`."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def changed(old: str, new: str) -> str:
    """The valid collection with one passage replaced, which must be in it once."""
    assert VALID.count(old) == 1
    return VALID.replace(old, new)
