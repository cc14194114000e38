"""What stands before every call: the key, and a request id on every answer that has one."""

import hmac

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from extraction_pipeline.batch_server.api_errors import ApiError, error_answer
from extraction_pipeline.batch_server.calls import Call, given_key, is_open, use_google_path
from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.gemini.wire import BAD_KEY


class Gate:
    """ASGI middleware. Without `api_key` every caller is let in."""

    def __init__(self, app: ASGIApp, api_key: str | None) -> None:
        self._app = app
        self._expected = None if api_key is None else api_key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a call through, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        use_google_path(scope)
        call = Call.of(scope)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start" and call.id_header is not None:
                MutableHeaders(scope=message)[call.id_header] = call.request_id
            await send(message)

        refusal = self._refusal(scope, call)
        if refusal is None:
            await self._app(scope, receive, send_with_id)
        else:
            await error_answer(scope, refusal)(scope, receive, send_with_id)

    def _refusal(self, scope: Scope, call: Call) -> ApiError | None:
        if self._expected is None or is_open(scope):
            return None
        given = given_key(scope)
        if given is not None and hmac.compare_digest(given.encode(), self._expected):
            return None
        return wrong_key(call.dialect, given=given is not None)


def wrong_key(dialect: Dialect, *, given: bool) -> ApiError:
    """The refusal of a call without the right key."""
    message = "The API key is missing or wrong."
    if dialect is Dialect.GEMINI:
        # Google takes a wrong key for an invalid argument, and only a missing one for a lack of
        # permission.
        return ApiError(400, message, code=BAD_KEY) if given else ApiError(403, message)
    return ApiError(401, message, code="invalid_api_key")
