"""The tools that are compared, each as a `Subject` of the plain script's scenarios."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from benchmarks.others.environments import Tool, site_packages
from benchmarks.others.programs.settings import API_KEY, Fair
from benchmarks.plain_script.subjects import Pipeline, quiet

ROOT = Path(__file__).parents[2]
_DAGS = Path(__file__).parent / "programs" / "dags"
_MODULES = {
    Tool.LLM_BATCH_PY: "benchmarks.others.programs.llm_batch_py",
    Tool.CURATOR: "benchmarks.others.programs.curator",
    Tool.AIRFLOW: "benchmarks.others.programs.dags.extraction",
}


class Other:
    """A tool's program in the tool's own environment, with a home of its own."""

    def __init__(self, tool: Tool, python: Path, folder: Path, settings: Fair) -> None:
        home = folder / "home"
        home.mkdir()
        self._settings = settings
        self._environment = {
            **{name: value for name, value in os.environ.items() if not _is_a_tools(name)},
            **settings.environment(),
            **_environment_of(tool, python, home, settings),
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
        }
        self._command = [str(python), "-m", _MODULES[tool]]
        if tool is Tool.AIRFLOW:
            subprocess.run(
                [str(python.parent / "airflow"), "db", "migrate"],
                env=self._environment,
                check=True,
                capture_output=True,
            )

    def start(self) -> "subprocess.Popen[bytes]":
        """See `Subject`."""
        return quiet(self._command, self._environment)

    def records(self) -> list[str]:
        """See `Subject`."""
        return [end["id"] for end in self._ends() if end["record"]]

    def explained(self) -> int:
        """See `Subject`."""
        records = set(self.records())
        return len({end["id"] for end in self._ends() if not end["record"]} - records)

    def _ends(self) -> list[dict[str, str]]:
        output = self._settings.output
        return (
            [json.loads(line) for line in output.read_text().splitlines()]
            if output.exists()
            else []
        )


class PreparedPipeline(Pipeline):
    """The pipeline with the settings of all, and with its database made before it is timed."""

    def __init__(self, folder: Path, settings: Fair) -> None:
        limits = {"local": {"requests_per_job": settings.batch_size}}
        super().__init__(
            folder,
            settings.documents,
            settings.base_url,
            {
                "EXTRACTION_POLL_SECONDS": str(settings.poll_seconds),
                "EXTRACTION_POLL_MAX_SECONDS": str(settings.poll_seconds),
                "EXTRACTION_LIMITS": json.dumps(limits),
            },
        )
        self.tell("migrate")


def _environment_of(tool: Tool, python: Path, home: Path, settings: Fair) -> Mapping[str, str]:
    match tool:
        case Tool.LLM_BATCH_PY:
            # It counts tokens with a vocabulary that it would fetch; litellm ships the same file.
            vocabulary = site_packages(python) / "litellm" / "litellm_core_utils" / "tokenizers"
            return {"TIKTOKEN_CACHE_DIR": str(vocabulary)}
        case Tool.CURATOR:
            return {
                "TELEMETRY_ENABLED": "false",
                "CURATOR_DISABLE_RICH_DISPLAY": "1",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "HF_HUB_OFFLINE": "1",
                "HF_HOME": str(home / "datasets"),
            }
        case Tool.AIRFLOW:
            server = {"conn_type": "pydanticai", "password": API_KEY, "host": settings.base_url}
            return {
                "AIRFLOW_HOME": str(home / "airflow"),
                "AIRFLOW__CORE__DAGS_FOLDER": str(_DAGS),
                "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
                "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
                "AIRFLOW_CONN_BATCH_SERVER": json.dumps(server),
            }


def _is_a_tools(name: str) -> bool:
    return name.startswith(("AIRFLOW_", "CURATOR_", "OPENAI_", "HF_", "TIKTOKEN_", "PYTHON"))
