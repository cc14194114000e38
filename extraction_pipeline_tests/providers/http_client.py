"""The HTTP client that tests of it use, and an error's answer."""

import json

from extraction_pipeline.providers.dialect import ProviderDialect
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.http import HttpClient
from extraction_pipeline.providers.openai_translation import read_error
from extraction_pipeline_tests.providers.scripted_server import (
    answer,
)

KEY = "sk-not-to-be-seen"


def client(url: str, read_timeout: float = 5.0, connect_timeout: float = 2.0) -> HttpClient:
    return HttpClient(
        ProviderEndpoint(
            base_url=url,
            api_key=KEY,
            read_timeout=read_timeout,
            connect_timeout=connect_timeout,
        ),
        ProviderDialect(
            provider="test",
            headers={"Authorization": f"Bearer {KEY}"},
            read_error=read_error,
            request_id_header="x-request-id",
        ),
    )


def error_answer(status: int, code: str | None, *headers: str) -> bytes:
    body = json.dumps({"error": {"message": "Jane Doe", "type": None, "code": code}}).encode()
    return answer(status, body, *headers)
