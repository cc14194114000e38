"""What `extraction-pipeline demo` does."""

import os
import shlex
import time
from dataclasses import dataclass
from pathlib import Path

import click
import orjson

from extraction_pipeline.cli.environment import read_settings
from extraction_pipeline.cli.output import counted, say
from extraction_pipeline.cli.program import with_program
from extraction_pipeline.cli.unread import unread_lines
from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.installation.corpus import VARIABLE, Corpus, choose_corpus
from extraction_pipeline.installation.session import driving
from extraction_pipeline.installation.stack import make_home
from extraction_pipeline.ledger.published import richest_record
from extraction_pipeline.ledger.summary import CollectionSummary, summarize
from extraction_pipeline.lifecycle.cost_line import cost_line
from extraction_pipeline.lifecycle.recipes import type_of
from extraction_pipeline.orchestration.driving import Driver, Target
from extraction_pipeline.orchestration.outcomes import RunFailed
from extraction_pipeline.reports.record_view import in_schema_order, render_record
from extraction_pipeline.reports.table import render_table
from extraction_pipeline.settings import load_settings

VALUES_SHOWN = 16


@dataclass(frozen=True)
class Outcome:
    """What a demo came to."""

    collections: dict[str, CollectionSummary]
    provider_jobs: int
    submitted_requests: int
    seconds: float

    @property
    def waiting(self) -> int:
        """Documents that are not at an end."""
        return sum(summary.waiting for summary in self.collections.values())

    def as_json(self) -> dict[str, object]:
        """The object that `--json` prints. Jobs and requests are those of this command's runs."""
        return {
            "collections": {
                name: {
                    "documents": summary.documents,
                    "published": summary.published,
                    "invalid": summary.invalid,
                    "unreadable": summary.unreadable,
                    "failed": summary.failed,
                    "waiting": summary.waiting,
                }
                for name, summary in self.collections.items()
            },
            "provider_jobs": self.provider_jobs,
            "submitted_requests": self.submitted_requests,
            "seconds": round(self.seconds, 2),
        }


def demonstrate(given: Path | None, *, as_json: bool, show_record: bool) -> int:
    """Run the pipeline once and show the outcome; the exit code."""
    settings = read_settings()
    make_home(settings.home)
    corpus = choose_corpus(settings.home, given, say)
    os.environ.setdefault("EXTRACTION_POLL_SECONDS", "0.2")
    started = time.monotonic()
    with driving(load_settings(), say) as driver:
        chosen = _collections_with_source(driver, corpus)
        if corpus is not None:
            corpus.remember(settings.home)
        outcome, unread = _drive(driver, chosen, started)
        if as_json:
            click.echo(orjson.dumps(outcome.as_json()).decode())
            for line in unread_lines(outcome.collections):
                say(line)
        else:
            _show(driver, chosen, outcome, with_record=corpus is None or show_record)
            _show_way_on(settings.home, chosen, corpus)
    if unread is not None:
        raise unread
    return 1 if outcome.waiting else 0


def _collections_with_source(driver: Driver, corpus: Corpus | None) -> list[Collection]:
    """The collections, less those for which the corpus has no folder."""
    declared = list(driver.pipeline.collections.values())
    if corpus is None:
        return declared
    lacking = corpus.lacking(declared)
    for collection in lacking:
        say(f"{collection.name}: {corpus.place} has no folder of this name, so it is left out.")
    return [collection for collection in declared if collection not in lacking]


def _drive(
    driver: Driver, chosen: list[Collection], started: float
) -> tuple[Outcome, RunFailed | None]:
    """Everything once. A source that cannot be read keeps nothing else back; it is told at the
    end."""
    unread: RunFailed | None = None
    try:
        driver.scan([collection.name for collection in chosen])
    except RunFailed as failure:
        unread = failure
    driver.finish([Target(collection.name, collection.active_version) for collection in chosen])
    with driver.pipeline.engine.connect() as connection:
        summaries = {
            collection.name: summarize(
                connection,
                collection.name,
                collection.active_version,
                collection.active.max_attempts,
            )
            for collection in chosen
        }
    sent = driver.submitted()
    outcome = Outcome(
        summaries,
        sum(one.jobs for one in sent),
        sum(one.requests for one in sent),
        time.monotonic() - started,
    )
    return outcome, unread


def _show(driver: Driver, chosen: list[Collection], outcome: Outcome, *, with_record: bool) -> None:
    click.echo(
        render_table(
            [
                "collection",
                "documents",
                "provider jobs",
                "published",
                "invalid",
                "failed",
                "unreadable",
                "waiting",
            ],
            [
                [
                    name,
                    summary.documents,
                    summary.provider_jobs,
                    summary.published,
                    summary.invalid,
                    summary.failed,
                    summary.unreadable,
                    summary.waiting,
                ]
                for name, summary in outcome.collections.items()
            ],
        )
    )
    if outcome.submitted_requests:
        click.echo(
            f"\n{counted(outcome.submitted_requests, 'request')} went out in "
            f"{counted(outcome.provider_jobs, 'batch job')}; {outcome.seconds:.0f} s. "
            "Run it again: nothing will be submitted."
        )
    else:
        click.echo(
            "\nNothing was submitted: every document was submitted before, or cannot be. "
            f"{outcome.seconds:.0f} s."
        )
    for line in unread_lines(outcome.collections):
        click.echo(line)
    with driver.pipeline.engine.connect() as connection:
        costs = [cost_line(connection, driver.pipeline, one, one.active_version) for one in chosen]
    for line in [f"Costs of {line}" for line in costs if line is not None]:
        click.echo(line)
    if with_record:
        _show_record(driver, chosen)


def _show_way_on(home: Path, chosen: list[Collection], corpus: Corpus | None) -> None:
    click.echo(f"\nState: {home} (delete the folder to begin again)")
    if corpus is not None:
        kept = " (kept in mind for this state)" if corpus.given or corpus.remembered else ""
        click.echo(f"Documents: {VARIABLE}={shlex.quote(corpus.place)}{kept}")
    click.echo(
        with_program(
            "Next:  extraction-pipeline dev                    the Dagster UI over the same state\n"
            "       extraction-pipeline status --documents     what is not published, and why\n"
            f"       extraction-pipeline export --collection {chosen[0].name} --output records.csv"
        )
    )


def _show_record(driver: Driver, chosen: list[Collection]) -> None:
    with driver.pipeline.engine.connect() as connection:
        found = richest_record(connection, chosen[0].name, chosen[0].active_version)
    if found is None:
        return
    shown = found.path if chosen[0].show_paths else f"document {found.document_hash[:12]}…"
    click.echo(f"\nOne record of {found.collection}, beside the words of its source ({shown}):\n")
    click.echo(render_record(in_schema_order(type_of(chosen[0]), found.body), VALUES_SHOWN))
    click.echo(
        f"\n  {found.evidence_found} of {found.evidence_total} quotes stand in the document; "
        f"job {found.job_id}, request {found.request_id}, raw response {found.raw_hash[:12]}…"
    )
