"""A source that is read in parts, with a run for each: every file is in one, and in one alone."""

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from extraction_pipeline.documents.parts import Part, part_keys, part_of_key
from extraction_pipeline.documents.sources import FolderSource, list_entries
from extraction_pipeline.errors import DatabaseUnavailable
from extraction_pipeline.ledger.database import SCAN_LOCK, lock_until_commit
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.ledger.databases import LOCK_HOLDERS_END
from extraction_pipeline_tests.orchestration.installed import Installed, cause

PARTS = 3


@given(st.text(max_size=20), st.integers(1, 9))
def test_a_path_is_in_one_part(path: str, parts: int) -> None:
    assert sum(Part(number, parts).holds(path) for number in range(1, parts + 1)) == 1


def test_a_key_names_its_part() -> None:
    keys = part_keys("notes", PARTS)
    assert keys[1] == "notes 2 of 3"
    assert part_of_key(keys[1]) == ("notes", Part(2, 3))
    for wrong in ("notes", "notes 0 of 3", "notes 4 of 3", "notes 1 of 0"):
        with pytest.raises(ValueError, match="no part"):
            part_of_key(wrong)


@pytest.fixture
def in_parts(installed: Installed) -> Installed:
    installed.workplace.environment.setenv("EXTRACTION_SCAN_PARTS", str(PARTS))
    return installed.reopened()


def _scan(installed: Installed, key: str) -> dict[str, int]:
    result = installed.definitions.resolve_job_def("scan_in_parts").execute_in_process(
        instance=installed.instance, partition_key=key, raise_on_error=False
    )
    assert result.success, cause(result)
    (output,) = [event for event in result.all_events if event.is_successful_output]
    told = output.step_output_data.metadata
    return {name: int(str(told[f"notes: {name}"].value)) for name in ("new", "vanished", "skipped")}


def test_the_runs_of_all_parts_register_each_document_once(in_parts: Installed) -> None:
    paths = in_parts.workplace.write(12)
    (paths[0].parent / ".hidden").write_text("left out")
    found = [_scan(in_parts, key) for key in part_keys("notes", PARTS)]
    assert all(one["new"] > 0 for one in found), "each part has some of so many files"
    assert sum(one["new"] for one in found) == 12
    assert sum(one["skipped"] for one in found) == 1
    assert len(in_parts.records("documents")) == 12
    gone = next(path for path in paths if Part(2, PARTS).holds(path.name))
    gone.unlink()
    again = [_scan(in_parts, key) for key in part_keys("notes", PARTS)]
    assert [one["vanished"] for one in again] == [0, 1, 0]
    in_parts.driver().scan(["notes"])
    assert in_parts.query("SELECT count(*) FROM extraction.document_sources") == [12]


def test_parts_are_read_at_once_and_the_whole_is_not_beside_them(installed: Installed) -> None:
    installed.workplace.write(4)
    pipeline = installed.pipeline
    notes = pipeline.collection("notes")
    with pipeline.engine.begin() as holder:
        # As a scan of the first part does that is under way.
        lock_until_commit(holder, SCAN_LOCK, "notes", shared=True)
        lock_until_commit(holder, SCAN_LOCK, Part(1, 2).key("notes"))
        scan(pipeline, notes, Part(2, 2))
        whole = threading.Thread(target=scan, args=(pipeline, notes))
        whole.start()
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        wait_until(lambda: installed.query(waits) == [1])
    whole.join(20)
    assert not whole.is_alive()
    assert installed.query("SELECT count(*) FROM extraction.documents") == [4]


def test_a_scan_whose_lock_is_lost_writes_no_more(
    installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed.workplace.write(2)

    def cut_off_meanwhile(source: FolderSource, base: Path) -> object:
        listing = list_entries(source, base)
        installed.execute(f"{LOCK_HOLDERS_END} AND l.classid = {SCAN_LOCK}")
        return listing

    monkeypatch.setattr(
        "extraction_pipeline.lifecycle.registration.list_entries", cut_off_meanwhile
    )
    with pytest.raises(DatabaseUnavailable):
        scan(installed.pipeline, installed.pipeline.collection("notes"))
    with installed.pipeline.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM extraction.documents")).scalar() == 0


def test_a_part_that_is_none_is_refused(installed: Installed) -> None:
    result = installed.run(
        "scan_collections", "scan_documents", {"collections": ["notes"], "part": 3, "parts": 2}
    )
    assert cause(result).startswith("There is no part 3 of 2.")
