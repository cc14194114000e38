"""What the adapter of Google's Gemini Batch API relies on."""

from extraction_pipeline.providers.contract import Call, Contract, OpenPoint, Source
from extraction_pipeline.providers.gemini_wire import (
    FileBody,
    OperationPage,
    ResultLine,
    WireFile,
    WireOperation,
)

CONTRACT = Contract(
    api="Google Gemini Batch API",
    version="v1beta",
    credential="x-goog-api-key",
    sources=(
        Source("Google's batch guide", "2026-07-02"),
        Source("Google's files guide", "2026-07"),
        Source("the names in Google's public discovery document, read in part"),
        Source("recorded payloads"),
    ),
    calls=(
        Call(
            "begin an upload",
            "POST",
            "/upload/v1beta/files",
            ("file.displayName",),
            headers=(
                "X-Goog-Upload-Protocol",
                "X-Goog-Upload-Command",
                "X-Goog-Upload-Header-Content-Length",
                "X-Goog-Upload-Header-Content-Type",
            ),
        ),
        Call(
            "bring the payload",
            "POST",
            "{X-Goog-Upload-URL}",
            ("the request lines",),
            headers=("X-Goog-Upload-Offset", "X-Goog-Upload-Command"),
            answer=FileBody,
        ),
        Call("look at a file", "GET", "/v1beta/files/{file}", answer=WireFile),
        Call(
            "make the job",
            "POST",
            "/v1beta/models/{model}:batchGenerateContent",
            ("batch.displayName", "batch.inputConfig.fileName"),
            answer=WireOperation,
        ),
        Call(
            "find a job",
            "GET",
            "/v1beta/batches",
            query=("pageSize", "pageToken"),
            answer=OperationPage,
        ),
        Call("read a job", "GET", "/v1beta/batches/{job}", answer=WireOperation),
        Call("fetch results", "GET", "/download/v1beta/files/{file}:download", query=("alt",)),
        Call("cancel a job", "POST", "/v1beta/batches/{job}:cancel"),
        Call("delete a file", "DELETE", "/v1beta/files/{file}"),
        Call("delete a job", "DELETE", "/v1beta/batches/{job}"),
    ),
    result=ResultLine,
    limit_sources={
        "requests_per_job": "not documented: what other clients keep to",
        "bytes_per_job": "Google's files guide: 2 GB, taken as decimal",
        "result_retention_days": "Google's batch guide: six weeks",
    },
    open_points=(
        OpenPoint(
            "which field for a schema works in a batch",
            "responseSchema, Gemini's own subset",
            "EXTRACTION_GEMINI_SCHEMA_FIELD",
        ),
        OpenPoint("the prefix of states", "BATCH_STATE_ and JOB_STATE_ are read alike"),
        OpenPoint("where a state stands", "in the metadata, else at the top"),
        OpenPoint("the order of the list of batches", "every page is read"),
        OpenPoint("how many requests a batch may hold", "50,000"),
        OpenPoint("characters and length of a key", "1 to 64 of A-Z, a-z, 0-9, _ and -"),
        OpenPoint("a header with a request id", "x-request-id, where a gateway sends it"),
        OpenPoint(
            "the state of a batch cancelled after its start", "read by its items in any case"
        ),
    ),
)
