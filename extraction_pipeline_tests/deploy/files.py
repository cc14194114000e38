"""The files of `deploy/`, read.

Docker and Kubernetes are not needed: commands are parsed by the programs that they name, instance
files are read by Dagster.
"""

import os
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
VALUES: dict[str, Any] = yaml.safe_load((DEPLOY / "kubernetes" / "values.yaml").read_text())
INSTANCES = {name: DEPLOY / name / "dagster.yaml" for name in ("compose", "kubernetes")}
SHIPPED = yaml.safe_load((ROOT / "extraction_pipeline" / "dagster.yaml").read_text())
EXAMPLE = dict(
    line.split("=", 1)
    for line in (DEPLOY / "compose" / "settings.env.example").read_text().splitlines()
    if line and not line.startswith("#")
)
PRODUCTION = (ROOT / "docs" / "production.md").read_text()
FILES = [path for path in DEPLOY.rglob("*") if path.is_file()]

TRIAL = "batch-server"
"""The service that only a first try needs."""


def ours() -> dict[str, dict[str, Any]]:
    """Services of our own image."""
    services: dict[str, dict[str, Any]] = COMPOSE["services"]
    return {name: one for name, one in services.items() if "extraction-pipeline" in one["image"]}


def plain_environment() -> dict[str, str]:
    """The environment without a variable of ours or of Dagster's."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EXTRACTION_", "DAGSTER_"))
    }
