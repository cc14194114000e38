"""`extraction-pipeline status`: every version is shown, and every document with what to do."""

import hashlib
import re
from collections.abc import Iterator

import orjson
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import inspect, make_url

from extraction_pipeline.cli.group import commands
from extraction_pipeline.cli.program import program
from extraction_pipeline.documents.readable import UnreadableReason
from extraction_pipeline.errors import CollectionError, ConfigurationError, LedgerError
from extraction_pipeline.ledger import pauses
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.deliveries import Delivery, keep
from extraction_pipeline.ledger.states import (
    AuditEvent,
    DeliveryOutcome,
    DocumentStatus,
    JobState,
)
from extraction_pipeline.ledger.summary import Reason
from extraction_pipeline.providers.base import AnswerOutcome
from extraction_pipeline.reports.advice import advise
from extraction_pipeline.reports.webhooks import WORDS
from extraction_pipeline_tests.batch_server.process import ServerProcess
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.proxy import Proxy, running_proxy
from extraction_pipeline_tests.faults.result_rows import both, said
from extraction_pipeline_tests.ledger.databases import database
from extraction_pipeline_tests.lifecycle.driving import Driven
from extraction_pipeline_tests.lifecycle.priced import priced, under


@pytest.fixture
def proxy(server: ServerProcess) -> Iterator[Proxy]:
    with running_proxy(server.base_url) as running:
        yield running


def driven(workplace: Workplace, server: ServerProcess, proxy: Proxy) -> Driven:
    return Driven(workplace.open(proxy.base_url), server)


def typed(*words: str) -> Result:
    done = CliRunner().invoke(commands, ["status", *words])
    assert done.exit_code == 0, done.output
    return done


def known(shown: str) -> str:
    """What is shown, where a shell finds the program."""
    return shown.replace(program(), "extraction-pipeline")


def add_version(workplace: Workplace, name: str) -> None:
    yaml = workplace.collections / "notes.yaml"
    more = f"  {name}: {{provider: local, model: rules-baseline, max_output_tokens: 99}}\n"
    yaml.write_text(yaml.read_text() + more)


def test_each_document_that_is_not_published_is_shown_with_its_file_and_what_to_do(
    workplace: Workplace, server: ServerProcess, proxy: Proxy
) -> None:
    workplace.declare(extra="show_paths: true", max_attempts=1)
    paths = workplace.write(4)
    (workplace.documents / "notes" / "empty.txt").touch()
    proxy.plan_results(
        both(said(0, '{"chief_', finish="length"), said(1, None, refusal="I cannot")), times=1
    )
    one = driven(workplace, server, proxy)
    one.finished(*one.submitted())
    late = workplace.write(1, start=9)
    one.scan()
    shown = typed("--documents").stdout
    assert "notes       v1*" in shown
    assert "notes: 4 not published at v1\n" in shown
    cut = next(line for line in shown.splitlines() if "failed      truncated" in line)
    assert cut.endswith(("note-00000.txt", "note-00001.txt", "note-00002.txt", "note-00003.txt"))
    assert f"{late[0].name}" in shown
    assert "1 failed: truncated. The answer was cut: raise max_output_tokens" in shown
    assert "1 failed: refused. The model declined" in shown
    assert "1 unreadable: empty. The file has no bytes" in shown
    assert "1 waiting. Never sent at this version" in shown
    one.submit()
    one.execute("UPDATE extraction.batch_jobs SET state = 'held' WHERE state = 'submitted'")
    told = orjson.loads(typed("--documents", "--json").stdout)["collections"]["notes"]
    assert {line["path"] for line in told["not_published"]} > {"empty.txt", late[0].name}
    (held,) = [line for line in told["advice"] if line["job_state"] == "held"]
    assert (held["status"], held["documents"]) == ("waiting", 1)
    assert "resolve_submission" in held["advice"]
    late[0].unlink()
    paths[0].unlink()
    one.scan()
    assert "waiting" not in [line["status"] for line in listed("--documents", "--json")], (
        "a vanished document is no longer asked about"
    )


