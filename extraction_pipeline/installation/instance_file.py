"""Dagster's instance file in a home: that of this code, until a person writes to it."""

import hashlib
from pathlib import Path

from extraction_pipeline.whole_file import write_whole

INSTANCE_FILE = Path(__file__).parent.parent / "dagster.yaml"
WRITTEN = "dagster.yaml.written"
"""Beside it: the hashes of all that was ever written there, a line each."""

BEFORE = frozenset(
    {
        "08fbc80d8501203336fab3e00f65fee31ed9403f3acd26298ef32c1356562a61",
        "46d94d84f5e6069c6798a97daff4bc1f2c3954ecb1b8c89c710f11b758455f8e",
        "4543583f6d52ce0ccafa0d1b2ac821e69d7433273aa55ab39a2db36f9095872d",
        "171d4075a48dff09f252b0c489945da597312f961921a93dac145a8ba5ccd4e7",
    }
)
"""Those that were written while no record was kept of it."""


def write_instance_file(folder: Path) -> None:
    """Write the instance file of this code into a folder that has none, or that of another version
    of it. One that a person has put there, linked there or changed stays. Raises `OSError`."""
    ours = INSTANCE_FILE.read_bytes()
    file, record = folder / "dagster.yaml", folder / WRITTEN
    if file.is_symlink():
        file.stat()  # one that leads nowhere is said here, and not by SQLite files of Dagster's
        return
    present = file.read_bytes() if file.exists() else None
    written = _recorded(record)
    if present is not None and present != ours and _hash(present) not in written | BEFORE:
        return
    # The record first: what a killed process leaves is never taken for a person's.
    if _hash(ours) not in written:
        with record.open("a") as lines:
            lines.write(f"{_hash(ours)}\n")
    if present != ours:
        # Dagster's processes may be reading; an empty file means to them that they store in SQLite.
        write_whole(file, ours)


def is_instance_file_of_ours(folder: Path) -> bool:
    """Whether the instance file of a folder is that of this code, word for word, and readable."""
    try:
        return (folder / "dagster.yaml").read_bytes() == INSTANCE_FILE.read_bytes()
    except OSError:
        return False


def _recorded(record: Path) -> frozenset[str]:
    content = record.read_bytes() if record.exists() else b""
    return frozenset(content.decode("ascii", "replace").split())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
