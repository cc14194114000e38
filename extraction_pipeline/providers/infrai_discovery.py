"""What Infrai says of a capability of its own: its contract in force, which can be compared.

`GET /v1/discovery/{capability}` is public. The hash is over everything but the moment it was made,
so two readings have one hash exactly where nothing changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import AliasChoices, Field

from extraction_pipeline.providers.contract import ContractText
from extraction_pipeline.providers.infrai_wire import read_envelope
from extraction_pipeline.providers.wire import Lenient, Wire

_CHANGING = frozenset({"generated_at", "request_id", "latency_ms", "cost_usd", "cache_hit"})


@dataclass(frozen=True)
class ParameterContract:
    """One parameter of a capability."""

    name: str
    type: str | None
    required: bool


@dataclass(frozen=True)
class ErrorContract:
    """One error that a capability can answer with, and whether asking again can help."""

    code: str
    retryable: bool | None
    http_status: int | None = None


@dataclass(frozen=True)
class CapabilityContract:
    """A capability as the provider describes it.

    `answer` are the fields of its answer, as far as they are described; `document` is the whole as
    canonical JSON, `contract_hash` its SHA-256 (64 hex characters). A capability that is not
    `available` is a design input: trying again does not help.
    """

    capability: str
    available: bool
    method: str | None
    path: str | None
    parameters: tuple[ParameterContract, ...]
    errors: tuple[ErrorContract, ...]
    answer: tuple[ParameterContract, ...]
    document: str = field(repr=False)
    contract_hash: str

    def parameter_names(self) -> frozenset[str]:
        """The names of all parameters."""
        return frozenset(parameter.name for parameter in self.parameters)


class _Parameter(Wire):
    name: str = Field(min_length=1)
    type: Lenient[str] = None
    required: Lenient[bool] = None


class _Error(Wire):
    code: str = Field(min_length=1)
    retryable: Lenient[bool] = None
    http_status: Lenient[int] = Field(
        default=None, validation_alias=AliasChoices("http_status", "status")
    )


class _Description(Wire):
    id: str = Field(min_length=1, validation_alias=AliasChoices("id", "capability", "name"))
    available: Lenient[bool] = None
    method: Lenient[str] = None
    path: Lenient[str] = None
    params: Lenient[Any] = Field(
        default=None, validation_alias=AliasChoices("params", "parameters")
    )
    response: Lenient[Any] = None
    errors: Lenient[list[_Error]] = None


def read_contract(body: bytes) -> CapabilityContract:
    """The contract in a discovery answer, in an envelope or not. Raises `ValueError`."""
    data = read_envelope(body).data
    if not isinstance(data, Mapping):
        raise ValueError("the answer describes no capability")
    description = _Description.model_validate(data)
    lasting = {name: value for name, value in data.items() if name not in _CHANGING}
    text = ContractText.of(lasting)
    return CapabilityContract(
        capability=description.id,
        available=description.available is not False,
        method=description.method,
        path=description.path,
        parameters=_parameters(description.params),
        errors=tuple(
            ErrorContract(one.code, one.retryable, one.http_status)
            for one in description.errors or []
        ),
        answer=_parameters(description.response),
        document=text.document,
        contract_hash=text.contract_hash,
    )


def _parameters(described: object) -> tuple[ParameterContract, ...]:
    """Parameters as a list, as an object by name, or as a JSON Schema."""
    if isinstance(described, Mapping) and isinstance(described.get("properties"), Mapping):
        required = described.get("required")
        names = required if isinstance(required, list) else []
        described = [
            {"name": name, "type": _type_of(one), "required": name in names}
            for name, one in {**dict.fromkeys(map(str, names)), **described["properties"]}.items()
        ]
    elif isinstance(described, Mapping):
        described = [
            {"name": name, **(one if isinstance(one, Mapping) else {"type": str(one)})}
            for name, one in described.items()
        ]
    if not isinstance(described, list):
        return ()
    found = [_Parameter.model_validate(one) for one in described]
    return tuple(ParameterContract(one.name, one.type, one.required is True) for one in found)


def _type_of(schema: object) -> str | None:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return kind if isinstance(kind, str) else None
