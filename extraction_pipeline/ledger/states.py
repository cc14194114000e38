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
    SUPERSEDED = "superseded"
    """Another answer about the document was published first; this one, if it comes, is kept and
    never published."""


class Trouble(StrEnum):
    """What may go wrong with a job again and again. Each is counted by itself, because each has a
    patience of its own that decides something else."""

    UNREACHABLE = "unreachable"
    """No usable answer to a call: nothing is known by it."""
    NOT_FOUND = "not_found"
    """The provider says that it does not know the job or its results."""
    NOT_ENDED = "not_ended"
    """A job that had ended is read as not ended."""
    NO_RESULT_FILES = "no_result_files"
    """It ended, and its result files are not there yet."""
    CUT_LINE = "cut_line"
    """The last line of a result file is cut."""
    FOREIGN_RESULTS = "foreign_results"
    """A result file holds nothing of the job's own."""
    SHORT_RESULTS = "short_results"
    """A result file has fewer rows than the provider counts."""


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


class StuckReason(StrEnum):
    """Why a batch job needs a person's eye."""

    RESULTS_EXPIRE = "results_expire"
    """Its answers are not fetched, and the provider will soon delete them."""
    EXISTS_TWICE = "exists_twice"
    """Its provider has a second batch of it, which costs and which nobody has settled."""
    HELD = "held"
    ID_OF_ANOTHER = "job_id_of_another"
    """It is held, because the provider answered with the id of another job of ours."""
    UNRESOLVED = "unresolved"
    OVER_BUDGET = "over_waiting_budget"
    """Open for longer than its collection allows."""
    NOT_MOVING = "not_moving"
    """The provider has said the same of it for half of that time."""
    CALLS_FAIL = "calls_fail"
    """Calls about it have failed for an hour, or ten times in a row."""
    NOT_LOOKED_AT = "not_looked_at"
    """It has been due for an hour, and no process has looked at it."""
    ACCOUNT_PAUSED = "account_paused"
    """Its account has been told to wait, again and again, for more than an hour."""


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
    LATE_RESULTS = "late_results"
    JOB_REJECTED = "job_rejected"
    JOB_ENDED = "job_ended"
    JOB_COLLECTED = "job_collected"
    JOB_PUBLISHED = "job_published"
    PROVIDER_CLEANED = "provider_cleaned"
    DUPLICATE_JOB = "duplicate_job"
    DUPLICATE_SETTLED = "duplicate_settled"
    FOREIGN_RESULT = "foreign_result"
    REPEATED_RESULT = "repeated_result"
    CANCEL_ASKED = "cancel_asked"
    DOCUMENTS_RELEASED = "documents_released"
    DOCUMENT_REVISED = "document_revised"
    CEILING_REACHED = "ceiling_reached"
    NIGHT_DONE = "night_done"
