"""What `extraction-pipeline status` does."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import click
import orjson
from sqlalchemy import Connection

from extraction_pipeline.cli.attention import attention_as_json, show_attention
from extraction_pipeline.cli.environment import read_settings
from extraction_pipeline.cli.listing import listing_command
from extraction_pipeline.cli.program import with_program
from extraction_pipeline.collections.collection import Collection, Identity
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.installation.stack import database
from extraction_pipeline.ledger import deliveries
from extraction_pipeline.ledger.audit import ceiling_was_reached
from extraction_pipeline.ledger.costs import version_costs
from extraction_pipeline.ledger.states import DocumentStatus, JobState
from extraction_pipeline.ledger.summary import (
    CollectionSummary,
    DocumentLine,
    Reason,
    document_lines,
    open_jobs,
    reasons,
    summarize,
    unread_files,
    unreadable_revisions,
)
from extraction_pipeline.ledger.versions import used_versions
from extraction_pipeline.lifecycle import ceilings
from extraction_pipeline.lifecycle.cost_line import cost_line
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.recipes import type_of
from extraction_pipeline.prices.price_list import exact
from extraction_pipeline.reports.advice import (
    CEILING,
    advise,
    advise_unreadable,
    held_by_ceiling,
    which_file,
)
from extraction_pipeline.reports.table import Cell, render_table
from extraction_pipeline.reports.webhooks import webhook_lines

UNDONE = [status for status in DocumentStatus if status is not DocumentStatus.PUBLISHED]
COUNTS = {
    "documents": "documents",
    "provider_jobs": "jobs",
    "published": "published",
    "invalid": "invalid",
    "failed": "failed",
    "unreadable": "unreadable",
    "waiting": "waiting",
    "revised_since": "revised since",
    "vanished": "vanished",
    "sources_unread": "files not read",
}


@dataclass(frozen=True)
class Place:
    """A collection at one of its versions, as they are shown. `max_attempts` is 1 for a version
    that the YAML no longer declares: nothing more is asked at it."""

    collection: Collection
    version: str
    max_attempts: int
    declared: bool
    named: bool
    summary: CollectionSummary
    ceiling: str | None
    """The ceiling that keeps its documents from being sent, in words."""

    @property
    def asked(self) -> tuple[str, str, int]:
        """What the questions to the ledger take."""
        return self.collection.name, self.version, self.max_attempts

    def lines(self, connection: Connection, limit: int) -> list[DocumentLine]:
        """Documents that are not published, with what they wait for."""
        found = document_lines(
            connection,
            *self.asked,
            statuses=UNDONE,
            limit=limit,
            with_paths=self.collection.show_paths,
        )
        return [
            replace(one, reason=CEILING) if self._held(one.status, one.job_state) else one
            for one in found
        ]

    def reasons(self, connection: Connection) -> list[Reason]:
        """Why documents are not published, the most frequent first."""
        return [
            replace(one, reason=CEILING) if self._held(one.status, one.job_state) else one
            for one in reasons(connection, *self.asked, UNDONE)
        ]

    def _held(self, status: DocumentStatus, job_state: JobState | None) -> bool:
        return self.ceiling is not None and held_by_ceiling(status, job_state)

    @property
    def listed(self) -> bool:
        """Whether `--documents` lists what is not published here."""
        return self.named or self.version == self.collection.active_version

    @property
    def shown(self) -> str:
        """The version's name, with what is special about it."""
        if not self.declared:
            return f"{self.version} (not in the YAML)"
        return (
            f"{self.version}*" if self.version == self.collection.active_version else self.version
        )


def show_status(
    only: str | None, version: str | None, *, documents: bool, limit: int, as_json: bool
) -> None:
    """Show the standing of one collection or of all, at one version or at all used ones."""
    given = read_settings()
    # Who only reads brings no tables of a server to another version.
    with database(given, create=given.database_url is None) as settings:
        pipeline = open_pipeline(settings)
        chosen = [pipeline.collection(only)] if only else list(pipeline.collections.values())
        for collection in chosen:
            type_of(collection)  # a slip in the YAML is told here as `run` tells it
        with pipeline.engine.connect() as connection:
            places = _places(connection, chosen, version)
            if as_json:
                told = _as_json(connection, pipeline, places, documents, limit)
                click.echo(orjson.dumps(told).decode())
            else:
                _show(connection, pipeline, places, documents, limit)
                _show_database(pipeline)


