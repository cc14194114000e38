"""What `extraction-pipeline status --document` does: where a record came from, and what else was
tried."""

import re
from dataclasses import asdict, fields
from datetime import datetime
from decimal import Decimal
from typing import Any

import click
import orjson

from extraction_pipeline.cli.environment import read_settings
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.installation.stack import database
from extraction_pipeline.ledger.history import History, documents_like, history_of
from extraction_pipeline.lifecycle.opening import open_pipeline

_BEGINNING = re.compile(r"[0-9a-f]{8,64}")

SECTIONS = ("sources", "revisions", "attempts", "records", "events")


def show_history(beginning: str, only: str | None, *, as_json: bool) -> None:
    """Show the history of the one document whose hash begins so, in one collection or in all."""
    if not _BEGINNING.fullmatch(beginning):
        raise ConfigurationError(
            "A document is named by its hash (0-9 and a-f), or the first 8 characters or more.",
            remedy="`extraction-pipeline status --documents` and the UI's partitions show hashes.",
        )
    given = read_settings()
    with database(given, create=given.database_url is None) as settings:
        pipeline = open_pipeline(settings)
        chosen = [pipeline.collection(only).name] if only else list(pipeline.collections)
        with pipeline.engine.connect() as connection:
            found = documents_like(connection, beginning, chosen)
            if not found:
                raise ConfigurationError(
                    f"There is no document {beginning} in {' or '.join(chosen)}.",
                    remedy="Scan first, or look at the hash again.",
                )
            if len({one.document_hash for one in found}) > 1:
                raise ConfigurationError(
                    f"Several documents have hashes that begin with {beginning}.",
                    remedy="Give more of the hash.",
                )
            histories = [
                history_of(
                    connection, one, with_paths=pipeline.collections[one.collection].show_paths
                )
                for one in found  # the same bytes may lie in several collections
            ]
    if as_json:
        told = [_plain(asdict(history)) for history in histories]
        click.echo(orjson.dumps({"documents": told}).decode())
        return
    for history in histories:
        _show(history)


def _show(history: History) -> None:
    document = history.document
    click.echo(f"{document.document_hash}  {document.collection}")
    _show_fields({k: v for k, v in asdict(document).items() if k not in _TITLE}, "  ")
    for section in SECTIONS:
        entries = getattr(history, section)
        click.echo(f"\n{section}" if entries else f"\n{section}: none")
        for entry in entries:
            values = {one.name: getattr(entry, one.name) for one in fields(entry)}
            click.echo("  -")
            _show_fields(values, "    ")
    click.echo("")


_TITLE = ("id", "collection", "document_hash")


def _show_fields(values: dict[str, Any], margin: str) -> None:
    for name, value in values.items():
        if value is None or value == {}:
            continue
        click.echo(f"{margin}{name.replace('_', ' ')}: {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S %Z}"
    if isinstance(value, dict) and "call" in value:
        status, request_id = value.get("http_status"), value.get("request_id")
        said = f"HTTP {status}" if status else "no answer"
        return f"{value['call']} ({said}{f', request id {request_id}' if request_id else ''})"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items() if one is not None)
    if isinstance(value, list):
        return "; ".join(map(_shown, value))
    return str(value)


def _plain(value: Any) -> Any:
    """The same with money as text, which keeps it exact."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items() if name != "id"}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, Decimal) else value
