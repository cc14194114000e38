"""The command line as a person meets it: real processes, their output, and their exit codes."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import orjson
import pandas as pd
import pytest

from extraction_pipeline.cli.group import commands
from extraction_pipeline_tests.cli.warm_command import run_warm

SECONDS = 180
NOTE = (
    "DISCHARGE SUMMARY\n\nRecord {number}\n\nDISCHARGE DIAGNOSES:\n1. Fictional condition {number}."
    "\n\nDISCHARGE MEDICATIONS:\n1. Examplol 20 mg p.o. daily.\n"
)
COLLECTION = """
name: letters
description: Fictional letters.
document_type: discharge_summary
source: {kind: folder, path: "${EXTRACTION_CORPUS:-.}/letters"}
active_version: v1
extraction_versions:
  v1: {provider: local, model: rules-baseline}
"""


@dataclass(frozen=True)
class Terminal:
    """A folder with a collection and a corpus, in which commands are typed."""

    folder: Path

    def environment(self, **extra: str) -> dict[str, str]:
        """A clean environment that names the collections."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("EXTRACTION_", "DAGSTER_", "OPENAI_"))
        }
        return {
            **kept,
            "EXTRACTION_COLLECTIONS": str(self.folder / "collections"),
            "EXTRACTION_CORPUS": str(self.folder / "corpus"),
            "EXTRACTION_POLL_SECONDS": "0.1",
            **extra,
        }

    def type(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run one command to its end."""
        return run_warm(
            words, self.folder, self.environment(**environment), self.folder / "said", SECONDS
        )


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """Five letters, one of them empty, and one run of the demo over them."""
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "collections").mkdir()
    (folder / "collections" / "letters.yaml").write_text(COLLECTION)
    letters = folder / "corpus" / "letters"
    letters.mkdir(parents=True)
    for number in range(4):
        (letters / f"letter-{number}.txt").write_text(NOTE.format(number=number))
    (letters / "empty.txt").touch()
    return Terminal(folder)


@pytest.fixture(scope="module")
def first_demo(terminal: Terminal) -> dict[str, object]:
    """What the first demo printed."""
    done = terminal.type("demo", "--corpus", "corpus", "--json")
    assert done.returncode == 0, done.stderr
    return dict(orjson.loads(done.stdout))


def test_demo_prints_one_object_and_the_second_time_submits_nothing(
    terminal: Terminal, first_demo: dict[str, object]
) -> None:
    counts = {"documents": 5, "published": 4, "invalid": 0, "unreadable": 1, "failed": 0}
    assert first_demo["collections"] == {"letters": {**counts, "waiting": 0}}
    assert (first_demo["provider_jobs"], first_demo["submitted_requests"]) == (1, 4)
    again = terminal.type("demo", "--corpus", "corpus", "--json")
    second = orjson.loads(again.stdout)
    assert again.returncode == 0
    assert second["collections"] == first_demo["collections"]
    assert (second["provider_jobs"], second["submitted_requests"]) == (0, 0)
    shown = terminal.type("demo", "--corpus", "corpus")
    assert "Nothing was submitted" in shown.stdout
    assert "Examplol" not in shown.stdout  # records of one's own corpus only with --show-record
    assert "Examplol" in terminal.type("demo", "--corpus", "corpus", "--show-record").stdout


@pytest.mark.usefixtures("first_demo")
def test_status_in_words_and_as_json(terminal: Terminal) -> None:
    shown = terminal.type("status", "--documents")
    assert shown.returncode == 0
    assert "unreadable  empty" in shown.stdout
    told = orjson.loads(terminal.type("status", "--documents", "--json").stdout)
    assert told["collections"]["letters"]["published"] == 4
    assert told["collections"]["letters"]["not_published"][0]["reason"] == "empty"
    assert told["open_jobs"] == []


@pytest.mark.usefixtures("first_demo")
def test_run_waits_for_a_new_letter(terminal: Terminal) -> None:
    (terminal.folder / "corpus" / "letters" / "late.txt").write_text(NOTE.format(number=99))
    done = terminal.type("run", "--collection", "letters", "--extraction-version", "v1", "--wait")
    assert done.returncode == 0, done.stderr
    assert "letters at v1: 1 request sent in 1 batch job.\n" in done.stdout
    assert "6 documents, 5 published" in done.stdout
    again = terminal.type("run", "--collection", "letters")
    assert again.returncode == 0
    assert "letters at v1: nothing new to send.\n" in again.stdout
    (terminal.folder / "corpus" / "letters" / "late.txt").unlink()
    told = orjson.loads(terminal.type("status", "--json").stdout)
    assert told["collections"]["letters"]["vanished"] == 0  # known at the next scan
    terminal.type("run", "--collection", "letters")
    told = orjson.loads(terminal.type("status", "--json").stdout)
    assert (
        told["collections"]["letters"]["documents"],
        told["collections"]["letters"]["vanished"],
    ) == (5, 1)


@pytest.mark.usefixtures("first_demo")
def test_costs_are_shown_where_prices_are_known_and_a_ceiling_ends_a_run(
    terminal: Terminal,
) -> None:
    (terminal.folder / "prices.yaml").write_text(
        "currency: EUR\nprices:\n  local:\n"
        '    "*": [{valid_from: 2020-01-01, input: 100, output: 100}]\n'
    )
    known = {"EXTRACTION_PRICES": "prices.yaml"}
    assert "Costs" not in terminal.type("status").stdout
    shown = terminal.type("status", **known).stdout
    # The demo ran without prices: what it used is named as it is.
    assert re.search(
        r"\n  letters at v1: 0\.0000 EUR spent.*; \d answers or open jobs without a price\.", shown
    )
    assert terminal.type("run", "--collection", "letters", **known).returncode == 0
    costs = orjson.loads(terminal.type("status", "--json", **known).stdout)["collections"]
    assert costs["letters"]["costs"]["unpriced"] == 0
    spent = Decimal(costs["letters"]["costs"]["spent"])
    terminal.type("export", "--collection", "letters", "--output", "costs.csv")
    paid = pd.read_csv(terminal.folder / "costs.csv", dtype={"cost": str})["cost"]
    assert 0 < sum(map(Decimal, paid)) <= spent
    late = terminal.folder / "corpus" / "letters" / "costly.txt"
    late.write_text(NOTE.format(number=77))
    yaml = terminal.folder / "collections" / "letters.yaml"
    limit = "rules-baseline, ceiling: {amount: 0.1, currency: EUR}}"
    yaml.write_text(COLLECTION.replace("rules-baseline}", limit))
    refused = terminal.type("run", "--collection", "letters", "--wait", **known)
    yaml.write_text(COLLECTION)
    late.unlink()
    assert refused.returncode == 1
    assert "its ceiling of 0.1000 EUR in total would be passed by 1 requests" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.usefixtures("first_demo")
def test_a_changed_recipe_is_refused_by_name(terminal: Terminal) -> None:
    yaml = terminal.folder / "collections" / "letters.yaml"
    yaml.write_text(COLLECTION.replace("rules-baseline}", "rules-baseline-2}"))
    try:
        done = terminal.type("run", "--collection", "letters", "--wait")
    finally:
        yaml.write_text(COLLECTION)
    assert done.returncode == 2
    assert "changed: model" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "environment", "code", "said"),
    [
        (["run", "--collection", "nowhere"], {}, 2, "There is no collection nowhere."),
        (
            ["run", "--collection", "letters", "--extraction-version", "v9"],
            {},
            2,
            "has no extraction version 'v9'",
        ),
        (["export", "--collection", "letters", "--output", "x.doc"], {}, 2, "names no format"),
        (["export", "--collection", "letters", "--output", "no/x.csv"], {}, 2, "does not exist"),
        (["demo", "--corpus", "collections"], {}, 2, "named after a collection"),
        (["status"], {"EXTRACTION_TIMEZONE": "Nowhere"}, 2, "EXTRACTION_TIMEZONE"),
        (["status"], {"EXTRACTION_COLLECTIONS": "/nowhere"}, 2, "/nowhere"),
        (["status"], {"EXTRACTION_PRICES": "nowhere.yaml"}, 2, "in EXTRACTION_PRICES, or unset"),
        (["status"], {"EXTRACTION_DATABASE_URL": "mysql://x/y"}, 2, "only PostgreSQL works"),
        (
            ["status"],
            {"EXTRACTION_DATABASE_URL": "postgresql://127.0.0.1:1/x"},
            3,
            "Database x at 127.0.0.1, port 1 cannot be reached",
        ),
        (["export"], {}, 2, "Missing option"),
        (["batch-server", "--relay-model", "qwen3"], {}, 2, "--relay-model needs --relay-url"),
        (["batch-server", "--relay-key-variable", "KEY"], {}, 2, "needs --relay-url"),
        (["status"], {"EXTRACTION_NIGHTLY_CRON": "61 * * * *"}, 2, "EXTRACTION_NIGHTLY_CRON"),
        (["status"], {"EXTRACTION_TIMEZON": "UTC"}, 0, "Did you mean EXTRACTION_TIMEZONE?"),
    ],
)
@pytest.mark.usefixtures("first_demo")
def test_bad_input_is_one_line_and_an_exit_code(
    terminal: Terminal, words: list[str], environment: dict[str, str], code: int, said: str
) -> None:
    done = terminal.type(*words, **environment)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_every_command_shows_an_example() -> None:
    for name, command in commands.commands.items():
        assert command.help is not None
        assert "Example:" in command.help, name
        assert f"extraction-pipeline {name}" in command.help, name


def test_an_interrupted_demo_goes_on_where_it_was(terminal: Terminal, tmp_path: Path) -> None:
    # In the middle of the create call nobody knows what becomes of it, and that is waited for.
    surroundings = {
        "EXTRACTION_HOME": str(tmp_path / "home"),
        "EXTRACTION_RESOLVE_GRACE_SECONDS": "0",
    }
    environment = terminal.environment(**surroundings)
    process = subprocess.Popen(
        [sys.executable, "-m", "extraction_pipeline.cli", "demo", "--corpus", "corpus", "--json"],
        cwd=terminal.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "submitting" in line:
            break
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, 130), errors
    assert "Traceback" not in errors
    again = terminal.type("demo", "--corpus", "corpus", "--json", **surroundings)
    counts = orjson.loads(again.stdout)["collections"]["letters"]
    assert (counts["published"], counts["waiting"]) == (4, 0)
