"""The contract of each provider says what its adapter does: compared with what goes over the wire.

A call, a header, a query or a body's field that is not in the contract fails here, and so does one
that is in the contract and never comes.
"""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jsonschema
import pytest

from extraction_pipeline.providers.api import ApiProvider
from extraction_pipeline.providers.base import Sought, Submission
from extraction_pipeline.providers.contract import Call, ContractText
from extraction_pipeline.providers.contract_document import contract_document
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.registry import (
    BUILDERS,
    ProviderName,
    build_api,
    describe_provider,
)
from extraction_pipeline_tests.batch_server.process import ServerProcess, running_server, wait_until
from extraction_pipeline_tests.providers.sample_request import sample_request
from extraction_pipeline_tests.providers.scripted_server import (
    ScriptedServer,
    forwarded,
    scripted_server,
)
from extraction_pipeline_tests.providers.test_golden_requests import API_WAYS, GOLDEN

JOB_KEY = "contract.v1.0123456789abcdef"
GIVEN = "{X-Goog-Upload-URL}"
"""The one address that the provider itself gives, query and all."""
EVERY_PROVIDER = pytest.mark.parametrize("name", BUILDERS)
COMMON_HEADERS = frozenset(
    {
        *("host", "user-agent", "accept", "accept-encoding", "connection"),
        *("content-length", "content-type"),
    }
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("contract") / "state") as running:
        yield running


@dataclass(frozen=True)
class Seen:
    """One request as it went over the wire."""

    method: str
    path: str
    query: frozenset[str]
    headers: frozenset[str]
    fields: frozenset[str]


@contextmanager
def watched(server: ServerProcess) -> Iterator[ScriptedServer]:
    """The server behind a relay that keeps every request."""

    def relay(connection: socket.socket) -> None:
        connection.sendall(forwarded(running.requests[-1], server.root_url))

    with scripted_server(relay) as running:
        yield running


def seen(request: bytes) -> Seen:
    head, _, body = request.partition(b"\r\n\r\n")
    first, *headers = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    address = urlsplit(target)
    names = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in headers}
    return Seen(
        method,
        address.path,
        frozenset(name for name, _ in parse_qsl(address.query)),
        frozenset(names),
        frozenset(_fields(names.get("content-type", ""), body)),
    )


def _fields(content_type: str, body: bytes) -> Iterator[str]:
    if content_type.startswith("multipart/"):
        yield from (found.decode() for found in re.findall(rb'[ ;]name="([^"]+)"', body))
    elif content_type == "application/json" and body:
        yield from _paths("", json.loads(body))
    elif body:
        yield "the request lines"


def _paths(path: str, value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        yield path
        return
    for name, inner in value.items():
        yield from _paths(f"{path}.{name}" if path else name, inner)


def whole_life(provider: ApiProvider, folder: Path) -> None:
    """Every method that makes a call."""
    payload = folder / "payload"
    request = sample_request(
        model="rules-baseline", custom_id="0123456789abcdef-1", parameters={"temperature": 0}
    )
    payload.write_bytes(provider.encode_request(request) + b"\n")
    submission = Submission(JOB_KEY, request.model, payload=payload)
    files = provider.files
    if files is not None:
        input_id = files.upload(payload, JOB_KEY).input_id
        assert files.holds(input_id)
        submission = replace(submission, input_id=input_id, payload=None)
    job_id = provider.submit(submission).job_id
    status = wait_until(lambda: one if (one := provider.status(job_id)).phase.is_end else None)
    for reference in status.results:
        with provider.download(reference) as chunks:
            assert b"".join(chunks)
    now = datetime.now(UTC)
    provider.find(Sought(JOB_KEY, now, now, 1, "0123456789abcdef-"))
    provider.cancel(job_id)
    if files is not None:
        files.delete(submission.input_id or "")
    provider.clean_up(job_id, [])
    provider.look()


def _matches(call: Call, one: Seen, base_path: str) -> bool:
    pattern = re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(call.path))
    if call.path == GIVEN:
        pattern = r"/upload/.+"
    return one.method == call.method and re.fullmatch(base_path + pattern, one.path) is not None


def _fits(call: Call, one: Seen, credential: str) -> bool:
    allowed = COMMON_HEADERS | {credential.lower(), *(name.lower() for name in call.headers)}
    return (
        one.headers <= allowed
        and {name.lower() for name in call.headers} <= one.headers
        and (one.query <= set(call.query) or call.path == GIVEN)
        and one.fields == set(call.sends)
    )


@EVERY_PROVIDER
def test_every_call_is_in_the_contract_and_every_call_of_it_comes(
    name: ProviderName, server: ServerProcess, tmp_path: Path
) -> None:
    with watched(server) as relay:
        base_path = "/v1" if name in (ProviderName.LOCAL, ProviderName.OPENAI) else ""
        root_url = relay.url.removesuffix("/v1")
        provider = build_api(
            name, ProviderEndpoint(root_url + base_path, api_key="k-1", read_timeout=10)
        )
        whole_life(provider, tmp_path)
        requests = [seen(request) for request in relay.requests]
    contract = provider.contract
    made: set[str] = set()
    for one in requests:
        fitting = [
            call
            for call in contract.calls
            if _matches(call, one, base_path) and _fits(call, one, contract.credential)
        ]
        assert fitting, f"{name} makes a call that its contract does not have: {one}"
        made.update(call.purpose for call in fitting)
    assert made == {call.purpose for call in contract.calls}


@pytest.mark.parametrize("way", API_WAYS)
def test_the_golden_line_is_of_the_schema_and_another_is_not(way: str) -> None:
    schema = contract_document(API_WAYS[way])["request_line"]
    line = json.loads((GOLDEN / f"{way}.jsonl").read_bytes())
    jsonschema.validate(line, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**line, "user": "somebody"}, schema)
    constant = next(iter(schema["properties"]))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**line, constant: None}, schema)
    text = json.dumps(schema)
    for what in ("the text of the document", "the instructions", "the id of the request"):
        assert what in text
    assert "Probe" not in text and "probe" not in text


@EVERY_PROVIDER
def test_a_contract_is_whole_and_its_hash_is_its_own(name: ProviderName) -> None:
    provider = describe_provider(name, ProviderEndpoint("https://host"))
    document = contract_document(provider)
    for limit in document["limits"]:
        assert limit["source"] or limit["value"] is None, limit["name"]
    assert document["sources"] and document["not_confirmed"] and document["result_line"]
    text = ContractText.of(document)
    assert text == ContractText.of(contract_document(provider))
    other = ContractText.of({**document, "version": "v9"})
    assert other.contract_hash != text.contract_hash
    assert "k-1" not in text.document


def test_a_setting_that_changes_what_is_sent_changes_the_hash() -> None:
    hashes = {
        ContractText.of(contract_document(API_WAYS[way])).contract_hash
        for way in API_WAYS
        if way.startswith(("anthropic", "gemini"))
    }
    assert len(hashes) == 4
