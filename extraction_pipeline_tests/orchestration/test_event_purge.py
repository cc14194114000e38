"""The statement of `docs/ten_million.md` that cuts the log of events: no record goes with it."""

import re
from dataclasses import replace
from pathlib import Path

from extraction_pipeline_tests.orchestration.installed import Installed

ROOT = Path(__file__).parent.parent.parent
STAGES = ("documents", "batch_submissions", "raw_responses", "extractions")


def test_what_is_purged_are_no_records(installed: Installed) -> None:
    (statement,) = re.findall(
        r"```sql\n(.*?)```", (ROOT / "docs" / "ten_million.md").read_text(), re.DOTALL
    )
    installed.with_documents(3, ("empty.txt", b""))
    installed.finish()
    before = {stage: installed.materialized(stage) for stage in STAGES}
    assert [len(before[stage]) for stage in STAGES] == [3, 3, 3, 3]
    kinds = "SELECT coalesce(dagster_event_type, 'a message'), count(*) FROM event_logs GROUP BY 1"
    of_records = {kind: count for kind, count in installed.query(kinds) if "ASSET" in kind}
    installed.execute(statement)
    assert "STEP_START" in dict(installed.query(kinds)), "the runs are young"
    installed.execute("UPDATE runs SET update_timestamp = update_timestamp - interval '1 year'")
    installed.execute(statement)
    left = dict(installed.query(kinds))
    assert left.keys() - of_records.keys() == {"PIPELINE_START", "PIPELINE_SUCCESS"}
    assert {kind: left[kind] for kind in of_records} == of_records
    assert {stage: installed.materialized(stage) for stage in STAGES} == before
    told: list[str] = []
    replace(installed.driver(), tell=told.append).check(["notes"])
    assert [line for line in told if "records_agree" in line] == []
