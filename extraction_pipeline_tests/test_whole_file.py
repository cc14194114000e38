"""Files that a setting or another file names: whatever lies there, the reading ends."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from extraction_pipeline.cli.environment import unknown_variables
from extraction_pipeline.collections.loader import load_collections
from extraction_pipeline.documents.sources import ManifestSource, list_entries
from extraction_pipeline.errors import CollectionError, ConfigurationError, SourceError
from extraction_pipeline.prices.loader import load_prices
from extraction_pipeline.whole_file import read_whole, write_whole
from extraction_pipeline_tests.collections.written import changed, write


def pipe(place: Path) -> None:
    os.mkfifo(place)


def endless(place: Path) -> None:
    place.symlink_to("/dev/zero")


def large(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(1 << 40)  # a hole: it takes no room on the disk


UNFIT = pytest.mark.parametrize(
    ("make", "cause"),
    [
        (pipe, "it is not a regular file"),
        (endless, "it is not a regular file"),
        (large, "it is larger than"),
        (Path.mkdir, "it is not a regular file"),
    ],
)
Make = Callable[[Path], None]


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_whole(file, 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_whole(file, 4)


@UNFIT
def test_a_price_list(tmp_path: Path, make: Make, cause: str) -> None:
    make(tmp_path / "prices.yaml")
    with pytest.raises(ConfigurationError, match=cause):
        load_prices(tmp_path / "prices.yaml")


@UNFIT
def test_a_manifest(tmp_path: Path, make: Make, cause: str) -> None:
    make(tmp_path / "list.csv")
    with pytest.raises(SourceError, match=cause):
        list_entries(ManifestSource(kind="manifest", path="list.csv"), tmp_path)


@UNFIT
def test_instructions(tmp_path: Path, make: Make, cause: str) -> None:
    file = write(tmp_path, changed("    max_attempts: 2", "    instructions_file: prompt"))
    make(tmp_path / "prompt")
    if make is endless:
        cause = "lies outside the folder"
    with pytest.raises(CollectionError, match=cause) as caught:
        load_collections(tmp_path, {})
    assert str(caught.value).startswith(f"{file}:16: ")


@pytest.mark.parametrize(
    ("make", "cause"),
    [(pipe, "not a regular"), (endless, "not a regular"), (large, "larger than")],
)
def test_a_collection(tmp_path: Path, make: Make, cause: str) -> None:
    make(tmp_path / "one.yaml")
    assert unknown_variables({"EXTRACTION_STRANGE": "1"}, [tmp_path])
    with pytest.raises(CollectionError, match=cause):
        load_collections(tmp_path, {})


@pytest.mark.parametrize(
    "named", ["{outside}", "../secret.txt", "link", "linked/secret.txt", "deep/../../secret.txt"]
)
def test_instructions_lie_below_the_folder_of_their_yaml(tmp_path: Path, named: str) -> None:
    (tmp_path / "secret.txt").write_text("a secret")
    folder = tmp_path / "collections"
    folder.mkdir()
    (folder / "deep").mkdir()
    (folder / "link").symlink_to(tmp_path / "secret.txt")
    (folder / "linked").symlink_to(tmp_path)
    named = named.format(outside=tmp_path / "secret.txt")
    file = write(folder, changed("    max_attempts: 2", f"    instructions_file: {named}"))
    with pytest.raises(CollectionError) as caught:
        load_collections(folder, {})
    assert str(caught.value) == (
        f"{file}:16: The instructions file lies outside the folder of this YAML. "
        "Put a copy of it into that folder; a link must not lead out of it."
    )


def test_instructions_behind_links_that_stay_in_the_folder(tmp_path: Path) -> None:
    """As where a folder of settings is mounted: each name leads through a link to a version."""
    version = tmp_path / "mounted" / "..2026"
    version.mkdir(parents=True)
    write(version, changed("    max_attempts: 2", "    instructions_file: prompt.txt"))
    (version / "prompt.txt").write_text("\ufeffFind it.\n")
    folder = tmp_path / "mounted"
    (folder / "..data").symlink_to("..2026")
    for name in ("referral_letters.yaml", "prompt.txt"):
        (folder / name).symlink_to(f"..data/{name}")
    (tmp_path / "collections").symlink_to(folder)
    (collection,) = load_collections(tmp_path / "collections", {})
    assert collection.active.instructions == "Find it."


@pytest.mark.parametrize(
    ("content", "cause"),
    [(b"\xff\xfe\x00", "it is not UTF-8 text"), (b"x" * 1_000_001, "larger than 1,000,000 bytes")],
)
def test_instructions_are_a_text_of_some_length(tmp_path: Path, content: bytes, cause: str) -> None:
    file = write(tmp_path, changed("    max_attempts: 2", "    instructions_file: prompt"))
    (tmp_path / "prompt").write_bytes(content)
    with pytest.raises(CollectionError, match=cause) as caught:
        load_collections(tmp_path, {})
    assert str(caught.value).startswith(f"{file}:16: ")


def test_instructions_behind_links_in_a_ring(tmp_path: Path) -> None:
    write(tmp_path, changed("    max_attempts: 2", "    instructions_file: ring"))
    (tmp_path / "ring").symlink_to("ring")
    with pytest.raises(CollectionError, match="instructions file cannot be read"):
        load_collections(tmp_path, {})


def test_a_file_is_written_in_one_step_and_for_this_user_alone(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    file.write_bytes(b"old")
    with file.open("rb") as reader:
        write_whole(file, b"new")
        assert (reader.read(), file.read_bytes()) == (b"old", b"new")
    assert file.stat().st_mode & 0o777 == 0o600
    place = tmp_path / "folder"
    place.mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(place, b"new")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder", "kept.json"]
