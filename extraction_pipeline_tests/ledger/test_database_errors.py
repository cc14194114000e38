"""What leaves the database layer: errors that say what to do and hold nothing of a record."""

import signal
import threading
import traceback
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, make_url, text

from extraction_pipeline.errors import ConfigurationError, DatabaseUnavailable, LedgerError
from extraction_pipeline.ledger.database import job_lock, open_engine
from extraction_pipeline_tests.ledger.databases import LOCK_HOLDERS_END

NAME = "Fictional Name.txt"
INSERT = text(
    "INSERT INTO extraction.document_sources (collection, path, problem)"
    " VALUES ('notes', :path, 'unread')"
)
LOCKS = text(
    "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
    " WHERE l.locktype = 'advisory' AND d.datname = current_database()"
)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    opened = open_engine(database_url)
    yield opened
    opened.dispose()


def test_no_value_of_a_record_is_in_an_error_or_in_its_stack_trace(engine: Engine) -> None:
    """Promise 8: a file's name can carry a patient's name, and PostgreSQL's sentence quotes it."""
    with engine.begin() as connection:
        connection.execute(INSERT, {"path": NAME})
    with pytest.raises(LedgerError) as raised, engine.begin() as connection:
        connection.execute(INSERT, {"path": NAME})
    shown = "".join(traceback.format_exception(raised.value))
    assert "23505, constraint document_sources_current_idx" in str(raised.value)
    assert NAME not in shown


def test_a_value_that_the_database_cannot_hold_is_no_broken_connection(engine: Engine) -> None:
    """Field report 47: NUL. A retry would not help, so it must not be asked for."""
    with pytest.raises(LedgerError) as raised, engine.begin() as connection:
        connection.execute(INSERT, {"path": NAME + "\0"})
    assert not isinstance(raised.value, DatabaseUnavailable)
    assert NAME not in "".join(traceback.format_exception(raised.value))


def test_a_role_that_may_not_write_is_told_so(engine: Engine) -> None:
    with pytest.raises(LedgerError) as raised, engine.begin() as connection:
        connection.execute(text("SET LOCAL ROLE pg_monitor"))
        connection.execute(INSERT, {"path": NAME})
    assert str(raised.value).startswith("The role of EXTRACTION_DATABASE_URL may not do this in")
    assert "(42501). Name the role that owns the tables" in str(raised.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            "postgresql://nobody:secret@127.0.0.1:1/nothing",
            "Database nothing at 127.0.0.1, port 1 cannot be reached: no server listens there. "
            "Start the server, or correct EXTRACTION_DATABASE_URL.",
        ),
        (
            "postgresql://nobody:secret@no.such.host.invalid/nothing",
            "Database nothing at no.such.host.invalid, port 5432 cannot be reached: the host name "
            "does not resolve. Correct it in EXTRACTION_DATABASE_URL.",
        ),
        (
            "postgresql://nobody:secret@ssl.password.role.invalid/nothing",
            "Database nothing at ssl.password.role.invalid, port 5432 cannot be reached: the host "
            "name does not resolve. Correct it in EXTRACTION_DATABASE_URL.",
        ),
        (
            "postgresql://nobody:secret@/nothing?host=/nowhere",
            "Database nothing at /nowhere, port 5432 cannot be reached: no server listens there.",
        ),
    ],
    ids=["refused", "no such host", "a host of any name", "no such socket"],
)
def test_a_database_that_is_not_there_is_named_without_user_and_password(
    url: str, said: str
) -> None:
    with pytest.raises(DatabaseUnavailable) as raised:
        open_engine(url).connect()
    assert str(raised.value).startswith(said)
    assert "secret" not in "".join(traceback.format_exception(raised.value))
    assert "nobody" not in str(raised.value)


