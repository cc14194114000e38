"""Plain HTTP clients of the wire formats beside OpenAI's, alike enough to be tested as one."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import requests

from extraction_pipeline_tests.batch_server.client import NOTE_SCHEMA
from extraction_pipeline_tests.batch_server.process import wait_until

TEXT = "A fictional note."


@dataclass(frozen=True)
class Outcome:
    """How one request ended: the mark that was sent with it, and the answer or an error."""

    mark: str
    text: str | None
    error: Any


class WireClient(ABC):
    """Calls by path; answers of any status are returned."""

    key_header: str

    def __init__(self, root_url: str, key: str | None = "any") -> None:
        self.root_url = root_url
        self.headers = {} if key is None else self._key(key)

    def call(self, method: str, path: str, **arguments: Any) -> requests.Response:
        headers = {**self.headers, **arguments.pop("headers", {})}
        return requests.request(
            method, self.root_url + path, headers=headers, timeout=30, **arguments
        )

    def create(self, marks: Sequence[str], *, model: str = "rules-baseline", **more: Any) -> str:
        """Create a batch of fictional notes; its id."""
        answer = self.ask(marks, model=model, **more)
        assert answer.status_code == 200, answer.text
        return self.id_in(answer.json())

    def ended(self, batch_id: str, seconds: float = 15.0) -> dict[str, Any]:
        """The batch when it is at its end."""
        return dict(wait_until(lambda: self.end_of(batch_id), seconds))

    def _key(self, key: str) -> dict[str, str]:
        return {self.key_header: key}

    @abstractmethod
    def ask(self, marks: Sequence[str], **more: Any) -> requests.Response: ...

    @abstractmethod
    def id_in(self, body: dict[str, Any]) -> str: ...

    @abstractmethod
    def end_of(self, batch_id: str) -> dict[str, Any] | None: ...

    @abstractmethod
    def outcomes(self, batch_id: str) -> list[Outcome]: ...

    @abstractmethod
    def cancel(self, batch_id: str) -> requests.Response: ...


class AnthropicClient(WireClient):
    key_header = "x-api-key"

    def __init__(self, root_url: str, key: str | None = "any") -> None:
        super().__init__(root_url, key)
        self.headers["anthropic-version"] = "2023-06-01"

    def request(self, mark: str, text: str = TEXT, **changes: Any) -> dict[str, Any]:
        params = {
            "model": "rules-baseline",
            "max_tokens": 500,
            "system": "Extract.",
            "messages": [{"role": "user", "content": text}],
            "output_config": {"format": {"type": "json_schema", "schema": NOTE_SCHEMA}},
            **changes,
        }
        return {"custom_id": mark, "params": params}

    def ask(self, marks: Sequence[str], **more: Any) -> requests.Response:
        body = {"requests": [self.request(mark, **more) for mark in marks]}
        return self.call("POST", "/v1/messages/batches", json=body)

    def id_in(self, body: dict[str, Any]) -> str:
        return str(body["id"])

    def get(self, batch_id: str) -> dict[str, Any]:
        return dict(self.call("GET", f"/v1/messages/batches/{batch_id}").json())

    def end_of(self, batch_id: str) -> dict[str, Any] | None:
        batch = self.get(batch_id)
        return batch if batch["processing_status"] == "ended" else None

    def lines(self, batch_id: str) -> list[dict[str, Any]]:
        content = self.call("GET", f"/v1/messages/batches/{batch_id}/results").content
        return [json.loads(line) for line in content.splitlines()]

    def outcomes(self, batch_id: str) -> list[Outcome]:
        found = []
        for line in self.lines(batch_id):
            result = line["result"]
            message = result.get("message")
            text = message["content"][0]["text"] if message else None
            error = None if message else result.get("error", result["type"])
            found.append(Outcome(line["custom_id"], text, error))
        return found

    def cancel(self, batch_id: str) -> requests.Response:
        return self.call("POST", f"/v1/messages/batches/{batch_id}/cancel")


class GeminiClient(WireClient):
    key_header = "x-goog-api-key"

    def request(self, text: str = TEXT, **changes: Any) -> dict[str, Any]:
        return {
            "contents": [{"role": "user", "parts": [{"text": text}]}],
            "systemInstruction": {"parts": [{"text": "Extract."}]},
            "generationConfig": {
                "responseMimeType": "application/json",
                "responseJsonSchema": NOTE_SCHEMA,
                "maxOutputTokens": 500,
            },
            **changes,
        }

    def ask(self, marks: Sequence[str], **more: Any) -> requests.Response:
        model = more.pop("model", "rules-baseline")
        name = more.pop("display_name", None)
        items = [{"request": self.request(**more), "metadata": {"key": mark}} for mark in marks]
        batch = {"inputConfig": {"requests": {"requests": items}}}
        return self.submit(batch if name is None else {**batch, "displayName": name}, model)

    def submit(self, batch: dict[str, Any], model: str = "rules-baseline") -> requests.Response:
        path = f"/v1beta/models/{model}:batchGenerateContent"
        return self.call("POST", path, json={"batch": batch})

    def upload(self, content: bytes, name: str = "in.jsonl") -> dict[str, Any]:
        """A resumable upload in its two calls."""
        begun = self.call(
            "POST",
            "/upload/v1beta/files",
            headers={
                "X-Goog-Upload-Protocol": "resumable",
                "X-Goog-Upload-Command": "start",
                "X-Goog-Upload-Header-Content-Length": str(len(content)),
                "X-Goog-Upload-Header-Content-Type": "application/jsonl",
            },
            json={"file": {"display_name": name}},
        )
        assert (begun.status_code, begun.content) == (200, b"")
        sent = requests.post(
            begun.headers["X-Goog-Upload-URL"],
            headers={"X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize"},
            data=content,
            timeout=30,
        )
        assert sent.headers["X-Goog-Upload-Status"] == "final"
        return dict(sent.json()["file"])

    def file_of(self, marks: Sequence[str], **more: Any) -> bytes:
        lines = [{"key": mark, "request": self.request(**more)} for mark in marks]
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    def id_in(self, body: dict[str, Any]) -> str:
        return str(body["name"]).removeprefix("batches/")

    def get(self, batch_id: str) -> dict[str, Any]:
        return dict(self.call("GET", f"/v1beta/batches/{batch_id}").json())

    def end_of(self, batch_id: str) -> dict[str, Any] | None:
        operation = self.get(batch_id)
        return operation if operation.get("done") else None

    def responses(self, batch_id: str) -> list[dict[str, Any]]:
        response = self.get(batch_id).get("response", {})
        if "responsesFile" in response:
            path = f"/download/v1beta/{response['responsesFile']}:download?alt=media"
            return [json.loads(line) for line in self.call("GET", path).content.splitlines()]
        return list(response.get("inlinedResponses", {}).get("inlinedResponses", []))

    def outcomes(self, batch_id: str) -> list[Outcome]:
        found = []
        for item in self.responses(batch_id):
            mark = item.get("key") or item.get("metadata", {}).get("key")
            response = item.get("response")
            text = response["candidates"][0]["content"]["parts"][0]["text"] if response else None
            found.append(Outcome(mark, text, item.get("error")))
        return found

    def cancel(self, batch_id: str) -> requests.Response:
        return self.call("POST", f"/v1beta/batches/{batch_id}:cancel")


class InfraiClient(WireClient):
    key_header = "Authorization"

    def _key(self, key: str) -> dict[str, str]:
        return {self.key_header: f"Bearer {key}"}

    def item(self, mark: str, text: str = TEXT, **changes: Any) -> dict[str, Any]:
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
            "metadata": {"mark": mark},
            **changes,
        }
        return {"capability": "ai.chat", "body": body}

    def ask(self, marks: Sequence[str], **more: Any) -> requests.Response:
        key = more.pop("key", None)
        options = more.pop("options", {})
        body = {"requests": [self.item(mark, **more) for mark in marks], **options}
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.call("POST", "/v1/ai/batch/submit", json=body, headers=headers)

    def id_in(self, body: dict[str, Any]) -> str:
        return str(body["data"]["batch_id"])

    def get(self, batch_id: str) -> dict[str, Any]:
        return dict(self.call("GET", f"/v1/ai/batch/status/{batch_id}").json()["data"])

    def end_of(self, batch_id: str) -> dict[str, Any] | None:
        data = self.get(batch_id)
        return data if data["status"] in ("completed", "cancelled", "expired") else None

    def items(self, batch_id: str) -> list[dict[str, Any]]:
        answer = self.call("GET", f"/v1/ai/batch/results/{batch_id}")
        return list(answer.json()["data"]["items"])

    def outcomes(self, batch_id: str) -> list[Outcome]:
        found = []
        for item in self.items(batch_id):
            text = item["result"]["choices"][0]["message"]["content"] if item["ok"] else None
            found.append(Outcome(item["metadata"]["mark"], text, item["error"]))
        return found

    def cancel(self, batch_id: str) -> requests.Response:
        return self.call("POST", f"/v1/ai/batch/cancel/{batch_id}")


WIRE_CLIENTS = (AnthropicClient, GeminiClient, InfraiClient)
