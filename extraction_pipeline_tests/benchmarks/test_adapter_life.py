"""The trial of an adapter at a server: the steps that it tells, and how it ends."""

from pathlib import Path

import pytest

from benchmarks.adapter_life import Life
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.registry import ProviderName, build_api
from extraction_pipeline_tests.batch_server.process import ServerProcess
from extraction_pipeline_tests.providers.scripted_server import answer, scripted_server, send


@pytest.mark.parametrize(("name", "path"), [("openai", "/v1"), ("gemini", ""), ("infrai", "")])
def test_every_step_works_at_our_own_server(
    server: ServerProcess,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    path: str,
) -> None:
    endpoint = ProviderEndpoint(server.root_url + path, "k-1")
    life = Life(build_api(ProviderName(name), endpoint), "rules-baseline", 20)
    life.run(tmp_path)
    told = capsys.readouterr().out
    assert life.failed == []
    assert told.count("completed (ours)") == 2, told
    assert server.statistics()["jobs_created"] == 1


def test_a_step_that_fails_says_why_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with scripted_server(send(answer(404))) as server:
        endpoint = ProviderEndpoint(server.url, "k-1")
        life = Life(build_api(ProviderName.OPENAI, endpoint), "some-model", 1)
        life.run(tmp_path)
    assert life.failed == ["look", "find", "upload"]
    assert capsys.readouterr().out.count("FAILED   openai: ") == 3
