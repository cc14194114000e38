"""`/v1/messages/batches`, as in Anthropic's API.

Where Anthropic's documents say nothing, the choice is 400 `invalid_request_error` for cancelling a
batch that ended, deleting one that did not, results before the end, and an unknown cursor.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from extraction_pipeline.batch_server.anthropic.translation import (
    BatchRequest,
    core_request,
    individual_response,
)
from extraction_pipeline.batch_server.anthropic.wire import (
    PATH,
    BatchPage,
    DeletedBatch,
    MessageBatch,
)
from extraction_pipeline.batch_server.api_errors import ApiError
from extraction_pipeline.batch_server.bodies import receive_body
from extraction_pipeline.batch_server.config import ServerConfig
from extraction_pipeline.batch_server.core_lines import CoreRequest, Unwritable, write_requests
from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.json_items import JsonItems, MalformedJson
from extraction_pipeline.batch_server.records import Batch, BatchState, NewBatch
from extraction_pipeline.batch_server.results import as_lines, translated
from extraction_pipeline.batch_server.state_folder import StateFolder
from extraction_pipeline.batch_server.store import Store, UnknownCursor

MOST_BATCHES_A_PAGE = 1000
ENDPOINT = "/v1/messages"
WINDOW = "24h"
_REQUESTS = (frozenset({"requests"}),)


class AnthropicRoutes:
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
            Route(PATH, self.create_batch, methods=["POST"]),
            Route(PATH, self.list_batches, methods=["GET"]),
            Route(f"{PATH}/{{id}}", self.get_batch, methods=["GET"]),
            Route(f"{PATH}/{{id}}", self.delete_batch, methods=["DELETE"]),
            Route(f"{PATH}/{{id}}/cancel", self.cancel_batch, methods=["POST"]),
            Route(f"{PATH}/{{id}}/results", self.results, methods=["GET"]),
        ]

    async def create_batch(self, request: Request) -> Response:
        """`POST`. The batch is on disk before the answer goes out."""
        _check_version(request)
        limits = self._config.anthropic
        with TemporaryDirectory(dir=self._folder.incoming, ignore_cleanup_errors=True) as place:
            body = Path(place) / "body"
            await receive_body(request, body, limits.bytes, self._too_large)
            batch = await run_in_threadpool(self._accept, body)
        self._wake()
        return self._answer(request, batch)

    def list_batches(self, request: Request) -> Response:
        """`GET`, newest first."""
        _check_version(request)
        query = request.query_params
        after, before = query.get("after_id"), query.get("before_id")
        if after is not None and before is not None:
            raise ApiError(400, "after_id and before_id exclude each other.")
        try:
            batches, more = self._store.list_batches(
                Dialect.ANTHROPIC, after=after, before=before, limit=_limit(query.get("limit"))
            )
        except UnknownCursor:
            raise ApiError(400, "There is no batch of the id to go on from.") from None
        base_url = str(request.base_url)
        data = [MessageBatch.of(batch, base_url) for batch in batches]
        return _json(BatchPage.of(data, more))

    def get_batch(self, request: Request) -> Response:
        """`GET /{id}`."""
        return self._answer(request, self._batch(request))

    def cancel_batch(self, request: Request) -> Response:
        """`POST /{id}/cancel`."""
        batch = self._store.cancel(self._batch(request).id)
        self._wake()
        if batch.state.is_end and batch.state is not BatchState.CANCELLED:
            raise ApiError(400, "A batch that has ended cannot be canceled.")
        return self._answer(request, batch)

    def delete_batch(self, request: Request) -> Response:
        """`DELETE /{id}`."""
        batch = self._ended(request, "A batch can be deleted when it has ended; cancel it first.")
        for file_id in self._store.delete_batch(batch.id):
            self._folder.file(file_id).unlink(missing_ok=True)
        return _json(DeletedBatch(id=batch.id))

    def results(self, request: Request) -> Response:
        """`GET /{id}/results`: JSON lines, in any order."""
        batch = self._ended(request, "The batch has no results before it has ended.")
        lines = as_lines(translated(self._folder, batch, individual_response))
        return StreamingResponse(lines, media_type="application/x-jsonl")

    def _accept(self, body: Path) -> Batch:
        reading = _Reading(self._config.anthropic.requests, self._too_large)
        try:
            with body.open("rb") as file:
                requests = reading.requests(JsonItems(file, _REQUESTS))
                written = write_requests(body.with_suffix(".requests"), Dialect.ANTHROPIC, requests)
        except (MalformedJson, Unwritable) as error:
            raise ApiError(400, str(error)) from None
        asked = NewBatch(
            endpoint=ENDPOINT,
            completion_window=WINDOW,
            input_file_id=written.file.id,
            dialect=Dialect.ANTHROPIC,
            job_key=reading.job_key,
            total=written.total,
        )
        written.keep(self._folder)
        return self._store.add_batch(asked, self._config.window, written.file)

    def _too_large(self) -> ApiError:
        limits = self._config.anthropic
        return ApiError(
            413, f"A batch may hold {limits.requests} requests and {limits.bytes} bytes."
        )

    def _batch(self, request: Request) -> Batch:
        _check_version(request)
        batch = self._store.find_batch(request.path_params["id"], Dialect.ANTHROPIC)
        if batch is None:
            raise ApiError(404, "There is no batch of this id.")
        return batch

    def _ended(self, request: Request, message: str) -> Batch:
        batch = self._batch(request)
        if not batch.state.is_end:
            raise ApiError(400, message)
        return batch

    def _answer(self, request: Request, batch: Batch) -> Response:
        return _json(MessageBatch.of(batch, str(request.base_url)))


class _Reading:
    """The requests of one body, checked as they come by."""

    def __init__(self, most: int, too_large: Callable[[], ApiError]) -> None:
        self._most = most
        self._too_large = too_large
        self._seen: set[str] = set()
        self._prefixes: set[str] = set()

    @property
    def job_key(self) -> str | None:
        """What stands before the dash of all custom ids, if it is the same in all of them: the
        only mark of their own that clients can put on a batch."""
        return next(iter(self._prefixes)) or None if len(self._prefixes) == 1 else None

    def requests(self, items: JsonItems) -> Iterator[CoreRequest]:
        """The requests. Raises `ApiError` for what Anthropic refuses at once."""
        for number, item in enumerate(items):
            if number >= self._most:
                raise self._too_large()
            try:
                request = BatchRequest.model_validate(item)
            except ValidationError as error:
                fault = error.errors(include_input=False, include_url=False)[0]
                place = ".".join(str(part) for part in ("requests", number, *fault["loc"]))
                raise ApiError(400, f"{place}: {fault['msg']}") from None
            if request.custom_id in self._seen:
                raise ApiError(400, f"requests.{number}.custom_id: it was used by an earlier one.")
            self._seen.add(request.custom_id)
            if len(self._prefixes) < 2:
                prefix, dash, _ = request.custom_id.partition("-")
                self._prefixes.add(prefix if dash else "")
            yield core_request(request)
        if items.rest:
            raise ApiError(400, "Beside its requests, the body holds what a batch does not have.")
        if not self._seen:
            raise ApiError(400, "requests: a batch needs at least one.")


def _check_version(request: Request) -> None:
    if not request.headers.get("anthropic-version"):
        raise ApiError(400, "anthropic-version: header is required")


def _limit(value: str | None) -> int:
    if value is None:
        return 20
    if not re.fullmatch(r"\d{1,9}", value, re.ASCII) or not 1 <= int(value) <= MOST_BATCHES_A_PAGE:
        raise ApiError(400, f"The limit goes from 1 to {MOST_BATCHES_A_PAGE}.")
    return int(value)


def _json(body: BaseModel) -> Response:
    return JSONResponse(body.model_dump(mode="json"))
