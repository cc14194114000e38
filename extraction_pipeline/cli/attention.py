"""What `status` says of batch jobs that need a person's eye, and of paused accounts."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

import click
from sqlalchemy import Connection

from extraction_pipeline.cli.program import with_program
from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.ledger.pauses import Pause, pauses
from extraction_pipeline.ledger.stuck import StuckJob
from extraction_pipeline.lifecycle.pausing import accounts, told
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.watching import jobs_to_look_at
from extraction_pipeline.reports.advice import advise_stuck
from extraction_pipeline.reports.table import render_table


def show_attention(
    connection: Connection, pipeline: Pipeline, collections: Iterable[Collection], limit: int
) -> None:
    """Jobs that need a person's eye with what to do, and the pauses that go on."""
    stuck = _stuck(connection, pipeline, collections)
    if stuck:
        click.echo("\nNeed a person's eye")
        click.echo(
            render_table(
                ["job key", "state", "why", "open since"],
                [
                    [
                        one.job_key,
                        one.state.value,
                        one.why,
                        f"{one.created_at:%Y-%m-%d %H:%M %Z}",
                    ]
                    for one in stuck[:limit]
                ],
            )
        )
        click.echo("What to do")
        for reason in sorted({reason for one in stuck for reason in one.reasons}):
            count = sum(reason in one.reasons for one in stuck)
            click.echo(f"  {count:,} {reason.value}. {with_program(advise_stuck(reason))}")
    for pause in _pauses(connection, pipeline):
        click.echo(f"\nPaused: {told(pause)}")


def attention_as_json(
    connection: Connection, pipeline: Pipeline, collections: Iterable[Collection], limit: int
) -> dict[str, object]:
    """The same, for `--json`."""
    return {
        "jobs_to_look_at": [
            {**asdict(one), "advice": [advise_stuck(reason) for reason in one.reasons]}
            for one in _stuck(connection, pipeline, collections)[:limit]
        ],
        "account_pauses": [asdict(one) for one in _pauses(connection, pipeline)],
    }


def _stuck(
    connection: Connection, pipeline: Pipeline, collections: Iterable[Collection]
) -> list[StuckJob]:
    return [
        job
        for collection in collections
        for job in jobs_to_look_at(connection, pipeline, collection)
    ]


def _pauses(connection: Connection, pipeline: Pipeline) -> Sequence[Pause]:
    return pauses(connection, accounts(pipeline))
