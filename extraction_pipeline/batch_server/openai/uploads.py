"""Multipart uploads, streamed to disk: neither memory nor a shared temporary folder sees them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, File, FormParser, parse_options_header
from starlette.requests import Request

from extraction_pipeline.batch_server.api_errors import ApiError

_ROOM_FOR_FORM = 64 * 1024
"""Bytes that a form may hold around its file: boundaries, headers, other fields."""


@dataclass
class Form:
    """A form with its fields and, at most, one file; the file is on disk."""

    fields: dict[str, str] = field(default_factory=dict)
    file: File | None = None

    @property
    def content(self) -> Path:
        """Where the file's content lies until the upload's context ends."""
        name = self.file.actual_file_name if self.file else None
        if name is None:
            raise ApiError(400, "The file is empty.", param="file")
        return Path(name.decode())

    @property
    def filename(self) -> str:
        """The name that the client gave the file, without any folders."""
        name = (self.file.file_name if self.file else None) or b"upload.jsonl"
        return Path(name.decode(errors="replace").replace("\\", "/")).name or "upload.jsonl"


class _Uploads:
    """Forms out of requests; what is not moved away from `folder` goes with the context."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._most_bytes = most_bytes

    async def read(self, request: Request) -> Form:
        """The request's form. Raises `ApiError`: 400 for no form, 413 for too much of one."""
        kind, options = parse_options_header(request.headers.get("content-type"))
        if kind != b"multipart/form-data" or b"boundary" not in options:
            raise ApiError(400, "The body has to be multipart/form-data.")
        form = Form()
        ended = False

        def on_field(part: Field) -> None:
            if part.field_name is not None:
                form.fields[part.field_name.decode(errors="replace")] = (part.value or b"").decode(
                    errors="replace"
                )

        def on_file(part: File) -> None:
            if form.file is not None or part.field_name != b"file":
                raise ApiError(400, "A form holds one file, as its part 'file'.", param="file")
            form.file = part

        def on_end() -> None:
            nonlocal ended
            ended = True

        received = 0
        try:
            parser = FormParser(
                "multipart/form-data",
                on_field,
                on_file,
                on_end,
                boundary=options[b"boundary"],
                config={
                    "UPLOAD_DIR": str(self._folder),
                    "UPLOAD_DELETE_TMP": False,
                    "MAX_MEMORY_FILE_SIZE": 0,
                },
            )
            async for chunk in request.stream():
                received += len(chunk)
                if received > self._most_bytes + _ROOM_FOR_FORM:
                    raise too_large(self._most_bytes)
                parser.write(chunk)
            parser.finalize()
        except FormParserError:
            ended = False
        if not ended:
            raise ApiError(400, "The form is not complete or not well-formed.")
        if form.file is None:
            raise ApiError(400, "The form has no file.", param="file")
        if form.file.size > self._most_bytes:
            raise too_large(self._most_bytes)
        return form


@contextmanager
def uploads(folder: Path, most_bytes: int) -> Iterator[_Uploads]:
    """A place for one request's upload under `folder`."""
    with TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as own:
        yield _Uploads(Path(own), most_bytes)


def too_large(most_bytes: int) -> ApiError:
    """The error for a file over the limit."""
    return ApiError(413, f"A file may hold {most_bytes} bytes.", code="file_too_large")
