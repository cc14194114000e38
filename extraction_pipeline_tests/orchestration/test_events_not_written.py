"""A database that takes no event of Dagster's own: the command says why, whichever event it was."""

import pytest

from extraction_pipeline.errors import ExtractionPipelineError
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
