"""The nightly refresh: however often and whenever it runs, nothing goes out twice."""

from datetime import date, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest
from dagster import (
    AssetKey,
    AssetMaterialization,
    ExecuteInProcessResult,
    TableMetadataValue,
)
from dagster._core.definitions.schedule_definition import ScheduleExecutionData
from dagster._grpc.impl import get_external_schedule_execution
from dagster._utils.schedules import schedule_execution_time_iterator

from extraction_pipeline.definitions import build_definitions
from extraction_pipeline.orchestration.partitions import NIGHTLY
from extraction_pipeline.settings import load_settings
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.faults.actions import Hold
from extraction_pipeline_tests.faults.proxy import CREATE, Proxy
from extraction_pipeline_tests.orchestration.conftest import HELD_SECONDS
from extraction_pipeline_tests.orchestration.installed import Installed, cause, keys, metadata_of
from extraction_pipeline_tests.orchestration.processes import asset_process, ended_well

NIGHT = AssetKey(NIGHTLY)


@pytest.fixture(autouse=True)
def nights_of_this_year(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXTRACTION_NIGHTLY_START", "2026-03-01")


def night(installed: Installed, day: str) -> ExecuteInProcessResult:
    return installed.asset_run(NIGHT, {}, partition=day)


def record_of(installed: Installed, day: str) -> AssetMaterialization:
    """The last record of a night."""
    found = [
        record.asset_materialization
        for record in installed.instance.fetch_materializations(NIGHT, limit=100).records
        if record.partition_key == day
    ]
    assert found[0] is not None
    return found[0]


def test_a_night_records_what_it_did_and_a_second_one_submits_nothing(
    installed: Installed,
) -> None:
    installed.with_documents(2)
    installed.workplace.write(2, start=2)
    (installed.workplace.documents / "notes" / "empty.txt").write_bytes(b"")
    jobs = installed.provider_jobs()
    assert night(installed, "2026-11-20").success
    first = metadata_of(record_of(installed, "2026-11-20"))
    assert (
        first.items()
        >= {
            "new": 3,
            "submitted": 4,
            "published": 0,
            "published_since": 0,
            "unreadable": 1,
            "waiting": 4,
        }.items()
    )
    assert installed.provider_jobs() - jobs == 1
    hashes = installed.partitions()
    assert len(hashes) == 5
    assert len(installed.materialized("batch_submissions")) == 4
    installed.driver().wait()
    (installed.workplace.documents / "notes" / "note-00000.txt").unlink()
    # Again, for the night before, and for one long past.
    for day in ("2026-11-20", "2026-11-19", "2026-03-01"):
        assert night(installed, day).success
        again = metadata_of(record_of(installed, day))
        assert (again["new"], again["submitted"], again["published"]) == (0, 0, 3)
    assert installed.provider_jobs() - jobs == 1
    assert installed.ledger_keys() == installed.materialized("extractions") <= keys(hashes)
    nights = installed.instance.get_materialized_partitions(NIGHT)
    assert nights == {"2026-11-20", "2026-11-19", "2026-03-01"}
    # What came in since a night is counted by the next one alone.
    since = [
        metadata_of(record_of(installed, day))[count]
        for day in ("2026-11-20", "2026-11-19", "2026-03-01")
        for count in ("published_since", "vanished")
    ]
    assert since == [4, 1, 0, 0, 0, 0]


def test_a_night_says_what_came_in_has_cost(installed: Installed) -> None:
    prices = installed.workplace.root / "prices.yaml"
    prices.write_text(
        "currency: EUR\nprices:\n  local:\n"
        '    "*": [{valid_from: 2020-01-01, input: 1000000, output: 0}]\n'
    )
    installed.workplace.write(1)
    assert night(installed, "2026-11-20").success
    installed.driver().wait()
    installed.workplace.environment.setenv("EXTRACTION_PRICES", str(prices))
    installed = installed.reopened()
    installed.workplace.write(2, start=1)
    nights = []
    for day in ("2026-11-21", "2026-11-22", "2026-11-23"):
        assert night(installed, day).success
        installed.driver().wait()
        nights.append(metadata_of(record_of(installed, day)))
    # At a million for a million tokens, money counts tokens; the answer that came before there
    # were prices is priced by the next night.
    assert [one["unpriced_since"] for one in nights] == [0, 0, 0]
    assert [one["cost_since"] for one in nights] == [one["input_tokens_since"] for one in nights]
    assert [one["cost_since"] != 0 for one in nights] == [True, True, False]
    assert nights[1]["currency"] == "EUR"


def test_the_record_of_a_night_has_a_row_for_each_collection(installed: Installed) -> None:
    installed.workplace.declare("others")
    installed = installed.reopened()
    installed.workplace.write(1)
    installed.workplace.write(2, "others", start=50)
    assert night(installed, "2026-11-20").success
    table = record_of(installed, "2026-11-20").metadata["collections"]
    assert isinstance(table, TableMetadataValue)
    submitted = {record.data["collection"]: record.data["submitted"] for record in table.records}
    assert submitted == {"notes": 1, "others": 2}
    assert metadata_of(record_of(installed, "2026-11-20"))["submitted"] == 3


@pytest.mark.usefixtures("patient")
def test_two_nights_at_once_submit_once(installed: Installed, proxy: Proxy) -> None:
    installed.workplace.write(4)
    hold = Hold(forward=True)
    proxy.plan(CREATE, hold)
    with (
        asset_process(installed, NIGHTLY, "2026-11-20") as first,
        asset_process(installed, NIGHTLY, "2026-11-21") as second,
    ):
        assert hold.reached.wait(HELD_SECONDS)
        # One of them waits for the provider; the other one has begun too, before or after it.
        began = "SELECT count(*) FROM event_logs WHERE dagster_event_type = 'STEP_START'"
        wait_until(lambda: installed.query(began) == [2], HELD_SECONDS)
        hold.release.set()
        ended_well(first)
        ended_well(second)
    assert proxy.count(CREATE) == 1
    nights = [metadata_of(record_of(installed, day)) for day in ("2026-11-20", "2026-11-21")]
    assert sorted(str(night["submitted"]) for night in nights) == ["0", "4"]
    assert installed.query("SELECT count(*) FROM extraction.batch_items") == [4]
    assert installed.materialized("documents") == set(installed.partitions())
    assert installed.materialized("batch_submissions") == keys(installed.partitions())


def test_a_broken_collection_does_not_keep_the_others_from_their_night(
    installed: Installed,
) -> None:
    installed.workplace.declare("absent")
    (installed.workplace.documents / "absent").rmdir()
    installed = installed.reopened()
    installed.workplace.write(2)
    result = night(installed, "2026-11-20")
    assert not result.success
    assert cause(result).startswith("1 of 2 collections had no night, the others had: absent: ")
    assert "cannot be listed" in cause(result)
    assert "\n" not in cause(result)
    assert len(installed.materialized("batch_submissions")) == 2
    told = metadata_of(record_of(installed, "2026-11-20"))
    assert told["submitted"] == 2
    without = told["without_night"]
    assert isinstance(without, dict)
    assert without.keys() == {"absent"}
    (installed.workplace.documents / "absent").mkdir()
    assert night(installed, "2026-11-20").success
    assert metadata_of(record_of(installed, "2026-11-20"))["submitted"] == 0


def test_an_error_that_nobody_has_thought_of_does_not_keep_the_others_from_their_night(
    installed: Installed,
) -> None:
    installed.workplace.declare("all_but_notes")
    installed = installed.reopened()
    for collection in ("all_but_notes", "notes"):
        installed.workplace.write(2, collection)
    installed.execute("""
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'XX999'; END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON event_logs FOR EACH ROW
        WHEN (NEW.asset_key LIKE '%all_but_notes%') EXECUTE FUNCTION refuse();
    """)
    result = night(installed, "2026-11-20")
    assert not result.success
    assert "XX999" in cause(result)
    assert len(installed.materialized("batch_submissions")) == 2
    without = metadata_of(record_of(installed, "2026-11-20"))["without_night"]
    assert isinstance(without, dict)
    assert without.keys() == {"all_but_notes"}
    installed.execute("DROP TRIGGER refuse ON event_logs; DROP FUNCTION refuse()")
    assert night(installed, "2026-11-20").success


def test_a_provider_that_is_down_does_not_fail_a_night(installed: Installed) -> None:
    """The record says what waits; the sensor carries the job on when the provider is back."""
    installed.workplace.write(2)
    jobs = installed.provider_jobs()
    installed.disconnect()
    assert night(installed, "2026-11-20").success
    assert metadata_of(record_of(installed, "2026-11-20"))["waiting"] == 2
    installed.reconnect()
    assert night(installed, "2026-11-21").success
    assert installed.provider_jobs() == jobs
    installed.execute("UPDATE extraction.batch_jobs SET due_at = now()")
    installed.driver().wait()
    assert installed.provider_jobs() - jobs == 1
    assert len(installed.materialized("extractions")) == 2


class Scheduled:
    """The schedule of an environment, asked as the daemon asks it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, zone: str, cron: str) -> None:
        monkeypatch.setenv("EXTRACTION_TIMEZONE", zone)
        monkeypatch.setenv("EXTRACTION_NIGHTLY_CRON", cron)
        self._repository = build_definitions(load_settings()).get_repository_def()
        (self._schedule,) = self._repository.schedule_defs
        self.zone = ZoneInfo(zone)

    def times(self, first: date, last: date) -> list[datetime]:
        start = datetime.combine(first, datetime.min.time(), self.zone)
        ticks = schedule_execution_time_iterator(
            start.timestamp(), self._schedule.cron_schedule, self._schedule.execution_timezone
        )
        return list(takewhile(lambda one: one.astimezone(self.zone).date() <= last, ticks))

    def asked(self, at: datetime) -> ScheduleExecutionData:
        answer = get_external_schedule_execution(
            self._repository,
            None,
            self._schedule.name,
            at.timestamp(),
            self._schedule.execution_timezone,
            None,
        )
        assert isinstance(answer, ScheduleExecutionData), answer
        return answer

    def partition(self, at: datetime) -> str:
        (request,) = self.asked(at).run_requests or []
        assert request.partition_key is not None
        return request.partition_key


@pytest.mark.parametrize(
    ("zone", "cron", "at", "partition"),
    [
        ("UTC", "0 2 * * *", "2026-11-10T02:00:00+00:00", "2026-11-09"),
        # 02:00 in Tokyo is still the day before in UTC.
        ("Asia/Tokyo", "0 2 * * *", "2026-11-10T02:00:00+09:00", "2026-11-09"),
        ("America/Los_Angeles", "0 2 * * *", "2026-11-10T02:00:00-08:00", "2026-11-09"),
        ("America/Los_Angeles", "0 20 * * *", "2026-11-10T20:00:00-08:00", "2026-11-09"),
        ("Europe/Berlin", "0 2 * * *", "2026-11-01T02:00:00+01:00", "2026-10-31"),
    ],
)
def test_a_night_is_that_of_the_day_before_in_the_time_zone_of_the_schedule(
    monkeypatch: pytest.MonkeyPatch, zone: str, cron: str, at: str, partition: str
) -> None:
    scheduled = Scheduled(monkeypatch, zone, cron)
    moment = datetime.fromisoformat(at)
    assert scheduled.times(moment.date(), moment.date())[0] == moment
    assert scheduled.partition(moment) == partition


@pytest.mark.parametrize("cron", ["0 2 * * *", "30 2 * * *", "0 0 * * *", "30 23 * * *"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "UTC"])
@pytest.mark.parametrize(
    ("first", "last"),
    [(date(2026, 3, 5), date(2026, 4, 2)), (date(2026, 10, 20), date(2026, 11, 5))],
)
def test_every_day_has_one_night_also_when_the_clocks_change(
    monkeypatch: pytest.MonkeyPatch, cron: str, zone: str, first: date, last: date
) -> None:
    scheduled = Scheduled(monkeypatch, zone, cron)
    nights = [scheduled.partition(at) for at in scheduled.times(first, last)]
    days = (last - first).days + 1
    assert nights == [(first + timedelta(days=one - 1)).isoformat() for one in range(days)]


def test_before_the_first_night_nothing_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduled = Scheduled(monkeypatch, "UTC", "0 2 * * *")
    before = scheduled.asked(datetime(2026, 3, 1, 2, tzinfo=ZoneInfo("UTC")))
    assert not before.run_requests
    assert before.skip_message == "The first night is that of 2026-03-01."
    assert scheduled.partition(datetime(2026, 3, 2, 2, tzinfo=ZoneInfo("UTC"))) == "2026-03-01"
