"""What a person can do about documents that are not published: one line for each reason. Pure."""

from extraction_pipeline.documents.readable import UnreadableReason
from extraction_pipeline.ledger.states import DocumentStatus, JobState, NoAnswer, StuckReason
from extraction_pipeline.ledger.summary import Reason
from extraction_pipeline.providers.base import AnswerOutcome

_UNREADABLE: dict[str, str] = {
    UnreadableReason.EMPTY: "The file has no bytes: fetch it again from where it came.",
    UnreadableReason.BLANK: "The file holds white space only: fetch it again from where it came.",
    UnreadableReason.NO_TEXT: "A scan or pictures: run OCR on it and put the result in its place.",
    UnreadableReason.PASSWORD_PROTECTED: "Save it without its password.",
    UnreadableReason.TRUNCATED_OR_CORRUPT: "The file is cut or damaged: fetch it again.",
    UnreadableReason.UNSUPPORTED_KIND: "Save it as PDF, DOCX or text, or exclude it in the YAML.",
    UnreadableReason.UNDECODABLE: "Save it as UTF-8.",
    UnreadableReason.REFERENCE_ONLY: "Put the file that it names into the source.",
    UnreadableReason.TOO_LARGE: "Split it into several documents.",
    UnreadableReason.TOOK_TOO_LONG: "Save it in a simpler form, such as text, or split it.",
}

_NEW_VERSION = "in a new extraction version"
_MORE_ATTEMPTS = "for another attempt raise max_attempts in the YAML, and run again."

_FAILED: dict[str, str] = {
    AnswerOutcome.TRUNCATED: f"The answer was cut: raise max_output_tokens {_NEW_VERSION}.",
    AnswerOutcome.REFUSED: f"The model declined: try another model or prompt {_NEW_VERSION}.",
    AnswerOutcome.BLOCKED: "The provider's filter stopped it: try another model or prompt "
    f"{_NEW_VERSION}.",
    AnswerOutcome.EMPTY: f"The model said nothing: {_MORE_ATTEMPTS}",
    AnswerOutcome.ERRORED: f"The provider failed on it: {_MORE_ATTEMPTS}",
    AnswerOutcome.EXPIRED: f"The provider ran out of time: {_MORE_ATTEMPTS}",
    NoAnswer.RESULTS_LOST: "It may have been answered and paid for, and the answer did not "
    "come: look for it at the provider; the job release_documents asks again, at its cost.",
    NoAnswer.MISSING: f"The provider gave no answer for it: {_MORE_ATTEMPTS}",
    "too_large_for_provider": "It is larger than a job of this provider may be: split it.",
}

_WAITING_FOR_JOB: dict[JobState, str] = {
    JobState.PREPARING: "About to be sent: `run` or the sensor of `dev` carries it on.",
    JobState.PREPARED: "Not with the provider yet: the sensor of `dev`, or `run --wait`, sends it.",
    JobState.SUBMITTING: "Being sent right now, or searched for if that process died.",
    JobState.UNRESOLVED: "Whether the provider has it is not known: the sensor searches for it.",
    JobState.HELD: "A person must decide: look for the job at the provider, then run the job "
    "resolve_submission, adopt_batch or give_up_batch in the UI with its key.",
    JobState.COLLECTED: "Its answer is here: the sensor of `dev`, or `run --wait`, publishes it; "
    "where that fails, the run collect_batch says why.",
}
_ANSWER_TO_COME = "The provider has it: the sensor of `dev`, or `run --wait`, brings the answer."

_WAITING_AFTER: dict[str, str] = {
    AnswerOutcome.ACCOUNT: "The provider refused the account: check its key and credit, then run "
    "again.",
    AnswerOutcome.CANCELLED: "Its job was cancelled: it is sent again by the next `run` or night.",
    "too_large_for_provider": "Its job was too large: the next `run` or night makes smaller ones.",
    "text_not_stored": "Its text is not in the store: restore that from a backup, then run again.",
}


