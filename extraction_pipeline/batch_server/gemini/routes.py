"""`batchGenerateContent` and `/v1beta/batches`, as in Gemini's API.

Where Google's documents say nothing, the choice is: lists go from new to old; cancelling again is
harmless, and cancelling a batch that ended is refused with 400 FAILED_PRECONDITION; a file with a
line that is no request is refused at once. Deleting a batch that runs stops it.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from extraction_pipeline.batch_server.api_errors import ApiError, invalid_body
from extraction_pipeline.batch_server.bodies import receive_body
from extraction_pipeline.batch_server.config import ServerConfig
from extraction_pipeline.batch_server.core_lines import (
    CoreRequest,
    Unwritable,
    WrittenRequests,
    write_requests,
)
from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.gemini.files import GeminiFiles
from extraction_pipeline.batch_server.gemini.paging import page_size, page_token, token_cursor
from extraction_pipeline.batch_server.gemini.translation import (
    file_request,
    inline_request,
    response_of,
)
from extraction_pipeline.batch_server.gemini.wire import (
    FAILED_PRECONDITION,
    CreateBatch,
    has_results,
    operation,
)
from extraction_pipeline.batch_server.json_items import JsonItems, MalformedJson
from extraction_pipeline.batch_server.records import Batch, BatchState, NewBatch
from extraction_pipeline.batch_server.results import translated, with_items
from extraction_pipeline.batch_server.state_folder import StateFolder
from extraction_pipeline.batch_server.store import Store, UnknownCursor

WINDOW = "48h"
_REQUESTS = (
    frozenset({"batch"}),
    frozenset({"inputConfig", "input_config"}),
    frozenset({"requests"}),
    frozenset({"requests"}),
)


class GeminiRoutes:
    """The handlers. `wake` tells the processor that there is something new."""

    def __init__(
        self, config: ServerConfig, folder: StateFolder, store: Store, wake: Callable[[], None]
    ) -> None:
        self._config = config
        self._folder = folder
        self._store = store
        self._wake = wake
        self._files = GeminiFiles(config, folder, store)

    def routes(self) -> list[BaseRoute]:
        """Paths and methods."""
        batch = "/v1beta/batches/{id}"
        create = "/v1beta/models/{model}:batchGenerateContent"
        return [
            Route(create, self.create_batch, methods=["POST"]),
            Route("/v1beta/batches", self.list_batches, methods=["GET"]),
            Route(f"{batch}:cancel", self.cancel_batch, methods=["POST"]),
            Route(batch, self.get_batch, methods=["GET"]),
            Route(batch, self.delete_batch, methods=["DELETE"]),
            *self._files.routes(),
        ]

    async def create_batch(self, request: Request) -> Response:
        """`POST …:batchGenerateContent`. The batch is on disk before the answer goes out."""
        model = request.path_params["model"]
        with TemporaryDirectory(dir=self._folder.incoming, ignore_cleanup_errors=True) as place:
            body = Path(place) / "body"
            await receive_body(request, body, self._config.gemini.bytes, self._too_large)
            batch = await run_in_threadpool(self._accept, body, model)
        self._wake()
        return JSONResponse(operation(batch))

    def list_batches(self, request: Request) -> Response:
        """`GET /v1beta/batches`, without the inline results."""
        if request.query_params.get("filter"):
            raise ApiError(400, "This API takes no filter.")
        try:
            batches, more = self._store.list_batches(
                Dialect.GEMINI,
                after=token_cursor(request),
                limit=page_size(request, default=50, most=100),
            )
        except UnknownCursor:
            raise ApiError(400, "The page token is not valid.") from None
        body: dict[str, object] = {}
        if batches:
            body["operations"] = [operation(batch, inline=False) for batch in batches]
        if more:
            body["nextPageToken"] = page_token(batches[-1].id)
        return JSONResponse(body)

    def get_batch(self, request: Request) -> Response:
        """`GET /v1beta/batches/{id}`, with the inline results of one that ended."""
        batch = self._batch(request)
        if not has_results(batch):
            return JSONResponse(operation(batch))

        def results() -> Iterator[bytes]:
            return translated(self._folder, batch, response_of)

        pieces = with_items(operation(batch), results)
        return StreamingResponse(pieces, media_type="application/json")

    def cancel_batch(self, request: Request) -> Response:
        """`POST /v1beta/batches/{id}:cancel`."""
        batch = self._store.cancel(self._batch(request).id)
        self._wake()
        if batch.state.is_end and batch.state is not BatchState.CANCELLED:
            raise ApiError(400, "The batch has ended.", code=FAILED_PRECONDITION)
        return JSONResponse({})

    def delete_batch(self, request: Request) -> Response:
        """`DELETE /v1beta/batches/{id}`."""
        for file_id in self._store.delete_batch(self._batch(request).id):
            self._folder.file(file_id).unlink(missing_ok=True)
        self._wake()
        return JSONResponse({})

    def _accept(self, body: Path, model: str) -> Batch:
        reading = _Reading(model, self._config.gemini.requests)
        draft = body.with_suffix(".requests")
        try:
            with body.open("rb") as file:
                items = JsonItems(file, _REQUESTS)
                written = write_requests(draft, Dialect.GEMINI, reading.inline_requests(items))
            asked = CreateBatch.model_validate(items.rest).batch
        except (MalformedJson, Unwritable) as error:
            raise ApiError(400, str(error)) from None
        except ValidationError as error:
            raise invalid_body(error) from None
        source = asked.input_config.file_name
        if (source is None) == (not items.found):
            raise ApiError(400, "A batch takes its requests from one place: inline or a file.")
        if source is not None:
            written = self._from_file(source, draft, reading)
        if written.total == 0:
            raise ApiError(400, "A batch needs at least one request.")
        new = NewBatch(
            endpoint=f"models/{model}:batchGenerateContent",
            completion_window=WINDOW,
            input_file_id=written.file.id,
            dialect=Dialect.GEMINI,
            job_key=asked.display_name or None,
            source_file_id=None if source is None else source.partition("/")[2],
            total=written.total,
            keeps_order=not reading.all_marked,
        )
        written.keep(self._folder)
        return self._store.add_batch(new, self._config.window, written.file)

    def _from_file(self, name: str, draft: Path, reading: "_Reading") -> WrittenRequests:
        source = self._files.find(name)
        if source is None:
            raise ApiError(404, "There is no file of this name.")
        with self._folder.file(source.id).open("rb") as lines:
            try:
                return write_requests(draft, Dialect.GEMINI, reading.file_requests(lines))
            except Unwritable as error:
                raise ApiError(400, str(error)) from None

    def _batch(self, request: Request) -> Batch:
        batch = self._store.find_batch(request.path_params["id"], Dialect.GEMINI)
        if batch is None:
            raise ApiError(404, "There is no batch of this name.")
        return batch

    def _too_large(self) -> ApiError:
        most = self._config.gemini.bytes
        return ApiError(400, f"A call may hold {most} bytes; use a file for more.")


class _Reading:
    """The requests of one batch, checked as they come by."""

    def __init__(self, model: str, most: int) -> None:
        self._model = model
        self._most = most
        self.all_marked = True
        """Whether every request has a key or metadata. Without, only the order of the results says
        whose they are, so that they keep it."""

    def inline_requests(self, items: JsonItems) -> Iterator[CoreRequest]:
        """The requests in the body of a call."""
        for number, item in enumerate(items):
            try:
                request, marked = inline_request(item, self._model)
            except ValidationError as error:
                raise _invalid(f"requests[{number}]", error) from None
            yield self._passed(number, request, marked)

    def file_requests(self, lines: Iterable[bytes]) -> Iterator[CoreRequest]:
        """The requests in a file."""
        requests = 0
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                request, marked = file_request(line, self._model)
            except ValidationError as error:
                raise _invalid(f"line {number}", error) from None
            yield self._passed(requests, request, marked)
            requests += 1

    def _passed(self, number: int, request: CoreRequest, marked: bool) -> CoreRequest:
        if number >= self._most:
            raise ApiError(400, f"A batch may hold {self._most} requests.")
        self.all_marked = self.all_marked and marked
        return request


def _invalid(place: str, error: ValidationError) -> ApiError:
    fault = error.errors(include_input=False, include_url=False)[0]
    field = ".".join(str(part) for part in fault["loc"])
    return ApiError(400, f"{place}: {field or 'it'}: {fault['msg']}.")
