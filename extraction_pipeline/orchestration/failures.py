"""Our errors as Dagster failures: one line of cause and remedy instead of a stack of frames."""

from collections.abc import Iterator
from contextlib import contextmanager

from dagster import Failure

from extraction_pipeline.dagster_storage.refusals import refusals
from extraction_pipeline.errors import (
    DISK_FULL,
    ConfigurationError,
    DatabaseUnavailable,
    ExtractionPipelineError,
    LedgerError,
    StoreError,
)
from extraction_pipeline.ledger.lost_database import chain_of, lost_database
from extraction_pipeline.providers.base import FailureKind
from extraction_pipeline.providers.errors import ProviderError

NEEDS_PERSON = "needs_person"
"""Metadata of a failure that does not mend by itself."""

EXIT_CODE = "exit code"
"""Metadata of a failure: what a command that runs the step itself ends with."""


@contextmanager
def one_line_failures() -> Iterator[None]:
    """Turn an error of this project, and a database that Dagster's storage lost or was refused by
    or a disk that is full, into a `Failure` with its sentence.

    Dagster may retry the step only where the database was away: everything else either works
    later by itself, through the status sensor, or needs a person.
    """
    try:
        yield
    except ExtractionPipelineError as error:
        raise _failure(error) from None
    except Exception as error:
        outside = (
            lost_database(error) or _full_disk(error) or refusals.behind(map(str, chain_of(error)))
        )
        if outside is None:
            raise
        raise _failure(outside) from None


def _full_disk(error: Exception) -> StoreError | None:
    """Without the file: its name can be a patient's."""
    for one in chain_of(error):
        if isinstance(one, OSError) and one.errno in DISK_FULL:
            return StoreError(
                f"A file could not be written: {one.strerror}.",
                remedy="Make room; what was under way is repeated safely.",
            )
    return None


def _failure(error: ExtractionPipelineError) -> Failure:
    return Failure(
        description=str(error),
        metadata={
            EXIT_CODE: error.exit_code,
            **({NEEDS_PERSON: True} if needs_person(error) else {}),
        },
        allow_retries=isinstance(error, DatabaseUnavailable),
    )


def needs_person(error: ExtractionPipelineError) -> bool:
    """Whether trying again helps only after somebody has acted: on the settings, the account, or
    what the ledger refuses."""
    if isinstance(error, ProviderError):
        return error.kind is FailureKind.ACCOUNT
    return isinstance(error, ConfigurationError | LedgerError) and not isinstance(
        error, DatabaseUnavailable
    )
