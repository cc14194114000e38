"""The process that reads other people's files: `python -m …reader_child <limits as JSON>`.

It takes one document after the other from its standard input and answers each on its standard
output; see `reader_process`, its only caller. A document that takes too much memory gets an error
that Python can catch, one that takes too long ends the process, wherever it is at that moment.
"""

import contextlib
import os
import resource
import signal
import struct
import sys
from dataclasses import asdict
from typing import BinaryIO

import orjson

from extraction_pipeline.documents.readable import (
    ReadableText,
    ReadLimits,
    Unreadable,
    UnreadableReason,
)
from extraction_pipeline.documents.reading import read_document

REQUEST = struct.Struct("!IQ")
"""Before each document: the bytes of its name and of its content, which follow."""
REPLY = struct.Struct("!Q")
"""Before each answer: the bytes of its JSON."""

_PATIENCE = 1.1
"""Times the limit, after which the process is ended: the reader looks at the clock itself and then
says where it was, and the signal is for when it cannot."""


def main() -> None:
    """Answer documents until standard input ends."""
    limits = ReadLimits(**orjson.loads(sys.argv[1]))
    _bound(limits)
    # Nothing that a library prints may get between the answers.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    while header := requests.read(REQUEST.size):
        _answer(header, requests, replies, limits)


def _bound(limits: ReadLimits) -> None:
    # An interrupt from the keyboard goes to all processes; the one that asked decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A core file would hold the document.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Not every system lets the memory of a process be bounded.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))


def _answer(header: bytes, requests: BinaryIO, replies: BinaryIO, limits: ReadLimits) -> None:
    name_length, content_length = REQUEST.unpack(header)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE * limits.seconds)
    read: ReadableText | Unreadable
    try:
        name = requests.read(name_length).decode("utf-8")
        read = read_document(requests.read(content_length), name, limits=limits)
        answer = orjson.dumps(asdict(read))
    except MemoryError:
        read = Unreadable(
            UnreadableReason.TOO_LARGE, None, "reading the file needs too much memory"
        )
        answer = orjson.dumps(asdict(read))
    signal.setitimer(signal.ITIMER_REAL, 0)
    replies.write(REPLY.pack(len(answer)) + answer)
    replies.flush()


if __name__ == "__main__":
    main()
