"""What `extraction-pipeline contract` does."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click
import orjson

from extraction_pipeline.cli.environment import read_settings
from extraction_pipeline.contracts.checking import OWN, Checked, check, keep_own
from extraction_pipeline.contracts.history import ContractHistory
from extraction_pipeline.lifecycle.opening import api_endpoint_of
from extraction_pipeline.providers.api import ApiProvider
from extraction_pipeline.providers.contract import ContractText
from extraction_pipeline.providers.contract_document import contract_document
from extraction_pipeline.providers.errors import CallFailed, ProviderError
from extraction_pipeline.providers.registry import (
    BUILDERS,
    ProviderName,
    build_api,
    describe_provider,
)
from extraction_pipeline.reports.table import Cell, render_table
from extraction_pipeline.settings import Settings

PROVIDER_DIFFERS = 5
START_IT = (
    "Commands start the local batch server as they need it, on a port of its own; to check one, "
    "run `extraction-pipeline batch-server`, or name one in EXTRACTION_LOCAL_BASE_URL."
)


def show_contract(provider: str | None, *, checking: bool, as_json: bool) -> int:
    """Show or check the contract of a provider, or of all; the exit code."""
    settings = read_settings()
    names = [ProviderName(provider)] if provider else list(BUILDERS)
    if checking:
        good = [_check(settings, name, strict=provider is not None) for name in names]
        return 0 if all(good) else PROVIDER_DIFFERS
    described = [describe_provider(name, api_endpoint_of(settings, name)) for name in names]
    if as_json:
        shown = {one.name: contract_document(one) for one in described}
        click.echo(orjson.dumps(shown[provider] if provider else shown).decode())
    elif provider is None:
        click.echo(_overview(settings, described))
    else:
        _show(settings, described[0])
    return 0


def _check(settings: Settings, name: ProviderName, *, strict: bool) -> bool:
    """Check one provider and tell; whether it is as relied on. Unless `strict`, one that cannot be
    asked from here is left out, and one that fails does not keep the others from being asked."""
    endpoint = api_endpoint_of(settings, name)
    history, now = ContractHistory(settings.home), datetime.now(UTC)
    click.echo(f"{name} at {endpoint.base_url}")
    described = describe_provider(name, endpoint)
    _tell(keep_own(history, described, now))
    if not strict and (why := _not_asked(settings, name, described)):
        click.echo(f"  not asked: {why}")
        return True
    try:
        asked = described if described.contract.is_published else build_api(name, endpoint)
        found = check(history, asked, now)
    except ProviderError as error:
        if strict:
            if name is ProviderName.LOCAL and error.http_status is None:
                raise CallFailed(error.message, kind=error.kind, remedy=START_IT) from None
            raise
        click.echo(f"  failed: {error}")
        return False
    for one in found:
        _tell(one)
    return not any(one.is_broken for one in found)


def _not_asked(settings: Settings, name: ProviderName, described: ApiProvider) -> str | None:
    if name is ProviderName.LOCAL:
        named = "local_base_url" in settings.model_fields_set
        return None if named else "EXTRACTION_LOCAL_BASE_URL names no server that runs"
    has_key = api_endpoint_of(settings, name).api_key is not None
    return (
        None
        if has_key or described.contract.is_published
        else f"EXTRACTION_{name.upper()}_API_KEY is not set"
    )


def _tell(one: Checked) -> None:
    said = [f"{one.text.contract_hash[:16]}…"] if one.text else []
    if one.is_broken:
        said.append("differs from what is relied on")
    elif one.text is None:
        said.append("as relied on")
    if one.before is not None:
        said.append(f"changed since {one.before.read_at:%Y-%m-%d %H:%M} UTC")
    click.echo(f"  {one.subject}: {', '.join(said)}")
    for difference in one.differences:
        click.echo(f"    {'differs' if difference.breaks else 'note'}: {difference}")
    for line in one.changed:
        click.echo(f"    changed: {line}")


def _overview(settings: Settings, described: list[ApiProvider]) -> str:
    history = ContractHistory(settings.home)
    rows: list[list[Cell]] = []
    for one in described:
        text = ContractText.of(contract_document(one))
        kept = history.versions(one.name, OWN)
        in_force = bool(kept) and kept[-1].contract_hash == text.contract_hash
        rows.append(
            [
                one.name,
                one.contract.api,
                one.contract.version,
                len(one.contract.calls),
                len(one.contract.open_points),
                f"{text.contract_hash[:16]}…",
                f"{kept[-1].read_at:%Y-%m-%d %H:%M}" if in_force else "not checked",
            ]
        )
    header = ["provider", "API", "version", "calls", "not confirmed", "contract", "kept since"]
    return render_table(header, rows)


def _show(settings: Settings, provider: ApiProvider) -> None:
    document = contract_document(provider)
    text = ContractText.of(document)
    click.echo(f"{document['api']}, version {document['version']}, at {provider.base_url}")
    click.echo(f"Contract {text.contract_hash}; the key travels in {document['credential']}.\n")
    calls: list[list[Cell]] = [
        [
            call["purpose"],
            f"{call['method']} {call['path']}" + ("" if call["documented"] else "  (a guess)"),
            ", ".join([*call["headers"], *call["query"], *call["sends"]]),
            ", ".join(field.rstrip("!") for field in call["reads"] if field.endswith("!")),
        ]
        for call in document["calls"]
    ]
    click.echo(render_table(["to", "call", "sends", "has to come back"], calls))
    click.echo("\nA request line")
    lines: list[list[Cell]] = [[*place] for place in _places("", document["request_line"])]
    click.echo(render_table(["place", "holds"], lines))
    limits: list[list[Cell]] = [
        [limit["name"].replace("_", " "), limit["value"], limit["source"]]
        for limit in document["limits"]
    ]
    click.echo("\nLimits")
    click.echo(render_table(["limit", "value", "source"], limits))
    points: list[list[Cell]] = [
        [point["what"], point["assumed"], point["setting"]] for point in document["not_confirmed"]
    ]
    click.echo("\nNot confirmed by any source")
    click.echo(render_table(["point", "what is done", "setting"], points))
    click.echo("\nSources")
    for source in document["sources"]:
        click.echo(f"  {source['title']}" + (f" ({source['dated']})" if source["dated"] else ""))
    _show_kept(settings, provider)


def _show_kept(settings: Settings, provider: ApiProvider) -> None:
    kept: list[list[Cell]] = [
        [subject, f"{version.contract_hash[:16]}…", f"{version.read_at:%Y-%m-%d %H:%M}"]
        for subject, versions in ContractHistory(settings.home).all_of(provider.name).items()
        for version in versions
    ]
    click.echo("\nKept by --check (UTC, the last of each is in force)")
    click.echo(render_table(["what", "contract", "first read"], kept))


def _places(path: str, schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each place of a request line, and what it holds."""
    if "const" in schema:
        yield path, orjson.dumps(schema["const"]).decode()
    elif "prefixItems" in schema:
        for number, item in enumerate(schema["prefixItems"]):
            yield from _places(f"{path}[{number}]", item)
    elif "properties" in schema:
        for name, inner in schema["properties"].items():
            yield from _places(f"{path}.{name}" if path else name, inner)
        if schema["additionalProperties"]:
            yield f"{path}.*", schema["additionalProperties"]["description"]
    else:
        yield path, schema["description"]
