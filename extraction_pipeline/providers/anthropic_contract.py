"""What the adapter of Anthropic's Message Batches API relies on."""

from extraction_pipeline.providers.anthropic_wire import BatchPage, ResultLine, WireBatch
from extraction_pipeline.providers.contract import Call, Contract, OpenPoint, Source

VERSION = "2023-06-01"

_VERSION_HEADER = ("anthropic-version",)

CONTRACT = Contract(
    api="Anthropic Message Batches API",
    version=VERSION,
    credential="x-api-key",
    sources=(
        Source("Anthropic's API description, a mirror of it", "2026-05-06"),
        Source("Anthropic's batch guide", "2026"),
        Source("Anthropic's pages on errors, rate limits and structured outputs", "2026"),
        Source("recorded payloads"),
    ),
    calls=(
        Call(
            "make the job",
            "POST",
            "/v1/messages/batches",
            ("requests",),
            headers=_VERSION_HEADER,
            answer=WireBatch,
        ),
        Call(
            "find a job",
            "GET",
            "/v1/messages/batches",
            query=("limit", "after_id"),
            headers=_VERSION_HEADER,
            answer=BatchPage,
        ),
        Call(
            "read a job",
            "GET",
            "/v1/messages/batches/{job}",
            headers=_VERSION_HEADER,
            answer=WireBatch,
        ),
        Call("fetch results", "GET", "/v1/messages/batches/{job}/results", headers=_VERSION_HEADER),
        Call(
            "cancel a job",
            "POST",
            "/v1/messages/batches/{job}/cancel",
            headers=_VERSION_HEADER,
            answer=WireBatch,
        ),
        Call(
            "delete a job",
            "DELETE",
            "/v1/messages/batches/{job}",
            headers=_VERSION_HEADER,
        ),
    ),
    result=ResultLine,
    limit_sources={
        "requests_per_job": "Anthropic's batch guide",
        "bytes_per_job": "Anthropic's batch guide: 256 MB, taken as decimal, less the frame",
        "result_retention_days": "Anthropic's batch guide",
    },
    open_points=(
        OpenPoint(
            "which output form a model takes",
            "output_config.format within its limits",
            "EXTRACTION_ANTHROPIC_OUTPUT",
        ),
        OpenPoint(
            "the answer to cancelling an ended batch",
            "any refusal: its end is read instead",
        ),
        OpenPoint("the answer to results before the end", "results are asked for after it only"),
        OpenPoint("changes of the API description since its date", "unknown fields are ignored"),
    ),
)
