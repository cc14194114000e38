"""What `extraction-pipeline run` does."""

from collections.abc import Sequence
from pathlib import Path

import click

from extraction_pipeline.cli.environment import read_settings
from extraction_pipeline.cli.listing import listing_command
from extraction_pipeline.cli.output import counted, say
from extraction_pipeline.cli.program import with_program
from extraction_pipeline.cli.unread import unread_lines
from extraction_pipeline.installation.corpus import choose_corpus
from extraction_pipeline.installation.session import driving
from extraction_pipeline.installation.stack import make_home
from extraction_pipeline.ledger.states import StuckReason
from extraction_pipeline.ledger.stuck import held_jobs
from extraction_pipeline.ledger.summary import Submitted, summarize
from extraction_pipeline.lifecycle.cost_line import cost_line
from extraction_pipeline.orchestration.driving import Target
from extraction_pipeline.reports.advice import advise_stuck
from extraction_pipeline.settings import load_settings


def run_collection(collection: str, version: str | None, corpus: Path | None, *, wait: bool) -> int:
    """Scan a collection, submit, and if asked wait for the results; the exit code."""
    settings = read_settings()
    make_home(settings.home)
    chosen_corpus = choose_corpus(settings.home, corpus, say)
    with driving(load_settings(), say) as driver:
        declared = driver.pipeline.collection(collection)
        chosen = declared.version(version or declared.active_version)
        if chosen_corpus is not None:
            chosen_corpus.require(declared)
            chosen_corpus.remember(settings.home)
        target = Target(declared.name, chosen.name)
        driver.scan([target.collection])
        all_sent = True
        if wait:
            driver.finish([target])
        else:
            all_sent = driver.submit(target)
        sent = driver.submitted()
        with driver.pipeline.engine.connect() as connection:
            summary = summarize(connection, declared.name, chosen.name, chosen.max_attempts)
            held = held_jobs(connection, declared.name, chosen.name)
            costs = cost_line(connection, driver.pipeline, declared, chosen.name)
    stuck = bool(held) or (summary.waiting > 0 if wait else not all_sent)
    for line in sent_lines(sent, target, stuck=stuck):
        click.echo(line)
    click.echo(
        f"{declared.name} at {chosen.name}: {counted(summary.documents, 'document')}, "
        f"{summary.published:,} published, {summary.invalid:,} invalid, {summary.failed:,} failed, "
        f"{summary.unreadable:,} unreadable, {summary.waiting:,} waiting."
    )
    for line in unread_lines({declared.name: summary}):
        click.echo(line)
    if costs is not None:
        click.echo(f"Costs of {costs}")
    if held:
        click.echo(
            f"{counted(len(held), 'batch job')} of it held for a person: {', '.join(held)}. "
            f"{with_program(advise_stuck(StuckReason.HELD))}"
        )
    if stuck:
        listing = listing_command([(declared, chosen.name)])
        click.echo(f"Which, why, and what to do: {listing}")
    return 1 if stuck else 0


def sent_lines(sent: Sequence[Submitted], target: Target, *, stuck: bool) -> list[str]:
    """What went out, one line for each collection and version; the target's is always there."""
    lines = [
        f"{one.collection} at {one.version}: {counted(one.requests, 'request')} sent in "
        f"{counted(one.jobs, 'batch job')}."
        for one in sent
    ]
    if (target.collection, target.version) not in {(one.collection, one.version) for one in sent}:
        what = "nothing could be sent yet" if stuck else "nothing new to send"
        lines.append(f"{target.collection} at {target.version}: {what}.")
    return lines
