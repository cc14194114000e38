"""A create call that carries its payload is not sent for longer than a bound."""

import json
import time

import pytest

from extraction_pipeline.providers.dialect import ProviderDialect
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import OutcomeUnknown
from extraction_pipeline.providers.http import HttpClient
from extraction_pipeline.providers.openai_translation import read_error
from extraction_pipeline_tests.providers.scripted_server import answer, scripted_server, send


class SlowBody:
    """A payload of a megabyte that comes in pieces of a kilobyte, a hundredth of a second each."""

    def __init__(self) -> None:
        self.left = 1024

    def __len__(self) -> int:
        return 1024 * 1024

    def read(self, size: int = -1) -> bytes:
        time.sleep(0.01)
        self.left -= 1
        return b"x" * 1024


def test_a_create_call_that_is_sent_for_too_long_is_broken_off_and_its_outcome_unknown():
    body = SlowBody()
    with scripted_server(send(answer(200, b"{}"))) as server, pytest.raises(OutcomeUnknown):
        endpoint = ProviderEndpoint(server.url, send_timeout=0.2)
        client = HttpClient(endpoint, ProviderDialect("test", {}, read_error))
        client.create("/batches", body, json.loads, last_look=lambda: None)
    assert 1024 - body.left < 200