def test_a_server_that_answers_says_what_is_wrong(database_url: str) -> None:
    for url, said in (
        (make_url(database_url).set(database="nothing"), "Database nothing .* does not exist"),
        (make_url(database_url).set(username="nobody"), "refuses the user or the password"),
    ):
        with pytest.raises(DatabaseUnavailable, match=said):
            open_engine(url.render_as_string(hide_password=False)).connect()


def test_a_connection_that_breaks_off_names_its_database(engine: Engine) -> None:
    with (
        pytest.raises(DatabaseUnavailable, match=rf"to database {engine.url.database} at .* broke"),
        engine.connect() as connection,
    ):
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))


def test_a_parameter_that_the_driver_does_not_know_is_no_fault_of_the_database() -> None:
    with pytest.raises(ConfigurationError, match="behind its question mark") as raised:
        open_engine("postgresql://nobody:secret@127.0.0.1:1/nothing?ssl_mode=word").connect()
    assert "word" not in str(raised.value)


@pytest.mark.parametrize("url", ["sqlite:///file", "mysql://host/name", "no url"])
def test_a_url_that_is_not_postgresql_is_refused_without_a_call(url: str) -> None:
    with pytest.raises(ConfigurationError, match="postgresql://"):
        open_engine(url)


@pytest.mark.parametrize("password", ["qzq@zqz", "qzq@q/zqz", "qzq@q:zqz", "q/qzq@zqz"])
def test_nothing_of_a_password_that_does_not_fit_into_a_url_is_shown(password: str) -> None:
    with pytest.raises(ConfigurationError, match="%40") as raised:
        open_engine(f"postgresql://somebody:{password}@127.0.0.1:1/nothing")
    assert "invalid literal" not in "".join(traceback.format_exception(raised.value))
    assert "qzq" not in str(raised.value)
    assert "zqz" not in str(raised.value)


def test_of_a_deadlock_the_victim_may_try_again(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(INSERT, {"path": "a"})
        connection.execute(INSERT, {"path": "b"})
    both = threading.Barrier(2)
    errors: list[LedgerError] = []

    def touch(*paths: str) -> None:
        try:
            with engine.begin() as connection:
                connection.execute(text("SET LOCAL deadlock_timeout = '20ms'"))
                for path in paths:
                    connection.execute(
                        text(
                            "UPDATE extraction.document_sources SET byte_size = 1 WHERE path = :p"
                        ),
                        {"p": path},
                    )
                    if path == paths[0]:
                        both.wait(5)
        except LedgerError as error:
            errors.append(error)

    threads = [threading.Thread(target=touch, args=order) for order in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert [type(error) for error in errors] == [DatabaseUnavailable]


def test_an_interrupt_in_the_middle_of_a_statement_stays_an_interrupt(engine: Engine) -> None:
    """Field report 7: Ctrl-C is no broken database, and must not be retried like one."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt), job_lock(engine, 7), engine.connect() as connection:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            connection.execute(text("SELECT pg_sleep(0.1)"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with job_lock(engine, 7) as held:
        assert held


def test_a_job_lock_is_held_by_one_and_freed_at_the_end(engine: Engine) -> None:
    with job_lock(engine, 7) as first, job_lock(engine, 7) as second, job_lock(engine, 8) as other:
        assert (first.held, second.held, other.held) == (True, False, True)
    with engine.connect() as connection:
        assert connection.execute(LOCKS).scalar_one() == 0


def test_a_job_lock_is_freed_when_the_work_fails_and_the_failure_is_the_works(
    engine: Engine,
) -> None:
    with pytest.raises(KeyboardInterrupt), job_lock(engine, 7):
        raise KeyboardInterrupt
    with job_lock(engine, 7) as held:
        assert held


def test_a_job_lock_that_went_with_its_session_does_not_hide_how_the_work_ended(
    engine: Engine,
) -> None:
    with pytest.raises(ZeroDivisionError), job_lock(engine, 7):
        with engine.begin() as connection:
            connection.execute(text(LOCK_HOLDERS_END))
        raise ZeroDivisionError
    with job_lock(engine, 7) as held:
        assert held
