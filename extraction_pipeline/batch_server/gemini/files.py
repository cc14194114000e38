"""`/v1beta/files`, as in Gemini's API: resumable uploads, and the download of results.

An uploaded file stays until it is deleted. Where Google's documents say nothing, the choice is: a
batch's result file is not among the files and cannot be asked for there (400), only downloaded.
"""

import re
import time
import uuid
from urllib.parse import urlencode

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from extraction_pipeline.batch_server.api_errors import ApiError, invalid_body
from extraction_pipeline.batch_server.bodies import read_body
from extraction_pipeline.batch_server.calls import UPLOAD_ID, UPLOAD_PATH
from extraction_pipeline.batch_server.config import ServerConfig
from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.gemini.paging import page_size, page_token, token_cursor
from extraction_pipeline.batch_server.gemini.translation import response_of
from extraction_pipeline.batch_server.gemini.upload_sessions import UploadSession, UploadSessions
from extraction_pipeline.batch_server.gemini.wire import (
    FAILED_PRECONDITION,
    CreateFile,
    file_resource,
    has_results,
    result_file_id,
)
from extraction_pipeline.batch_server.records import StoredFile
from extraction_pipeline.batch_server.results import as_lines, translated
from extraction_pipeline.batch_server.state_folder import StateFolder
from extraction_pipeline.batch_server.store import Store, UnknownCursor

UPLOADED = "upload"
"""The purpose of uploaded files."""
JSON_LINES = "application/jsonl"
_RESULT_PREFIX = result_file_id("")
_COMMAND, _OFFSET, _STATUS, _RECEIVED = (
    f"x-goog-upload-{name}" for name in ("command", "offset", "status", "size-received")
)


