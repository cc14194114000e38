"""Loading of collections that are right: what they mean, and where their paths lead."""

from pathlib import Path

import pytest

import extraction_pipeline.collections as shipped_package
from extraction_pipeline.collections.collection import Identity
from extraction_pipeline.collections.loader import load_collections
from extraction_pipeline.documents.sources import FolderSource, ManifestSource, list_entries
from extraction_pipeline.errors import CollectionError
from extraction_pipeline.providers.registry import ProviderName
from extraction_pipeline_tests.collections.written import BY_RECORD, VALID, changed, write

SHIPPED = Path(shipped_package.__file__).parent


def test_the_shipped_collections_load_and_point_at_the_samples():
    collections = load_collections(SHIPPED, {})
    assert [one.name for one in collections] == [
        "care_protocols",
        "discharge_summaries",
        "payer_notes",
    ]
    for collection in collections:
        assert isinstance(collection.source, FolderSource)
        folder = Path(collection.source.location(collection.base_dir))
        assert folder == SHIPPED.parent / "samples" / collection.name
        assert folder.is_dir()
        assert collection.active.provider is ProviderName.LOCAL
        assert collection.active.model == "rules-baseline"
        assert collection.identity is Identity.CONTENT
        assert not collection.show_paths
        assert collection.description


def test_every_sample_is_an_entry_of_its_shipped_collection():
    for collection in load_collections(SHIPPED, {}):
        listed = [one.path for one in list_entries(collection.source, collection.base_dir)]
        folder = SHIPPED.parent / "samples" / collection.name
        assert listed == sorted(file.name for file in folder.iterdir())
        assert len(listed) > 10


def test_the_corpus_of_the_shipped_collections_is_a_setting(tmp_path: Path):
    collections = load_collections(SHIPPED, {"EXTRACTION_CORPUS": str(tmp_path)})
    assert {str(one.source.path) for one in collections} == {
        str(tmp_path / name) for name in ("care_protocols", "discharge_summaries", "payer_notes")
    }


def test_a_fourth_collection_is_one_more_file(tmp_path: Path):
    for file in SHIPPED.glob("*.yaml"):
        write(tmp_path, file.read_text(), file.name)
    before = load_collections(tmp_path, {"EXTRACTION_CORPUS": "/data"})
    write(tmp_path, VALID, "mine.yml")
    after = load_collections(tmp_path, {"EXTRACTION_CORPUS": "/data"})
    assert set(before) < set(after)
    (mine,) = set(after) - set(before)
    assert mine.name == "referral_letters"
    assert mine.source.path == str(tmp_path / "letters")
    assert mine.active.max_output_tokens == 2048
    assert mine.active.max_attempts == 2
    assert mine.active.parameters == {"temperature": 0}
    assert mine.active.instructions is None


def test_a_manifest_with_record_ids_and_instructions_from_a_file(tmp_path: Path):
    write(tmp_path, BY_RECORD)
    (tmp_path / "prompt.txt").write_bytes("\ufeffFind it.\r\nMark ${nothing}.\r\n".encode())
    (collection,) = load_collections(tmp_path, {"LETTERS": "s3://archive/letters"})
    assert isinstance(collection.source, ManifestSource)
    assert collection.source.path is None
    assert collection.source.url == "s3://archive/letters/manifest.csv"
    assert collection.source.record_id_column == "record"
    assert collection.identity is Identity.EXTERNAL_ID
    assert collection.source_system == "letters-archive"
    version = collection.version("2024.1")
    assert version.instructions == "Find it.\nMark ${nothing}."
    assert version.max_output_tokens == 4096
    assert version.max_attempts == 3


@pytest.mark.parametrize("name", ["1.0", "on", "2024-05-01", "7", "null", "1e3"])
def test_a_version_name_is_taken_as_written_though_yaml_sees_another_type(tmp_path: Path, name):
    text = changed("active_version: v1", f'active_version: "{name}"')
    write(tmp_path, text.replace("  v1:", f"  {name}:"))
    assert load_collections(tmp_path, {})[0].active.name == name


@pytest.mark.parametrize(
    ("written", "environ", "expected"),
    [
        ("${A}/x", {"A": "/data"}, "/data/x"),
        ("${A:-/other}/x", {}, "/other/x"),
        ("${A:-/other}/x", {"A": ""}, "/other/x"),
        ("${A:-/other}/${B}", {"A": "/data", "B": "y"}, "/data/y"),
        ("${A}/x", {"A": "memory://bucket"}, "memory://bucket/x"),
        ("${A}/x", {"A": "/${B}", "B": "never"}, "/${B}/x"),
        ("/fixed/$A", {"A": "never"}, "/fixed/$A"),
        ("/fixed/../moved", {}, "/moved"),
    ],
)
def test_references_in_a_source_path(tmp_path: Path, written, environ, expected):
    write(tmp_path, changed("path: letters", f'path: "{written}"'))
    (collection,) = load_collections(tmp_path, environ)
    assert collection.source.location(Path("/elsewhere")) == expected


def test_a_url_and_a_root(tmp_path: Path):
    text = BY_RECORD.replace(
        "  path: ${LETTERS}/manifest.csv\n", "  url: ${LETTERS}/m.csv\n  root: files\n"
    )
    write(tmp_path, text)
    (tmp_path / "prompt.txt").write_text("Find it.")
    (collection,) = load_collections(tmp_path, {"LETTERS": "s3://archive"})
    assert isinstance(collection.source, ManifestSource)
    assert collection.source.url == "s3://archive/m.csv"
    assert collection.source.root == str(tmp_path / "files")


def test_relative_folders_and_paths_do_not_depend_on_where_a_later_process_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write(tmp_path, VALID)
    monkeypatch.chdir(tmp_path.parent)
    (collection,) = load_collections(Path(tmp_path.name), {})
    assert collection.base_dir == tmp_path
    assert collection.source.path == str(tmp_path / "letters")


def test_a_dollar_sign_in_instructions_is_only_text(tmp_path: Path):
    text = changed("    parameters:", '    instructions: "Amounts as ${USD}."\n    parameters:')
    write(tmp_path, text)
    assert load_collections(tmp_path, {"USD": "x"})[0].active.instructions == "Amounts as ${USD}."


def test_what_is_no_collection_file_is_passed_over(tmp_path: Path):
    write(tmp_path, VALID)
    write(tmp_path, "not: a collection", ".hidden.yaml")
    write(tmp_path, "not: a collection", "notes.txt")
    (tmp_path / "folder.yaml").mkdir()
    assert len(load_collections(tmp_path, {})) == 1


def test_an_error_of_a_later_stage_names_file_and_line(tmp_path: Path):
    file = write(tmp_path, VALID)
    (collection,) = load_collections(tmp_path, {})
    error = collection.error(("document_type",), "There is no such type.", "Use another.")
    assert str(error) == f"{file}:3: There is no such type. Use another."
    with pytest.raises(CollectionError, match=r":11: .*no extraction version 'v2'.*Use one of: v1"):
        collection.version("v2")
