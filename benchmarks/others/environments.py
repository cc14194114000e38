"""An environment for each tool, made when it is first asked for. Nothing of it is the project's."""

import subprocess
import sys
from enum import StrEnum
from pathlib import Path

PINS = Path(__file__).parent / "pins"
_MADE_FROM = "made_from.txt"
"""In an environment: the pins it was made from, written when it was complete."""


class Tool(StrEnum):
    """The other tools, by the names of their packages."""

    LLM_BATCH_PY = "llm-batch-py"
    CURATOR = "bespokelabs-curator"
    AIRFLOW = "apache-airflow-providers-common-ai"

    @property
    def pins(self) -> Path:
        """Every package of its environment, with its version; the tool itself comes first."""
        return PINS / f"{self.value}.txt"


class NotInstalled(Exception):
    """The package index did not give what the pins name; says what its client said last."""


def python_of(tool: Tool, folder: Path) -> Path:
    """The interpreter of a tool's environment below `folder`. Raises `NotInstalled`."""
    environment = folder.absolute() / tool.value
    python, made_from = environment / "bin" / "python", environment / _MADE_FROM
    if made_from.exists() and made_from.read_text() == tool.pins.read_text():
        return python
    _run([sys.executable, "-m", "venv", "--clear", str(environment)])
    # The pins are complete, so nothing is resolved: what is measured is what is written down.
    _run([str(python), "-m", "pip", "install", "--no-deps", "-r", str(tool.pins)])
    made_from.write_text(tool.pins.read_text())
    return python


def site_packages(python: Path) -> Path:
    """Where an environment's packages lie."""
    return next((python.parent.parent / "lib").glob("python*/site-packages"))


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        errors = [line for line in said if line.startswith("ERROR")]
        raise NotInstalled((errors or said or [f"exit code {done.returncode}"])[-1])
