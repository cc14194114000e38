"""Airflow: one `LLMBatchOperator` (as `@task.llm_batch`) a job of documents, in one run of a DAG.

Run as a program, it takes that run through `DAG.test`: all of it in one process, without scheduler
and workers, which is the least that Airflow can cost. Started again it is the same run, so that the
operator finds what it had begun.
"""

import json
from datetime import UTC, datetime
from itertools import islice

from airflow.providers.common.ai.operators import llm_batch
from airflow.sdk import dag, task

from benchmarks.others.programs.settings import (
    INSTRUCTIONS,
    MAX_OUTPUT_TOKENS,
    MODEL,
    RECORD,
    Fair,
    fair,
    tell,
)

DAY = datetime(2026, 1, 2, tzinfo=UTC)
CONNECTION = "batch_server"

llm_batch._MIN_POLL_INTERVAL = 1
"""As shipped it refuses to ask more often than every 30 seconds; all ask equally often here."""


@dag(schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC))
def extraction() -> None:
    """A task for each job. The prompts are read when the task runs."""
    settings = fair()
    count = sum(1 for _ in settings.documents.iterdir())
    for number, begin in enumerate(range(0, count, settings.batch_size)):

        @task.llm_batch(
            task_id=f"extract_{number}",
            llm_conn_id=CONNECTION,
            model_id=f"openai:{MODEL}",
            result_path=(settings.state / str(number)).as_uri(),
            system_prompt=INSTRUCTIONS,
            output_type=RECORD,
            max_tokens=MAX_OUTPUT_TOKENS,
            poll_interval=settings.poll_seconds,
        )
        def prompts(first: int) -> list[str]:
            chosen = islice(settings.texts(), first, first + settings.batch_size)
            return [text for _, text in chosen]

        prompts(begin)


def ends(settings: Fair) -> list[tuple[str, bool]]:
    """What the result files of all tasks say."""
    names = [name for name, _ in settings.texts()]
    told = []
    for results in settings.state.glob("*/*.jsonl"):
        first = int(results.parent.name) * settings.batch_size
        for line in results.read_text().splitlines():
            row = json.loads(line)
            told.append((names[first + row["index"]], row["status"] == "success"))
    return told


extraction_dag = extraction()

if __name__ == "__main__":
    run = extraction_dag.test(run_after=DAY, logical_date=DAY)
    tell(fair().output, ends(fair()))
    if run.state != "success":
        raise SystemExit(f"The run ended as {run.state}.")
