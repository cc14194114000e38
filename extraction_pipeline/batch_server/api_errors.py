"""Errors of calls to the server, in OpenAI's form."""

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from extraction_pipeline.batch_server.openai_wire import error_body


class ApiError(Exception):
    """A call that cannot be served. The message quotes nothing of a request's content."""

    def __init__(
        self, status_code: int, message: str, *, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.body = error_body(message, code=code, param=param)


def no_such(kind: str, identifier: str, *, status_code: int = 404) -> ApiError:
    """The error for an id that names nothing."""
    return ApiError(status_code, f"No such {kind} object: {identifier[:80]}", param="id")


def on_api_error(request: Request, error: Exception) -> Response:
    """Turn an `ApiError` into its answer."""
    if not isinstance(error, ApiError):
        raise error
    return JSONResponse(error.body, error.status_code)


def on_http_exception(request: Request, error: Exception) -> Response:
    """Turn the framework's own errors (unknown path or method) into OpenAI's form."""
    if not isinstance(error, HTTPException):
        raise error
    return JSONResponse(error_body(error.detail), error.status_code, headers=error.headers)


def on_client_gone(request: Request, error: Exception) -> Response:
    """The client went away in the middle of its request; nobody reads this."""
    return Response(status_code=400)


def on_server_error(request: Request, error: Exception) -> Response:
    """Anything unforeseen: an answer in OpenAI's form, without the error's own text."""
    return JSONResponse(error_body("The server failed.", type="server_error"), 500)


EXCEPTION_HANDLERS = {
    ApiError: on_api_error,
    HTTPException: on_http_exception,
    ClientDisconnect: on_client_gone,
    Exception: on_server_error,
}
