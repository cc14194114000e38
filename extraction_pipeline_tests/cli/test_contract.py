"""`extraction-pipeline contract` as a person meets it."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM

import pytest

from extraction_pipeline.cli import main
from extraction_pipeline.providers.registry import BUILDERS
from extraction_pipeline_tests.batch_server.process import ServerProcess
from extraction_pipeline_tests.providers.scripted_server import (
    ScriptedServer,
    answer,
    forwarded,
    scripted_server,
    send,
)


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it said."""

    code: int
    out: str
    error: str


Run = Callable[..., Done]


@contextmanager
def as_a_process_of_its_own() -> Iterator[None]:
    """What the console script sets for its whole process is as before, after the block."""
    mask = os.umask(0o022)
    os.umask(mask)
    handlers = {number: signal.getsignal(number) for number in (SIGINT, SIGTERM, SIGHUP)}
    try:
        yield
    finally:
        os.umask(mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The console script with `contract …`, in a home of its own and with these settings only."""
    for name in os.environ:
        if name.startswith(("EXTRACTION_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_")):
            monkeypatch.delenv(name)

    def typed(*words: str, **settings: str) -> Done:
        with monkeypatch.context() as context:
            context.setenv("EXTRACTION_HOME", str(tmp_path / "home"))
            for name, value in settings.items():
                context.setenv(f"EXTRACTION_{name}", value)
            context.setattr(sys, "argv", ["extraction-pipeline", "contract", *words])
            with as_a_process_of_its_own(), pytest.raises(SystemExit) as ended:
                main()
        said = capsys.readouterr()
        return Done(int(ended.value.code or 0), said.out, said.err)

    return typed


def test_it_shows_every_provider_without_a_key_and_without_leaving_a_trace(
    run: Run, tmp_path: Path
) -> None:
    overview = run()
    assert overview.code == 0
    assert all(name in overview.out for name in BUILDERS)
    shown = run("anthropic").out
    assert "POST /v1/messages/batches" in shown and "2023-06-01" in shown
    assert "the text of the document" in shown and "EXTRACTION_ANTHROPIC_OUTPUT" in shown
    document = json.loads(run("gemini", "--json").out)
    assert document["request_line"]["properties"]["key"]["description"] == "the id of the request"
    assert not (tmp_path / "home").exists()


def test_infrai_is_checked_without_a_key_and_its_changes_are_told(
    run: Run, server: ServerProcess
) -> None:
    changed: list[tuple[bytes, bytes]] = []

    def relay(connection: object) -> None:
        reply = forwarded(running.requests[-1], server.root_url)
        for old, new in changed:
            reply = reply.replace(old, new)
        connection.sendall(reply)  # type: ignore[attr-defined]

    with scripted_server(relay) as running:
        url = running.url.removesuffix("/v1")
        first = run("infrai", "--check", INFRAI_BASE_URL=url)
        assert first.code == 0, first.error
        assert "ai.batch.submit: " in first.out and "differs" not in first.out
        again = run("infrai", "--check", INFRAI_BASE_URL=url)
        assert again.out == first.out
        kept = run("infrai", INFRAI_BASE_URL=url).out
        assert "ai.batch.results" in kept
        # Of the same length, so that the answers stay whole.
        changed.append((b'"available":true,', b'"available":null,'))
        harmless = run("infrai", "--check", INFRAI_BASE_URL=url)
        assert harmless.code == 0
        assert "changed: available: true → null" in harmless.out
        changed[:] = [(b"/v1/ai/batch/results/", b"/v9/ai/batch/results/")]
        moved = run("infrai", "--check", INFRAI_BASE_URL=url)
        assert moved.code == 5
        assert "differs: the path is /v9/ai/batch/results/{id}, not" in moved.out
        unknown = run("infrai", "--check", INFRAI_BASE_URL=url, INFRAI_CAPABILITY="ai.dream")
        assert unknown.code == 5 and "ai.dream is not described" in unknown.out
        assert all(b"Authorization" not in request for request in running.requests)


@pytest.mark.parametrize(
    ("name", "path"), [("openai", "/v1"), ("anthropic", ""), ("gemini", ""), ("local", "/v1")]
)
def test_the_others_are_asked_for_one_entry_of_their_list(
    run: Run, server: ServerProcess, name: str, path: str
) -> None:
    settings = {f"{name.upper()}_BASE_URL": server.root_url + path}
    if name != "local":
        without = run(name, "--check", **settings)
        assert without.code == 2 and f"EXTRACTION_{name.upper()}_API_KEY" in without.error
    settings[f"{name.upper()}_API_KEY"] = "sk-never-shown"
    done = run(name, "--check", **settings)
    assert done.code == 0, done.error
    assert "as relied on" in done.out and "sk-never-shown" not in done.out + done.error
    statistics = server.statistics()
    assert statistics["jobs_created"] == 0


def test_a_list_of_another_form_differs_and_a_refused_key_is_an_error(run: Run) -> None:
    def openai(server: ScriptedServer) -> Done:
        return run("openai", "--check", OPENAI_BASE_URL=server.url, OPENAI_API_KEY="k-1")

    with scripted_server(send(answer(200, b'{"data": [{"id": "b"}]}'))) as server:
        odd = openai(server)
    assert odd.code == 5
    assert "differs: has_more: field required: a search" in odd.out
    assert "differs: data.0.status: field required" in odd.out
    with scripted_server(send(answer(401, b'{"error": {"code": "invalid_api_key"}}'))) as server:
        refused = openai(server)
    assert refused.code == 5 and "401" in refused.error


def test_a_local_server_that_does_not_run_comes_with_a_remedy(run: Run) -> None:
    done = run("local", "--check", LOCAL_BASE_URL="http://127.0.0.1:1/v1")
    assert done.code == 5
    assert "extraction-pipeline batch-server" in done.error


def test_checking_all_leaves_out_who_cannot_be_asked(run: Run, server: ServerProcess) -> None:
    done = run(
        "--check",
        INFRAI_BASE_URL=server.root_url,
        OPENAI_BASE_URL="http://127.0.0.1:1/v1",
        OPENAI_API_KEY="k-1",
    )
    assert done.code == 5
    assert "not asked: EXTRACTION_GEMINI_API_KEY is not set" in done.out
    assert "not asked: EXTRACTION_LOCAL_BASE_URL" in done.out
    assert "failed: openai" in done.out and "/batches" in done.out
    assert "ai.batch.cancel: " in done.out


def test_json_and_check_are_two_things(run: Run) -> None:
    assert run("openai", "--json", "--check").code == 2
