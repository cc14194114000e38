"""Submitting: claim the documents that need a request, and send the jobs made of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from extraction_pipeline.collections.collection import Collection, ExtractionVersion
from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.errors import StoreError
from extraction_pipeline.ledger import claims, jobs
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.costs import price_earlier
from extraction_pipeline.ledger.counted import count_anew
from extraction_pipeline.ledger.states import AuditEvent
from extraction_pipeline.lifecycle.ceilings import refusal, require_price, today
from extraction_pipeline.lifecycle.naming import new_job_key
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.queueing import TOO_LARGE, bytes_per_job
from extraction_pipeline.lifecycle.recipes import build_request, version_in_use
from extraction_pipeline.lifecycle.resolution import resolve
from extraction_pipeline.prices.estimate import estimate
from extraction_pipeline.providers.base import FailureKind, ProviderLimits

BUSY_PATIENCE_SECONDS = 300.0
"""How long a run waits for another one that is sending the job of its documents right now, and how
long the sensor leaves jobs to a run that brings none of its own on."""


@dataclass
class SubmissionReport:
    """What one run submitted. `causes` says in one line each why a job could not be sent yet,
    `stopped` that the account or the address is at fault, so that none can be. `split` counts jobs
    that were refused for their size and made again as smaller ones, `refused` documents that wait,
    without an attempt used up, because a ceiling would be passed."""

    documents: int = 0
    jobs: list[int] = field(default_factory=list)
    submitted: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    too_large: int = 0
    split: int = 0
    stopped: bool = False
    refused: int = 0
    causes: list[str] = field(default_factory=list)


def submit_documents(
    pipeline: Pipeline,
    collection: Collection,
    version: ExtractionVersion,
    *,
    hashes: Sequence[str] | None = None,
    actor: str,
    before_due: bool = False,
) -> SubmissionReport:
    """Make and send batch jobs for all documents that need one, or those of `hashes` that do.

    Documents that have an extraction, an open request or no attempt left are passed over, however
    often this is called and from however many processes. A job about them that another process is
    sending is waited for, and one that a dead process left behind is carried on; one that the
    provider did not take is tried again when it is due, or now where a person asks (`before_due`).
    Raises `RecipeChanged`, and `CollectionError` for a ceiling without a price.
    """
    report = SubmissionReport()
    while _submit(pipeline, collection, version, hashes, actor, report, before_due=before_due):
        before_due = False  # each time around, jobs are half as large, and the rest was tried
    return report


def _submit(
    pipeline: Pipeline,
    collection: Collection,
    version: ExtractionVersion,
    hashes: Sequence[str] | None,
    actor: str,
    report: SubmissionReport,
    *,
    before_due: bool,
) -> bool:
    """One round; whether a job was refused for its size, and its documents need smaller ones."""
    made = [job.id for job in claim(pipeline, collection, version, hashes, actor, report)]
    with pipeline.engine.connect() as connection:
        left = jobs.left_behind(
            connection, collection.name, version.name, hashes, before_due=before_due
        )
    steps = [
        *((job, BUSY_PATIENCE_SECONDS) for job in left if job not in made),
        *((job, 0.0) for job in made),
    ]
    split = False
    for position, (job, patience) in enumerate(steps):
        try:
            outcome = resolve(pipeline, job, actor, patience=patience)
        except (StoreError, jobs.StateMoved) as error:
            # This job's own trouble: the others must not wait for it.
            report.waiting.append(job)
            report.causes.append(str(error))
            continue
        if outcome.given_back:
            # Counted again with the smaller jobs.
            report.split += 1
            report.documents -= outcome.given_back if job in made else 0
            split = True
            continue
        (report.submitted if outcome.submitted else report.waiting).append(job)
        if outcome.cause:
            report.causes.append(outcome.cause)
        if outcome.stop or outcome.no_room or outcome.paused:
            # The account cannot pay or has to wait, the key is bad or the queue is full: the others
            # stay as they are.
            report.stopped = outcome.stop
            report.waiting.extend(other for other, _ in steps[position + 1 :])
            return False
    return split


def claim(
    pipeline: Pipeline,
    collection: Collection,
    version: ExtractionVersion,
    hashes: Sequence[str] | None,
    actor: str,
    report: SubmissionReport,
) -> list[claims.ClaimedJob]:
    """Claim the documents that need a request, in as few jobs as the provider's limits allow.

    None is claimed where the version's ceiling would be passed.
    """
    require_price(collection, version, pipeline.prices)
    provider = pipeline.provider(version.provider)
    with pipeline.engine.begin() as connection:
        row, recipe = version_in_use(connection, collection, version)
    with pipeline.engine.begin() as connection:
        price_earlier(connection, row.id, pipeline.prices.prices(row.provider, row.model))
    empty_line = len(provider.encode_request(build_request(recipe, "", "", "0" * 64, "").request))
    with pipeline.engine.begin() as connection:
        found = claims.claimable_documents(
            connection,
            collection.name,
            row.id,
            max_attempts=version.max_attempts,
            hashes=hashes,
        )
        groups, too_large = pack(
            found, empty_line, provider.limits, bytes_per_job(connection, provider)
        )
        claims.refuse_documents(
            connection,
            row.id,
            [document.document_id for document in too_large],
            FailureKind.REJECTED.value,
            TOO_LARGE,
        )
        report.too_large += len(too_large)
        price = pipeline.prices.price(row.provider, row.model, today())
        wanted = [
            claims.NewJob(
                new_job_key(collection.name, version.name),
                tuple(document.document_id for document in group),
                estimate(
                    sum(line_bytes(document, empty_line) for document in group),
                    len(group),
                    version.max_output_tokens,
                    price,
                ),
            )
            for group in groups
        ]
        refused = refusal(
            connection, collection, version, wanted, timezone=pipeline.settings.timezone
        )
        if refused is not None:
            report.refused = sum(len(job.document_ids) for job in wanted)
            report.causes.append(refused)
            note(
                connection,
                AuditEvent.CEILING_REACHED,
                actor,
                collection=collection.name,
                details={"version": version.name, "requests": report.refused},
            )
            return []
        made = claims.create_jobs(
            connection, row.id, provider=provider.name, base_url=provider.base_url, jobs=wanted
        )
        for job in made:
            note(
                connection,
                AuditEvent.JOB_CREATED,
                actor,
                collection=collection.name,
                job=job.id,
                details={"job_key": job.job_key, "requests": job.request_count},
            )
        crash_point(CrashPoint.CLAIMED_NOT_COMMITTED)
    crash_point(CrashPoint.INTENT_COMMITTED)
    count_anew(pipeline.engine)
    report.jobs.extend(job.id for job in made)
    report.documents += sum(job.request_count for job in made)
    return made


def pack(
    documents: Iterable[claims.Claimable],
    empty_line: int,
    limits: ProviderLimits,
    wished_bytes: int | None = None,
) -> tuple[list[list[claims.Claimable]], list[claims.Claimable]]:
    """Split documents, in order, into groups within the limits; and those too large for any job.

    A group is over `wished_bytes` only where it is a single document.
    """
    full = limits.bytes_per_job if wished_bytes is None else wished_bytes
    groups: list[list[claims.Claimable]] = []
    too_large: list[claims.Claimable] = []
    room = 0
    for document in documents:
        size = line_bytes(document, empty_line)
        if size > limits.bytes_per_job:
            too_large.append(document)
            continue
        if size > room or len(groups[-1]) >= limits.requests_per_job:
            groups.append([])
            room = full
        groups[-1].append(document)
        room -= size
    return groups, too_large


def line_bytes(document: claims.Claimable, empty_line: int) -> int:
    """The size of a request: a line without document, the document as a JSON string, a newline."""
    return empty_line + document.payload_bytes + 1
