"""Every command of a container is one that its program takes."""

import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from celery.bin.celery import celery
from dagster._cli import create_dagster_cli
from dagster._daemon.cli import create_dagster_daemon_cli
from dagster_celery.app import app
from dagster_webserver.cli import create_dagster_webserver_cli

from extraction_pipeline.cli.group import commands as extraction_pipeline
from extraction_pipeline_tests.deploy.files import DEPLOY, VALUES, ours

PROGRAMS: Mapping[str, click.Command] = {
    "extraction-pipeline": extraction_pipeline,
    "dagster": create_dagster_cli(),
    "dagster-daemon": create_dagster_daemon_cli(),
    "dagster-webserver": create_dagster_webserver_cli(),
    "celery": celery,
}


def containers() -> Iterator[dict[str, Any]]:
    """Containers of our own in the values of the chart."""
    for deployment in VALUES["dagster-user-deployments"]["deployments"]:
        yield from deployment["initContainers"]
    for manifest in VALUES["extraManifests"]:
        if manifest["kind"] == "Deployment":
            yield from manifest["spec"]["template"]["spec"]["containers"]


COMMANDS = [
    *([str(word) for word in one["command"]] for one in ours().values()),
    *([str(word) for word in one["command"]] for one in containers()),
    ["dagster", "code-server", "start", "-p", "4266"]
    + VALUES["dagster-user-deployments"]["deployments"][0]["codeServerArgs"],
]

MOUNTED = {"/opt/dagster/workspace.yaml": str(DEPLOY / "workspace.yaml")}
"""Files of containers, where they come from."""


def _parse(command: click.Command, words: list[str], parent: click.Context | None = None) -> None:
    """Parse a command as its program does, and run nothing. Raises `click.UsageError`."""
    context = command.make_context(command.name, list(words), parent=parent)
    if command is celery:
        context.obj = SimpleNamespace(app=app)
    if isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        _, found, rest = command.resolve_command(context, rest)
        assert found is not None
        _parse(found, rest, context)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_is_one_that_its_program_takes(words: list[str]) -> None:
    assert (Path(sys.prefix) / "bin" / words[0]).exists()
    _parse(PROGRAMS[words[0]], [MOUNTED.get(word, word) for word in words[1:]])
    if "-m" in words:
        module = importlib.import_module(words[words.index("-m") + 1])
        assert callable(module.defs)


def test_a_command_with_a_slip_is_found() -> None:
    with pytest.raises(click.UsageError):
        _parse(PROGRAMS["dagster-webserver"], ["--readonly"])
    with pytest.raises(click.UsageError):
        _parse(extraction_pipeline, ["webhook"])
