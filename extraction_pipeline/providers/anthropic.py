"""Anthropic's Message Batches API.

A job is made in one call that carries all requests. Nothing of ours can be attached to it, and the
call is not idempotent, so a job that may have been made is looked for by when it was made and how
many requests it holds. The proof is in its results, which exist once it has ended: every custom id
in them begins with a hash of the job key.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

from extraction_pipeline.providers.anthropic_contract import CONTRACT, VERSION
from extraction_pipeline.providers.anthropic_translation import (
    check_schema,
    decode_result,
    encode_request,
    job_status,
    may_hold,
    read_error,
)
from extraction_pipeline.providers.anthropic_wire import BatchPage, WireBatch
from extraction_pipeline.providers.base import (
    CLOCK_MARGIN,
    CallRecord,
    DecodedResult,
    FoundJob,
    JobPhase,
    JobStatus,
    ModelRequest,
    ProviderLimits,
    ResultReference,
    Search,
    SearchVerdict,
    Sought,
    Submission,
    SubmissionReceipt,
    UndecodableResult,
)
from extraction_pipeline.providers.cancelling import end_instead
from extraction_pipeline.providers.contract import Contract
from extraction_pipeline.providers.contract_reading import Reading, read_first_page
from extraction_pipeline.providers.deletion import delete
from extraction_pipeline.providers.dialect import ProviderDialect
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import CallRefused
from extraction_pipeline.providers.http_provider import HttpProvider
from extraction_pipeline.providers.identifiers import path_segment
from extraction_pipeline.providers.lines_in_array import lines_in_array
from extraction_pipeline.providers.paging import pages_by_id
from extraction_pipeline.providers.wire import named

PATH = "/v1/messages/batches"
LIMITS = ProviderLimits(
    requests_per_job=100_000, bytes_per_job=256_000_000 - 1_024, result_retention_days=29
)
"""From Anthropic's batch guide; 256 MB are taken as decimal, less what stands around the lines."""

LATEST_ARRIVAL = timedelta(hours=1)
"""How long after a create call began it may still make a job: far beyond any time-out."""

_LONGEST_LINE = 32 * 1024 * 1024


