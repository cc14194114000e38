"""Files that a step needs for a while: payloads and result streams, in the home and not in /tmp.

They hold documents' texts. A process that is killed leaves its own; the next one that opens the
pipeline removes them. Whose process lives is known by a lock, which the kernel frees with it.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from extraction_pipeline.errors import DISK_FULL, StoreError
from extraction_pipeline.settings import Settings


@contextmanager
def scratch_file(settings: Settings) -> Iterator[Path]:
    """A file for one payload or result stream; it and its folder vanish at the end.

    Raises `StoreError` if there is no place for it, also where that shows while it is written.
    """
    folder = _folder(settings)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place, descriptor = _locked_place(folder)
    except OSError as error:
        raise StoreError(
            f"No temporary file can be made in {folder}: {error.strerror}.",
            remedy="Set EXTRACTION_HOME to a folder that can be written and has space.",
        ) from None
    try:
        yield place / "file"
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise StoreError(
            f"A temporary file in {folder} cannot be written: {error.strerror}.",
            remedy="See to it that EXTRACTION_HOME has free space; what was under way is repeated "
            "safely.",
        ) from None
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(descriptor)


def sweep_scratch(settings: Settings) -> None:
    """Remove what killed processes left."""
    folder = _folder(settings)
    if not folder.is_dir():
        return
    for place in folder.iterdir():
        try:
            descriptor = os.open(place, os.O_RDONLY)
        except FileNotFoundError:
            continue  # its process has just ended
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(place, ignore_errors=True)
        finally:
            os.close(descriptor)


def _locked_place(folder: Path) -> tuple[Path, int]:
    while True:
        place = Path(mkdtemp(dir=folder))
        try:
            descriptor = os.open(place, os.O_RDONLY)
        except FileNotFoundError:
            continue  # a sweep came between the two
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if place.exists():
            return place, descriptor
        os.close(descriptor)  # a sweep had the lock


def _folder(settings: Settings) -> Path:
    return settings.home / "scratch"
