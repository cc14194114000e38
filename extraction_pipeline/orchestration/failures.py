"""Our errors as Dagster failures: one line of cause and remedy instead of a stack of frames."""

from collections.abc import Iterator
from contextlib import contextmanager

from dagster import Failure

from extraction_pipeline.errors import DatabaseUnavailable, ExtractionPipelineError


@contextmanager
def one_line_failures() -> Iterator[None]:
    """Turn an error of this project into a `Failure` with its sentence.

    Dagster may retry the step only where the database was away: everything else either works
    later by itself, through the status sensor, or needs a person.
    """
    try:
        yield
    except ExtractionPipelineError as error:
        raise Failure(
            description=str(error), allow_retries=isinstance(error, DatabaseUnavailable)
        ) from None
