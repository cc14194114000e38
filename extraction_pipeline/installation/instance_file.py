"""Dagster's instance file in a home: that of this code, until a person writes to it."""

import hashlib
from pathlib import Path

INSTANCE_FILE = Path(__file__).parent.parent / "dagster.yaml"
WRITTEN = "dagster.yaml.written"
"""Beside it: the hashes of all that was ever written there, a line each."""


def write_instance_file(folder: Path) -> None:
    """Write the instance file of this code into a folder that has none, or that of another version
    of it. One that was changed since it was written stays. Raises `OSError`."""
    ours = INSTANCE_FILE.read_bytes()
    file, record = folder / "dagster.yaml", folder / WRITTEN
    known = set(record.read_text().split()) if record.exists() else None
    # Homes without a record are of a time when each start wrote the file anew.
    if file.exists() and known is not None and _hash(file.read_bytes()) not in known:
        return
    if _hash(ours) not in (known or ()):
        with record.open("a") as lines:
            lines.write(f"{_hash(ours)}\n")
    file.write_bytes(ours)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
