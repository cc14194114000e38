"""Landing: the rows of a stored result file reach their documents, each once.

A row is joined to its document by custom id or document hash, among the job's own members alone
and never by position. Its bytes stay where they are; what its envelope says becomes a row. Where a
job has several rows of one document, an answer counts before a row that says that there is none:
answers land first, of all files, and were paid for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC
from enum import Enum
from typing import BinaryIO

from sqlalchemy import Connection

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.ledger import answers, items, jobs
from extraction_pipeline.ledger.versions import version_by_id
from extraction_pipeline.lifecycle.naming import is_custom_id
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.result_lines import ReadLine, line_chunks, read_lines
from extraction_pipeline.prices.price_list import Price
from extraction_pipeline.providers.base import (
    AnswerOutcome,
    BatchProvider,
)

UNASKED = frozenset(
    {
        AnswerOutcome.ERRORED,
        AnswerOutcome.REJECTED,
        AnswerOutcome.ACCOUNT,
        AnswerOutcome.EXPIRED,
        AnswerOutcome.CANCELLED,
    }
)
"""How requests end for which no model was asked, so that they cost nothing where no usage says
otherwise."""


class Rows(Enum):
    """Which rows of a file are landed in one go through it."""

    ANSWERED = "answered"
    UNASKED = "unasked"


@dataclass
class Landing:
    """What a job's results brought. Of the `landed` rows, `unasked` say that no model answered.
    `missing` members had no row of their own, `foreign` rows no member, `repeated` rows came
    second, and `undecodable` lines are of no form."""

    landed: int = 0
    unasked: int = 0
    missing: int = 0
    foreign: int = 0
    repeated: int = 0
    undecodable: int = 0


def land_file(
    pipeline: Pipeline,
    provider: BatchProvider,
    job: jobs.JobRow,
    file_id: int,
    stored: BinaryIO,
    price: Price | None,
    landing: Landing,
    which: Rows,
) -> int:
    """Land rows of one stored result file, and count in `landing` what came of each.

    Returns how many rows were left for the other way through the file. What cannot be read is
    counted among the answers.
    """
    left = 0
    for lines in line_chunks(stored):
        rows: dict[int, answers.RawRow] = {}
        readable = read_lines(provider, lines)
        wanted = which is Rows.UNASKED
        decoded = [one for one in readable if (one.row.outcome in UNASKED) is wanted]
        left += len(readable) - len(decoded)
        if which is Rows.ANSWERED:
            landing.undecodable += len(lines) - len(readable)
        if not decoded:
            continue
        with pipeline.engine.begin() as connection:
            for answer, member in _with_members(connection, job, decoded):
                if member is None:
                    landing.foreign += 1
                elif member.landed_at == (file_id, answer.row.byte_offset):
                    landing.landed += 1  # by a run that did not come to the end of the job
                    landing.unasked += answer.row.outcome in UNASKED
                elif member.item_id in rows or not member.waits:
                    landing.repeated += 1
                else:
                    rows[member.item_id] = replace(answer.row, item_id=member.item_id)
                    landing.unasked += answer.row.outcome in UNASKED
            landing.landed += answers.land(
                connection,
                file_id,
                job.schema_version,
                list(rows.values()),
                price=price,
                unasked=UNASKED,
            )
            crash_point(CrashPoint.ROWS_NOT_COMMITTED)
        crash_point(CrashPoint.ROWS_LANDED)
    return left


def price_of_answers(pipeline: Pipeline, job: jobs.JobRow) -> Price | None:
    """The price of a job's answers: that of the day, in UTC, on which it was submitted."""
    with pipeline.engine.connect() as connection:
        model = version_by_id(connection, job.version_id).model
    day = (job.submitted_at or job.created_at).astimezone(UTC).date()
    return pipeline.prices.price(job.provider, model, day)


def _with_members(
    connection: Connection, job: jobs.JobRow, decoded: list[ReadLine]
) -> Iterator[tuple[ReadLine, items.Member | None]]:
    """Answers with the member of the job that each names. One that gives two names that do not
    mean the same member names none."""
    custom_ids = [one.custom_id for one in decoded if one.custom_id is not None]
    hashes = [one.document_hash for one in decoded if one.document_hash is not None]
    by_id = items.items_by_custom_id(connection, job.id, list(filter(is_custom_id, custom_ids)))
    by_hash = items.items_by_document_hash(connection, job.id, hashes)
    for answer in decoded:
        found = [by_id.get(answer.custom_id)] if answer.custom_id is not None else []
        if answer.document_hash is not None:
            found.append(by_hash.get(answer.document_hash))
        yield answer, found[0] if all(one == found[0] for one in found) else None
