"""Result bodies as they come: cut in the middle under a good status, and with odd characters."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from extraction_pipeline.providers.base import (
    AnswerOutcome,
    BatchProvider,
    ResultKind,
    ResultReference,
)
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import CallFailed
from extraction_pipeline.providers.registry import BUILDERS, ProviderName, build_api
from extraction_pipeline_tests.providers.scripted_server import (
    Script,
    ScriptedServer,
    answer,
    scripted_server,
    send,
)

TEXT = '{"title": "a\u2028b\u2029c\u0085d"}'
CHOICE = {"message": {"content": TEXT}, "finish_reason": "stop"}
OPENAI_LINE = {"custom_id": "a", "response": {"status_code": 200, "body": {"choices": [CHOICE]}}}
CANDIDATE = {"content": {"parts": [{"text": TEXT}]}, "finishReason": "STOP"}
LINES: Mapping[ProviderName, dict[str, Any]] = {
    ProviderName.LOCAL: OPENAI_LINE,
    ProviderName.OPENAI: OPENAI_LINE,
    ProviderName.ANTHROPIC: {
        "custom_id": "a",
        "result": {
            "type": "succeeded",
            "message": {"content": [{"type": "text", "text": TEXT}], "stop_reason": "end_turn"},
        },
    },
    ProviderName.GEMINI: {"key": "a", "response": {"candidates": [CANDIDATE]}},
    ProviderName.INFRAI: {"custom_id": "a", "ok": True, "result": {"choices": [CHOICE]}},
}
REFERENCES = {ProviderName.GEMINI: "files/batch-b1", ProviderName.INFRAI: "b1"}
EVERY_PROVIDER = pytest.mark.parametrize("name", BUILDERS)


def line_of(name: ProviderName) -> bytes:
    """One line with the separators as they are, which JSON allows."""
    line = json.dumps(LINES[name], ensure_ascii=False).encode()
    assert "\u2028".encode() in line
    return line


def body_of(name: ProviderName) -> bytes:
    """Two results, in the form in which the provider gives them."""
    if name is ProviderName.INFRAI:
        data = {"items": [LINES[name], {**LINES[name], "custom_id": "b"}]}
        return json.dumps({"ok": True, "data": data}, ensure_ascii=False).encode()
    return line_of(name) + b"\n" + line_of(name).replace(b'"a"', b'"b"', 1) + b"\n"


def scripts_of(name: ProviderName, result: bytes) -> list[Script]:
    """What the server says: before the results themselves, OpenAI's are looked at as a file."""
    if name in (ProviderName.LOCAL, ProviderName.OPENAI):
        return [send(answer(200, b'{"id": "f1", "filename": "x"}')), send(result)]
    return [send(result)]


def provider_at(name: ProviderName, server: ScriptedServer) -> BatchProvider:
    endpoint = ProviderEndpoint(server.url.removesuffix("/v1"), api_key="k-1", read_timeout=5)
    return build_api(name, endpoint)


def downloaded(name: ProviderName, result: bytes) -> list[bytes]:
    """The lines of the results, split as the pipeline splits them: at newline bytes only."""
    reference = ResultReference(ResultKind.OUTPUT, REFERENCES.get(name, "f1"))
    with scripted_server(*scripts_of(name, result)) as server:
        provider = provider_at(name, server)
        with provider.download(reference) as chunks:
            return b"".join(chunks).split(b"\n")[:-1]


def chunked(body: bytes) -> bytes:
    """The same body in one chunk, without the end that says that it was all."""
    framed = b"%x\r\n%b\r\n" % (len(body), body)
    return answer(200, framed, "Transfer-Encoding: chunked", framed=False)


@EVERY_PROVIDER
def test_line_separators_end_no_line_and_come_back(name: ProviderName) -> None:
    lines = downloaded(name, answer(200, body_of(name)))
    assert len(lines) == 2
    with scripted_server(send(answer(200))) as server:
        provider = provider_at(name, server)
        results = [provider.decode_result(line) for line in lines]
    assert [result.custom_id for result in results] == ["a", "b"]
    for result in results:
        assert (result.outcome, result.text) == (AnswerOutcome.COMPLETED, TEXT)


@EVERY_PROVIDER
@pytest.mark.parametrize("missing", [1, 40])
def test_a_body_that_is_shorter_than_its_length_raises(name: ProviderName, missing: int) -> None:
    with pytest.raises(CallFailed):
        downloaded(name, answer(200, body_of(name))[:-missing])


@EVERY_PROVIDER
def test_a_body_whose_last_chunk_never_comes_raises(name: ProviderName) -> None:
    with pytest.raises(CallFailed):
        downloaded(name, chunked(body_of(name)))
