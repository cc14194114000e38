"""A database that takes no event of Dagster's own: the command says why, whichever event it was."""

from contextlib import nullcontext

import pytest
from dagster import job, op
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from extraction_pipeline.dagster_storage.event_log import BulkEventLogStorage
from extraction_pipeline.dagster_storage.refusals import refusals
from extraction_pipeline.errors import ExtractionPipelineError
from extraction_pipeline.orchestration.driving import QUIET
from extraction_pipeline.orchestration.failures import one_line_failures
from extraction_pipeline.orchestration.outcomes import failed
from extraction_pipeline_tests.orchestration.installed import Installed

REFUSE = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.dagster_event_type LIKE '{kind}' THEN
            RAISE 'no space for Fictional Name' USING ERRCODE = '{code}';
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON event_logs FOR EACH ROW EXECUTE FUNCTION refuse();
"""
FULL = "The database's disk is full. Make room; what was under way is repeated safely."
NOT_ALLOWED = "The database refused a statement of Dagster's (InsufficientPrivilege, code 42501). "


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [
        ("PIPELINE_START", "53100", FULL),
        ("STEP_OUTPUT", "53100", FULL),
        ("STEP_SUCCESS", "42501", NOT_ALLOWED),
        ("ASSET_MATERIALIZATION", "53100", FULL),
        ("ASSET_MATERIALIZATION", "42501", NOT_ALLOWED),
        ("PIPELINE_SUCCESS", "42501", NOT_ALLOWED),
        ("%", "53100", FULL),
    ],
)
def test_the_cause_is_told_in_one_line(
    installed: Installed, kind: str, code: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    installed.workplace.write(1)
    installed.execute(REFUSE.format(kind=kind, code=code))
    with pytest.raises(ExtractionPipelineError) as told:
        installed.driver().scan(["notes"])
    assert str(told.value).startswith(said)
    assert told.value.exit_code == 3
    assert "Fictional" not in "".join(capfd.readouterr())


NO_COLUMN = "The database refused a statement of Dagster's (UndefinedColumn, code 42703). "


@pytest.mark.parametrize(
    ("passed_on", "said"),
    [
        ("nothing", "failed: LookupError: of another kind"),
        ("the refusal", NO_COLUMN),
        ("another error that it led to", NO_COLUMN),
    ],
)
@pytest.mark.parametrize("within_a_step_of_ours", [False, True])
def test_only_an_error_that_a_refusal_led_to_is_told_as_that(
    installed: Installed, passed_on: str, said: str, within_a_step_of_ours: bool
) -> None:
    storage = installed.instance.event_log_storage
    assert isinstance(storage, BulkEventLogStorage)

    @op
    def refused() -> None:
        with one_line_failures() if within_a_step_of_ours else nullcontext():
            try:
                with storage.index_connection() as connection:
                    connection.execute(text("SELECT no_such_thing"))
            except DBAPIError as error:
                if passed_on == "the refusal":
                    raise
                if passed_on == "another error that it led to":
                    raise ValueError("in vain") from error
            raise LookupError("of another kind")

    @job
    def one_step() -> None:
        refused()

    refusals.forget()
    result = one_step.execute_in_process(
        instance=installed.instance, raise_on_error=False, run_config={"loggers": QUIET}
    )
    told = failed(result)
    assert told is not None
    assert said in told.cause
    assert "\n" not in told.cause
