"""The image of every process: what is in it, and how it is set."""

import subprocess
import sys
import zipfile
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

from extraction_pipeline.installation.dagster_processes import MEMORY_KEPT
from extraction_pipeline_tests.deploy.files import DEPLOY, ROOT, plain_environment


def test_the_image_gives_memory_back_as_a_laptop_does() -> None:
    for name, value in MEMORY_KEPT.items():
        assert f"{name}={value}" in (DEPLOY / "Dockerfile").read_text()


@pytest.mark.long
def test_the_wheel_is_all_that_a_container_needs(tmp_path: Path) -> None:
    source, wheels, installed = tmp_path / "source", tmp_path / "wheels", tmp_path / "installed"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    copytree(
        ROOT / "extraction_pipeline",
        source / "extraction_pipeline",
        ignore=ignore_patterns("__pycache__"),
    )
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), str(source)],
        check=True,
        capture_output=True,
    )
    (wheel,) = wheels.iterdir()
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        packed.extractall(installed)
    assert not any(name.startswith(("extraction_pipeline_tests", "benchmarks")) for name in names)
    assert {f"extraction_pipeline/{one}" for one in ("dagster.yaml", "py.typed")} <= names
    assert {one for one in names if "/samples/" in one or "/collections/" in one} == {
        str(one.relative_to(ROOT))
        for folder in ("samples", "collections")
        for one in (ROOT / "extraction_pipeline" / folder).rglob("*")
        if one.is_file() and "__pycache__" not in one.parts and one.name[0] != "."
    }
    loaded = subprocess.run(
        [
            *(sys.executable, "-P", "-c"),
            "import extraction_pipeline.definitions as found, extraction_pipeline.ledger.migrate;"
            "found.defs().resolve_job_def('scan_in_parts'); print(found.__file__)",
        ],
        cwd=tmp_path,
        env={**plain_environment(), "PYTHONPATH": str(installed)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert loaded.stdout.strip().startswith(str(installed))
