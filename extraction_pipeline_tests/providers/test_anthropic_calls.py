"""What goes over the wire to Anthropic, and finding a job again that bears no name."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from extraction_pipeline.providers.anthropic import AnthropicBatchProvider
from extraction_pipeline.providers.base import (
    FailureKind,
    JobPhase,
    ResultKind,
    ResultReference,
    Search,
    SearchVerdict,
    Sought,
    Submission,
)
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import CallFailed, CallRefused, OutcomeUnknown
from extraction_pipeline_tests.providers.sample_request import sample_request
from extraction_pipeline_tests.providers.scripted_server import (
    Script,
    ScriptedServer,
    answer,
    drop,
    scripted_server,
    send,
)

PREFIX = "0123456789abcdef-"
TRIED = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOUGHT = Sought(
    "notes.v1.0123",
    first_tried_at=TRIED,
    last_tried_at=TRIED,
    request_count=2,
    custom_id_prefix=PREFIX,
    known_job_ids=frozenset({"msgbatch_known"}),
)


def provider_at(server: ScriptedServer) -> AnthropicBatchProvider:
    endpoint = ProviderEndpoint(server.url.removesuffix("/v1"), api_key="sk-a", read_timeout=5)
    return AnthropicBatchProvider("anthropic", endpoint)


def batch(name: str, after: timedelta = timedelta(seconds=2), **fields: Any) -> dict[str, Any]:
    return {
        "id": f"msgbatch_{name}",
        "processing_status": "in_progress",
        "request_counts": {"processing": 2, "succeeded": 0, "errored": 0},
        "created_at": (TRIED + after).isoformat(),
        "results_url": None,
        **fields,
    }


def ended(name: str, count: int = 2, **fields: Any) -> dict[str, Any]:
    done = {
        "processing_status": "ended",
        "request_counts": {"processing": 0, "succeeded": count - 1, "errored": 1},
        "results_url": "https://elsewhere.example/results",
    }
    return batch(name, **(done | fields))


COUNTED = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)


def page(*batches: dict[str, Any], more: object = False) -> Script:
    return said({"data": list(batches), "has_more": more, "first_id": None, "last_id": None})


def said(body: object, status: int = 200, *headers: str) -> Script:
    return send(answer(status, json.dumps(body).encode(), *headers))


def results(*custom_ids: str, broken: bytes = b"") -> Script:
    lines = [json.dumps({"custom_id": one, "result": {"type": "expired"}}) for one in custom_ids]
    return send(answer(200, broken + "\n".join(lines).encode() + b"\n"))


def payload(folder: Path, provider: AnthropicBatchProvider, count: int = 2) -> Path:
    path = folder / "payload"
    with path.open("wb") as lines:
        for number in range(count):
            request = sample_request(custom_id=f"{PREFIX}{number}")
            lines.write(provider.encode_request(request) + b"\n")
    return path


def body_of(request: bytes) -> bytes:
    return request.partition(b"\r\n\r\n")[2]


def test_a_batch_is_created_in_one_call_with_all_requests(tmp_path):
    with scripted_server(said(batch("1"), 200, "request-id: req_1")) as server:
        provider = provider_at(server)
        path = payload(tmp_path, provider)
        receipt = provider.submit(Submission("notes.v1.0", "some-model", payload=path))
    assert (receipt.job_id, receipt.provider_state) == ("msgbatch_1", "in_progress")
    assert (receipt.call.http_status, receipt.call.request_id) == (200, "req_1")
    (request,) = server.requests
    head = request.partition(b"\r\n\r\n")[0].lower()
    assert head.startswith(b"post /v1/messages/batches http/1.1")
    for header in (
        b"x-api-key: sk-a",
        b"anthropic-version: 2023-06-01",
        b"content-type: application/json",
        b"content-length: %d" % len(body_of(request)),
    ):
        assert b"\r\n" + header in head
    lines = path.read_bytes().splitlines()
    assert body_of(request) == b'{"requests":[' + b",".join(lines) + b"]}"
    sent = json.loads(body_of(request))["requests"]
    assert [one["custom_id"] for one in sent] == [f"{PREFIX}0", f"{PREFIX}1"]


@pytest.mark.parametrize(
    ("script", "error", "kind"),
    [
        (drop, OutcomeUnknown, FailureKind.TRANSPORT),
        (said({}, 529), OutcomeUnknown, FailureKind.TRANSPORT),
        (said({"error": {"type": "api_error"}}, 500), OutcomeUnknown, FailureKind.TRANSPORT),
        (said({"error": {"type": "conflict_error"}}, 409), OutcomeUnknown, FailureKind.TRANSPORT),
        (said({"type": "message_batch"}), OutcomeUnknown, FailureKind.TRANSPORT),
        (
            said({"error": {"type": "rate_limit_error"}}, 429, "retry-after: 9"),
            CallRefused,
            FailureKind.TRANSPORT,
        ),
        (said({"error": {"type": "rate_limit_error"}}, 429), CallRefused, FailureKind.ACCOUNT),
        (said({"error": {"type": "billing_error"}}, 402), CallRefused, FailureKind.ACCOUNT),
        (said({"error": {"type": "authentication_error"}}, 401), CallRefused, FailureKind.ACCOUNT),
        (said({"error": {"type": "request_too_large"}}, 413), CallRefused, FailureKind.REJECTED),
        (send(answer(413, b"<html>")), CallRefused, FailureKind.REJECTED),
        (
            said({"error": {"type": "invalid_request_error", "message": "m"}}, 400),
            CallRefused,
            FailureKind.REJECTED,
        ),
    ],
)
def test_a_create_call_that_fails_is_made_once(tmp_path, script, error, kind):
    with scripted_server(script) as server:
        provider = provider_at(server)
        path = payload(tmp_path, provider)
        with pytest.raises(error) as caught:
            provider.submit(Submission("notes.v1.0", "some-model", payload=path))
    assert caught.value.kind is kind
    assert len(server.requests) == 1


def search(*scripts: Script, sought: Sought = SOUGHT) -> tuple[Search, list[str]]:
    """The outcome, and the paths that were asked for."""
    with scripted_server(*scripts) as server:
        outcome = provider_at(server).find(sought)
        return outcome, [request.split()[1].decode() for request in server.requests]


def test_nothing_of_the_size_in_the_time_proves_absence():
    outcome, paths = search(
        page(
            batch("known"),
            batch("bigger", request_counts={"processing": 3}),
            batch("later", timedelta(hours=20)),
            batch("earlier", timedelta(hours=-20)),
            ended("smaller", request_counts=COUNTED | {"succeeded": 1}),
        )
    )
    assert outcome == Search(SearchVerdict.ABSENT)
    assert parse_qs(urlsplit(paths[0]).query) == {"limit": ["1000"]}
    assert len(paths) == 1


def test_a_running_batch_of_the_size_leaves_it_uncertain():
    outcome, _ = search(page(batch("running")))
    assert outcome == Search(SearchVerdict.UNCERTAIN, possible=("msgbatch_running",))


def test_an_ended_batch_is_told_by_its_custom_ids():
    outcome, paths = search(page(ended("ours")), results(f"{PREFIX}a", f"{PREFIX}b"))
    assert outcome.verdict is SearchVerdict.FOUND
    assert [job.job_id for job in outcome.found] == ["msgbatch_ours"]
    assert outcome.found[0].created_at == TRIED + timedelta(seconds=2)
    assert paths[1] == "/v1/messages/batches/msgbatch_ours/results"


def test_an_ended_batch_of_others_proves_absence():
    outcome, _ = search(page(ended("theirs")), results("fedcba9876543210-a", "fedcba9876543210-b"))
    assert outcome.verdict is SearchVerdict.ABSENT


def test_one_row_of_ours_proves_it_whatever_was_mixed_in():
    outcome, _ = search(page(ended("ours")), results("fedcba9876543210-a", f"{PREFIX}b"))
    assert outcome.verdict is SearchVerdict.FOUND


def test_rows_that_cannot_be_read_beside_those_of_others_prove_no_absence():
    some = results("fedcba9876543210-a", broken=b"not json\n")
    assert search(page(ended("odd")), some)[0].verdict is SearchVerdict.UNCERTAIN


def test_what_is_proven_counts_whatever_else_is_possible():
    scripts = (page(batch("running"), ended("ours")), results(f"{PREFIX}a"))
    outcome, _ = search(*scripts)
    assert outcome.verdict is SearchVerdict.FOUND and outcome.possible == ()


def test_one_unknown_beside_one_of_others_stays_uncertain():
    scripts = (page(ended("theirs"), batch("running")), results("x-a"))
    outcome, _ = search(*scripts)
    assert outcome == Search(SearchVerdict.UNCERTAIN, possible=("msgbatch_running",))


@pytest.mark.parametrize(
    "unclear",
    [
        batch("odd", request_counts=None),
        batch("odd", request_counts={"processing": 0, "succeeded": 0}),
        batch("odd", request_counts=COUNTED),
        batch("odd", request_counts={"processing": 1}),
        ended("odd", request_counts={"succeeded": 1}, results_url=None),
        ended("odd", request_counts=COUNTED | {"errored": "one"}, results_url=None),
        batch("odd", request_counts={"processing": 1, "succeeded": 2}),
        batch("odd", timedelta(hours=-14)),
        batch("odd", timedelta(hours=14)),
        batch("odd", timedelta(days=36500)),
        batch("odd", created_at=None),
        batch("odd", timedelta(minutes=-14)),
        batch("odd", timedelta(minutes=74)),
        ended("odd", results_url=None),
        ended("odd", results_url=None, archived_at=TRIED.isoformat()),
    ],
)
def test_what_cannot_be_told_is_possible(unclear):
    assert search(page(unclear))[0].possible == ("msgbatch_odd",)


def test_results_that_name_nothing_leave_it_uncertain():
    empty = send(answer(200, b"not json\n{}\n"))
    assert search(page(ended("odd")), empty)[0].verdict is SearchVerdict.UNCERTAIN
    some = results(f"{PREFIX}a", broken=b"not json\n\n")
    assert search(page(ended("odd")), some)[0].verdict is SearchVerdict.FOUND


def test_all_attempts_lie_within_the_time_that_is_searched():
    sought = Sought(SOUGHT.job_key, TRIED - timedelta(days=2), TRIED, SOUGHT.request_count, PREFIX)
    outcome, _ = search(page(batch("first", timedelta(days=-2))), sought=sought)
    assert outcome.possible == ("msgbatch_first",)


def test_pages_are_read_until_all_that_follow_are_older():
    old = [batch(f"old{number}", timedelta(hours=-20)) for number in range(2)]
    outcome, paths = search(
        page(batch("timeless", created_at=None, request_counts={"processing": 9}), more=True),
        page(batch("new", timedelta(hours=20)), more=True),
        page(batch("running"), old[0], more=True),
        page(*old, more=True),
        page(batch("never asked for")),
    )
    assert outcome.possible == ("msgbatch_running",)
    cursors = [parse_qs(urlsplit(path).query).get("after_id") for path in paths]
    assert cursors == [None, ["msgbatch_timeless"], ["msgbatch_new"], ["msgbatch_old0"]]


INCOMPLETE = {
    "list fails": (said({}, 500),),
    "second page dropped": (page(batch("new", timedelta(hours=20)), more=True), drop),
    "the same page for ever": (page(batch("1", timedelta(hours=20)), more=True),),
    "does not say whether more follow": (page(more=None),),
    "no list": (said({"id": "x"}),),
    "results fail": (page(ended("ours")), said({}, 503)),
    "results not there yet": (page(ended("ours")), said({}, 404)),
}


@pytest.mark.parametrize("scripts", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_a_search_that_is_not_complete_raises(scripts):
    with pytest.raises((CallFailed, CallRefused)):
        search(*scripts)


def test_results_are_fetched_from_the_base_url_whatever_the_batch_says():
    with scripted_server(said(ended("1")), results("a")) as server:
        provider = provider_at(server)
        (reference,) = provider.status("msgbatch_1").results
        with provider.download(reference) as chunks:
            assert json.loads(b"".join(chunks))["custom_id"] == "a"
    assert b"GET /v1/messages/batches/msgbatch_1/results " in server.requests[1]


def test_results_that_are_cut_short_raise():
    whole = answer(200, b'{"custom_id": "a"}\n{"custom_id": "b"}\n')
    with scripted_server(send(whole[:-7])) as server, pytest.raises(CallFailed):
        reference = ResultReference(ResultKind.OUTPUT, "msgbatch_1")
        with provider_at(server).download(reference) as chunks:
            b"".join(chunks)


def test_cancelling():
    stopping = batch("1", processing_status="canceling")
    with scripted_server(said(stopping)) as server:
        assert provider_at(server).cancel("msgbatch_1").phase is JobPhase.PENDING
    assert server.requests[0].startswith(b"POST /v1/messages/batches/msgbatch_1/cancel ")


@pytest.mark.parametrize("status", [400, 409])
def test_cancelling_what_has_ended_gives_its_end(status):
    refusal = said({"error": {"type": "invalid_request_error"}}, status)
    with scripted_server(refusal, said(ended("1"))) as server:
        assert provider_at(server).cancel("msgbatch_1").phase is JobPhase.ENDED
    with scripted_server(refusal, said(batch("1"))) as server, pytest.raises(CallRefused):
        provider_at(server).cancel("msgbatch_1")
