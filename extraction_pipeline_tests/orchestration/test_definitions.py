"""Definitions load anywhere, show what they showed before, and refuse what cannot work."""

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
import yaml
from dagster import AssetKey, MultiPartitionsDefinition, validate_run_config

from extraction_pipeline.definitions import build_definitions
from extraction_pipeline.errors import CollectionError, ConfigurationError
from extraction_pipeline.settings import load_settings
from extraction_pipeline_tests.collections.written import VALID, changed, write

README = Path(__file__).parents[2] / "README.md"
SNAPSHOT = Path(__file__).parent / "asset_graph.txt"


def test_a_fresh_process_without_database_shows_the_graph_as_it_was(tmp_path: Path) -> None:
    """After a change that is meant, write the module's output over `asset_graph.txt`."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EXTRACTION_", "DAGSTER_"))
    }
    environment["EXTRACTION_HOME"] = str(tmp_path / "home")
    # Nothing listens here: a connection at load would fail.
    environment["EXTRACTION_DATABASE_URL"] = "postgresql://nobody@127.0.0.1:9/nothing"
    loaded = subprocess.run(
        [sys.executable, "-m", "extraction_pipeline_tests.orchestration.graph_text"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.splitlines() == SNAPSHOT.read_text().splitlines()
    assert not (tmp_path / "home").exists(), "loading definitions made a folder"


def test_what_the_readme_gives_for_a_launchpad_is_taken_by_the_job_of_that_name() -> None:
    definitions = build_definitions(load_settings())
    blocks = re.findall(
        r"`(\w+)`(?:(?!```|`\w+`).)*```yaml\n( *ops:.*?)```", README.read_text(), re.DOTALL
    )
    assert [name for name, _ in blocks] == ["submit_missing", "give_up_batch"]
    for name, block in blocks:
        validate_run_config(definitions.resolve_job_def(name), yaml.safe_load(dedent(block)))


@pytest.fixture
def collections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of collections with one in it, `referral_letters`."""
    folder = tmp_path / "collections"
    folder.mkdir()
    write(folder, VALID)
    monkeypatch.setenv("EXTRACTION_COLLECTIONS", str(folder))
    return folder


def test_one_more_file_is_one_more_group_of_four_assets(collections: Path) -> None:
    write(collections, changed("name: referral_letters", "name: second"), "second.yaml")
    graph = build_definitions(load_settings()).resolve_asset_graph()
    assert {
        key.to_user_string() for key in graph.get_all_asset_keys() if graph.get(key).is_partitioned
    } == {
        "nightly_refresh",
        *(
            f"{collection}/{stage}"
            for collection in ("referral_letters", "second")
            for stage in ("documents", "batch_submissions", "raw_responses", "extractions")
        ),
    }


def test_a_second_version_is_one_more_partition_of_the_version_dimension(
    collections: Path,
) -> None:
    write(collections, VALID + "  v2: {provider: local, model: rules-baseline}\n")
    graph = build_definitions(load_settings()).resolve_asset_graph()
    partitions = graph.get(AssetKey(["referral_letters", "batch_submissions"])).partitions_def
    assert isinstance(partitions, MultiPartitionsDefinition)
    versions = partitions.get_partitions_def_for_dimension("version")
    assert versions.get_partition_keys() == ["v1", "v2"]


@pytest.mark.parametrize("folder", [None, "/not/mounted", "sftp://host/not/installed"])
def test_a_service_without_an_api_is_one_more_version_and_its_folder_need_not_be_there(
    collections: Path, monkeypatch: pytest.MonkeyPatch, folder: str | None
) -> None:
    write(collections, VALID + "  v2: {provider: outside, model: ward-bureau}\n")
    if folder is not None:
        monkeypatch.setenv("EXTRACTION_OUTSIDE_FOLDER", folder)
    assert build_definitions(load_settings()).resolve_asset_graph().get_all_asset_keys()


@pytest.mark.parametrize(
    ("text", "cause", "remedy"),
    [
        (changed("discharge_summary", "diary"), "document type 'diary'", "Use one of"),
        (changed("discharge_summary", "no.such:Thing"), "module no.such was not", "Install it"),
        (changed("active_version: v1", "active_version: v9"), "version 'v9'", "Use one of v1"),
        (
            VALID + "  v2: {provider: gemini, model: m, parameters: {candidateCount: 2}}\n",
            "set candidateCount",
            "Take it out",
        ),
    ],
)
def test_a_collection_that_cannot_work_is_refused_when_definitions_load(
    collections: Path, text: str, cause: str, remedy: str
) -> None:
    file = write(collections, text)
    with pytest.raises(CollectionError) as refused:
        build_definitions(load_settings())
    sentence = str(refused.value)
    assert re.match(rf"{re.escape(str(file))}:\d+: ", sentence)
    assert "\n" not in sentence
    assert cause in sentence
    assert remedy in sentence


def test_a_ceiling_without_a_price_and_a_wrong_price_list_are_refused(
    collections: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = "    max_attempts: 2\n    ceiling: {amount: 5, currency: EUR}\n"
    write(collections, changed("    max_attempts: 2\n", limited))
    with pytest.raises(CollectionError, match=r"\.yaml:17: .* no price in EUR is known"):
        build_definitions(load_settings())
    prices = tmp_path / "prices.yaml"
    monkeypatch.setenv("EXTRACTION_PRICES", str(prices))
    prices.write_text("currency: EUR\nprices: {lokal: {}}\n")
    with pytest.raises(ConfigurationError, match=r"prices\.yaml:2: .* must be 'local'"):
        build_definitions(load_settings())
    prices.write_text(
        "currency: EUR\nprices:\n  local:\n"
        '    "*": [{valid_from: 2020-01-01, input: 1, output: 1}]\n'
    )
    build_definitions(load_settings())