def listed(*words: str) -> list[dict[str, str]]:
    told = orjson.loads(typed(*words).stdout)["collections"]["notes"]
    return list(told["not_published"])


def test_a_files_name_is_shown_only_where_the_collection_says_so(
    workplace: Workplace, server: ServerProcess, proxy: Proxy
) -> None:
    (workplace.documents / "notes" / "Fictional Name.txt").touch()
    locked = workplace.documents / "notes" / "Locked Name.txt"
    locked.symlink_to(workplace.root / "nowhere")
    driven(workplace, server, proxy).scan()
    for words in (("--documents",), ("--documents", "--json")):
        shown = typed(*words).stdout
        assert "empty" in shown
        assert "Name" not in shown


def test_every_version_that_was_used_is_shown(
    workplace: Workplace, server: ServerProcess, proxy: Proxy
) -> None:
    workplace.write(2)
    one = driven(workplace, server, proxy)
    one.finished(*one.submitted())
    add_version(workplace, "v2")
    add_version(workplace, "v3")
    yaml = workplace.collections / "notes.yaml"
    yaml.write_text(yaml.read_text().replace("active_version: v1", "active_version: v2"))
    told = orjson.loads(typed("--json").stdout)["collections"]["notes"]
    assert (told["version"], told["published"], told["waiting"]) == ("v2", 0, 2)
    assert list(told["other_versions"]) == ["v1"]
    assert told["other_versions"]["v1"]["published"] == 2
    old = orjson.loads(typed("--json", "--extraction-version", "v1").stdout)
    assert old["collections"]["notes"]["version"] == "v1"
    assert "what to do: extraction-pipeline status --documents\n" in known(typed().stdout)
    other = known(typed("--extraction-version", "v3").stdout)
    assert "what to do: extraction-pipeline status --documents --extraction-version v3\n" in other
    rows = typed().stdout.splitlines()[2:4]
    assert [row.split()[:2] for row in rows] == [["notes", "v2*"], ["notes", "v1"]]
    without_v1 = yaml.read_text().replace("  v1:", "  v4:")
    yaml.write_text(without_v1)
    assert "v1 (not in the YAML)" in typed().stdout
    refused = CliRunner().invoke(commands, ["status", "--extraction-version", "v9"])
    assert "no extraction version 'v9'" in str(refused.exception)


def test_the_database_can_be_opened_as_shown_and_no_password_is(
    workplace: Workplace, database_url: str
) -> None:
    with_password = make_url(database_url).set(password="secret-word")
    workplace.environment.setenv(
        "EXTRACTION_DATABASE_URL", with_password.render_as_string(hide_password=False)
    )
    last = typed().stdout.splitlines()[-1]
    assert "secret-word" not in last
    shown = last.split('"')[1]
    engine = open_engine(shown)
    with engine.connect() as connection:
        assert connection.engine.url.database == make_url(database_url).database
    engine.dispose()


@pytest.mark.parametrize(
    "words", [["status"], ["export", "--collection", "notes", "--output", "x.csv"]]
)
def test_reading_does_not_change_the_tables_of_a_server(
    workplace: Workplace, postgres_url: str, words: list[str]
) -> None:
    with database(postgres_url) as without_tables:
        workplace.environment.setenv("EXTRACTION_DATABASE_URL", without_tables)
        done = CliRunner().invoke(commands, words)
        assert isinstance(done.exception, LedgerError)
        assert "Run: extraction-pipeline migrate" in str(done.exception)
        engine = open_engine(without_tables)
        assert not inspect(engine).has_schema("extraction")
        engine.dispose()


