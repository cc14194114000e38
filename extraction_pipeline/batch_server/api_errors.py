"""Errors of calls to the server, each in the form of the wire format that the call was in."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from extraction_pipeline.batch_server import chat
from extraction_pipeline.batch_server.anthropic.wire import error_body as anthropic_error
from extraction_pipeline.batch_server.calls import Call
from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.gemini.wire import error_body as gemini_error
from extraction_pipeline.batch_server.infrai.wire import error_body as infrai_error


class ApiError(Exception):
    """A call that cannot be served. The message quotes nothing of a request's content.

    `code` and `param` are in the words of the call's wire format; one that has no place for them
    leaves them out.
    """

    def __init__(
        self, status_code: int, message: str, *, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.message = message
        self.code = code
        self.param = param


def no_such(kind: str, identifier: str, *, status_code: int = 404) -> ApiError:
    """The error for an id that names nothing."""
    return ApiError(status_code, f"No such {kind} object: {identifier[:80]}", param="id")


def invalid_body(error: ValidationError) -> ApiError:
    """The error for a body that is not what it should be: its first fault."""
    fault = error.errors(include_input=False, include_url=False)[0]
    param = ".".join(str(part) for part in fault["loc"])
    return ApiError(400, f"{param or 'The body'}: {fault['msg']}.", param=param)


def error_answer(
    scope: Scope, error: ApiError, headers: Mapping[str, str] | None = None
) -> Response:
    """The answer to a call that cannot be served, with the call's id."""
    call = Call.of(scope)
    answer = JSONResponse(_body(call, error), error.status_code, headers=headers)
    if call.id_header is not None:
        answer.headers[call.id_header] = call.request_id
    return answer


def _body(call: Call, error: ApiError) -> dict[str, Any]:
    status, message, code = error.status_code, error.message, error.code
    match call.dialect:
        case Dialect.ANTHROPIC:
            return anthropic_error(status, message, call.request_id)
        case Dialect.GEMINI:
            return gemini_error(status, message, code)
        case Dialect.INFRAI:
            return infrai_error(call, status, message, code)
        case Dialect.OPENAI:
            kind = "server_error" if status >= 500 else "invalid_request_error"
            return chat.error_body(message, type=kind, code=code, param=error.param)


def on_api_error(request: Request, error: Exception) -> Response:
    """Turn an `ApiError` into its answer."""
    if not isinstance(error, ApiError):
        raise error
    return error_answer(request.scope, error)


def on_http_exception(request: Request, error: Exception) -> Response:
    """Turn the framework's own errors (unknown path or method) into the call's form."""
    if not isinstance(error, HTTPException):
        raise error
    return error_answer(request.scope, ApiError(error.status_code, error.detail), error.headers)


def on_client_gone(request: Request, error: Exception) -> Response:
    """The client went away in the middle of its request; nobody reads this."""
    return Response(status_code=400)


def on_server_error(request: Request, error: Exception) -> Response:
    """Anything unforeseen: an answer in the call's form, without the error's own text."""
    return error_answer(request.scope, ApiError(500, "The server failed."))


EXCEPTION_HANDLERS = {
    ApiError: on_api_error,
    HTTPException: on_http_exception,
    ClientDisconnect: on_client_gone,
    Exception: on_server_error,
}
