"""OpenAI's Batch API, and every server that speaks its wire format.

A job is made in two calls: the payload goes to `/files`, then `/batches` names it. Neither is
idempotent at OpenAI (nothing of the kind is documented), so the job key travels twice: in the
batch's metadata and in the payload's file name.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import orjson
from requests_toolbelt import MultipartEncoder

from extraction_pipeline.providers.base import (
    DecodedResult,
    FailureKind,
    FoundJob,
    JobStatus,
    ModelRequest,
    ProviderLimits,
    ResultReference,
    SubmissionReceipt,
    UploadReceipt,
)
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import CallFailed, CallRefused
from extraction_pipeline.providers.http import HttpClient, ProviderDialect
from extraction_pipeline.providers.openai_translation import (
    ACCOUNT_CODES,
    CHAT_COMPLETIONS,
    as_time,
    decode_result,
    encode_request,
    job_status,
    read_error_code,
)
from extraction_pipeline.providers.openai_wire import BatchPage, FilePage, WireBatch, WireFile

JOB_KEY_METADATA = "extraction_job_key"
LIMITS = ProviderLimits(
    requests_per_job=50_000, bytes_per_job=200_000_000, result_retention_days=30
)
"""From OpenAI's batch guide; 200 MB are taken as the smaller, decimal number."""

LONGEST_SEARCH_PAGES = 2_000
"""Pages of 100 batches, or 10,000 files, that a search reads before it gives up (and says so)."""

_JOB_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}")
_Page = TypeVar("_Page", BatchPage, FilePage)