class GeminiFiles:
    """The handlers."""

    def __init__(self, config: ServerConfig, folder: StateFolder, store: Store) -> None:
        self._config = config
        self._folder = folder
        self._store = store
        self._sessions = UploadSessions(folder.incoming)

    def routes(self) -> list[BaseRoute]:
        """Paths and methods. Google's own client downloads without the prefix."""
        file = "/v1beta/files/{id}"
        return [
            Route(UPLOAD_PATH, self.upload, methods=["POST", "PUT"]),
            Route(f"/download{file}:download", self.download, methods=["GET"]),
            Route(f"{file}:download", self.download, methods=["GET"]),
            Route("/v1beta/files", self.list_files, methods=["GET"]),
            Route(file, self.get_file, methods=["GET"]),
            Route(file, self.delete_file, methods=["DELETE"]),
        ]

    def find(self, name: str) -> StoredFile | None:
        """An uploaded file by its name, which begins with `files/`."""
        prefix, _, file_id = name.partition("/")
        file = self._store.file(file_id, Dialect.GEMINI) if prefix == "files" else None
        return file if file is not None and file.purpose == UPLOADED else None

    async def upload(self, request: Request) -> Response:
        """`POST /upload/v1beta/files`: begins an upload, or takes a piece of one."""
        commands = {
            command.strip() for command in request.headers.get(_COMMAND, "").lower().split(",")
        }
        session_id = request.query_params.get(UPLOAD_ID)
        if session_id is None:
            if commands != {"start"}:
                raise ApiError(400, "An upload begins with the command start.")
            return await self._begin(request)
        session = self._sessions.take(session_id)
        if session is None:
            raise ApiError(404, "There is no upload of this id.")
        try:
            if commands == {"query"}:
                return Response(headers={_STATUS: "active", _RECEIVED: str(session.size)})
            if not commands or not commands <= {"upload", "finalize"}:
                raise ApiError(400, "The command has to be upload, finalize, both, or query.")
            await self._receive(request, session)
            if "finalize" not in commands:
                return Response(headers={_STATUS: "active", _RECEIVED: str(session.size)})
            file = await run_in_threadpool(self._accept, session)
        finally:
            self._sessions.give_back(session)
        body = {"file": file_resource(file, str(request.base_url))}
        return JSONResponse(body, headers={_STATUS: "final"})

    def list_files(self, request: Request) -> Response:
        """`GET /v1beta/files`, newest first."""
        try:
            files, more = self._store.list_files(
                Dialect.GEMINI,
                purpose=UPLOADED,
                descending=True,
                after=token_cursor(request),
                limit=page_size(request, default=10, most=100),
            )
        except UnknownCursor:
            raise ApiError(400, "The page token is not valid.") from None
        body: dict[str, object] = {}
        if files:
            body["files"] = [file_resource(file, str(request.base_url)) for file in files]
        if more:
            body["nextPageToken"] = page_token(files[-1].id)
        return JSONResponse(body)

    def get_file(self, request: Request) -> Response:
        """`GET /v1beta/files/{id}`."""
        return JSONResponse(file_resource(self._file(request), str(request.base_url)))

    def delete_file(self, request: Request) -> Response:
        """`DELETE /v1beta/files/{id}`. Batches of it go on: they have its requests."""
        file = self._file(request)
        self._store.delete_file(file.id, Dialect.GEMINI)
        self._folder.file(file.id).unlink(missing_ok=True)
        return JSONResponse({})

    def download(self, request: Request) -> Response:
        """`GET …/files/{id}:download`: the results of a batch, a line each."""
        file_id = request.path_params["id"]
        if not file_id.startswith(_RESULT_PREFIX):
            self._file(request)
            raise ApiError(403, "Uploaded files cannot be downloaded.")
        batch = self._store.find_batch(file_id.removeprefix(_RESULT_PREFIX), Dialect.GEMINI)
        if batch is None or batch.asked.source_file_id is None or not has_results(batch):
            raise _no_file()
        lines = as_lines(translated(self._folder, batch, response_of))
        return StreamingResponse(lines, media_type=JSON_LINES)

    async def _begin(self, request: Request) -> Response:
        try:
            asked = CreateFile.model_validate_json(await read_body(request) or b"{}").file
        except ValidationError as error:
            raise invalid_body(error) from None
        if asked.name is not None:
            raise ApiError(400, "This server names files itself.")
        announced = request.headers.get("x-goog-upload-header-content-length", "")
        if announced.isdecimal() and int(announced) > self._config.gemini_file_bytes:
            raise self._too_large()
        media_type = request.headers.get("x-goog-upload-header-content-type", asked.mime_type)
        session = self._sessions.begin(asked.display_name, media_type or JSON_LINES)
        base_url = str(request.base_url).rstrip("/")
        query = urlencode({UPLOAD_ID: session.id, "upload_protocol": "resumable"})
        url = f"{base_url}{UPLOAD_PATH}?{query}"
        return Response(headers={"x-goog-upload-url": url, _STATUS: "active"})

    async def _receive(self, request: Request, session: UploadSession) -> None:
        """Add a piece. What came of one that broke off counts: the client can ask how much."""
        offset = request.headers.get(_OFFSET, "0")
        if not re.fullmatch(r"\d{1,15}", offset, re.ASCII) or int(offset) != session.size:
            raise ApiError(400, f"The offset has to be {session.size}, what has arrived so far.")
        with session.content.open("ab") as file:
            async for chunk in request.stream():
                if session.size + len(chunk) > self._config.gemini_file_bytes:
                    self._sessions.end(session)
                    raise self._too_large()
                file.write(chunk)
                session.digest.update(chunk)
                session.size += len(chunk)

    def _accept(self, session: UploadSession) -> StoredFile:
        if session.size == 0:
            self._sessions.end(session)
            raise ApiError(400, "The file is empty.")
        file = StoredFile(
            id=uuid.uuid4().hex[:24],
            size=session.size,
            created_at=time.time(),
            filename=session.display_name,
            purpose=UPLOADED,
            dialect=Dialect.GEMINI,
            media_type=session.media_type,
            sha256=session.digest.hexdigest(),
        )
        self._folder.keep(session.content, file.id)
        self._store.add_upload(file)
        self._sessions.end(session)
        return file

    def _file(self, request: Request) -> StoredFile:
        file_id = request.path_params["id"]
        if file_id.startswith(_RESULT_PREFIX):
            raise ApiError(
                400, "A result file is not among the files; download it.", code=FAILED_PRECONDITION
            )
        file = self.find(f"files/{file_id}")
        if file is None:
            raise _no_file()
        return file

    def _too_large(self) -> ApiError:
        return ApiError(400, f"A file may hold {self._config.gemini_file_bytes} bytes.")


def _no_file() -> ApiError:
    return ApiError(404, "There is no file of this name.")
