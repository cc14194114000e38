"""One job of a test, in the wire format of any provider: written, sent, looked for and read."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from extraction_pipeline.providers.base import (
    BatchProvider,
    DecodedResult,
    JobStatus,
    ModelRequest,
    Search,
    SearchVerdict,
    Sought,
    Submission,
    SubmissionReceipt,
    UploadReceipt,
)
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.registry import ProviderName, build_provider
from extraction_pipeline_tests.batch_server.process import (
    wait_until,
)

BASE_PATHS = {ProviderName.LOCAL: "/v1", ProviderName.OPENAI: "/v1"}
"""What the base URL of a provider holds after the host, where it holds anything."""

KEY = "sk-test"
MODEL = "rules-baseline"
SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": ["string", "null"]}},
    "required": ["title"],
    "additionalProperties": False,
}


def provider_at(name: ProviderName, root_url: str, key: str = KEY) -> BatchProvider:
    base_url = root_url + BASE_PATHS.get(name, "")
    endpoint = ProviderEndpoint(base_url, api_key=key, connect_timeout=2, read_timeout=10)
    return build_provider(name, endpoint)


def request_of(job_key: str, number: int, model: str = MODEL) -> ModelRequest:
    return ModelRequest(
        custom_id=f"{prefix_of(job_key)}{number}",
        model=model,
        instructions="Extract the title.",
        document=f"Fictional note {number}: é, 漢字, 🩺, \u2028 and \u0000",
        schema_name="note",
        json_schema=SCHEMA,
        max_output_tokens=500,
    )


def prefix_of(job_key: str) -> str:
    return f"{job_key[-16:]}-"


class Sent:
    """A job on its way: what was made of it, step by step."""

    def __init__(self, folder: Path, provider: BatchProvider, job_key: str) -> None:
        self.provider = provider
        self.job_key = job_key
        self.payload = folder / f"{job_key}.jsonl"
        self.requests: list[ModelRequest] = []

    def write(self, *requests: ModelRequest) -> "Sent":
        self.requests = list(requests)
        lines = [self.provider.encode_request(each) + b"\n" for each in requests]
        self.payload.write_bytes(b"".join(lines))
        return self

    def write_notes(self, count: int) -> "Sent":
        return self.write(*(request_of(self.job_key, number) for number in range(count)))

    def upload(self) -> UploadReceipt | None:
        files = self.provider.files
        return files.upload(self.payload, self.job_key) if files else None

    def submission(self, receipt: UploadReceipt | None) -> Submission:
        return Submission(
            self.job_key,
            self.requests[0].model,
            input_id=receipt.input_id if receipt else None,
            payload=None if receipt else self.payload,
        )

    def submit(self) -> SubmissionReceipt:
        return self.provider.submit(self.submission(self.upload()))

    def search(self) -> Search:
        now = datetime.now(UTC)
        return self.provider.find(
            Sought(
                self.job_key,
                now - timedelta(minutes=5),
                now,
                len(self.requests),
                prefix_of(self.job_key),
            )
        )

    def found(self) -> list[str] | None:
        """Ids of the jobs that bear the key, once that can be told; `None` where no search can."""
        search = wait_until(
            lambda: None if (one := self.search()).verdict is SearchVerdict.UNCERTAIN else one
        )
        if search.verdict is SearchVerdict.REPEATABLE:
            return None
        assert (search.verdict is SearchVerdict.FOUND) == bool(search.found)
        return [job.job_id for job in search.found]


def ended(provider: BatchProvider, job_id: str) -> JobStatus:
    def end() -> JobStatus | None:
        status = provider.status(job_id)
        return status if status.phase.is_end else None

    status: JobStatus = wait_until(end)
    return status


def results_of(provider: BatchProvider, status: JobStatus) -> list[DecodedResult]:
    content = b""
    for reference in status.results:
        with provider.download(reference) as chunks:
            content += b"".join(chunks)
    return [provider.decode_result(line) for line in content.split(b"\n") if line]
