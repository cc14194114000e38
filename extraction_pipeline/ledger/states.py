"""The states that the database knows, as enums of the database and of Python."""

from enum import StrEnum


class DocumentState(StrEnum):
    """Whether a document could be read to text."""

    READABLE = "readable"
    UNREADABLE = "unreadable"


class JobState(StrEnum):
    """Where a batch job is on its way.

    preparing → prepared → submitting → submitted → ended → collected → published
    with the side ways unresolved, held, rejected and failed.
    """

    PREPARING = "preparing"
    """Members are claimed; the payload is not built yet. No call was made."""
    PREPARED = "prepared"
    """Payload and checksum are committed. No create call is under way."""
    SUBMITTING = "submitting"
    """A create call is about to be made, or was made and its outcome is not written yet."""
    UNRESOLVED = "unresolved"
    """The outcome of a create call is not known; the provider is searched before anything else."""
    HELD = "held"
    """A person must decide."""
    SUBMITTED = "submitted"
    """The provider has it and the job id is known."""
    ENDED = "ended"
    """The provider is done; its results are not fetched yet."""
    COLLECTED = "collected"
    """Result files are stored and their rows landed."""
    PUBLISHED = "published"
    """Every answer was validated; extractions are written."""
    REJECTED = "rejected"
    """The provider refused the create call; no job exists by it."""
    FAILED = "failed"
    """The provider ended the job as a whole without any result."""


class ItemState(StrEnum):
    """Where one document's request is."""

    CLAIMED = "claimed"
    """A member of a job whose answer is not here."""
    ANSWERED = "answered"
    """The raw response is stored and not validated yet."""
    PUBLISHED = "published"
    """The extraction is written."""
    FAILED = "failed"
    """This attempt failed; its kind decides whether there is another."""
    RELEASED = "released"
    """Given back without an attempt being counted."""


class NoAnswer(StrEnum):
    """Why a request that a provider had ended without an answer; it may have to be paid for."""

    RESULTS_LOST = "results_lost"
    """Answers were made and paid for, and could not be got."""
    MISSING = "missing_from_results"
    EXPIRED = "expired"
    GIVEN_UP = "given_up"


class DeliveryOutcome(StrEnum):
    """What came of a webhook's delivery. None is evidence: a job's state is what a poll says."""

    UNKNOWN_JOB = "unknown_job"
    """No job here has this id: not yet, or it is somebody else's. The only one that can change."""
    MADE_DUE = "made_due"
    """The job is read with the next tick."""
    SETTLED = "settled"
    """The job is not with the provider any more: its end was read before."""
    IGNORED = "ignored"
    """It is about no batch job."""
    UNREADABLE = "unreadable"
    """It is signed, and not of a form that is known."""


OPEN_ITEM_STATES = (ItemState.CLAIMED, ItemState.ANSWERED, ItemState.PUBLISHED)
"""States that forbid a further request for the same document and version."""


class DocumentStatus(StrEnum):
    """What a person sees of one document at one extraction version."""

    PUBLISHED = "published"
    INVALID = "invalid"
    UNREADABLE = "unreadable"
    FAILED = "failed"
    WAITING = "waiting"


class AuditEvent(StrEnum):
    """What the audit trail records besides the state columns themselves."""

    JOB_CREATED = "job_created"
    JOB_SUBMITTED = "job_submitted"
    JOB_UNRESOLVED = "job_unresolved"
    JOB_ADOPTED = "job_adopted"
    JOB_PROVEN_ABSENT = "job_proven_absent"
    INPUT_WITHDRAWN = "input_withdrawn"
    JOB_HELD = "job_held"
    JOB_GIVEN_UP = "job_given_up"
    JOB_REJECTED = "job_rejected"
    JOB_ENDED = "job_ended"
    JOB_COLLECTED = "job_collected"
    JOB_PUBLISHED = "job_published"
    PROVIDER_CLEANED = "provider_cleaned"
    DUPLICATE_JOB = "duplicate_job"
    FOREIGN_RESULT = "foreign_result"
    REPEATED_RESULT = "repeated_result"
    CANCEL_ASKED = "cancel_asked"
    DOCUMENTS_RELEASED = "documents_released"
    DOCUMENT_REVISED = "document_revised"
    CEILING_REACHED = "ceiling_reached"
    NIGHT_DONE = "night_done"
