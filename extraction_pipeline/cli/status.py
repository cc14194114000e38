"""`extraction-pipeline status`."""

from dataclasses import asdict

import click
import orjson

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.installation.stack import database
from extraction_pipeline.ledger.states import DocumentStatus
from extraction_pipeline.ledger.summary import document_lines, open_jobs, summarize
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.reports.table import Cell, render_table
from extraction_pipeline.settings import load_settings

UNDONE = [status for status in DocumentStatus if status is not DocumentStatus.PUBLISHED]


@click.command()
@click.option("--collection", "only", metavar="NAME", help="Just this collection.")
@click.option("--documents", is_flag=True, help="List documents that are not published, and why.")
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="Lines a list."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
def status(only: str | None, documents: bool, limit: int, as_json: bool) -> None:
    """Show how far every collection is, what is open at providers, and what needs a person.

    \b
    Example:
      extraction-pipeline status --collection payer_notes --documents
    """
    with database(load_settings()) as settings:
        pipeline = open_pipeline(settings)
        chosen = [pipeline.collection(only)] if only else list(pipeline.collections.values())
        if as_json:
            click.echo(orjson.dumps(_as_json(pipeline, chosen, documents, limit)).decode())
        else:
            _show(pipeline, chosen, documents, limit)


def _show(pipeline: Pipeline, chosen: list[Collection], documents: bool, limit: int) -> None:
    with pipeline.engine.connect() as connection:
        rows: list[list[Cell]] = []
        for collection in chosen:
            version = collection.active
            summary = summarize(connection, collection.name, version.name, version.max_attempts)
            rows.append(
                [
                    collection.name,
                    version.name,
                    summary.documents,
                    summary.provider_jobs,
                    summary.published,
                    summary.invalid,
                    summary.failed,
                    summary.unreadable,
                    summary.waiting,
                    summary.revised_since,
                    summary.vanished,
                    summary.sources_unread,
                ]
            )
        click.echo(
            render_table(
                [
                    "collection",
                    "version",
                    "documents",
                    "jobs",
                    "published",
                    "invalid",
                    "failed",
                    "unreadable",
                    "waiting",
                    "revised since",
                    "vanished",
                    "files not read",
                ],
                rows,
            )
        )
        open_rows: list[list[Cell]] = [
            [job.job_key, job.state, job.provider, job.provider_state or "", job.requests]
            for job in open_jobs(connection, limit)
        ]
        if open_rows:
            click.echo("\nOpen batch jobs")
            click.echo(
                render_table(["job key", "state", "provider", "says", "requests"], open_rows)
            )
        if documents:
            for collection in chosen:
                version = collection.active
                lines = document_lines(
                    connection,
                    collection.name,
                    version.name,
                    version.max_attempts,
                    statuses=UNDONE,
                    limit=limit,
                )
                click.echo(f"\n{collection.name}: not published at {version.name}")
                click.echo(
                    render_table(
                        ["document", "status", "reason", "attempt"],
                        [
                            [line.document_hash, line.status.value, line.reason or "", line.attempt]
                            for line in lines
                        ],
                    )
                )


def _as_json(
    pipeline: Pipeline, chosen: list[Collection], documents: bool, limit: int
) -> dict[str, object]:
    with pipeline.engine.connect() as connection:
        shown: dict[str, object] = {}
        for collection in chosen:
            version = collection.active
            asked = (connection, collection.name, version.name, version.max_attempts)
            counts: dict[str, object] = {"version": version.name, **asdict(summarize(*asked))}
            if documents:
                counts["not_published"] = [
                    asdict(line) for line in document_lines(*asked, statuses=UNDONE, limit=limit)
                ]
            shown[collection.name] = counts
        return {
            "collections": shown,
            "open_jobs": [asdict(job) for job in open_jobs(connection, limit)],
        }
