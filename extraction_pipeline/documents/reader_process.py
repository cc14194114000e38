"""Reads documents, those that need a parser in a process of their own.

Parsers meet files that make them take all memory or never end. Neither can be stopped in this
process, so everything but plain text is read by a child with a bound on its memory and its time.
One child serves many documents, one after the other. It ends with its `DocumentReader`, and by
itself when this process is gone.
"""

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

import orjson

from extraction_pipeline.documents.readable import (
    DocumentKind,
    ReadableText,
    ReadLimits,
    Unreadable,
    UnreadableReason,
)
from extraction_pipeline.documents.reader_child import REPLY, REQUEST
from extraction_pipeline.documents.readers.kinds import is_plain
from extraction_pipeline.documents.reading import DEFAULT_LIMITS, read_document
from extraction_pipeline.errors import SourceError

_CRASHES = frozenset(
    -one for one in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)
)
_CRASHED = Unreadable(
    UnreadableReason.TRUNCATED_OR_CORRUPT, None, "the file makes its reader crash"
)
_MOST_SERVED = 1000
"""Documents after which a child is replaced, so that what parsers leak stays small."""
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "LANG", "LC_ALL")
"""All that a child gets of this process's environment, which has keys and passwords in it."""


class DocumentReader:
    """Reads documents one at a time. A context manager; for one thread."""

    def __init__(self, limits: ReadLimits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._child: subprocess.Popen[bytes] | None = None
        self._served = 0
        """Documents that the child has answered."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()

    def read(self, content: bytes, name: str) -> ReadableText | Unreadable:
        """The text of a document, or why it has none.

        Raises SourceError if that could not be told this time: the process that read it was ended
        from outside.
        """
        if is_plain(content, name):
            return read_document(content, name, limits=self.limits)
        used = self._served > 0
        read = self._read_apart(content, name)
        if used and _may_lie_with_the_child(read):
            # What earlier documents left behind is not held against this one.
            self._end()
            read = self._read_apart(content, name)
        if isinstance(read, Unreadable) and read.reason is UnreadableReason.TOO_LARGE:
            self._end()
        return read

    def _read_apart(self, content: bytes, name: str) -> ReadableText | Unreadable:
        answered = False
        try:
            read = self._answer(content, name)
            answered = True
        except (EOFError, BrokenPipeError):
            assert self._child is not None
            return _ending(self._child.wait())
        finally:
            # An interrupt in between would leave an answer that the next question gets.
            if not answered:
                self._end()
        return read

    def _answer(self, content: bytes, name: str) -> ReadableText | Unreadable:
        child = self._running()
        assert child.stdin is not None
        named = name.encode("utf-8", "replace")
        child.stdin.write(REQUEST.pack(len(named), len(content)) + named)
        child.stdin.write(content)
        child.stdin.flush()
        (length,) = REPLY.unpack(_exactly(child, REPLY.size))
        self._served += 1
        return _read_of(orjson.loads(_exactly(child, length)))

    def _running(self) -> subprocess.Popen[bytes]:
        ended = self._child is not None and self._child.poll() is not None
        if ended or self._served >= _MOST_SERVED:
            self._end()
        if self._child is None:
            self._child = _started(self.limits)
        return self._child

    def _end(self) -> None:
        child, self._child, self._served = self._child, None, 0
        if child is None:
            return
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            # What was not sent yet is of no use to anybody.
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()


def _started(limits: ReadLimits) -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    module = "extraction_pipeline.documents.reader_child"
    try:
        return subprocess.Popen(
            # -P: no module may come out of the folder that this process happens to be in.
            [sys.executable, "-P", "-m", module, orjson.dumps(asdict(limits)).decode()],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # A parser may complain with words of the document.
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        raise SourceError(
            f"No process to read documents can be started: {error.strerror}.",
            remedy="The files that needed one are read at the next scan.",
        ) from None


def _exactly(child: subprocess.Popen[bytes], length: int) -> bytes:
    assert child.stdout is not None
    data = child.stdout.read(length)
    if len(data) != length:
        raise EOFError
    return data


def _read_of(answer: dict[str, Any]) -> ReadableText | Unreadable:
    kind = DocumentKind(answer["kind"]) if answer["kind"] is not None else None
    if "reason" in answer:
        return Unreadable(UnreadableReason(answer["reason"]), kind, answer["detail"])
    return ReadableText(**{**answer, "kind": kind})


def _may_lie_with_the_child(read: ReadableText | Unreadable) -> bool:
    return read == _CRASHED or (
        isinstance(read, Unreadable) and read.reason is UnreadableReason.TOO_LARGE
    )


def _ending(code: int) -> Unreadable:
    """What the end of a child says about the document that it was reading."""
    if code == -signal.SIGALRM:
        return Unreadable(
            UnreadableReason.TOOK_TOO_LONG, None, "reading took too long and was ended"
        )
    if code in _CRASHES:
        return _CRASHED
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    raise SourceError(
        f"The process that read a file of the source was ended {how}.",
        remedy="The file is read again at the next scan.",
    )