class AnthropicBatchProvider(HttpProvider):
    """A `BatchProvider` over Anthropic's wire format."""

    def __init__(
        self, name: str, endpoint: ProviderEndpoint, limits: ProviderLimits = LIMITS
    ) -> None:
        headers = {"x-api-key": endpoint.api_key, "anthropic-version": VERSION}
        super().__init__(
            endpoint,
            limits,
            ProviderDialect(
                provider=name,
                headers={key: value for key, value in headers.items() if value is not None},
                read_error=read_error,
                request_id_header="request-id",
            ),
        )

    @property
    def files(self) -> None:
        """None: the create call carries the requests."""
        return None

    def check_schema(self, schema_name: str, json_schema: Mapping[str, Any]) -> None:
        """See `anthropic_translation.check_schema`."""
        check_schema(schema_name, json_schema, self._endpoint.anthropic_output)

    def encode_request(self, request: ModelRequest) -> bytes:
        """One request of a batch; see `anthropic_translation.encode_request`."""
        return encode_request(request, self._endpoint.anthropic_output)

    def decode_result(self, line: bytes) -> DecodedResult:
        """Translate one result line; see `anthropic_translation.decode_result`."""
        return decode_result(line)

    def submit(self, submission: Submission) -> SubmissionReceipt:
        """Create the batch: one request, never repeated, streamed from the payload."""
        if submission.payload is None:
            raise ValueError("the create call needs the payload")
        with lines_in_array(submission.payload, b'{"requests":[', b"]}") as body:
            reply = self._http.create(
                PATH, body, WireBatch.model_validate_json, last_look=submission.last_look
            )
        return SubmissionReceipt(reply.value.id, reply.value.processing_status, reply.call)

    def find(self, sought: Sought) -> Search:
        """The batches that were made in time, hold as many requests, and prove to be this job's.

        A batch of the right size that has not ended, or whose results are gone, cannot be told: as
        long as there is one, and none that is proven, the verdict is `UNCERTAIN`.
        """
        found: list[FoundJob] = []
        possible: list[str] = []
        for batch in self._made_in_time(sought):
            if batch.id in sought.known_job_ids or not may_hold(batch, sought.request_count):
                continue
            ours = self._is_ours(batch, sought.custom_id_prefix)
            if ours:
                found.append(FoundJob(batch.id, batch.processing_status, batch.created_at))
            elif ours is None:
                possible.append(batch.id)
        if found or not possible:
            return Search.of_whole_list(found)
        return Search(SearchVerdict.UNCERTAIN, possible=tuple(possible))

    def _made_in_time(self, sought: Sought) -> Iterator[WireBatch]:
        first = sought.first_tried_at - CLOCK_MARGIN
        last = sought.last_tried_at + LATEST_ARRIVAL + CLOCK_MARGIN
        now = datetime.now(UTC)  # what is later than that has a time that tells nothing
        read = BatchPage.model_validate_json
        for page in pages_by_id(self._http, PATH, read, {"limit": "1000"}, "after_id"):
            for batch in page.data:
                made_at = batch.created_at
                if made_at is None or first <= made_at <= last or made_at > now:
                    yield batch
            times = [batch.created_at for batch in page.data]
            if times and all(time is not None and time < first for time in times):
                return  # the newest come first, as is documented

    def _is_ours(self, batch: WireBatch, custom_id_prefix: str) -> bool | None:
        """Whether a batch's results bear our prefix; `None` while that cannot be told."""
        status = job_status(batch, CallRecord(200, None))
        if status.phase is JobPhase.PENDING or not status.results:
            return None
        whole = True
        others = False
        with self.download(status.results[0]) as chunks:
            for line in _lines(chunks):
                if line is None:
                    whole = False
                    continue
                try:
                    custom_id = decode_result(line).custom_id or ""
                except UndecodableResult:
                    whole = whole and not line.strip()
                    continue
                if custom_id.startswith(custom_id_prefix):
                    return True  # one row of ours proves it, whatever else was mixed in
                others = True
        return False if whole and others else None

    def status(self, job_id: str) -> JobStatus:
        """One reading of the batch."""
        reply = self._http.get(f"{PATH}/{path_segment(job_id)}", named(WireBatch, "id", job_id))
        return job_status(reply.value, reply.call)

    def download(self, result: ResultReference) -> AbstractContextManager[Iterator[bytes]]:
        """Stream the results. The address is made from the batch's id: the one that the batch
        itself names may lead to another host, which must not get the key."""
        return self._http.download(f"{PATH}/{path_segment(result.reference)}/results")

    def cancel(self, job_id: str) -> JobStatus:
        """Ask for the batch to stop. A batch that is at its end already is returned as it is."""
        path = f"{PATH}/{path_segment(job_id)}/cancel"
        try:
            reply = self._http.post(path, WireBatch.model_validate_json)
        except CallRefused as refusal:
            return end_instead(refusal, lambda: self.status(job_id))
        return job_status(reply.value, reply.call)

    def clean_up(self, job_id: str | None, file_ids: Sequence[str]) -> None:
        """Delete the batch, with its requests and results."""
        if job_id is not None:
            delete(self._http, f"{PATH}/{path_segment(job_id)}")

    @property
    def contract(self) -> Contract:
        """See the module of this name."""
        return CONTRACT

    def look(self) -> tuple[Reading, ...]:
        """One entry of the list of batches; needs the key."""
        return read_first_page(self._http, PATH, BatchPage, {"limit": "1"})


def build_anthropic(endpoint: ProviderEndpoint) -> AnthropicBatchProvider:
    """Anthropic itself, or a compatible service by its base URL."""
    return AnthropicBatchProvider("anthropic", endpoint)


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes | None]:
    """The lines of a stream as they come; `None`, and then no more, where one is longer than is
    sensible."""
    held = b""
    for chunk in chunks:
        *lines, held = (held + chunk).split(b"\n")
        yield from lines
        if len(held) > _LONGEST_LINE:
            yield None
            return
    if held:
        yield held
