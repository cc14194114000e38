"""What a person got wrong in `dagster.yaml` is told in one line, without what was written there."""

import os
from pathlib import Path

import pytest
from dagster import DagsterInstance

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.installation.instance_file import INSTANCE_FILE, is_instance_file_of_ours
from extraction_pipeline.installation.stack import dagster_home
from extraction_pipeline.installation.usable_instance import require_usable_instance

OURS = INSTANCE_FILE.read_text()
NO_SERVER = "postgresql://word:word@127.0.0.1:1/word"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("nux:\n  enabled: [word", "it is no YAML in line 2"),
        ("nux:\n\tenabled: word", "it is no YAML in line 2"),
        ("nux: word\xff", "it is no YAML in UTF-8"),
        ("word", "to parse to dictionary"),
        ("nix: word", 'Received unexpected config entry "nix" at the root'),
        ("run_retries: {max_retries: word}", "Invalid scalar at path root:run_retries:max_retries"),
        (OURS.replace("EXTRACTION_DATABASE_URL", "NOT_SET"), "NOT_SET is not set"),
        (OURS.replace("env: EXTRACTION_DATABASE_URL", "other: word"), "at path root:postgres_url"),
        (OURS.replace("class: Bulk", "class: Back"), "Couldn't find class BackPostgresStorage"),
        (OURS.replace("module: extraction", "module: abstraction"), "Couldn't import module"),
        ("run_queue: {}\nrun_coordinator: {}", "`run_queue` which is incompatible with `run_co"),
        ("concurrency: {pools: {default_limit: -7}}", "Found value for `pools > default_limit`"),
        ("concurrency: {pools: {granularity: word}}", "Found value for `granularity`"),
        ("concurrency: {pools: {default_limit: word}}", "Object is not"),
        ("concurrency:", "ends in TypeError"),
        ("storage:", "ends in TypeError"),
        ("storage: {postgres: {postgres_url: word}}", "ends in ArgumentError"),
        (
            OURS.replace("\n        env: EXTRACTION_DATABASE_URL", f" {NO_SERVER}"),
            "the database that it names cannot be reached",
        ),
    ],
)
def test_a_slip_is_told_in_one_line(
    tmp_path: Path, written: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dagster_postgres.utils.calculate_delay", lambda **_: 0.0)
    (tmp_path / "dagster.yaml").write_bytes(written.encode("latin-1"))
    assert not is_instance_file_of_ours(tmp_path)
    with pytest.raises(ConfigurationError) as error:
        require_usable_instance(tmp_path)
    said = str(error.value)
    assert told in said
    assert "word" not in said
    assert "\n" not in said


def test_one_that_dagster_can_use_is_fine(instance: DagsterInstance) -> None:
    home = Path(instance.root_directory)
    assert is_instance_file_of_ours(home)
    with (home / "dagster.yaml").open("a") as file:
        file.write("# of a person\n")
    assert not is_instance_file_of_ours(home)
    require_usable_instance(home)


def test_one_that_stores_in_sqlite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="stores elsewhere than in PostgreSQL"):
        require_usable_instance(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with pytest.raises(ConfigurationError, match="Unset DAGSTER_HOME, if it is that of another"):
        require_usable_instance(tmp_path)
    (tmp_path / "dagster.yaml").write_text("")
    with pytest.raises(ConfigurationError, match="an emptied one in the state folder is written"):
        require_usable_instance(tmp_path)


@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_dagster_home_counts_as_not_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """It led to the state folder, and to an instance without the file of this code there."""
    monkeypatch.setenv("DAGSTER_HOME", value)
    folder = dagster_home(tmp_path)
    assert folder == tmp_path / "dagster"
    assert is_instance_file_of_ours(folder)


def test_a_dagster_home_is_given_to_dagster_as_it_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DAGSTER_HOME", "some/home\n")
    assert dagster_home(tmp_path) == tmp_path / "some" / "home"
    assert os.environ["DAGSTER_HOME"] == str(tmp_path / "some" / "home")


def test_what_cannot_be_read_is_no_file_of_ours(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").mkdir()
    assert not is_instance_file_of_ours(tmp_path)
    with pytest.raises(ConfigurationError, match="Is a directory"):
        require_usable_instance(tmp_path)
