"""An OpenAI-compatible chat endpoint for tests of the relay: real HTTP, scripted answers."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, bytes]


def completion(content: str = '{"title": "relayed"}', **changes: Any) -> Answer:
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": content}}
    body = {
        "id": "chatcmpl-up",
        "object": "chat.completion",
        "model": "upstream",
        "choices": [choice],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    } | changes
    return 200, json.dumps(body).encode()


def refusal(status: int) -> Answer:
    return status, json.dumps({"error": {"message": "no", "type": "t", "code": "c"}}).encode()


class ChatEndpoint:
    """Answers by a function of the request; keeps every request with its headers."""

    def __init__(self, answer: Callable[[dict[str, Any]], Answer]) -> None:
        endpoint = self
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with endpoint._lock:
                    endpoint.requests.append({"path": self.path, **body})
                    endpoint.headers.append({k.lower(): v for k, v in self.headers.items()})
                    endpoint.at_once += 1
                    endpoint.most_at_once = max(endpoint.most_at_once, endpoint.at_once)
                try:
                    status, said = endpoint.answer(body)
                finally:
                    with endpoint._lock:
                        endpoint.at_once -= 1
                self.send_response(status)
                self.send_header("content-length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, format: str, *arguments: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def forget(self) -> None:
        """As if nothing had been asked."""
        with self._lock:
            self.requests, self.headers, self.most_at_once = [], [], self.at_once

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def chat_endpoint(answer: Callable[[dict[str, Any]], Answer]) -> Iterator[ChatEndpoint]:
    """An endpoint that runs until the block ends."""
    endpoint = ChatEndpoint(answer)
    endpoint.start()
    try:
        yield endpoint
    finally:
        endpoint.close()