def test_a_ceiling_that_holds_documents_back_is_named_with_what_to_do(
    workplace: Workplace, server: ServerProcess, proxy: Proxy
) -> None:
    workplace.write(3)
    one = under(
        priced(driven(workplace, server, proxy), workplace, ("2020-01-01", "0", "100")),
        workplace,
        "{amount: 0.5, currency: EUR}",
    )
    one.scan()
    assert "Never sent at this version" in typed("--documents").output
    assert one.submit().refused == 3
    workplace.environment.setenv("EXTRACTION_PRICES", str(workplace.root / "prices.yaml"))
    shown = typed("--documents").output
    assert "notes at v1: 0.0000 EUR spent" in shown
    assert "its ceiling is 0.5000 EUR (total)" in shown
    assert "3 waiting: ceiling_reached. Not sent, because the ceiling of 0.5000 EUR in" in shown
    assert "Never sent" not in shown
    told = orjson.loads(typed("--documents", "--json").output)["collections"]["notes"]
    assert {line["reason"] for line in told["not_published"]} == {"ceiling_reached"}
    assert one.submit(hashes_of(one)[:1]).documents == 1
    assert "ceiling_reached" not in typed("--documents").output, "it did not hold the last one back"


def hashes_of(one: Driven) -> list[str]:
    return [str(row[0]) for row in one.rows("SELECT document_hash FROM extraction.documents")]


def test_where_paths_are_hidden_it_says_how_to_find_a_file(
    workplace: Workplace, server: ServerProcess, proxy: Proxy
) -> None:
    (workplace.documents / "notes").mkdir(exist_ok=True)
    (workplace.documents / "notes" / "empty.txt").touch()
    driven(workplace, server, proxy).scan()
    shown = typed("--documents").output
    assert "fetch it again" in shown
    assert "`show_paths: true` in the YAML lists their paths; or compare with `sha256sum`" in shown
    assert hashlib.sha256(b"").hexdigest() in shown
    workplace.declare(extra="show_paths: true")
    shown = typed("--documents").output
    assert "sha256sum" not in shown
    assert "empty.txt" in shown


def test_a_misspelt_document_type_is_refused(workplace: Workplace) -> None:
    yaml = workplace.collections / "notes.yaml"
    slip = re.sub("document_type: .*", "document_type: discharge_sumary", yaml.read_text())
    yaml.write_text(slip)
    done = CliRunner().invoke(commands, ["status"])
    assert isinstance(done.exception, CollectionError)
    assert "notes.yaml:3: " in str(done.exception)


def test_what_came_of_webhooks_is_counted(workplace: Workplace) -> None:
    assert "Webhooks" not in typed().output
    pipeline = workplace.open()
    with pipeline.engine.begin() as connection:
        for number, (job_id, settled_as) in enumerate(
            [("batch_1", None), ("batch_1", None), (None, DeliveryOutcome.UNREADABLE)]
        ):
            keep(connection, Delivery("openai", f"wh_{number}", None, job_id, settled_as))
    pipeline.engine.dispose()
    assert (
        "Webhooks of the last weeks\n"
        "  2 about a job that is not here (the account may have other users)\n"
        "  1 signed and of an unknown form (look at what is sent there)\n"
    ) in typed().output
    told = orjson.loads(typed("--json").stdout)["webhooks"]
    assert told == {"unknown_job": 2, "unreadable": 1}
    assert set(WORDS) == set(DeliveryOutcome)


def test_there_is_advice_for_every_reason() -> None:
    def about(status: DocumentStatus, reason: str | None, state: JobState | None = None) -> str:
        return advise(Reason(status, reason, state, attempted=True, documents=1))

    unreadable = {about(DocumentStatus.UNREADABLE, reason) for reason in UnreadableReason}
    assert len(unreadable) == len(UnreadableReason), "each reason has its own"
    failed = {about(DocumentStatus.FAILED, outcome) for outcome in AnswerOutcome}
    assert "max_output_tokens" in about(DocumentStatus.FAILED, AnswerOutcome.TRUNCATED)
    assert "release_documents" in about(DocumentStatus.FAILED, "results_lost")
    with_code = about(DocumentStatus.FAILED, f"{AnswerOutcome.ERRORED}:overloaded")
    assert with_code == about(DocumentStatus.FAILED, AnswerOutcome.ERRORED)
    waiting = {about(DocumentStatus.WAITING, None, state) for state in JobState}
    for advice in (*unreadable, *failed, *waiting, about(DocumentStatus.INVALID, "invalid_schema")):
        assert advice.endswith(".")
        assert "\n" not in advice


