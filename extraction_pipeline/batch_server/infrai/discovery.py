"""`/v1/discovery`: what this server can do, in the form in which Infrai tells of its API.

Public, as there: a client reads it before it has a key.
"""

from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from extraction_pipeline.batch_server.api_errors import ApiError
from extraction_pipeline.batch_server.calls import Call
from extraction_pipeline.batch_server.infrai import wire
from extraction_pipeline.batch_server.infrai.wire import BatchRequestItem, SubmitOptions, envelope

VERSION = "1"
_BILLING = {"unit": "request", "price_usd": 0.0}


def routes() -> list[BaseRoute]:
    """Paths and methods."""
    return [
        Route("/v1/discovery", _list, methods=["GET"]),
        Route("/v1/discovery/{capability}", _get, methods=["GET"]),
    ]


def _list(request: Request) -> Response:
    capabilities = [_summary(name) for name in _PATHS]
    return _answer(request, {"capabilities": capabilities})


def _get(request: Request) -> Response:
    name = request.path_params["capability"]
    if name not in _PATHS:
        raise ApiError(404, "There is no capability of this name.")
    return _answer(request, {**_summary(name), **_details(name)})


def _answer(request: Request, content: dict[str, Any]) -> Response:
    generated = datetime.now(UTC).isoformat(timespec="seconds")
    data = {"version": VERSION, "generated_at": generated, **content}
    return JSONResponse(envelope(Call.of(request.scope), data))


_PATHS: dict[str, tuple[str | None, str | None]] = {
    "ai.batch.submit": ("POST", wire.SUBMIT_PATH),
    "ai.batch.status": ("GET", wire.STATUS_PATH),
    "ai.batch.results": ("GET", wire.RESULTS_PATH),
    "ai.batch.cancel": ("POST", wire.CANCEL_PATH),
    # What a request of a batch may ask for, and only there: no path of its own is served.
    **dict.fromkeys(sorted(wire.CHAT_CAPABILITIES), (None, None)),
}


def _summary(name: str) -> dict[str, Any]:
    method, path = _PATHS[name]
    return {
        "id": name,
        "method": method,
        "path": path,
        "available": True,
        "regions": ["local"],
        "vendors": [wire.VENDOR],
        "billing": _BILLING,
    }


def _details(name: str) -> dict[str, Any]:
    return {
        "params": _submit_params()
        if name == "ai.batch.submit"
        else _PARAMS.get(name, _CHAT_PARAMS),
        "response": _RESPONSES.get(name, {}),
        "errors": [
            {
                "code": error["code"],
                "http_status": status,
                "retryable": error["retryable"],
            }
            for status, error in _errors(name)
        ],
        "examples": [],
    }


def _submit_params() -> dict[str, Any]:
    params = SubmitOptions.model_json_schema()
    item = BatchRequestItem.model_json_schema()
    params["properties"] = {
        "requests": {"type": "array", "minItems": 1, "items": item},
        **params["properties"],
    }
    params["required"] = ["requests"]
    return params


def _errors(name: str) -> list[tuple[int, dict[str, Any]]]:
    known = [*_ERRORS.get(name, [(400, None)]), (401, None), (500, None)]
    return [
        (status, wire.error_of(code or wire.code_of(status), "", status)) for status, code in known
    ]


_ERRORS: dict[str, list[tuple[int, str | None]]] = {
    "ai.batch.submit": [(400, None), (409, wire.CONFLICT), (413, None)],
    "ai.batch.status": [(404, None)],
    "ai.batch.results": [(404, None), (409, wire.NOT_FINISHED)],
    "ai.batch.cancel": [(404, None), (409, wire.ENDED)],
}
_ID_PARAMS = {
    "type": "object",
    "properties": {"id": {"type": "string"}},
    "required": ["id"],
}
_PARAMS = dict.fromkeys(("ai.batch.status", "ai.batch.results", "ai.batch.cancel"), _ID_PARAMS)
_CHAT_PARAMS = {
    "type": "object",
    "properties": {"model": {"type": "string"}, "messages": {"type": "array"}},
    "required": ["model", "messages"],
}
_COUNT = {"type": "integer"}
_STATUS_RESPONSE = {
    "type": "object",
    "properties": {
        "batch_id": {"type": "string"},
        "status": {"type": "string", "enum": sorted(set(wire.BATCH_STATES.values()))},
        "progress": {"type": "number"},
        "total_count": _COUNT,
        "completed_count": _COUNT,
        "failed_count": _COUNT,
    },
}
_RESPONSES = {
    "ai.batch.submit": {
        "type": "object",
        "properties": {
            "batch_id": {"type": "string"},
            "state": {"type": "string", "enum": sorted(set(wire.BATCH_STATES.values()))},
            "total_count": _COUNT,
            "estimated_eta": {"type": ["string", "null"]},
            "estimated_cost_usd": {"type": ["number", "null"]},
        },
    },
    "ai.batch.status": _STATUS_RESPONSE,
    "ai.batch.cancel": _STATUS_RESPONSE,
    "ai.batch.results": {
        "type": "object",
        "properties": {
            "batch_id": {"type": "string"},
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "index": _COUNT,
                        "custom_id": {"type": ["string", "null"]},
                        "metadata": {"type": ["object", "null"]},
                        "ok": {"type": "boolean"},
                        "result": {"type": ["object", "null"]},
                        "error": {"type": ["object", "null"]},
                    },
                },
            },
        },
    },
}