class OpenAIBatchProvider:
    """A `BatchProvider` over OpenAI's wire format."""

    def __init__(
        self, name: str, endpoint: ProviderEndpoint, limits: ProviderLimits = LIMITS
    ) -> None:
        headers = {
            "Authorization": f"Bearer {endpoint.api_key}" if endpoint.api_key else None,
            "OpenAI-Organization": endpoint.organization,
            "OpenAI-Project": endpoint.project,
        }
        self._name = name
        self._endpoint = endpoint
        self._limits = limits
        self._http = HttpClient(
            endpoint,
            ProviderDialect(
                provider=name,
                headers={key: value for key, value in headers.items() if value is not None},
                request_id_header="x-request-id",
                read_error_code=read_error_code,
                account_codes=ACCOUNT_CODES,
            ),
        )

    @property
    def name(self) -> str:
        """The name that collections and the ledger use."""
        return self._name

    @property
    def base_url(self) -> str:
        """Where calls go, without credentials."""
        return self._endpoint.base_url

    @property
    def limits(self) -> ProviderLimits:
        """What one job may hold."""
        return self._limits

    def encode_request(self, request: ModelRequest) -> bytes:
        """One input line; see `openai_translation.encode_request`."""
        return encode_request(request)

    def decode_result(self, line: bytes) -> DecodedResult:
        """Translate one result line; see `openai_translation.decode_result`."""
        return decode_result(line)

    def upload(self, payload: Path, job_key: str) -> UploadReceipt:
        """Stream the payload to `/files`; memory does not grow with it."""
        with payload.open("rb") as content:
            form = MultipartEncoder(
                {
                    "purpose": "batch",
                    "file": (_file_name(job_key), content, "application/jsonl"),
                }
            )
            reply = self._http.upload(
                "/files", form, form.content_type, WireFile.model_validate_json
            )
        return UploadReceipt(reply.value.id, reply.call)

    def submit(self, input_id: str, job_key: str) -> SubmissionReceipt:
        """Create the batch: one request, never repeated."""
        body = orjson.dumps(
            {
                "input_file_id": input_id,
                "endpoint": CHAT_COMPLETIONS,
                "completion_window": "24h",
                "metadata": {JOB_KEY_METADATA: _checked(job_key)},
            }
        )
        reply = self._http.create("/batches", body, WireBatch.model_validate_json)
        return SubmissionReceipt(reply.value.id, reply.value.status, reply.call)

    def find(self, job_key: str, since: datetime) -> tuple[FoundJob, ...]:
        """All batches that carry `job_key`, in their metadata or in their input file's name.

        Every page is read to the end: the order of batches is not documented, so `since` cannot
        end the search early, and a match is a match whatever the clocks say. A search that cannot
        be completed raises `CallFailed`.
        """
        name = _file_name(job_key)
        inputs = {
            file.id
            for page in self._pages("/files", FilePage, {"purpose": "batch", "limit": "10000"})
            for file in page.data
            if file.filename == name
        }
        found = {
            batch.id: FoundJob(batch.id, batch.status, as_time(batch.created_at))
            for page in self._pages("/batches", BatchPage, {"limit": "100"})
            for batch in page.data
            if (batch.metadata or {}).get(JOB_KEY_METADATA) == job_key
            or batch.input_file_id in inputs
        }
        return tuple(found.values())

    def status(self, job_id: str) -> JobStatus:
        """One reading of the batch."""
        reply = self._http.get(f"/batches/{_segment(job_id)}", WireBatch.model_validate_json)
        return job_status(reply.value, reply.call)

    def download(self, result: ResultReference) -> AbstractContextManager[Iterator[bytes]]:
        """Stream one result file, held against the size that the file's own record gives."""
        path = f"/files/{_segment(result.reference)}"
        expected = self._http.get(path, WireFile.model_validate_json).value.bytes
        return self._http.download(f"{path}/content", expected)

    def cancel(self, job_id: str) -> JobStatus:
        """Ask for the batch to stop. A batch that is at its end already is returned as it is."""
        path = f"/batches/{_segment(job_id)}/cancel"
        try:
            reply = self._http.post(path, WireBatch.model_validate_json)
        except CallRefused as error:
            if error.http_status not in (400, 409):
                raise
            status = self.status(job_id)
            if not status.phase.is_end:
                raise
            return status
        return job_status(reply.value, reply.call)

    def _pages(self, path: str, form: type[_Page], params: dict[str, str]) -> Iterator[_Page]:
        """Every page of a list. Raises `CallFailed` rather than ending before the list does."""
        read: Callable[[bytes], _Page] = form.model_validate_json
        seen: set[str] = set()
        query = dict(params)
        for _ in range(LONGEST_SEARCH_PAGES):
            page = self._http.get(path, read, query).value
            yield page
            if not page.has_more:
                return
            new = [item.id for item in page.data if item.id not in seen]
            if not new:
                raise self._incomplete(path, "a page brought nothing new")
            seen.update(new)
            query["after"] = page.data[-1].id
        raise self._incomplete(path, f"there are more than {LONGEST_SEARCH_PAGES} pages")

    def _incomplete(self, path: str, why: str) -> CallFailed:
        return CallFailed(
            f"{self._name}: the search of {path} could not be completed: {why}.",
            kind=FailureKind.TRANSPORT,
        )


def build_openai(endpoint: ProviderEndpoint) -> OpenAIBatchProvider:
    """OpenAI itself, or a compatible service by its base URL."""
    return OpenAIBatchProvider("openai", endpoint)


def build_local(endpoint: ProviderEndpoint) -> OpenAIBatchProvider:
    """This project's own batch server, which keeps results until they are deleted."""
    return OpenAIBatchProvider("local", endpoint, replace(LIMITS, result_retention_days=None))


def _checked(job_key: str) -> str:
    if not _JOB_KEY.fullmatch(job_key):
        raise ValueError("a job key consists of 1 to 200 of A-Z, a-z, 0-9, '.', '_' and '-'")
    return job_key


def _file_name(job_key: str) -> str:
    return f"extraction-{_checked(job_key)}.jsonl"


def _segment(identifier: str) -> str:
    """An id of the provider's as one segment of a path."""
    segment = quote(identifier, safe="")
    if segment in ("", ".", ".."):
        raise ValueError("an id of the provider's is empty or a path")
    return segment
