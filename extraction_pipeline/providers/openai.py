"""OpenAI's Batch API, and every server that speaks its wire format.

A job is made in two calls: the payload goes to `/files`, then `/batches` names it. Neither is
idempotent at OpenAI (nothing of the kind is documented), so the job key travels twice: in the
batch's metadata and in the payload's file name.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import orjson

from extraction_pipeline.providers.base import (
    DecodedResult,
    FoundJob,
    JobStatus,
    ModelRequest,
    ProviderLimits,
    ResultReference,
    Search,
    SearchVerdict,
    Sought,
    Submission,
    SubmissionReceipt,
)
from extraction_pipeline.providers.cancelling import end_instead
from extraction_pipeline.providers.contract import Contract
from extraction_pipeline.providers.contract_reading import Reading, read_first_page
from extraction_pipeline.providers.dialect import ProviderDialect
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import CallRefused
from extraction_pipeline.providers.http_provider import HttpProvider
from extraction_pipeline.providers.identifiers import checked_job_key, path_segment
from extraction_pipeline.providers.openai_contract import CONTRACT
from extraction_pipeline.providers.openai_files import OpenAIFiles, payload_name
from extraction_pipeline.providers.openai_translation import (
    CHAT_COMPLETIONS,
    as_time,
    check_schema,
    decode_result,
    encode_request,
    job_status,
    read_error,
)
from extraction_pipeline.providers.openai_wire import BatchPage, FilePage, WireBatch, WireFile
from extraction_pipeline.providers.paging import pages_by_id
from extraction_pipeline.providers.wire import named

JOB_KEY_METADATA = "extraction_job_key"
LIMITS = ProviderLimits(
    requests_per_job=50_000, bytes_per_job=200_000_000, result_retention_days=30
)
"""From OpenAI's batch guide; 200 MB are taken as the smaller, decimal number."""


class OpenAIBatchProvider(HttpProvider):
    """A `BatchProvider` over OpenAI's wire format."""

    def __init__(
        self, name: str, endpoint: ProviderEndpoint, limits: ProviderLimits = LIMITS
    ) -> None:
        headers = {
            "Authorization": f"Bearer {endpoint.api_key}" if endpoint.api_key else None,
            "OpenAI-Organization": endpoint.organization,
            "OpenAI-Project": endpoint.project,
        }
        super().__init__(
            endpoint,
            limits,
            ProviderDialect(
                provider=name,
                headers={key: value for key, value in headers.items() if value is not None},
                read_error=read_error,
                request_id_header="x-request-id",
            ),
        )

    @property
    def files(self) -> OpenAIFiles:
        """The payload is a file of its own at the provider."""
        return OpenAIFiles(self._http)

    def check_schema(self, schema_name: str, json_schema: Mapping[str, Any]) -> None:
        """See `openai_translation.check_schema`."""
        check_schema(schema_name, json_schema)

    def encode_request(self, request: ModelRequest) -> bytes:
        """One input line; see `openai_translation.encode_request`."""
        return encode_request(request)

    def decode_result(self, line: bytes) -> DecodedResult:
        """Translate one result line; see `openai_translation.decode_result`."""
        return decode_result(line)

    def submit(self, submission: Submission) -> SubmissionReceipt:
        """Create the batch: one request, never repeated."""
        body = orjson.dumps(
            {
                "input_file_id": submission.input_id,
                "endpoint": CHAT_COMPLETIONS,
                "completion_window": "24h",
                "metadata": {JOB_KEY_METADATA: checked_job_key(submission.job_key)},
            }
        )
        reply = self._http.create(
            "/batches", body, WireBatch.model_validate_json, last_look=submission.last_look
        )
        return SubmissionReceipt(reply.value.id, reply.value.status, reply.call)

    def find(self, sought: Sought) -> Search:
        """All batches that carry the job key, in their metadata or in their input file's name, or
        whose input is an upload of this job that is not listed any more.

        Every page is read to the end: the order of batches is not documented, so no time can end
        the search early, and a match is a match whatever the clocks say. As long as there is a
        batch that tells neither metadata nor input and may have been made in the time, and none
        that is proven, the verdict is `UNCERTAIN`. A search that cannot be completed raises
        `CallFailed`.
        """
        name = payload_name(sought.job_key)
        # No limit: OpenAI's pages are then its longest, and others have another longest one.
        files = {"purpose": "batch"}
        inputs = {
            file.id
            for page in pages_by_id(
                self._http, "/files", FilePage.model_validate_json, files, "after"
            )
            for file in page.data
            if file.filename == name
        } | sought.input_ids
        found: dict[str, FoundJob] = {}
        possible: list[str] = []
        for page in pages_by_id(
            self._http, "/batches", BatchPage.model_validate_json, {"limit": "100"}, "after"
        ):
            for batch in page.data:
                made = as_time(batch.created_at)
                key = (batch.metadata or {}).get(JOB_KEY_METADATA)
                if key == sought.job_key or batch.input_file_id in inputs:
                    found[batch.id] = FoundJob(batch.id, batch.status, made)
                elif not (batch.metadata or batch.input_file_id or sought.rules_out(made)):
                    possible.append(batch.id)
        if possible and not found:
            return Search(SearchVerdict.UNCERTAIN, possible=tuple(possible))
        return Search.of_whole_list(found.values())

    def status(self, job_id: str) -> JobStatus:
        """One reading of the batch."""
        reply = self._http.get(f"/batches/{path_segment(job_id)}", named(WireBatch, "id", job_id))
        return job_status(reply.value, reply.call)

    def download(self, result: ResultReference) -> AbstractContextManager[Iterator[bytes]]:
        """Stream one result file, held against the size that the file's own record gives."""
        path = f"/files/{path_segment(result.reference)}"
        expected = self._http.get(path, named(WireFile, "id", result.reference)).value.bytes
        return self._http.download(f"{path}/content", expected)

    def cancel(self, job_id: str) -> JobStatus:
        """Ask for the batch to stop. A batch that is at its end already is returned as it is."""
        path = f"/batches/{path_segment(job_id)}/cancel"
        try:
            reply = self._http.post(path, WireBatch.model_validate_json)
        except CallRefused as refusal:
            return end_instead(refusal, lambda: self.status(job_id))
        return job_status(reply.value, reply.call)

    def clean_up(self, job_id: str | None, file_ids: Sequence[str]) -> None:
        """Delete payload and results; batches themselves cannot be deleted, and hold no text."""
        for file_id in file_ids:
            self.files.delete(file_id)

    @property
    def contract(self) -> Contract:
        """See the module of this name."""
        return CONTRACT

    def look(self) -> tuple[Reading, ...]:
        """One entry of the list of batches; needs the key."""
        return read_first_page(self._http, "/batches", BatchPage, {"limit": "1"})


def build_openai(endpoint: ProviderEndpoint) -> OpenAIBatchProvider:
    """OpenAI itself, or a compatible service by its base URL."""
    return OpenAIBatchProvider("openai", endpoint)


def build_local(endpoint: ProviderEndpoint) -> OpenAIBatchProvider:
    """This project's own batch server, which keeps results until they are deleted."""
    return OpenAIBatchProvider("local", endpoint, replace(LIMITS, result_retention_days=None))
