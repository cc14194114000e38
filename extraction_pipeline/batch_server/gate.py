"""What stands before every call: the key, and a request id on every answer."""

import hmac
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from extraction_pipeline.batch_server.openai_wire import error_body

OPEN_PATHS = frozenset({"/health"})


class Gate:
    """ASGI middleware. Without `api_key` every caller is let in."""

    def __init__(self, app: ASGIApp, api_key: str | None) -> None:
        self._app = app
        self._expected = None if api_key is None else f"Bearer {api_key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a call through, or answer 401."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = f"req_{uuid.uuid4().hex}"

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        if self._lets_in(scope):
            await self._app(scope, receive, send_with_id)
        else:
            body = error_body("The API key is missing or wrong.", code="invalid_api_key")
            await JSONResponse(body, 401)(scope, receive, send_with_id)

    def _lets_in(self, scope: Scope) -> bool:
        if self._expected is None or scope["path"] in OPEN_PATHS:
            return True
        given = Headers(scope=scope).get("authorization", "")
        return hmac.compare_digest(given.encode(), self._expected)
