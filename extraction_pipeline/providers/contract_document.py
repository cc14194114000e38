"""The contract of an adapter as one JSON document, under the settings of the day."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, get_args

from pydantic import AliasChoices, BaseModel

from extraction_pipeline.providers.api import ApiProvider
from extraction_pipeline.providers.request_schema import request_schema


def contract_document(provider: ApiProvider) -> dict[str, Any]:
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
