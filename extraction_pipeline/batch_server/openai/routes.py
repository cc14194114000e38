"""`/v1/files` and `/v1/batches`, as in OpenAI's API.

Where OpenAI's documents say nothing, the choice is: a batch with an unknown input file is refused
at once with 400; a file that an unfinished batch reads cannot be deleted (409); cancelling again
is harmless, and cancelling at or near the end is refused with 409.
"""

import re
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from extraction_pipeline.batch_server.api_errors import ApiError, invalid_body, no_such
from extraction_pipeline.batch_server.bodies import read_body
from extraction_pipeline.batch_server.config import ServerConfig
from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.openai.uploads import too_large, uploads
from extraction_pipeline.batch_server.openai.wire import (
    BatchObject,
    CreateBatch,
    DeletedFile,
    FileObject,
    ObjectList,
    Purpose,
)
from extraction_pipeline.batch_server.records import Batch, BatchState, NewBatch, StoredFile
from extraction_pipeline.batch_server.state_folder import StateFolder
from extraction_pipeline.batch_server.store import FileInUse, Store, UnknownCursor

PURPOSES = frozenset(get_args(Purpose))
MOST_FILES_A_PAGE = 10_000
MOST_BATCHES_A_PAGE = 100


class OpenAIRoutes:
    """The handlers. `wake` tells the processor that there is something new."""

    def __init__(
        self, config: ServerConfig, folder: StateFolder, store: Store, wake: Callable[[], None]
    ) -> None:
        self._config = config
        self._folder = folder
        self._store = store
        self._wake = wake

    def routes(self) -> list[BaseRoute]:
        """Paths and methods."""
        return [
            Route("/v1/files", self.upload_file, methods=["POST"]),
            Route("/v1/files", self.list_files, methods=["GET"]),
            Route("/v1/files/{id}", self.get_file, methods=["GET"]),
            Route("/v1/files/{id}", self.delete_file, methods=["DELETE"]),
            Route("/v1/files/{id}/content", self.file_content, methods=["GET"]),
            Route("/v1/batches", self.create_batch, methods=["POST"]),
            Route("/v1/batches", self.list_batches, methods=["GET"]),
            Route("/v1/batches/{id}", self.get_batch, methods=["GET"]),
            Route("/v1/batches/{id}/cancel", self.cancel_batch, methods=["POST"]),
        ]

    async def upload_file(self, request: Request) -> Response:
        """`POST /v1/files`."""
        most = self._config.max_file_bytes
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > 2 * most:
            raise too_large(most)
        with uploads(self._folder.incoming, most) as reader:
            form = await reader.read(request)
            purpose = form.fields.get("purpose")
            if purpose is None or purpose not in PURPOSES:
                allowed = ", ".join(sorted(PURPOSES))
                raise ApiError(400, f"The purpose has to be one of {allowed}.", param="purpose")
            file = StoredFile(
                id=f"file-{uuid.uuid4().hex}",
                size=form.content.stat().st_size,
                created_at=time.time(),
                filename=form.filename,
                purpose=purpose,
            )
            await run_in_threadpool(self._accept, form.content, file)
        return _json(FileObject.of(file))

    def list_files(self, request: Request) -> Response:
        """`GET /v1/files`."""
        order = request.query_params.get("order", "desc")
        if order not in ("asc", "desc"):
            raise ApiError(400, "The order has to be asc or desc.", param="order")
        try:
            files, more = self._store.list_files(
                Dialect.OPENAI,
                purpose=request.query_params.get("purpose"),
                descending=order == "desc",
                after=request.query_params.get("after"),
                limit=_limit(request, default=MOST_FILES_A_PAGE, most=MOST_FILES_A_PAGE),
            )
        except UnknownCursor:
            raise _bad_cursor() from None
        return _json(ObjectList.of([FileObject.of(file) for file in files], more))

    def get_file(self, request: Request) -> Response:
        """`GET /v1/files/{id}`."""
        return _json(FileObject.of(self._file(request)))

    def delete_file(self, request: Request) -> Response:
        """`DELETE /v1/files/{id}`."""
        file_id = request.path_params["id"]
        try:
            if not self._store.delete_file(file_id, Dialect.OPENAI):
                raise no_such("File", file_id)
        except FileInUse:
            raise ApiError(409, "A batch that has not ended reads this file.") from None
        self._folder.file(file_id).unlink(missing_ok=True)
        return _json(DeletedFile(id=file_id))

    def file_content(self, request: Request) -> Response:
        """`GET /v1/files/{id}/content`."""
        file = self._file(request)
        return FileResponse(self._folder.file(file.id), media_type="application/octet-stream")

    async def create_batch(self, request: Request) -> Response:
        """`POST /v1/batches`. The batch is on disk before the answer goes out."""
        asked = await _read_batch(request)
        batch = await run_in_threadpool(self._accept_batch, asked)
        self._wake()
        return _json(BatchObject.of(batch))

    def list_batches(self, request: Request) -> Response:
        """`GET /v1/batches`, newest first."""
        try:
            batches, more = self._store.list_batches(
                Dialect.OPENAI,
                after=request.query_params.get("after"),
                limit=_limit(request, default=20, most=MOST_BATCHES_A_PAGE),
            )
        except UnknownCursor:
            raise _bad_cursor() from None
        return _json(ObjectList.of([BatchObject.of(batch) for batch in batches], more))

    def get_batch(self, request: Request) -> Response:
        """`GET /v1/batches/{id}`."""
        return _json(BatchObject.of(self._batch(request)))

    def cancel_batch(self, request: Request) -> Response:
        """`POST /v1/batches/{id}/cancel`."""
        batch = self._store.cancel(self._batch(request).id)
        self._wake()
        if batch.state not in (BatchState.CANCELLING, BatchState.CANCELLED):
            message = f"A batch that is {batch.state.value} cannot be cancelled."
            raise ApiError(409, message, code="batch_not_cancellable")
        return _json(BatchObject.of(batch))

    def _accept(self, content: Path, file: StoredFile) -> None:
        self._folder.keep(content, file.id)
        self._store.add_upload(file)

    def _accept_batch(self, asked: NewBatch) -> Batch:
        file = self._store.file(asked.input_file_id, Dialect.OPENAI)
        if file is None:
            raise no_such("File", asked.input_file_id, status_code=400)
        if file.purpose != "batch":
            raise ApiError(400, "The file's purpose is not batch.", param="input_file_id")
        return self._store.add_batch(asked, self._config.window)

    def _file(self, request: Request) -> StoredFile:
        file = self._store.file(request.path_params["id"], Dialect.OPENAI)
        if file is None:
            raise no_such("File", request.path_params["id"])
        return file

    def _batch(self, request: Request) -> Batch:
        batch = self._store.find_batch(request.path_params["id"], Dialect.OPENAI)
        if batch is None:
            raise no_such("Batch", request.path_params["id"])
        return batch


async def _read_batch(request: Request) -> NewBatch:
    try:
        asked = CreateBatch.model_validate_json(await read_body(request))
    except ValidationError as error:
        raise invalid_body(error) from None
    return NewBatch(
        endpoint=asked.endpoint,
        completion_window=asked.completion_window,
        input_file_id=asked.input_file_id,
        metadata=asked.metadata,
    )


def _limit(request: Request, *, default: int, most: int) -> int:
    value = request.query_params.get("limit")
    if value is None:
        return default
    if not re.fullmatch(r"\d{1,9}", value, re.ASCII) or not 1 <= int(value) <= most:
        raise ApiError(400, f"The limit goes from 1 to {most}.", param="limit")
    return int(value)


def _bad_cursor() -> ApiError:
    return ApiError(400, "There is no object of the id that `after` names.", param="after")


def _json(body: BaseModel) -> Response:
    return JSONResponse(body.model_dump(mode="json", exclude_none=True))
