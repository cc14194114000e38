"""The README: its commands are run, its settings and links are compared with what there is.

The commands run in a folder that looks like a checkout, in the order of the README, over one home.
"""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from extraction_pipeline.prices.loader import load_prices
from extraction_pipeline.settings import Settings
from extraction_pipeline_tests.cli.warm_command import run_warm

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
COMMANDS = [
    line
    for block in re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if line.strip()
]
INSTALL, DEMO = COMMANDS[0].rsplit(" && ", 1)
NOT_RUN_HERE = {
    ".venv/bin/python -m pytest -n 4": "this run",
    ".ci/run": "runs this",
    ".venv/bin/extraction-pipeline dev": "cli/test_dev.py starts and ends it in every way",
}
LONG_RUNNING = "extraction-pipeline batch-server"
PROGRAM = ".venv/bin/extraction-pipeline "
HARMED = ("openai", "infrai")
"""Providers of the short campaign: one that is searched for a job, and one that is asked again."""
SECONDS = 240


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with what the README's commands name, and an environment of its own."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks", target_is_directory=True)
    for package in ("extraction_pipeline", "extraction_pipeline_tests"):
        (folder / package).symlink_to(ROOT / package, target_is_directory=True)
    examples = re.findall(
        r"Save this one as\s`(\S+)`:\n\n```(?:yaml|json)\n(.*?)```", README, re.DOTALL
    )
    assert len(examples) == 2
    for name, content in examples:
        declared = folder / name
        declared.parent.mkdir(exist_ok=True)
        declared.write_text(content)
    (folder / "CORPUS" / "gold").mkdir(parents=True)
    (folder / "CORPUS" / "gold" / "gold.jsonl").write_text(
        '{"doc": "note.txt", "set": "mtsamples", "annotated_fields": ["medications"], "fields":'
        ' {"medications": [{"name": "Examplol", "dose": "20 mg", "route": null, "frequency":'
        ' "daily"}]}, "optional_medications": [], "must_not_report": []}\n'
    )
    note = "DISCHARGE SUMMARY\n\nDISCHARGE MEDICATIONS:\n1. Examplol 20 mg daily.\n"
    (folder / "CORPUS" / "note.txt").write_text(note)
    small = folder / "small" / "discharge_summaries"
    small.mkdir(parents=True)
    (small / "note.txt").write_text(note)
    yield folder


def environment() -> dict[str, str]:
    """This process's environment without what other tests may have set."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EXTRACTION_", "DAGSTER_", "OPENAI_"))
    }


@pytest.mark.long
def test_the_commands_run_in_order(checkout: Path) -> None:
    exported: dict[str, str] = {}
    for command in [DEMO, *COMMANDS[1:]]:
        if command in NOT_RUN_HERE:
            continue
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            exported[name] = value
            continue
        if LONG_RUNNING in command:
            _starts_and_stops(command, checkout)
            continue
        shorter = command.replace("throughput 10000", "throughput 40")
        shorter = shorter.replace("benchmarks.every_provider", "benchmarks.every_provider small")
        few = " ".join(f"--provider {name}" for name in HARMED)
        shorter = shorter.replace("--kills 500", f"--kills 3 --no-daemon {few}")
        shorter = shorter.replace("benchmarks.plain_script", "benchmarks.plain_script dropped")
        shorter = shorter.replace(" explore", " explore --collect-only")
        done = _ran(shorter, checkout, environment() | exported)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert "Traceback" not in done.stderr
        if "extraction_pipeline_tests.chaos" in command:
            assert f" collections_harmed={len(HARMED)} " in done.stdout
        if command == DEMO:
            assert_the_samples_are_as_told(done.stdout)
        if "demo --corpus my_documents" in command:
            row = re.search(r"^discharge_letters +(\d+) +1 +(\d+) ", done.stdout, re.MULTILINE)
            assert row is not None, done.stdout
            assert int(row[1]) == int(row[2]) > 0, "the example's documents are published"
    assert (checkout / "letters.parquet").stat().st_size > 0


def _ran(
    command: str, checkout: Path, surroundings: dict[str, str]
) -> "subprocess.CompletedProcess[str]":
    """A command at its end. The program itself is started once, for the demo; its other commands
    run in a process that has imported it already."""
    if command != DEMO and command.startswith(PROGRAM):
        words = shlex.split(command.removeprefix(PROGRAM))
        return run_warm(words, checkout, surroundings, checkout / "said", SECONDS)
    return subprocess.run(
        ["bash", "-c", command],
        cwd=checkout,
        env=surroundings,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def assert_the_samples_are_as_told(shown: str) -> None:
    told = re.search(r"(\d+) fictional.*?(\d+) documents; (\d+) of.*?(\d+) requests", README, re.S)
    assert told is not None
    files, documents, unreadable, requests = map(int, told.groups())
    samples = ROOT / "extraction_pipeline" / "samples"
    assert files == sum(len(list(one.iterdir())) for one in samples.iterdir() if one.is_dir())
    rows = re.findall(r"^\w+ +(\d+) +1 +(\d+) +0 +0 +(\d+) +0$", shown, re.MULTILINE)
    assert [sum(map(int, column)) for column in zip(*rows, strict=True)] == [
        documents,
        requests,
        unreadable,
    ]
    assert f"{requests} requests went out" in shown


def _starts_and_stops(command: str, checkout: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command} --port {port}"],
        cwd=checkout,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        _wait_for(lambda: _listens(port), process)
    finally:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert not _listens(port), output
    assert "Traceback" not in output, output


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait_for(condition: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    until = time.monotonic() + 90
    while not condition():
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < until, "it did not start"
        time.sleep(0.2)


def test_ci_installs_as_the_readme_says() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert "-c constraints.txt -e '.[dev]'" in INSTALL
    assert "-c constraints.txt -e '.[dev]'" in script
    assert "-m pytest -n 4" in script
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_every_setting_is_in_the_table_with_its_default() -> None:
    table = README.split("<!-- settings")[1].split("\n\n")[0]
    rows = dict(re.findall(r"^\| `(EXTRACTION_[A-Z_]+)` \| (.*?) \|", table, re.MULTILINE))
    fields = {f"EXTRACTION_{name.upper()}": field for name, field in Settings.model_fields.items()}
    assert set(rows) == set(fields)
    for name, field in fields.items():
        if isinstance(field.default, bool):
            assert rows[name] == f"`{str(field.default).lower()}`", name
        elif isinstance(field.default, int | float):
            assert float(rows[name].strip("`")) == field.default, name


def test_the_price_list_can_be_copied(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```yaml\n(currency:.*?)```", README, re.DOTALL)
    (tmp_path / "prices.yaml").write_text(shown)
    listed = load_prices(tmp_path / "prices.yaml")
    price = listed.price("openai", "gpt-4.1-mini-2025", date(2026, 12, 31))
    assert price is not None
    assert (price.input, price.output) == (Decimal("0.20"), Decimal("0.80"))


def test_links_and_pictures_exist() -> None:
    for target in re.findall(r"\]\(((?!https?:)[^)#]+)\)", README):
        assert (ROOT / target).is_file(), target
    for path in re.findall(r"`(extraction_pipeline/[\w/.]+\.py)`", README):
        assert (ROOT / path).is_file(), path


def test_every_command_of_the_tool_is_in_the_readme() -> None:
    from extraction_pipeline.cli.group import commands

    for name in commands.commands:
        assert f"extraction-pipeline {name}" in README, name
