"""Reading a batch's results, line by line, in the words of a wire format."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from extraction_pipeline.batch_server.records import Batch
from extraction_pipeline.batch_server.result_lines import ResultLine, write_json
from extraction_pipeline.batch_server.state_folder import StateFolder

PIECE = 64 * 1024
"""Bytes, about, that are handed to the network at once."""

_SLOT = "\ufdd0slot"
"""Begins with a character that Unicode keeps out of all texts."""
SLOT = [_SLOT]
"""Stands in an answer's body for a list whose items are streamed into its place."""


def translated(
    folder: StateFolder, batch: Batch, translate: Callable[[ResultLine], Mapping[str, Any]]
) -> Iterator[bytes]:
    """Every result of an ended batch in a wire format's words, each a JSON text without newline."""
    for file_id in (batch.output_file_id, batch.error_file_id):
        if file_id is not None:
            with folder.file(file_id).open("rb") as lines:
                for line in lines:
                    yield write_json(translate(ResultLine.read(line)))


def as_lines(items: Iterable[bytes]) -> Iterator[bytes]:
    """JSON lines, in pieces of a size that is worth sending."""
    return _in_pieces(item + b"\n" for item in items)


def with_items(body: Mapping[str, Any], items: Callable[[], Iterator[bytes]]) -> Iterator[bytes]:
    """One JSON text: `body`, and in the place of each `SLOT` in it the items of one more reading,
    so that no answer is ever whole in memory."""
    first, *others = write_json(body).split(write_json({"": SLOT})[4:-1])

    def parts() -> Iterator[bytes]:
        yield first
        for other in others:
            yield b"["
            for number, item in enumerate(items()):
                yield b"," + item if number else item
            yield b"]"
            yield other

    return _in_pieces(parts())


def _in_pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    piece = bytearray()
    for part in parts:
        piece += part
        if len(piece) >= PIECE:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)