def _places(connection: Connection, chosen: Sequence[Collection], only: str | None) -> list[Place]:
    """The collections at their versions, the active one of each first."""
    places = []
    for collection in chosen:
        declared = {version.name: version for version in collection.extraction_versions}
        used = used_versions(connection, collection.name)
        names = dict.fromkeys([collection.active_version, *used])
        if only is not None:
            names = dict.fromkeys(name for name in [*declared, *used] if name == only)
        for name in names:
            attempts = declared[name].max_attempts if name in declared else 1
            ceiling = declared[name].ceiling if name in declared else None
            if ceiling and not ceiling_was_reached(connection, collection.name, name):
                ceiling = None
            summary = summarize(connection, collection.name, name, attempts)
            places.append(
                Place(
                    collection,
                    name,
                    attempts,
                    name in declared,
                    only is not None,
                    summary,
                    ceilings.shown(ceiling) if ceiling else None,
                )
            )
    if not places:
        raise ConfigurationError(
            f"There is no extraction version {only!r} of {' or '.join(c.name for c in chosen)}.",
            remedy="`extraction-pipeline status` shows those that were used.",
        )
    return places


def _show(
    connection: Connection,
    pipeline: Pipeline,
    places: Sequence[Place],
    documents: bool,
    limit: int,
) -> None:
    rows: list[list[Cell]] = [
        [place.collection.name, place.shown, *(getattr(place.summary, name) for name in COUNTS)]
        for place in places
    ]
    click.echo(render_table(["collection", "version", *COUNTS.values()], rows))
    click.echo("* the active version: the one that the night extracts at")
    costs = [cost_line(connection, pipeline, one.collection, one.version) for one in places]
    if any(costs):
        click.echo("\nCosts")
        click.echo("\n".join(f"  {line}" for line in costs if line is not None))
    open_rows: list[list[Cell]] = [
        [
            job.job_key,
            job.state,
            job.provider,
            job.provider_state or "",
            job.requests,
            job.costs_at_most or "",
        ]
        for job in open_jobs(connection, limit)
    ]
    if open_rows:
        header = ["job key", "state", "provider", "says", "requests", "costs at most"]
        click.echo("\nOpen batch jobs")
        click.echo(render_table(header, open_rows))
    collections = {place.collection.name: place.collection for place in places}.values()
    show_attention(connection, pipeline, collections, limit)
    if webhooks := webhook_lines(deliveries.counts(connection)):
        click.echo("\nWebhooks of the last weeks")
        click.echo("\n".join(f"  {line}" for line in webhooks))
    if documents:
        for place in places:
            if place.listed:
                _show_documents(connection, place, limit)
                _show_unreadable_revisions(connection, place, limit)
        for collection in collections:
            _show_unread(connection, collection, limit)
    elif undone := [(one.collection, one.version) for one in places if _undone(one.summary)]:
        command = listing_command(undone)
        click.echo(f"\nWhich are not published, why, and what to do: {command}")


def _undone(summary: CollectionSummary) -> int:
    unpublished = summary.documents - summary.published
    return unpublished + summary.unreadable_since + summary.sources_unread


def _show_documents(connection: Connection, place: Place, limit: int) -> None:
    paths = place.collection.show_paths
    lines = place.lines(connection, limit)
    if not lines:
        return
    undone = place.summary.documents - place.summary.published
    more = f", the first {len(lines):,}" if len(lines) < undone else ""
    click.echo(f"\n{place.collection.name}: {undone:,} not published at {place.version}{more}")
    click.echo(
        render_table(
            ["document", "status", "reason", "attempt", *(["path"] if paths else [])],
            [
                [
                    line.document_hash,
                    line.status.value,
                    line.reason or (line.job_state.value if line.job_state else ""),
                    line.attempt,
                    *([line.path or ""] if paths else []),
                ]
                for line in lines
            ],
        )
    )
    click.echo("What to do")
    for reason in place.reasons(connection):
        why = reason.reason or (reason.job_state.value if reason.job_state else "")
        named = f"{reason.status.value}: {why}" if why else reason.status.value
        click.echo(f"  {reason.documents:,} {named}. {with_program(advise(reason, place.ceiling))}")
    by_content = place.collection.identity is Identity.CONTENT
    which = which_file(show_paths=paths, by_content=by_content)
    if which is not None:
        click.echo(f"  {which}")


