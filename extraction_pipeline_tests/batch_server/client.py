"""A plain HTTP client of the batch server, apart from the project's own providers."""

import json
from collections.abc import Iterable
from typing import Any

import requests

from extraction_pipeline_tests.batch_server.process import wait_until

ENDS = ("completed", "failed", "expired", "cancelled")
NOTE_SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": ["string", "null"]}},
    "required": ["title"],
    "additionalProperties": False,
}


def line(custom_id: str, text: str = "A fictional note.", **changes: Any) -> dict[str, Any]:
    """One good request, with changes to its body."""
    body = {
        "model": "rules-baseline",
        "messages": [
            {"role": "system", "content": "Extract."},
            {"role": "user", "content": text},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "note", "strict": True, "schema": NOTE_SCHEMA},
        },
        "max_completion_tokens": 500,
        **changes,
    }
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def jsonl(lines: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in lines)


class Client:
    """Calls by path; answers of any status are returned."""

    def __init__(self, base_url: str, key: str | None = None) -> None:
        self.base_url = base_url
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    def call(self, method: str, path: str, **arguments: Any) -> requests.Response:
        return requests.request(
            method, self.base_url + path, headers=self.headers, timeout=30, **arguments
        )

    def upload(
        self, content: bytes, purpose: str = "batch", name: str = "in.jsonl"
    ) -> requests.Response:
        return self.call(
            "POST", "/files", files={"file": (name, content)}, data={"purpose": purpose}
        )

    def create(self, file_id: str, **changes: Any) -> requests.Response:
        body = {
            "input_file_id": file_id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            **changes,
        }
        return self.call("POST", "/batches", json=body)

    def batch_of(self, content: bytes, **changes: Any) -> str:
        """Upload and create; the batch's id."""
        return str(self.create(self.upload(content).json()["id"], **changes).json()["id"])

    def get_batch(self, batch_id: str) -> dict[str, Any]:
        return dict(self.call("GET", f"/batches/{batch_id}").json())

    def ended(self, batch_id: str, seconds: float = 15.0) -> dict[str, Any]:
        """The batch when it is at its end."""

        def end() -> dict[str, Any] | None:
            batch = self.get_batch(batch_id)
            return batch if batch["status"] in ENDS else None

        return dict(wait_until(end, seconds))

    def rows(self, file_id: str) -> list[dict[str, Any]]:
        content = self.call("GET", f"/files/{file_id}/content").content
        assert content.endswith(b"\n")
        return [json.loads(row) for row in content.splitlines()]
