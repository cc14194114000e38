"""`extraction-pipeline run`: it says what it sent, and its exit code says how it ended."""

import os
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from extraction_pipeline.cli.group import commands
from extraction_pipeline.ledger.summary import Submitted, submitted_by
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline.lifecycle.submission import submit_documents
from extraction_pipeline_tests.batch_server.process import ServerProcess
from extraction_pipeline_tests.cli.installation import Installation
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.lifecycle.driving import Driven

NOWHERE = "http://127.0.0.1:9/v1"


def test_what_could_not_be_sent_is_said_and_is_no_success(tmp_path: Path) -> None:
    installation = Installation(tmp_path, 2, EXTRACTION_LOCAL_BASE_URL=NOWHERE)
    installation.declare_second_version()
    run = ("run", "--collection", "letters", "--extraction-version", "v2")
    done = installation.try_command(*run)
    assert done.returncode == 1
    assert "letters at v2: nothing could be sent yet." in done.stdout
    assert done.stdout.endswith(" status --documents --extraction-version v2\n")
    assert "2 documents, 0 published" in done.stdout
    assert f"/files at {NOWHERE}: no connection could be made" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_job_that_waits_is_carried_on_when_a_person_asks(tmp_path: Path) -> None:
    installation = Installation(tmp_path, 2, EXTRACTION_LOCAL_BASE_URL=NOWHERE)
    run = ("run", "--collection", "letters")
    assert installation.try_command(*run).returncode == 1
    again = installation.try_command(*run)
    assert again.returncode == 1, "its next try is not due, and was made all the same"
    assert "nothing could be sent yet" in again.stdout
    assert "1 of 1 batch jobs could not be submitted yet" in again.stderr
    del installation.environment["EXTRACTION_LOCAL_BASE_URL"]
    sent = installation.try_command(*run)
    assert sent.returncode == 0, sent.stderr
    assert "letters at v1: 2 requests sent in 1 batch job." in sent.stdout


