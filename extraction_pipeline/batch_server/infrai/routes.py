"""`/v1/ai/batch`, in the form of Infrai's API."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from extraction_pipeline.batch_server.api_errors import ApiError, invalid_body
from extraction_pipeline.batch_server.bodies import receive_body
from extraction_pipeline.batch_server.calls import Call
from extraction_pipeline.batch_server.config import ServerConfig
from extraction_pipeline.batch_server.core_lines import (
    CoreRequest,
    Unwritable,
    WrittenRequests,
    write_requests,
)
from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.infrai import discovery
from extraction_pipeline.batch_server.infrai.translation import core_request, item_of
from extraction_pipeline.batch_server.infrai.wire import (
    CANCEL_PATH,
    CONFLICT,
    ENDED,
    IDEMPOTENCY_HEADER,
    IDEMPOTENCY_SECONDS,
    NOT_FINISHED,
    RESULTS_PATH,
    STATUS_PATH,
    SUBMIT_PATH,
    BatchRequestItem,
    SubmitOptions,
    envelope,
    status,
    submitted,
    timeout_seconds,
)
from extraction_pipeline.batch_server.json_items import JsonItems, MalformedJson
from extraction_pipeline.batch_server.records import Batch, BatchState, NewBatch
from extraction_pipeline.batch_server.results import SLOT, translated, with_items
from extraction_pipeline.batch_server.state_folder import StateFolder
from extraction_pipeline.batch_server.store import Store

_REQUESTS = (frozenset({"requests"}),)


class InfraiRoutes:
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
            Route(SUBMIT_PATH, self.submit, methods=["POST"]),
            Route(STATUS_PATH, self.status, methods=["GET"]),
            Route(RESULTS_PATH, self.results, methods=["GET"]),
            Route(CANCEL_PATH, self.cancel, methods=["POST"]),
            *discovery.routes(),
        ]

    async def submit(self, request: Request) -> Response:
        """`POST /v1/ai/batch/submit`. The batch is on disk before the answer goes out; the same
        body under the same key is the same batch."""
        header = request.headers.get(IDEMPOTENCY_HEADER)
        limits = self._config.infrai
        with TemporaryDirectory(dir=self._folder.incoming, ignore_cleanup_errors=True) as place:
            body = Path(place) / "body"
            await receive_body(request, body, limits.bytes, self._too_large)
            batch = await run_in_threadpool(self._accept, body, header)
        self._wake()
        return _json(request, submitted(batch))

    def status(self, request: Request) -> Response:
        """`GET /v1/ai/batch/status/{id}`."""
        return _json(request, status(self._batch(request)))

    def cancel(self, request: Request) -> Response:
        """`POST /v1/ai/batch/cancel/{id}`."""
        batch = self._store.cancel(self._batch(request).id)
        self._wake()
        if batch.state.is_end and batch.state is not BatchState.CANCELLED:
            raise ApiError(409, "The batch has ended.", code=ENDED)
        return _json(request, status(batch))

    def results(self, request: Request) -> Response:
        """`GET /v1/ai/batch/results/{id}`: one envelope with all items, in any order."""
        batch = self._batch(request)
        if not batch.state.is_end:
            raise ApiError(409, "The batch has not ended.", code=NOT_FINISHED)
        body = envelope(Call.of(request.scope), {"batch_id": batch.id, "items": SLOT})

        def items() -> Iterator[bytes]:
            return translated(self._folder, batch, item_of)

        return StreamingResponse(with_items(body, items), media_type="application/json")

    def _accept(self, body: Path, header: str | None) -> Batch:
        reading = _Reading(self._config.infrai.requests, self._too_large)
        try:
            with body.open("rb") as file:
                items = JsonItems(file, _REQUESTS)
                written = write_requests(
                    body.with_suffix(".requests"), Dialect.INFRAI, reading.requests(items)
                )
            options = SubmitOptions.model_validate(items.rest)
        except (MalformedJson, Unwritable) as error:
            raise ApiError(400, str(error)) from None
        except ValidationError as error:
            raise invalid_body(error) from None
        if written.total == 0:
            raise ApiError(400, "requests: a batch needs at least one.")
        return self._add(written, options, _key(header, options.idempotency_key), reading)

    def _add(
        self,
        written: WrittenRequests,
        options: SubmitOptions,
        key: str | None,
        reading: "_Reading",
    ) -> Batch:
        asked = NewBatch(
            endpoint=SUBMIT_PATH,
            completion_window=options.batch_timeout or "24h",
            input_file_id=written.file.id,
            metadata=options.metadata,
            dialect=Dialect.INFRAI,
            job_key=key,
            digest=_digest(written, options),
            total=written.total,
            keeps_order=not reading.all_marked,
        )
        window = self._config.window
        if options.batch_timeout is not None:
            window = min(window, timeout_seconds(options.batch_timeout))
        written.keep(self._folder)
        if key is None:
            return self._store.add_batch(asked, window, written.file)
        since = time.time() - IDEMPOTENCY_SECONDS
        batch, is_new = self._store.add_batch_once(asked, window, written.file, since)
        if not is_new:
            self._folder.file(written.file.id).unlink()
            if batch.asked.digest != asked.digest:
                raise ApiError(409, "The key stands for another batch.", code=CONFLICT)
        return batch

    def _batch(self, request: Request) -> Batch:
        batch = self._store.find_batch(request.path_params["id"], Dialect.INFRAI)
        if batch is None:
            raise ApiError(404, "There is no batch of this id.")
        return batch

    def _too_large(self) -> ApiError:
        limits = self._config.infrai
        return ApiError(
            413, f"A batch may hold {limits.requests} requests and {limits.bytes} bytes."
        )


class _Reading:
    """The requests of one body, checked as they come by."""

    def __init__(self, most: int, too_large: Callable[[], ApiError]) -> None:
        self._most = most
        self._too_large = too_large
        self.all_marked = True
        """Whether every request carries a mark of its own; without, results keep their order."""

    def requests(self, items: JsonItems) -> Iterator[CoreRequest]:
        """The requests. Raises `ApiError`."""
        for index, item in enumerate(items):
            if index >= self._most:
                raise self._too_large()
            try:
                request, marked = core_request(BatchRequestItem.model_validate(item), index)
            except ValidationError as error:
                fault = error.errors(include_input=False, include_url=False)[0]
                place = ".".join(str(part) for part in ("requests", index, *fault["loc"]))
                raise ApiError(400, f"{place}: {fault['msg']}") from None
            self.all_marked = self.all_marked and marked
            yield request


def _key(header: str | None, parameter: str | None) -> str | None:
    if header is not None and parameter is not None and header != parameter:
        raise ApiError(400, "The header and the body name two idempotency keys.")
    return header if header is not None else parameter


def _digest(written: WrittenRequests, options: SubmitOptions) -> str:
    """Of everything that was asked, the key itself apart."""
    rest: dict[str, Any] = options.model_dump(exclude={"idempotency_key"})
    content = json.dumps([written.digest, rest], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _json(request: Request, data: dict[str, Any]) -> Response:
    return JSONResponse(envelope(Call.of(request.scope), data))