def test_where_a_record_came_from_is_told_by_the_hash_of_its_document(
    workplace: Workplace, server: ServerProcess, proxy: Proxy
) -> None:
    """Compliance asks: each attempt with its kind and reason, who decided, and no word of it."""
    workplace.write(2)
    proxy.plan_results(said(0, None, refusal="I cannot"), times=1)
    one = driven(workplace, server, proxy)
    one.finished(*one.submitted())
    again = one.submit()
    one.finished(*again.submitted)
    (refused,) = one.rows(
        "SELECT d.document_hash FROM extraction.documents d JOIN extraction.batch_items i"
        " ON i.document_id = d.id WHERE i.failure_reason = 'refused'"
    )
    told = orjson.loads(typed("--document", refused[0], "--json").stdout)
    (history,) = told["documents"]
    assert history["document"]["document_hash"] == refused[0]
    assert [
        (each["attempt"], each["state"], each["kind"], each["reason"], each["outcome"])
        for each in history["attempts"]
    ] == [(1, "failed", "model", "refused", "refused"), (2, "published", None, None, "completed")]
    (record,) = history["records"]
    assert (record["attempt"], record["version"]) == (2, "v1")
    assert record["raw_hash"] == history["attempts"][1]["raw_hash"]
    assert record["job_key"] == history["attempts"][1]["job_key"]
    assert [each["event"] for each in history["events"]] == 2 * [
        "job_created",
        "job_submitted",
        "job_ended",
        "job_collected",
        "job_published",
    ]
    assert [each["path"] for each in history["sources"]] == [None]
    shown = typed("--document", refused[0][:12]).stdout
    for line in ("reason: refused", "kind: model", f"raw hash: {record['raw_hash']}"):
        assert line in shown
    assert "calls POST /files (HTTP 200, request id req_" in shown
    assert "Fictional" not in shown
    assert "note-0000" not in shown


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("--document", "DISCHARGE"), "A document is named by its hash"),
        (("--document", "0" * 64), "There is no document 000000"),
    ],
)
def test_a_document_that_is_not_there_is_refused_in_one_line(
    workplace: Workplace, words: tuple[str, ...], cause: str
) -> None:
    refused = CliRunner().invoke(commands, ["status", *words])
    assert isinstance(refused.exception, ConfigurationError)
    assert cause in str(refused.exception)


def test_jobs_that_need_a_person_and_pauses_are_shown_with_what_to_do(
    workplace: Workplace, server: ServerProcess, proxy: Proxy
) -> None:
    workplace.declare(extra="waiting_budget: 2h")
    workplace.write(1)
    one = driven(workplace, server, proxy)
    (job_id,) = one.submitted()
    assert "Need a person's eye" not in typed().stdout
    with one.pipeline.engine.begin() as connection:
        note(connection, AuditEvent.DUPLICATE_JOB, "a", job=job_id, details={"job_id": "batch_two"})
    one.execute("UPDATE extraction.batch_jobs SET created_at = now() - interval '3 hours'")
    account = one.pipeline.provider("local").account
    with one.pipeline.engine.begin() as connection:
        pauses.pause(connection, account, "local", "u", 429, asked=500, first=1, longest=900)
    shown = typed().stdout
    assert "Need a person's eye" in shown
    assert "1 over_waiting_budget. Open for longer than the waiting_budget in the YAML" in shown
    assert "1 exists_twice. The provider has a second batch of it" in shown
    assert "second batch batch_two" in shown
    assert "Paused: local asked to wait (HTTP 429, 1 in a row)" in shown
    told = orjson.loads(typed("--json").stdout)
    (stuck,) = told["jobs_to_look_at"]
    assert (stuck["job_key"], stuck["reasons"]) == (
        one.job(job_id).job_key,
        ["exists_twice", "over_waiting_budget"],
    )
    assert stuck["second_batches"] == ["batch_two"]
    assert [each["provider"] for each in told["account_pauses"]] == ["local"]