@pytest.mark.parametrize("command", [("run", "--collection", "letters"), ("demo",)])
def test_a_missing_source_has_the_exit_code_of_a_source(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    installation = Installation(tmp_path, 0, EXTRACTION_LOCAL_BASE_URL=NOWHERE)
    (tmp_path / "documents").rmdir()
    done = installation.try_command(*command)
    assert done.returncode == 4, done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: The source's folder")


def test_a_remembered_corpus_is_never_replaced_by_the_samples(tmp_path: Path) -> None:
    installation = Installation(tmp_path, 0, EXTRACTION_COLLECTIONS="shipped")
    notes = tmp_path / "corpus" / "payer_notes"
    notes.mkdir(parents=True)
    (notes / "note.txt").write_text("PAYER NOTE\n\nFictional.\n")
    named = ("run", "--collection", "payer_notes", "--corpus", str(tmp_path / "corpus"))
    assert installation.try_command(*named).returncode == 0
    refused = installation.try_command("run", "--collection", "care_protocols")
    assert refused.returncode == 4, refused.stderr
    assert "the corpus that this home remembers" in refused.stderr.splitlines()[-1]
    assert "--corpus DIR" in refused.stderr.splitlines()[-1]
    shown = installation.try_command("status", "--json").stdout
    assert orjson.loads(shown)["collections"]["care_protocols"]["documents"] == 0


def test_a_source_that_comes_back_empty_is_said(tmp_path: Path) -> None:
    installation = Installation(tmp_path, 2)
    documents = tmp_path / "documents"
    yaml = installation.yaml
    yaml.write_text(yaml.read_text().replace("folder, path", 'folder, exclude: ["*.log"], path'))
    (documents / "scan.log").touch()
    (documents / ".hidden").touch()
    run = ("run", "--collection", "letters")
    first = installation.try_command(*run)
    assert first.returncode == 0, first.stderr
    assert (
        "letters: files left out: 1 by include and exclude of the YAML, 1 as hidden, temporary or "
        "special files.\n" in first.stderr
    )
    assert "no longer in the source" not in first.stderr
    for file in documents.iterdir():
        file.unlink()
    emptied = installation.try_command(*run)
    assert emptied.returncode == 0, emptied.stderr
    assert "letters: 2 files are no longer in the source; the records stay." in emptied.stderr
    assert "It is empty now" in emptied.stderr
    assert "left out" not in emptied.stderr


def test_one_missing_source_keeps_no_other_collection_from_its_records(tmp_path: Path) -> None:
    installation = Installation(tmp_path, 1)
    other = installation.yaml.read_text().replace("name: letters", "name: away")
    away = other.replace(str(tmp_path / "documents"), str(tmp_path / "not_mounted"))
    installation.yaml.with_name("away.yaml").write_text(away)
    done = installation.try_command("demo", "--json")
    assert done.returncode == 4, done.stderr
    assert "away: The source's folder" in done.stderr.splitlines()[-1]
    counts = orjson.loads(done.stdout)["collections"]
    assert (counts["letters"]["published"], counts["away"]["documents"]) == (1, 0)


def test_all_that_a_command_makes_is_for_this_user_alone(tmp_path: Path) -> None:
    installation = Installation(tmp_path, 1)
    mask = os.umask(0o022)
    try:
        installation.command("run", "--collection", "letters", "--wait")
    finally:
        os.umask(mask)
    server = installation.home / "postgres"  # has an account of its own, and sees to its modes
    made = [path for path in installation.home.rglob("*") if not path.is_relative_to(server)]
    assert {"postgres.log", "batch_server.log", "store"} <= {one.name for one in made}
    assert [one for one in made if one.stat().st_mode & 0o077] == []


def test_rows_of_a_manifest_that_could_not_be_read_are_said(tmp_path: Path) -> None:
    installation = Installation(tmp_path, 1)
    table = tmp_path / "documents" / "list.csv"
    table.write_text("path\nletter-00.txt\ngone-1.txt\ngone-2.txt\n")
    folder = f'kind: folder, path: "{table.parent}"'
    declared = installation.yaml.read_text()
    assert folder in declared
    installation.yaml.write_text(declared.replace(folder, f'kind: manifest, path: "{table}"'))
    said = "letters: 2 files could not be read, and the next scan tries again. Which, and why: "
    done = installation.try_command("run", "--collection", "letters")
    assert done.returncode == 0, done.stderr
    assert "1 document, 0 published" in done.stdout
    assert said in done.stdout
    told = installation.try_command("demo", "--json")
    assert said in told.stderr
    assert orjson.loads(told.stdout)["collections"]["letters"]["documents"] == 1


def test_what_others_send_at_the_same_time_is_not_counted(
    workplace: Workplace, pipeline: Pipeline
) -> None:
    collection = pipeline.collection("notes")
    for actor, count in (("first", 2), ("second", 5)):
        workplace.write(count)
        scan(pipeline, collection)
        submit_documents(pipeline, collection, collection.active, actor=actor)
    with pipeline.engine.connect() as connection:
        assert submitted_by(connection, ["first"]) == [Submitted("notes", "v1", 1, 2)]
        assert submitted_by(connection, ["second", "nobody"]) == [Submitted("notes", "v1", 1, 3)]
        assert submitted_by(connection, []) == []


def test_a_job_that_is_held_for_a_person_is_no_success(
    workplace: Workplace, server: ServerProcess
) -> None:
    driven = Driven(workplace.open(server.base_url), server)
    workplace.write(1)
    (job_id,) = driven.submitted()
    driven.execute("UPDATE extraction.batch_jobs SET state = 'held'")
    done = CliRunner().invoke(commands, ["run", "--collection", "notes"])
    assert done.exit_code == 1, done.output
    key = driven.job(job_id).job_key
    assert f"1 batch job of it held for a person: {key}. A person must decide" in done.output
    driven.pipeline.engine.dispose()
