"""Google's Gemini Batch API.

A job is made in three calls: a resumable upload in two, and the create call that names the file.
Creation is not idempotent, as the guide says, so the job key travels as the batch's display name,
by which a job that may have been made is looked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
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
from extraction_pipeline.providers.deletion import delete
from extraction_pipeline.providers.dialect import ProviderDialect
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import CallRefused
from extraction_pipeline.providers.gemini_contract import CONTRACT
from extraction_pipeline.providers.gemini_files import GeminiFiles, resource
from extraction_pipeline.providers.gemini_translation import (
    INLINE,
    check_schema,
    decode_result,
    encode_request,
    job_status,
    provider_state,
    read_error,
)
from extraction_pipeline.providers.gemini_wire import (
    OperationPage,
    WireMetadata,
    WireOperation,
)
from extraction_pipeline.providers.http_provider import HttpProvider
from extraction_pipeline.providers.identifiers import checked_job_key
from extraction_pipeline.providers.paging import pages_by_token
from extraction_pipeline.providers.wire import as_line, named, parse_json

LIMITS = ProviderLimits(
    requests_per_job=50_000, bytes_per_job=2_000_000_000, result_retention_days=42
)
"""From Google's guides, 2 GB taken as decimal. No number of requests is documented; 50,000 is what
other clients keep to. Results are kept for six weeks."""


class GeminiBatchProvider(HttpProvider):
    """A `BatchProvider` over Gemini's wire format."""

    def __init__(
        self, name: str, endpoint: ProviderEndpoint, limits: ProviderLimits = LIMITS
    ) -> None:
        key = endpoint.api_key
        super().__init__(
            endpoint,
            limits,
            ProviderDialect(
                provider=name,
                headers={"x-goog-api-key": key} if key is not None else {},
                read_error=read_error,
                # None is documented; gateways in front of it use the common name.
                request_id_header="x-request-id",
            ),
        )
        self._files = GeminiFiles(name, endpoint.base_url, self._http)

    @property
    def files(self) -> GeminiFiles:
        """The payload is a file of its own at the provider."""
        return self._files

    def check_schema(self, schema_name: str, json_schema: Mapping[str, Any]) -> None:
        """See `gemini_translation.check_schema`."""
        check_schema(schema_name, json_schema, self._endpoint.gemini_schema_field)

    def encode_request(self, request: ModelRequest) -> bytes:
        """One input line; see `gemini_translation.encode_request`."""
        return encode_request(request, self._endpoint.gemini_schema_field)

    def decode_result(self, line: bytes) -> DecodedResult:
        """Translate one result; see `gemini_translation.decode_result`."""
        return decode_result(line)

    def submit(self, submission: Submission) -> SubmissionReceipt:
        """Create the batch: one create call, never repeated.

        The file is looked at before: one that has run out (after 48 hours) would be refused with
        words that mean "no permission", and one that is still taken in would be refused as well.
        `CallFailed` with status 404 says that it is gone.
        """
        input_id = submission.input_id or ""
        self._files.require(input_id)
        body = orjson.dumps(
            {
                "batch": {
                    "displayName": checked_job_key(submission.job_key),
                    "inputConfig": {"fileName": input_id},
                }
            }
        )
        path = f"/v1beta/{resource('models', submission.model)}:batchGenerateContent"
        reply = self._http.create(
            path, body, WireOperation.model_validate_json, last_look=submission.last_look
        )
        return SubmissionReceipt(reply.value.name, provider_state(reply.value), reply.call)

    def find(self, sought: Sought) -> Search:
        """All batches whose display name is the job key, or whose input is a file of ours.

        Every page is read: the order of the list is not documented. As long as there is a batch
        that tells no name and may have been made in the time, and none that is proven, the verdict
        is `UNCERTAIN`.
        """
        found: dict[str, FoundJob] = {}
        possible: list[str] = []
        for operation in self._all_batches():
            metadata = operation.metadata or WireMetadata()
            if metadata.display_name == sought.job_key or _input_of(metadata) in sought.input_ids:
                found[operation.name] = FoundJob(
                    operation.name, provider_state(operation), metadata.create_time
                )
            elif metadata.display_name is None and not sought.rules_out(metadata.create_time):
                possible.append(operation.name)
        if found or not possible:
            return Search.of_whole_list(found.values())
        return Search(SearchVerdict.UNCERTAIN, possible=tuple(possible))

    def _all_batches(self) -> Iterator[WireOperation]:
        return (
            operation
            for page in pages_by_token(
                self._http,
                "/v1beta/batches",
                OperationPage.model_validate_json,
                {"pageSize": "100"},
                "pageToken",
            )
            for operation in page.operations
        )

    def status(self, job_id: str) -> JobStatus:
        """One reading of the batch."""
        reply = self._http.get(_job_path(job_id), named(WireOperation, "name", job_id))
        return job_status(reply.value, reply.call)

    def download(self, result: ResultReference) -> AbstractContextManager[Iterator[bytes]]:
        """Stream the results: a file as it is, or the batch's own inline ones as lines."""
        kind, _, name = result.reference.partition(":")
        if kind == INLINE:
            return self._inline_results(name)
        path = f"/download/v1beta/{resource('files', result.reference)}:download"
        return self._http.download(path, params={"alt": "media"})

    @contextmanager
    def _inline_results(self, job_id: str) -> Iterator[Iterator[bytes]]:
        items = self._http.fetch(_job_path(job_id), _inline_items).value
        yield (as_line(item) for item in items)

    def cancel(self, job_id: str) -> JobStatus:
        """Ask for the batch to stop. A batch that is at its end already is returned as it is."""
        try:
            self._http.post(f"{_job_path(job_id)}:cancel", lambda body: None)
        except CallRefused as refusal:
            return end_instead(refusal, lambda: self.status(job_id))
        return self.status(job_id)

    def clean_up(self, job_id: str | None, file_ids: Sequence[str]) -> None:
        """Delete the payload, and the batch with its results."""
        for file_id in file_ids:
            # Results are files of the batch: the file service does not delete those.
            if file_id.startswith("files/") and not file_id.startswith("files/batch-"):
                self._files.delete(file_id)
        if job_id is not None:
            delete(self._http, _job_path(job_id))

    @property
    def contract(self) -> Contract:
        """See the module of this name."""
        return CONTRACT

    def look(self) -> tuple[Reading, ...]:
        """One entry of the list of batches; needs the key."""
        return read_first_page(self._http, "/v1beta/batches", OperationPage, {"pageSize": "1"})


def build_gemini(endpoint: ProviderEndpoint) -> GeminiBatchProvider:
    """Google's Gemini API, or a compatible service by its base URL."""
    return GeminiBatchProvider("gemini", endpoint)


def _job_path(job_id: str) -> str:
    return f"/v1beta/{resource('batches', job_id)}"


def _input_of(metadata: WireMetadata) -> str | None:
    file = metadata.input_config.file_name if metadata.input_config else None
    return file and f"files/{file.removeprefix('files/')}"


def _inline_items(body: bytes) -> list[Any]:
    operation = parse_json(body)
    read = WireOperation.model_validate(operation)
    output = read.response or (read.metadata.output if read.metadata else None)
    inner = output.inlined_responses if output else None
    if inner is None or inner.inlined_responses is None:
        raise ValueError("the batch holds no inline results")
    return inner.inlined_responses
