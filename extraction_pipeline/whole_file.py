"""Reading a file as a whole, where a setting or another file names it, and writing one in one step.

Such a name may lead to a pipe, at which an ordinary reading waits for ever, or to a device or a
file without an end, which takes all memory.
"""

import errno
import os
import stat
from pathlib import Path
from tempfile import mkstemp


def read_whole(file: Path, most_bytes: int) -> bytes:
    """The bytes of a regular file.

    Raises `OSError`, whose `strerror` says why, also for what is no regular file and for one of
    more than `most_bytes`; `ValueError` for a name that no file can have.
    """
    # Without O_NONBLOCK the opening of a pipe waits for its writer.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    with os.fdopen(descriptor, "rb") as stream:
        content = stream.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes:,} bytes")
    return content


def write_whole(file: Path, content: bytes) -> None:
    """Write a file, for this user alone: who reads it meanwhile has the old one or the new, and a
    process that ends meanwhile leaves the old one. Raises `OSError`."""
    descriptor, name = mkstemp(dir=file.parent, prefix=f".{file.name}.")
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
