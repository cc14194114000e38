"""Promise 1 at the database: whatever the code does, these rows cannot exist."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, text

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline_tests.conftest import TEMPLATE
from extraction_pipeline_tests.ledger.databases import database
from extraction_pipeline_tests.ledger.rows import HASH, insert


@pytest.fixture(scope="module")
def engine(postgres_url: str) -> Iterator[Engine]:
    """One database with all tables; no test of this file commits."""
    with database(postgres_url, TEMPLATE) as url:
        opened = open_engine(url)
        yield opened
        opened.dispose()


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.connect() as opened:
        yield opened


class Ledger:
    """One document, one version, one job with one member and its answer."""

    def __init__(self, connection: Connection) -> None:
        self.document = insert(connection, "documents")
        self.version = insert(connection, "extraction_versions")
        self.job = insert(
            connection,
            "batch_jobs",
            version_id=self.version,
            state="submitted",
            job_id="batch-1",
            payload_hash=HASH,
        )
        self.item = insert(
            connection,
            "batch_items",
            batch_job_id=self.job,
            document_id=self.document,
            version_id=self.version,
            custom_id="one",
        )
        self.file = insert(connection, "result_files", batch_job_id=self.job)
        self.raw = insert(connection, "raw_responses", item_id=self.item, result_file_id=self.file)


@pytest.fixture
def ledger(connection: Connection) -> Ledger:
    return Ledger(connection)


def refused(connection: Connection, constraint: str, table: str, **values: object) -> None:
    with pytest.raises(LedgerError, match=f"constraint {constraint}\\)"), connection.begin_nested():
        insert(connection, table, **values)


def test_a_document_has_one_extraction_at_a_version(connection: Connection, ledger: Ledger) -> None:
    row = {
        "document_id": ledger.document,
        "version_id": ledger.version,
        "raw_response_id": ledger.raw,
    }
    insert(connection, "extractions", **row)
    refused(connection, "extractions_document_id_version_id_key", "extractions", **row)
    other = insert(connection, "extraction_versions", name="v2")
    insert(connection, "extractions", **{**row, "version_id": other})


def test_an_extraction_has_a_raw_response(connection: Connection, ledger: Ledger) -> None:
    row = {"document_id": ledger.document, "version_id": ledger.version}
    refused(
        connection, "extractions_raw_response_id_fkey", "extractions", raw_response_id=-1, **row
    )
    with pytest.raises(LedgerError, match="23502"), connection.begin_nested():
        insert(connection, "extractions", **row)


def test_a_providers_job_is_known_once(connection: Connection, ledger: Ledger) -> None:
    row = {
        "version_id": ledger.version,
        "payload_hash": HASH,
        "job_key": "other",
        "state": "submitted",
    }
    refused(connection, "batch_jobs_provider_job_id_idx", "batch_jobs", job_id="batch-1", **row)
    insert(connection, "batch_jobs", job_id="batch-1", provider="openai", **row)
    row["state"] = "prepared"
    for key in ("third", "fourth"):  # any number of jobs may be without an id yet
        insert(connection, "batch_jobs", **{**row, "job_key": key})


@pytest.mark.parametrize("state", ["preparing", "prepared", "submitting"])
def test_a_job_that_was_taken_is_never_about_to_be_sent(
    connection: Connection, ledger: Ledger, state: str
) -> None:
    constraint = "batch_jobs_taken_is_never_sent_again_check"
    with pytest.raises(LedgerError, match=f"constraint {constraint}\\)"):
        connection.execute(
            text("UPDATE extraction.batch_jobs SET state = CAST(:to AS extraction.job_state)"),
            {"to": state},
        )


def test_a_job_key_is_used_once(connection: Connection, ledger: Ledger) -> None:
    refused(
        connection, "batch_jobs_job_key_key", "batch_jobs", version_id=ledger.version, job_key="key"
    )


@pytest.mark.parametrize("first", ["claimed", "answered", "published"])
@pytest.mark.parametrize("second", ["claimed", "answered", "published"])
def test_a_document_has_one_live_request_at_a_version(
    connection: Connection, ledger: Ledger, first: str, second: str
) -> None:
    connection.execute(
        text("UPDATE extraction.batch_items SET state = CAST(:to AS extraction.item_state)"),
        {"to": first},
    )
    row = {
        "document_id": ledger.document,
        "version_id": ledger.version,
        "batch_job_id": ledger.job,
        "attempt": 2,
        "custom_id": "two",
    }
    refused(connection, "batch_items_one_open_idx", "batch_items", state=second, **row)
    insert(connection, "batch_items", state="failed", failure_kind="model", **row)


@pytest.mark.parametrize(
    ("end", "kind"), [("failed", "model"), ("released", None)], ids=["failed", "released"]
)
def test_a_request_that_ended_makes_room_for_the_next(
    connection: Connection, ledger: Ledger, end: str, kind: str | None
) -> None:
    connection.execute(
        text(
            "UPDATE extraction.batch_items SET failure_kind = :kind,"
            " state = CAST(:to AS extraction.item_state)"
        ),
        {"to": end, "kind": kind},
    )
    row = {"document_id": ledger.document, "version_id": ledger.version, "batch_job_id": ledger.job}
    insert(connection, "batch_items", attempt=2, **row)
    refused(connection, "batch_items_one_open_idx", "batch_items", attempt=3, **row)


def test_an_attempt_has_a_number_of_its_own(connection: Connection, ledger: Ledger) -> None:
    refused(
        connection,
        "batch_items_document_id_version_id_attempt_key",
        "batch_items",
        document_id=ledger.document,
        version_id=ledger.version,
        state="failed",
        failure_kind="model",
    )


def test_a_custom_id_is_one_member_of_a_job(connection: Connection, ledger: Ledger) -> None:
    other = insert(connection, "documents", document_hash="b" * 64)
    refused(
        connection,
        "batch_items_batch_job_id_custom_id_key",
        "batch_items",
        document_id=other,
        version_id=ledger.version,
        batch_job_id=ledger.job,
        custom_id="one",
    )


def test_a_member_has_one_answer_and_a_job_one_file_of_a_kind(
    connection: Connection, ledger: Ledger
) -> None:
    refused(
        connection,
        "raw_responses_item_id_key",
        "raw_responses",
        item_id=ledger.item,
        result_file_id=ledger.file,
    )
    refused(
        connection, "result_files_batch_job_id_kind_key", "result_files", batch_job_id=ledger.job
    )
    insert(connection, "result_files", batch_job_id=ledger.job, kind="error")


def test_a_request_is_billed_once_and_its_price_is_whole(
    connection: Connection, ledger: Ledger
) -> None:
    tokens = {"item_id": ledger.item, "input_tokens": 1, "output_tokens": 1}
    price = {"input_price": 1, "output_price": 1, "amount": 2, "currency": "EUR"}
    for lacking in price:
        part = {name: value for name, value in price.items() if name != lacking}
        refused(connection, "request_costs_priced_whole_check", "request_costs", **tokens, **part)
    unsaid = {**tokens, "output_tokens": None, **price}
    refused(connection, "request_costs_priced_has_tokens_check", "request_costs", **unsaid)
    insert(connection, "request_costs", **tokens, **price)
    refused(connection, "request_costs_item_id_key", "request_costs", **tokens)
    estimate = {"version_id": ledger.version, "job_key": "other", "estimated_amount": 1}
    refused(connection, "batch_jobs_estimate_has_currency_check", "batch_jobs", **estimate)


@pytest.mark.parametrize("state", ["submitted", "ended", "collected", "published"])
def test_a_job_that_the_provider_has_has_its_id(
    connection: Connection, ledger: Ledger, state: str
) -> None:
    row = {"version_id": ledger.version, "payload_hash": HASH, "job_key": "other", "state": state}
    refused(connection, "batch_jobs_job_id_known_check", "batch_jobs", **row)
    insert(connection, "batch_jobs", job_id="batch-2", **row)


@pytest.mark.parametrize("state", ["prepared", "submitting", "unresolved", "submitted"])
def test_no_create_without_a_checksum_of_the_payload(
    connection: Connection, ledger: Ledger, state: str
) -> None:
    refused(
        connection,
        "batch_jobs_payload_before_call_check",
        "batch_jobs",
        version_id=ledger.version,
        job_key="other",
        job_id="batch-2",
        state=state,
    )


@pytest.mark.parametrize(
    "values",
    [{"state": "failed"}, {"state": "claimed", "failure_kind": "model"}],
    ids=["failed without a kind", "a kind without failure"],
)
def test_a_failure_has_a_kind(
    connection: Connection, ledger: Ledger, values: dict[str, object]
) -> None:
    other = insert(connection, "documents", document_hash="b" * 64)
    refused(
        connection,
        "batch_items_failed_has_kind_check",
        "batch_items",
        document_id=other,
        version_id=ledger.version,
        batch_job_id=ledger.job,
        **values,
    )


def test_a_live_request_is_a_member_of_a_job(connection: Connection, ledger: Ledger) -> None:
    other = insert(connection, "documents", document_hash="b" * 64)
    refused(
        connection,
        "batch_items_member_of_a_job_check",
        "batch_items",
        document_id=other,
        version_id=ledger.version,
    )


DOCUMENTS: list[tuple[str, dict[str, object]]] = [
    ("documents_document_hash_check", {"document_hash": "A" * 64}),
    ("documents_document_hash_check", {"document_hash": "a" * 63}),
    ("documents_readable_has_text_check", {"text_hash": None}),
    ("documents_readable_has_text_check", {"payload_bytes": None}),
    (
        "documents_unreadable_has_reason_check",
        {"state": "unreadable", "text_hash": None, "payload_bytes": None},
    ),
    ("documents_unreadable_has_reason_check", {"unreadable_reason": "empty"}),
    (
        "documents_readable_has_text_check",
        {"state": "unreadable", "unreadable_reason": "empty"},
    ),
]


@pytest.mark.parametrize(("constraint", "values"), DOCUMENTS)
def test_a_document_has_a_text_or_a_reason(
    connection: Connection, constraint: str, values: dict[str, object]
) -> None:
    refused(connection, constraint, "documents", **values)


def test_a_document_is_there_once_in_its_collection(connection: Connection, ledger: Ledger) -> None:
    refused(connection, "documents_collection_document_hash_key", "documents")
    insert(connection, "documents", collection="others")


def test_a_source_leads_to_a_document_or_has_a_problem_and_is_current_once(
    connection: Connection, ledger: Ledger
) -> None:
    for document, problem in ((ledger.document, "unread"), (None, None)):
        refused(
            connection,
            "document_sources_document_or_problem_check",
            "document_sources",
            document_id=document,
            problem=problem,
        )
    insert(connection, "document_sources")
    refused(connection, "document_sources_current_idx", "document_sources")
    connection.execute(text("UPDATE extraction.document_sources SET vanished_at = now()"))
    insert(connection, "document_sources")


def test_a_version_is_recorded_once(connection: Connection, ledger: Ledger) -> None:
    refused(connection, "extraction_versions_collection_name_key", "extraction_versions")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE extraction.batch_jobs SET state = 'lost'",
        "UPDATE extraction.batch_items SET state = 'lost'",
        "UPDATE extraction.documents SET state = 'lost'",
    ],
)
def test_there_is_no_state_but_those_with_a_name(
    connection: Connection, ledger: Ledger, statement: str
) -> None:
    with pytest.raises(LedgerError, match="22P02"):
        connection.execute(text(statement))


def test_a_delivery_is_there_once_and_says_what_came_of_it(
    connection: Connection, ledger: Ledger
) -> None:
    insert(connection, "webhook_deliveries")
    insert(connection, "webhook_deliveries", provider="gemini")
    table = "webhook_deliveries"
    refused(connection, "webhook_deliveries_provider_delivery_id_key", table)
    other = {"delivery_id": "wh_2", "processed_at": "2026-01-01"}
    processed = "webhook_deliveries_processed_or_unknown_check"
    refused(connection, processed, table, **other)
    refused(connection, processed, table, delivery_id="wh_2", outcome="ignored")
    names_its_job = "webhook_deliveries_names_its_job_check"
    refused(connection, names_its_job, table, **other, outcome="made_due")
    refused(connection, names_its_job, table, **other, outcome="ignored", batch_job_id=ledger.job)
    insert(connection, table, **other, outcome="settled", batch_job_id=ledger.job)
    no_id = {"delivery_id": "wh_3", "job_id": None}
    refused(connection, "webhook_deliveries_unknown_has_id_check", table, **no_id)
