"""When a result file is there whole: its last line says how many lines stand before it.

    {"end_of_results": 12}

The file proves it by itself, so it does not matter how it is brought (copied, synchronized, moved
into place) or in which order its parts arrive: as long as one is lacking, the count is wrong, the
last line is not there, or a hole of NUL bytes stands where a line should.
"""

from collections.abc import Iterator
from typing import BinaryIO

from extraction_pipeline.providers.base import LONGEST_RESULT_LINE
from extraction_pipeline.providers.json_members import json_members

LAST_LINE = "end_of_results"


class NotWhole(Exception):
    """The file lacks its end, or something before it. It may still be on its way."""


def whole_lines(delivered: BinaryIO) -> Iterator[bytes]:
    """The lines of a result file, each with its newline, without blank ones and without the last.

    Raises `NotWhole` at the latest when all others were given.
    """
    held, count = b"", 0
    while line := delivered.readline(LONGEST_RESULT_LINE + 1):
        # A hole in a file that is being copied can be longer than any line.
        if len(line) > LONGEST_RESULT_LINE or b"\0" in line:
            raise NotWhole
        if not line.strip():
            continue
        if held:
            if _declared(held) is not None:
                raise NotWhole  # two deliveries in one file, and neither count is that of both
            count += 1
            yield held
        held = line
    if _declared(held) != str(count):
        raise NotWhole


def _declared(line: bytes) -> str | None:
    """The count as it is written: `true` would equal 1."""
    if LAST_LINE.encode() not in line:
        return None
    try:
        members = json_members(line)
    except ValueError:
        return None
    return members[LAST_LINE].text if LAST_LINE in members else None
