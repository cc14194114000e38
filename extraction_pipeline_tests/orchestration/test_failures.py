"""A step whose storage lost the database fails like one whose ledger did: in a line, to retry."""

import errno

import pytest
from dagster import Failure, IntMetadataValue
from dagster_postgres.utils import DagsterPostgresException, retry_pg_connection_fn
from sqlalchemy import create_engine

from extraction_pipeline.orchestration.failures import EXIT_CODE, one_line_failures

NOWHERE = "postgresql+psycopg2://somebody:secret@127.0.0.1:1/nothing"


def test_a_database_that_is_lost_by_dagster_is_told_in_a_line() -> None:
    with pytest.raises(Failure) as raised, one_line_failures():
        retry_pg_connection_fn(create_engine(NOWHERE).connect, retry_limit=0)
    failure = raised.value
    assert str(failure.description).startswith("The connection to the database broke off")
    assert failure.metadata[EXIT_CODE] == IntMetadataValue(3)
    assert failure.allow_retries


def test_a_full_disk_is_told_in_a_line_without_the_file() -> None:
    with pytest.raises(Failure) as raised, one_line_failures():
        raise OSError(errno.ENOSPC, "No space left on device", "Fictional Name.txt")
    assert str(raised.value.description).startswith("A file could not be written: No space left")
    assert "Fictional Name" not in str(raised.value.description)


def test_a_fault_of_this_program_stays_one() -> None:
    with pytest.raises(ZeroDivisionError), one_line_failures():
        raise ZeroDivisionError
    with pytest.raises(DagsterPostgresException), one_line_failures():
        raise DagsterPostgresException
