"""What the adapter of Infrai's batch API relies on.

Infrai publishes its contract itself, capability by capability; `infrai_reliance` compares the two.
"""

from extraction_pipeline.providers.contract import Call, Contract, OpenPoint, Source
from extraction_pipeline.providers.infrai_wire import NewJob, ResultItem, WireJob

SUBMIT = Call(
    "make the job",
    "POST",
    "/v1/ai/batch/submit",
    ("requests", "metadata.extraction_job_key", "idempotency_key"),
    headers=("Idempotency-Key",),
    answer=NewJob,
)
STATUS = Call("read a job", "GET", "/v1/ai/batch/status/{job}", answer=WireJob)
RESULTS = Call("fetch results", "GET", "/v1/ai/batch/results/{job}", documented=False)
CANCEL = Call("cancel a job", "POST", "/v1/ai/batch/cancel/{job}", documented=False)
CALLS_BY_CAPABILITY = {
    "ai.batch.submit": SUBMIT,
    "ai.batch.status": STATUS,
    "ai.batch.results": RESULTS,
    "ai.batch.cancel": CANCEL,
}

CONTRACT = Contract(
    api="Infrai batch",
    version="v1",
    credential="Authorization",
    sources=(
        Source("Infrai's pages on the AI runtime, conventions and discovery, read in part", "2026"),
        Source("articles about Infrai, which contradict each other"),
    ),
    calls=(
        *CALLS_BY_CAPABILITY.values(),
        Call("read the contract", "GET", "/v1/discovery/{capability}"),
    ),
    result=ResultItem,
    limit_sources={
        "requests_per_job": "not documented: this project's choice",
        "bytes_per_job": "not documented: this project's choice",
        "result_retention_days": "not documented",
    },
    open_points=(
        OpenPoint("the name of a job's id", "batch_id, id or job_id"),
        OpenPoint("the name of a job's state", "state or status"),
        OpenPoint("the words for states", "the usual ones; an unknown one is no end"),
        OpenPoint("paths of results and cancel", "by analogy with the documented ones"),
        OpenPoint(
            "an id for a request", "in body.metadata, and copied by the model into its answer"
        ),
        OpenPoint("ok: false under status 200", "a failure by its code; unknown codes leave doubt"),
        OpenPoint("how long an Idempotency-Key holds", "23 hours, then nothing is repeated"),
        OpenPoint("a list of jobs", "none: a repeated create call is the search"),
        OpenPoint("the capability that a request names", "ai.chat", "EXTRACTION_INFRAI_CAPABILITY"),
    ),
    is_published=True,
)
