"""What an adapter relies on, as data: calls, fields, limits, and what nobody has confirmed.

Each provider has one such contract beside its adapter. With the schema of the request lines, which
is taken from the code that writes them, it says exactly what leaves the building. Its hash is its
version: it changes with any of it.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_args

from pydantic import AliasChoices, BaseModel

from extraction_pipeline.providers.base import BatchProvider
from extraction_pipeline.providers.request_schema import request_schema


@dataclass(frozen=True)
class Source:
    """A text that the contract was written from, and its date where it has one."""

    title: str
    dated: str | None = None


@dataclass(frozen=True)
class Call:
    """One call that the adapter makes.

    `path` has its variable parts in braces. `sends` are fields of the body and `query` parameters;
    `headers` are those beside content type and the key. `answer` is the form in which the answer
    is read, `None` where only its status counts.
    """

    purpose: str
    method: str
    path: str
    sends: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    answer: type[BaseModel] | None = None
    documented: bool = True


@dataclass(frozen=True)
class OpenPoint:
    """Something that no source confirms: what the adapter does, and the setting that changes it."""

    what: str
    assumed: str
    setting: str | None = None


@dataclass(frozen=True)
class Contract:
    """Everything that an adapter relies on. `limit_sources` says of each field of
    `ProviderLimits` where its number is from; `credential` is the header that carries the key."""

    api: str
    version: str
    credential: str
    sources: tuple[Source, ...]
    calls: tuple[Call, ...]
    result: type[BaseModel]
    limit_sources: Mapping[str, str]
    open_points: tuple[OpenPoint, ...]


@dataclass(frozen=True)
class ContractText:
    """A contract as canonical JSON, and the SHA-256 of that (64 hex characters)."""

    document: str
    contract_hash: str

    @classmethod
    def of(cls, value: object) -> "ContractText":
        """The text of any JSON value."""
        document = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return cls(document, hashlib.sha256(document.encode()).hexdigest())


def contract_document(provider: BatchProvider) -> dict[str, Any]:
    """All that a provider's adapter relies on, under its present settings, as JSON. Pure."""
    contract = provider.contract
    return {
        "provider": provider.name,
        "api": contract.api,
        "version": contract.version,
        "credential": contract.credential,
        "sources": [asdict(source) for source in contract.sources],
        "calls": [
            {
                "purpose": call.purpose,
                "method": call.method,
                "path": call.path,
                "sends": list(call.sends),
                "query": list(call.query),
                "headers": list(call.headers),
                "reads": fields_read(call.answer) if call.answer else [],
                "documented": call.documented,
            }
            for call in contract.calls
        ],
        "request_line": request_schema(provider.encode_request),
        "result_line": fields_read(contract.result),
        "limits": [
            {"name": name, "value": value, "source": contract.limit_sources.get(name)}
            for name, value in asdict(provider.limits).items()
        ],
        "not_confirmed": [asdict(point) for point in contract.open_points],
    }


def fields_read(form: type[BaseModel]) -> list[str]:
    """The fields that a form reads, as paths. `a|b` are spellings of one, `a!` has to be there."""
    return list(_fields(form, ""))


def _fields(form: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in form.model_fields.items():
        alias = field.validation_alias or field.alias
        spellings = list(alias.choices) if isinstance(alias, AliasChoices) else [alias or name]
        shown = "|".join(str(spelling) for spelling in spellings)
        yield f"{prefix}{shown}{'!' if field.is_required() else ''}"
        inner = next(_forms_in(field.annotation), None)
        if inner is not None:
            yield from _fields(inner, f"{prefix}{shown}.")


def _forms_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _forms_in(part)