_STUCK: dict[StuckReason, str] = {
    StuckReason.RESULTS_EXPIRE: "The provider deletes its answers soon: collect it now, by the "
    "sensor of `dev` or the job collect_batch, or fetch them there by hand.",
    StuckReason.EXISTS_TWICE: "The provider has a second batch of it, which costs and is never "
    "collected: run the job settle_second_batch with its key and that batch's id, which cancels it "
    "there and keeps your reason.",
    StuckReason.HELD: "A person must decide: look for it at the provider, then run the job "
    "resolve_submission, adopt_batch or give_up_batch with its key.",
    StuckReason.ID_OF_ANOTHER: "The provider gave it the id of another job, so whether it has it "
    "is not known: look for it there, then run the job adopt_batch, resolve_submission or "
    "give_up_batch with its key.",
    StuckReason.UNRESOLVED: "Whether the provider has it is not known: the sensor searches for it, "
    "and nothing is sent again before that is known.",
    StuckReason.OVER_BUDGET: "Open for longer than the waiting_budget in the YAML: look at the "
    "provider; it is not sent again by itself. The job cancel_batch stops it, give_up_batch lets "
    "its documents be asked about again.",
    StuckReason.NOT_MOVING: "The provider has said the same of it for half of the waiting_budget: "
    "look there; the job cancel_batch stops it, give_up_batch lets its documents be asked about "
    "again.",
    StuckReason.CALLS_FAIL: "Calls about it keep failing: look at the sensor's log for the cause. "
    "Where it can never be reached again, the job give_up_batch lets its documents be asked about "
    "again.",
    StuckReason.NOT_LOOKED_AT: "No process has looked at it for an hour: start `dev` or the "
    "daemon, and switch on the sensor batch_status. Where both is so, one has waited for its "
    "provider all this time, as for a shared folder that is away: mend that, and start it anew.",
    StuckReason.ACCOUNT_PAUSED: "The provider tells this account to wait, again and again: check "
    "its limits there, or wait.",
}


def advise_stuck(reason: StuckReason) -> str:
    """What to do about a batch job that needs a person's eye for this reason."""
    return _STUCK[reason]


def advise_unreadable(reason: str) -> str:
    """What to do about a document that has no text for this reason."""
    return _UNREADABLE.get(reason, "Exclude it in the YAML, or replace the file.")


WHICH_FILE = "Which files: `show_paths: true` in the YAML lists their paths"
WHICH_FILE_BY_CONTENT = "; or compare with `sha256sum`, which a document's hash is of its file"

CEILING = "ceiling_reached"
"""The reason of documents that would be sent, did the ceiling of their version not forbid it."""


def held_by_ceiling(status: DocumentStatus, job_state: JobState | None) -> bool:
    """Whether a ceiling that was reached is what a document waits for: it has no open request."""
    return status is DocumentStatus.WAITING and job_state is None


def which_file(*, show_paths: bool, by_content: bool) -> str | None:
    """How to find the files of documents that are listed, where their paths are not shown."""
    if show_paths:
        return None
    return f"{WHICH_FILE}{WHICH_FILE_BY_CONTENT if by_content else ''}."


def advise(reason: Reason, ceiling: str | None = None) -> str:
    """What to do about documents that are where they are for this reason. `ceiling` is what their
    version may cost, such as `5.0000 EUR a day`."""
    said = reason.reason or ""
    match reason.status:
        case DocumentStatus.PUBLISHED:
            return "Nothing."
        case DocumentStatus.UNREADABLE:
            return advise_unreadable(said)
        case DocumentStatus.INVALID:
            return (
                "Every answer broke the schema: try another model or prompt "
                f"{_NEW_VERSION}; {_MORE_ATTEMPTS}"
            )
        case DocumentStatus.FAILED:
            # What a provider calls its failure stands behind a colon.
            return _FAILED.get(
                said.partition(":")[0],
                "The provider refuses the request as it is: correct the model or its parameters "
                f"{_NEW_VERSION}.",
            )
        case DocumentStatus.WAITING:
            return _about_waiting(reason, ceiling)


def _about_waiting(reason: Reason, ceiling: str | None) -> str:
    if reason.job_state is not None:
        return _WAITING_FOR_JOB.get(reason.job_state, _ANSWER_TO_COME)
    if reason.reason == CEILING:
        return (
            f"Not sent, because the ceiling of {ceiling} would be passed: raise it in the YAML, or "
            "submit fewer documents at once, then `run`. One per day is free again the next day."
        )
    if not reason.attempted:
        return "Never sent at this version: `run`, a backfill or, if it is active, the night do."
    return _WAITING_AFTER.get(
        reason.reason or "",
        "No good answer came, and it may be asked again: the next `run` or night does.",
    )
