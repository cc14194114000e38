"""llm-batch-py: `Runner.run` until nothing is in flight, as its README has a scheduler do it."""

import time

import polars as pl
from llm_batch_py import (
    BatchConfig,
    LockConfig,
    OpenAIConfig,
    ResultCacheStoreConfig,
    Runner,
    StructuredOutputJob,
    structured_template,
)

from benchmarks.others.programs.settings import (
    API_KEY,
    INSTRUCTIONS,
    MAX_OUTPUT_TOKENS,
    MODEL,
    RECORD,
    fair,
    tell,
)

LOCK_SECONDS = 5
"""After which the lock of a killed run is taken over. Its default, an hour, would be waited for."""


def main() -> None:
    """Extract every document."""
    settings = fair()
    names, texts = zip(*settings.texts(), strict=True)
    job = StructuredOutputJob(
        name="discharge_summary",
        key_cols=["id"],
        input_df=pl.DataFrame({"id": names, "document": texts}),
        prompt_builder=structured_template(
            system=INSTRUCTIONS, messages="{{ row.document }}", name="prompt", version="v1"
        ),
        output_model=RECORD,
        provider=OpenAIConfig(
            model=MODEL,
            api_key=API_KEY,
            base_url=settings.base_url,
            max_output_tokens=MAX_OUTPUT_TOKENS,
        ),
        result_cache=ResultCacheStoreConfig(root_uri=str(settings.state)),
        lock=LockConfig(ttl_seconds=LOCK_SECONDS),
        batch=BatchConfig(batch_size=settings.batch_size),
    )
    runner = Runner()
    while True:
        rows = runner.run(job, metadata_columns=["llm_batch_py_status"])
        summary = runner.last_summary
        if not (summary.inflight_rows or summary.submitted_rows):
            break
        time.sleep(settings.poll_seconds)
    ends = rows.select("id", "llm_batch_py_status").iter_rows()
    tell(
        settings.output,
        [
            (name, status in ("completed", "cached"))
            for name, status in ends
            if status in ("completed", "cached", "failed")
        ],
    )


if __name__ == "__main__":
    main()