def _show_unreadable_revisions(connection: Connection, place: Place, limit: int) -> None:
    paths = place.collection.show_paths
    found = unreadable_revisions(connection, *place.asked, limit, with_paths=paths)
    if found:
        click.echo(
            f"\n{place.collection.name}: {place.summary.unreadable_since:,} changed since they "
            f"were published at {place.version}, and cannot be read any more; their records stay"
        )
        click.echo(
            render_table(
                ["document", "reason", "what to do", *(["path"] if paths else [])],
                [
                    [
                        one.document_hash,
                        one.reason,
                        advise_unreadable(one.reason),
                        *([one.path or ""] if paths else []),
                    ]
                    for one in found
                ],
            )
        )


def _show_unread(connection: Connection, collection: Collection, limit: int) -> None:
    files = unread_files(connection, collection.name, limit, with_paths=collection.show_paths)
    if files:
        click.echo(f"\n{collection.name}: files that could not be read; the next scan tries again")
        for file in files:
            click.echo(f"  {file.problem} {file.path or ''}".rstrip())
        which = which_file(show_paths=collection.show_paths, by_content=False)
        if which is not None:
            click.echo(f"  {which}")


def _show_database(pipeline: Pipeline) -> None:
    # Without the password: psql asks for it, or reads PGPASSWORD or ~/.pgpass.
    url = pipeline.engine.url._replace(drivername="postgresql", password=None)
    address = url.render_as_string(hide_password=False)
    click.echo(f'\nDatabase: psql "{address}"  (tables in the schema extraction)')


def _as_json(
    connection: Connection,
    pipeline: Pipeline,
    places: Sequence[Place],
    documents: bool,
    limit: int,
) -> dict[str, object]:
    shown: dict[str, dict[str, object]] = {}
    others: dict[str, dict[str, object]] = {}
    for place in places:
        counts: dict[str, object] = {
            "version": place.version,
            **asdict(place.summary),
            "costs": _costs(connection, pipeline, place),
        }
        if documents and place.listed:
            counts["not_published"] = [asdict(line) for line in place.lines(connection, limit)]
            counts["unreadable_revisions"] = [
                {**asdict(one), "advice": advise_unreadable(one.reason)}
                for one in unreadable_revisions(
                    connection, *place.asked, limit, with_paths=place.collection.show_paths
                )
            ]
            counts["advice"] = [
                {**asdict(reason), "advice": advise(reason, place.ceiling)}
                for reason in place.reasons(connection)
            ]
        name = place.collection.name
        if name in shown:
            others[name][place.version] = counts
            continue
        others[name] = {}
        shown[name] = {**counts, "other_versions": others[name]}
        if documents:
            files = unread_files(connection, name, limit, with_paths=place.collection.show_paths)
            shown[name]["files_not_read"] = [asdict(file) for file in files]
    return {
        "collections": shown,
        "open_jobs": [asdict(job) for job in open_jobs(connection, limit)],
        **attention_as_json(
            connection,
            pipeline,
            {place.collection.name: place.collection for place in places}.values(),
            limit,
        ),
        "webhooks": {one.value: n for one, n in deliveries.counts(connection).items()},
    }


def _costs(connection: Connection, pipeline: Pipeline, place: Place) -> dict[str, object] | None:
    """Money as text, which keeps it exact; `None` without a price list."""
    currency = pipeline.prices.currency
    if currency is None:
        return None
    costs = version_costs(connection, place.collection.name, place.version, currency)
    return {
        "currency": currency,
        "spent": exact(costs.spent),
        "under_way_at_most": exact(costs.under_way),
        "unanswered_at_most": exact(costs.unanswered),
        "unpriced": costs.unpriced,
    }
