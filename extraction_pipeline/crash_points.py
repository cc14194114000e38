"""Named points at which a test may end this process, as `kill -9` or a power cut does.

    CHAOS_CRASH_AT=create_accepted       at the first arrival there
    CHAOS_CRASH_AT=create_accepted:2     at the second
    CHAOS_CRASH_AT=any:7                 at the seventh arrival at whichever point
    CHAOS_STOP_AT=create_accepted        stops there until it is told to go on, as a host that is
                                         cut off, or sleeps

The variables are no settings: they are for tests, and cost others a look into the environment.
"""

import os
import signal
from collections import Counter
from enum import StrEnum

VARIABLE = "CHAOS_CRASH_AT"
STOPPING = "CHAOS_STOP_AT"
ANY = "any"


class CrashPoint(StrEnum):
    """Where a process may end: before and after each commit and each call that matters."""

    # Submitting.
    CLAIMED_NOT_COMMITTED = "claimed_not_committed"
    INTENT_COMMITTED = "intent_committed"
    PAYLOAD_STORED = "payload_stored"
    PAYLOAD_WRITTEN = "payload_written"
    UPLOADED = "uploaded"
    UPLOAD_WRITTEN = "upload_written"
    CREATE_DUE = "create_due"
    """The job is `submitting`; the create call is not made yet."""
    LOOKED_LAST = "looked_last"
    """The connection to the provider is open, and the payload is about to go."""
    CREATE_ACCEPTED = "create_accepted"
    """The provider has the job; its id is written nowhere."""
    JOB_ID_WRITTEN = "job_id_written"
    CREATE_REFUSED = "create_refused"
    CREATE_UNKNOWN = "create_unknown"

    # Resolving.
    SEARCH_DUE = "search_due"
    FOUND = "found"
    """The search has found the job; it is not adopted yet."""
    ADOPTED = "adopted"
    WITHDRAWAL_WRITTEN = "withdrawal_written"
    INPUT_DELETED = "input_deleted"
    INPUT_GONE_WRITTEN = "input_gone_written"
    ABSENCE_WRITTEN = "absence_written"

    # Polling.
    READING_MADE = "reading_made"
    """What the provider said of the job is stored nowhere."""
    END_WRITTEN = "end_written"
    LATE_END_SEEN = "late_end_seen"
    """A job that was given up has ended after all; that is written nowhere."""
    LATE_END_WRITTEN = "late_end_written"
    RUN_CLAIMED = "run_claimed"
    """The ledger counts the run; Dagster has not heard of it."""

    # Collecting.
    RESULTS_FETCHED = "results_fetched"
    RESULTS_STORED = "results_stored"
    RESULT_FILE_WRITTEN = "result_file_written"
    ROWS_NOT_COMMITTED = "rows_not_committed"
    ROWS_LANDED = "rows_landed"
    """One piece of the rows is committed."""
    LANDED_NOT_MARKED = "landed_not_marked"
    COLLECTED = "collected"
    CLEANED_NOT_WRITTEN = "cleaned_not_written"

    # Publishing.
    ANSWERS_JUDGED = "answers_judged"
    CHOSEN_NOT_COMMITTED = "chosen_not_committed"
    """Other requests lost to these answers; neither is committed."""
    PARTLY_PUBLISHED = "partly_published"
    PUBLISHED_NOT_MARKED = "published_not_marked"
    PUBLISHED = "published"

    # Registering and recording.
    TEXTS_STORED = "texts_stored"
    DOCUMENTS_REGISTERED = "documents_registered"
    PARTITIONS_ADDED = "partitions_added"
    EVENTS_PARTLY_WRITTEN = "events_partly_written"
    DOCUMENTS_NOT_MARKED = "documents_not_marked"
    SUBMISSION_NOT_MARKED = "submission_not_marked"
    RESPONSES_RECORDED = "responses_recorded"
    RESULTS_NOT_MARKED = "results_not_marked"
    RESULTS_MARKED = "results_marked"
    NIGHT_NOT_RECORDED = "night_not_recorded"


_arrivals: Counter[str] = Counter()


def crash_point(point: CrashPoint) -> None:
    """End or stop this process here, if a test has asked for it."""
    for variable, asked_for in ((VARIABLE, signal.SIGKILL), (STOPPING, signal.SIGSTOP)):
        asked = os.environ.get(variable)
        if asked is not None:
            _arrive(asked, point, asked_for)


def _arrive(asked: str, point: CrashPoint, asked_for: signal.Signals) -> None:
    name, _, ordinal = asked.partition(":")
    if name in (point, ANY):
        _arrivals[name] += 1
        if _arrivals[name] == int(ordinal or 1):
            os.kill(os.getpid(), asked_for)
