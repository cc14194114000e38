"""Infrai's batch API.

A job is made in one call that carries all requests, under an `Idempotency-Key`: the job key. A
repetition under the same key with the same body gives the same job, for a day at least. There is
no list to search, so a call whose outcome is unknown is settled by repeating it; after that time,
nothing can prove anything and the verdict is `UNCERTAIN`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import orjson

from extraction_pipeline.providers.base import (
    DecodedResult,
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
from extraction_pipeline.providers.contract import Call, Contract, ContractText
from extraction_pipeline.providers.contract_reading import Reading
from extraction_pipeline.providers.dialect import ProviderDialect
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import CallRefused
from extraction_pipeline.providers.http_provider import HttpProvider
from extraction_pipeline.providers.identifiers import checked_job_key, path_segment
from extraction_pipeline.providers.infrai_contract import CALLS_BY_CAPABILITY, CONTRACT
from extraction_pipeline.providers.infrai_discovery import CapabilityContract, read_contract
from extraction_pipeline.providers.infrai_reliance import (
    differences_of,
    unavailable,
    undescribed,
)
from extraction_pipeline.providers.infrai_translation import (
    check_schema,
    decode_result,
    encode_request,
    job_status,
    read_error,
    request_id_within,
    status_within,
)
from extraction_pipeline.providers.infrai_wire import NewJob, WireJob, read_data, read_items
from extraction_pipeline.providers.lines_in_array import lines_in_array
from extraction_pipeline.providers.wire import as_line

JOB_KEY_METADATA = "extraction_job_key"
LIMITS = ProviderLimits(
    requests_per_job=1_000, bytes_per_job=20_000_000, result_retention_days=None
)
"""Of this project's choosing: no limit is documented, and results come inside one JSON answer."""

DEDUPLICATION = timedelta(hours=23)
"""How long a repeated create call is trusted to give the same job: Infrai's window is told to be 24
hours, less a margin for clocks and for the call itself."""


class InfraiBatchProvider(HttpProvider):
    """A `BatchProvider` over Infrai's wire format."""

    def __init__(
        self, name: str, endpoint: ProviderEndpoint, limits: ProviderLimits = LIMITS
    ) -> None:
        key = endpoint.api_key
        super().__init__(
            endpoint,
            limits,
            ProviderDialect(
                provider=name,
                headers={"Authorization": f"Bearer {key}"} if key is not None else {},
                read_error=read_error,
                request_id_header="x-request-id",
                status_within=status_within,
                request_id_within=request_id_within,
            ),
        )

    @property
    def files(self) -> None:
        """None: the create call carries the requests."""
        return None

    def check_schema(self, schema_name: str, json_schema: Mapping[str, Any]) -> None:
        """See `infrai_translation.check_schema`."""
        check_schema(schema_name, json_schema)

    def encode_request(self, request: ModelRequest) -> bytes:
        """One request of a batch; see `infrai_translation.encode_request`."""
        return encode_request(request, self._endpoint.infrai_capability)

    def decode_result(self, line: bytes) -> DecodedResult:
        """Translate one item of the results; see `infrai_translation.decode_result`."""
        return decode_result(line)

    def submit(self, submission: Submission) -> SubmissionReceipt:
        """Create the batch: one request, streamed from the payload as canonical JSON."""
        if submission.payload is None:
            raise ValueError("the create call needs the payload")
        job_key = checked_job_key(submission.job_key)
        around = {"idempotency_key": job_key, "metadata": {JOB_KEY_METADATA: job_key}}
        head = orjson.dumps(around, option=orjson.OPT_SORT_KEYS)[:-1] + b',"requests":['
        with lines_in_array(submission.payload, head, b"]}\n") as body:
            reply = self._http.create(
                "/v1/ai/batch/submit",
                body,
                _new_job,
                {"Idempotency-Key": job_key},
                last_look=submission.last_look,
            )
        return SubmissionReceipt(reply.value.id, reply.value.state, reply.call)

    def find(self, sought: Sought) -> Search:
        """No search: the verdict is that the create call may be repeated, as long as that is so.

        It makes no call. The repetition is for the caller, who holds the payload that the key
        stands for: the key with any other would be refused, or worse.
        """
        age = datetime.now(UTC) - sought.first_tried_at
        return Search(SearchVerdict.REPEATABLE if age < DEDUPLICATION else SearchVerdict.UNCERTAIN)

    def status(self, job_id: str) -> JobStatus:
        """One reading of the batch."""
        path = f"/v1/ai/batch/status/{path_segment(job_id)}"

        def read(body: bytes) -> WireJob:
            job = read_data(body, WireJob)
            if job.id not in (None, job_id):
                raise ValueError("the answer is of another batch than was asked for")
            return job

        reply = self._http.get(path, read)
        return job_status(job_id, reply.value, reply.call)

    @contextmanager
    def _results(self, job_id: str) -> Iterator[Iterator[bytes]]:
        path = f"/v1/ai/batch/results/{path_segment(job_id)}"
        items = self._http.fetch(path, read_items).value
        yield (as_line(item) for item in items)

    def download(self, result: ResultReference) -> AbstractContextManager[Iterator[bytes]]:
        """The items of the results, each as one line of the same JSON values."""
        return self._results(result.reference)

    def cancel(self, job_id: str) -> JobStatus:
        """Ask for the batch to stop. The path is by analogy: no page names it."""
        path = f"/v1/ai/batch/cancel/{path_segment(job_id)}"
        try:
            self._http.post(path, lambda body: None)
        except CallRefused as refusal:
            return end_instead(refusal, lambda: self.status(job_id))
        return self.status(job_id)

    @property
    def contract(self) -> Contract:
        """See the module of this name."""
        return CONTRACT

    def look(self) -> tuple[Reading, ...]:
        """What discovery says of every capability that is used; public, so without a key too."""
        asked = self._endpoint.infrai_capability
        readings = [self._look_at(name, call) for name, call in CALLS_BY_CAPABILITY.items()]
        return (*readings, self._look_at(asked, None))

    def _look_at(self, capability: str, call: Call | None) -> Reading:
        try:
            described = self.described(capability)
        except CallRefused as refusal:
            if refusal.http_status != HTTPStatus.NOT_FOUND:
                raise
            needed_for = f"to {call.purpose}" if call else "every request of a batch"
            return Reading(capability, (undescribed(capability, needed_for),))
        if call is not None:
            differences = differences_of(call, described)
        else:
            differences = () if described.available else (unavailable(capability),)
        text = ContractText(described.document, described.contract_hash)
        return Reading(capability, differences, text)

    def described(self, capability: str) -> CapabilityContract:
        """What the provider says of a capability now, such as `ai.batch.submit`. An answer about
        another one says nothing."""

        def read(body: bytes) -> CapabilityContract:
            described = read_contract(body)
            if described.capability != capability:
                raise ValueError("the answer describes another capability than was asked for")
            return described

        return self._http.get(f"/v1/discovery/{path_segment(capability)}", read).value

    def clean_up(self, job_id: str | None, file_ids: Sequence[str]) -> None:
        """Nothing: no page says how a batch, or what it holds, is deleted."""


def build_infrai(endpoint: ProviderEndpoint) -> InfraiBatchProvider:
    """Infrai itself, or a compatible service by its base URL."""
    return InfraiBatchProvider("infrai", endpoint)


def _new_job(body: bytes) -> NewJob:
    return read_data(body, NewJob)
