"""The campaign's verdict can fail: what it must find is planted, and found by its name."""

from collections.abc import Iterator

import pytest
from dagster import AssetKey, AssetMaterialization
from sqlalchemy import text

from extraction_pipeline.batch_server.config import ServerConfig
from extraction_pipeline.providers.names import ProviderName
from extraction_pipeline_tests.batch_server.client import Client
from extraction_pipeline_tests.batch_server.in_process import served
from extraction_pipeline_tests.chaos.__main__ import verdict
from extraction_pipeline_tests.chaos.ground import Ground, open_ground
from extraction_pipeline_tests.conftest import TEMPLATE
from extraction_pipeline_tests.ledger.databases import database

NAME = "openai_notes"

DUPLICATES = "duplicates"
LOST = "lost"
FAILED = "failed"
WITHOUT_END = "without_end"
FALSE = "false_materializations"
MISSING = "missing_materializations"


@pytest.fixture(scope="module")
def ground(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Two documents at their end, and nothing amiss."""
    root = tmp_path_factory.mktemp("verdict")
    with (
        database(postgres_url, TEMPLATE) as url,
        served(ServerConfig(root / "batch_server", port=0)) as root_url,
        open_ground(root, (ProviderName.OPENAI,), url, root_url) as opened,
    ):
        opened.world.write(NAME, 2)
        opened.work(NAME).everything()
        yield opened


ONE_RECORD = "(SELECT min(id) FROM extraction.extractions)"
ONE_REQUEST = "(SELECT min(id) FROM extraction.batch_items)"
ONE_EVENT = """(SELECT max(id) FROM event_logs WHERE dagster_event_type = 'ASSET_MATERIALIZATION'
                AND asset_key LIKE '%{stage}%')"""

PLANTED = {
    "nothing": ([], set()),
    "a second record of a document": (
        [
            "ALTER TABLE extraction.extractions"
            " DROP CONSTRAINT extractions_document_id_version_id_key",
            "INSERT INTO extraction.extractions (document_id, version_id, raw_response_id,"
            " schema_version, text_hash, body, body_hash, evidence_found, evidence_total)"
            " SELECT document_id, version_id, raw_response_id, schema_version, text_hash, body,"
            f" body_hash, evidence_found, evidence_total FROM extraction.extractions"
            f" WHERE id = {ONE_RECORD}",
        ],
        {DUPLICATES},
    ),
    "a job that the ledger forgot": (
        [
            "ALTER TABLE extraction.batch_jobs DROP CONSTRAINT batch_jobs_job_id_known_check",
            "UPDATE extraction.batch_jobs SET job_id = NULL",
        ],
        # Its submissions are on record, and no row says so any more.
        {DUPLICATES, FALSE},
    ),
    "a record that is lost": (
        [f"DELETE FROM extraction.extractions WHERE id = {ONE_RECORD}"],
        {WITHOUT_END, FALSE},
    ),
    "a record of another content": (
        [f"UPDATE extraction.extractions SET body_hash = 'x' WHERE id = {ONE_RECORD}"],
        {FALSE, MISSING},
    ),
    "an answer that nobody published": (
        [f"UPDATE extraction.batch_items SET state = 'answered' WHERE id = {ONE_REQUEST}"],
        {WITHOUT_END},
    ),
    "a request that failed for good": (
        [
            "UPDATE extraction.batch_items SET state = 'failed', failure_kind = 'rejected'"
            f" WHERE id = {ONE_REQUEST}"
        ],
        {FAILED},
    ),
    **{
        f"a materialization of {stage} that is missing": (
            [f"DELETE FROM event_logs WHERE id = {ONE_EVENT.format(stage=stage)}"],
            {MISSING},
        )
        for stage in ("documents", "batch_submissions", "raw_responses", "extractions")
    },
}
"""What is done to the database, for the length of one transaction, and what is broken by it."""


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_is_found(
    ground: Ground, planted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    statements, broken = PLANTED[planted]
    with ground.pipeline.engine.connect() as connection:
        for statement in statements:
            assert connection.execute(text(statement)).rowcount != 0, statement
        counts = ground.counted(connection)
        connection.rollback()
    assert set(counts.broken) == broken
    assert verdict(counts) == (1 if broken else 0)
    shown = capsys.readouterr()
    assert f"duplicates={counts.duplicates} " in shown.out
    assert {line.split()[1] for line in shown.err.splitlines()} == broken


def test_what_is_planted_outside_of_the_ledger_is_found(ground: Ground) -> None:
    """A batch at the provider, a file that no scan has seen, a record that anybody may write."""
    found: list[set[str]] = []

    def look() -> None:
        with ground.pipeline.engine.connect() as connection:
            found.append(set(ground.counted(connection).broken))

    with ground.pipeline.engine.connect() as connection:
        file = connection.execute(text("SELECT input_id FROM extraction.batch_jobs")).scalar_one()
    look()
    Client(f"{ground.world.root_url}/v1").create(file)
    look()
    ground.instance.report_runless_asset_event(
        AssetMaterialization(AssetKey([NAME, "extractions"]), partition=f"{'f' * 64}|v1")
    )
    look()
    ground.world.write(NAME, 1)
    look()
    assert found == [set(), {DUPLICATES}, {DUPLICATES, FALSE}, {DUPLICATES, FALSE, LOST}]
