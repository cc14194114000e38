"""What the adapter of OpenAI's Batch API relies on."""

from extraction_pipeline.providers.contract import Call, Contract, OpenPoint, Source
from extraction_pipeline.providers.openai_wire import (
    BatchPage,
    FilePage,
    ResultLine,
    WireBatch,
    WireFile,
)

CONTRACT = Contract(
    api="OpenAI Batch API",
    version="v1",
    credential="Authorization",
    sources=(
        Source("OpenAI's OpenAPI description", "2026-08-21"),
        Source("OpenAI's batch guide", "2026"),
        Source("OpenAI's guide to structured outputs", "2026"),
        Source("recorded payloads of result lines"),
    ),
    calls=(
        Call("bring the payload", "POST", "/files", ("purpose", "file"), answer=WireFile),
        Call("look at a file", "GET", "/files/{file}", answer=WireFile),
        Call(
            "make the job",
            "POST",
            "/batches",
            (
                "input_file_id",
                "endpoint",
                "completion_window",
                "metadata.extraction_job_key",
            ),
            answer=WireBatch,
        ),
        Call("find a payload", "GET", "/files", query=("purpose", "after"), answer=FilePage),
        Call("find a job", "GET", "/batches", query=("limit", "after"), answer=BatchPage),
        Call("read a job", "GET", "/batches/{job}", answer=WireBatch),
        Call("fetch results", "GET", "/files/{file}/content"),
        Call("cancel a job", "POST", "/batches/{job}/cancel", answer=WireBatch),
        Call("delete a file", "DELETE", "/files/{file}"),
    ),
    result=ResultLine,
    limit_sources={
        "requests_per_job": "OpenAI's OpenAPI description",
        "bytes_per_job": "OpenAI's OpenAPI description: 200 MB, taken as decimal",
        "result_retention_days": "OpenAI's batch guide",
    },
    open_points=(
        OpenPoint("the order of the list of batches", "every page is read"),
        OpenPoint(
            "the codes batch_cancelled and batch_canceled of a line", "both mean a cancelled one"
        ),
        OpenPoint(
            "the answer to cancelling an ended batch",
            "any refusal: its end is read instead",
        ),
        OpenPoint("how long a batch can be read", "one that is gone is refused as not found"),
        OpenPoint("whether Idempotency-Key is honoured", "not sent; the job is searched for"),
        OpenPoint("characters and length of custom_id", "1 to 64 of A-Z, a-z, 0-9, _ and -"),
    ),
)
