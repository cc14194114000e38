import os
import socket
import zipfile
from pathlib import Path

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from extraction_pipeline.documents.folder import (
    LARGEST_HASHED,
    FoundFile,
    LargeFile,
    name_of_path,
    path_of_name,
)
from extraction_pipeline.documents.identity import content_hash
from extraction_pipeline.documents.sources import (
    FolderSource,
    ManifestSource,
    Source,
    SourceEntry,
    _entry,
    folder_of,
    list_entries,
)
from extraction_pipeline.errors import SourceError


def read_entry(source: FolderSource | ManifestSource, entry: SourceEntry, base: Path) -> bytes:
    content = folder_of(source, base).read(entry.path, entry.size, 1_000_000)
    assert isinstance(content, bytes)
    return content


def folder(**keys: object) -> FolderSource:
    return FolderSource.model_validate({"kind": "folder", **keys})


def fill(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}")


def paths(source: FolderSource, base: Path) -> list[str]:
    return [entry.path for entry in list_entries(source, base)]


@pytest.fixture
def memory():
    filesystem = fsspec.filesystem("memory")
    yield filesystem
    filesystem.rm("/", recursive=True)


def test_entries_come_in_order_with_size_and_token(tmp_path):
    fill(tmp_path, "b.txt", "a/z.txt", "a.txt")
    source = folder(path=".")
    entries = list(list_entries(source, tmp_path))
    assert [entry.path for entry in entries] == ["a.txt", "a/z.txt", "b.txt"]
    assert entries[0].size == len("text of a.txt")
    assert entries[0].record_id is None
    assert entries == list(list_entries(source, tmp_path))
    assert read_entry(source, entries[1], tmp_path) == b"text of a/z.txt"


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (["**/*"], [], ["a.txt", "x/b.txt", "x/y/c.md", "x/y/d.txt"]),
        (["*"], [], ["a.txt"]),
        (["*.txt"], [], ["a.txt"]),
        (["**/*.txt"], [], ["a.txt", "x/b.txt", "x/y/d.txt"]),
        (["x/*"], [], ["x/b.txt"]),
        (["x/**"], [], ["x/b.txt", "x/y/c.md", "x/y/d.txt"]),
        (["**/y/*"], [], ["x/y/c.md", "x/y/d.txt"]),
        (["**/[cd].*"], [], ["x/y/c.md", "x/y/d.txt"]),
        (["**/*"], ["x/y/**"], ["a.txt", "x/b.txt"]),
        (["**/*.txt", "**/*.md"], ["**/c.*"], ["a.txt", "x/b.txt", "x/y/d.txt"]),
    ],
)
def test_patterns(tmp_path, memory, include, exclude, expected):
    fill(tmp_path, "a.txt", "x/b.txt", "x/y/c.md", "x/y/d.txt")
    assert paths(folder(path=".", include=include, exclude=exclude), tmp_path) == expected
    memory.put(str(tmp_path) + "/", "/bucket/notes/", recursive=True)
    source = folder(url="memory://bucket/notes", include=include, exclude=exclude)
    assert paths(source, tmp_path) == expected


def test_hidden_and_temporary_files_are_left_out_unless_asked_for(tmp_path):
    unwanted = [".DS_Store", ".git/config", "~$letter.docx", "a.txt~", "#a#", "Thumbs.db", "b.tmp"]
    fill(tmp_path, "a.txt", *unwanted)
    assert paths(folder(path="."), tmp_path) == ["a.txt"]
    assert paths(folder(path=".", include_hidden=True), tmp_path) == sorted(["a.txt", *unwanted])


def test_awkward_names_are_listed_and_read(tmp_path):
    names = ["a b & c (copy) é.txt", "50%.txt", "back\\slash.txt", "line\nend.txt", "x\\xe9.txt"]
    fill(tmp_path, *names)
    raw = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    Path(os.fsdecode(raw)).write_text("latin name")
    source = folder(path=".")
    entries = list(list_entries(source, tmp_path))
    assert len({entry.path for entry in entries}) == 6
    for entry in entries:
        # PostgreSQL and JSON take it.
        entry.path.encode("utf-8")
    contents = {entry.path: read_entry(source, entry, tmp_path).decode() for entry in entries}
    assert contents["caf\\xe9.txt"] == "latin name"
    assert contents["x\\\\xe9.txt"] == "text of x\\xe9.txt"
    assert contents["a b & c (copy) é.txt"] == "text of a b & c (copy) é.txt"


@given(st.binary(min_size=1).filter(lambda name: b"/" not in name and b"\0" not in name))
def test_every_name_survives_the_way_to_text_and_back(name):
    path = path_of_name(os.fsdecode(name))
    path.encode("utf-8")
    assert os.fsencode(name_of_path(path)) == name


def test_an_empty_folder_has_no_entries_and_a_missing_one_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    assert paths(folder(path="empty"), tmp_path) == []
    with pytest.raises(SourceError, match="No such file") as caught:
        list_entries(folder(path="gone"), tmp_path)
    assert str(tmp_path / "gone") in str(caught.value)
    (tmp_path / "file").write_text("x")
    with pytest.raises(SourceError, match="Not a directory"):
        list_entries(folder(path="file"), tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_a_folder_or_file_without_permission_is_a_problem(tmp_path):
    fill(tmp_path, "a/x.txt", "b.txt")
    (tmp_path / "b.txt").chmod(0)
    source = folder(path=".")
    entry = list(list_entries(source, tmp_path))[1]
    with pytest.raises(SourceError, match="Permission denied"):
        read_entry(source, entry, tmp_path)
    (tmp_path / "a").chmod(0)
    try:
        listing = list_entries(source, tmp_path)
        assert listing.unlisted == ("a/",)
        assert [entry.path for entry in listing if entry.problem is None] == ["b.txt"]
    finally:
        (tmp_path / "a").chmod(0o700)


def test_a_file_that_vanished_is_an_error_that_does_not_name_it(tmp_path):
    fill(tmp_path, "Jane Doe.txt")
    source = folder(path=".")
    (entry,) = list_entries(source, tmp_path)
    (tmp_path / "Jane Doe.txt").unlink()
    with pytest.raises(SourceError, match="No such file") as caught:
        read_entry(source, entry, tmp_path)
    assert "Jane" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_links_out_of_the_folder_are_not_followed(tmp_path, caplog):
    fill(tmp_path, "in/a.txt", "in/sub/b.txt", "out/secret.txt", "insider/c.txt")
    (tmp_path / "in/file-out").symlink_to(tmp_path / "out/secret.txt")
    (tmp_path / "in/folder-out").symlink_to(tmp_path / "out")
    (tmp_path / "in/neighbour").symlink_to(tmp_path / "insider")
    (tmp_path / "in/again").symlink_to(tmp_path / "in/a.txt")
    (tmp_path / "in/sub/loop").symlink_to(tmp_path / "in")
    source = folder(path="in")
    entries = list(list_entries(source, tmp_path))
    assert [entry.path for entry in entries] == ["a.txt", "again", "sub/b.txt"]
    assert "3 links" in caplog.text
    assert read_entry(source, entries[1], tmp_path) == b"text of in/a.txt"
    # A file that became a link since the listing leads nowhere either.
    (tmp_path / "in/a.txt").unlink()
    (tmp_path / "in/a.txt").symlink_to(tmp_path / "out/secret.txt")
    with pytest.raises(SourceError, match="outside"):
        read_entry(source, entries[0], tmp_path)


def test_a_folder_that_is_itself_a_link_is_read(tmp_path):
    fill(tmp_path, "real/a.txt")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    source = folder(path="link")
    (entry,) = list_entries(source, tmp_path)
    assert read_entry(source, entry, tmp_path) == b"text of real/a.txt"


def test_a_dead_link_is_listed_and_fails_when_read(tmp_path):
    (tmp_path / "dead.txt").symlink_to(tmp_path / "gone.txt")
    source = folder(path=".")
    (entry,) = list_entries(source, tmp_path)
    assert (entry.size, entry.modified) == (None, None)
    with pytest.raises(SourceError):
        read_entry(source, entry, tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_no_document_and_makes_nobody_wait(tmp_path):
    fill(tmp_path, "a.txt")
    source = folder(path=".")
    (entry,) = list_entries(source, tmp_path)
    (tmp_path / "a.txt").unlink()
    os.mkfifo(tmp_path / "a.txt")
    assert list(list_entries(source, tmp_path)) == []
    opened = len(list(Path("/dev/fd").iterdir()))
    with pytest.raises(SourceError, match="regular"):
        read_entry(source, entry, tmp_path)
    assert len(list(Path("/dev/fd").iterdir())) == opened


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")
def test_a_file_whose_content_is_not_what_its_size_says_is_not_taken():
    # The kernel gives these files size 0 and content all the same, as for one being written.
    source = folder(path="/proc/self", include=["status"])
    entry = SourceEntry("status", 0, None, None)
    with pytest.raises(SourceError, match="changed while it was read"):
        read_entry(source, entry, Path("/"))


def test_a_url(memory):
    memory.pipe("/bucket/notes/a b.txt", b"fever")
    memory.pipe("/bucket/notes/.hidden", b"x")
    source = folder(url="memory://bucket/notes/")
    (entry,) = list_entries(source, Path("/nowhere"))
    assert (entry.path, entry.size) == ("a b.txt", 5)
    assert entry.modified
    assert read_entry(source, entry, Path("/nowhere")) == b"fever"
    memory.pipe("/bucket/notes/a b.txt", b"chill")
    (changed,) = list_entries(source, Path("/nowhere"))
    assert changed.modified != entry.modified
    memory.rm("/bucket/notes/a b.txt")
    with pytest.raises(SourceError, match="not there"):
        read_entry(source, entry, Path("/nowhere"))


def test_a_url_whose_file_system_writes_paths_without_a_slash(tmp_path):
    """As object stores do, whose paths begin with the bucket."""
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as packed:
        packed.writestr("notes/wards/a b.txt", "fever")
        packed.writestr("letters/b.txt", "chill")
    source = folder(url=f"zip://notes::file://{tmp_path}/packed.zip")
    (entry,) = list_entries(source, Path("/nowhere"))
    assert (entry.path, entry.size) == ("wards/a b.txt", 5)
    assert read_entry(source, entry, Path("/nowhere")) == b"fever"


@pytest.mark.parametrize(
    ("url", "message"),
    [("memory://bucket/gone", "Nothing is found"), ("nowhere://bucket", "nowhere")],
)
def test_a_url_that_leads_nowhere(memory, url, message):
    with pytest.raises(SourceError, match=message):
        list_entries(folder(url=url), Path("/nowhere"))


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"kind": "folder"}, "either `path` or `url`"),
        ({"kind": "folder", "path": "a", "url": "s3://a"}, "either `path` or `url`"),
        ({"kind": "folder", "path": ""}, "at least 1 character"),
        ({"kind": "folder", "path": "a", "include": []}, "at least 1 item"),
        ({"kind": "folder", "path": "a", "include": ["a**b"]}, "entire path component"),
        ({"kind": "folder", "path": "a", "exclude": ["/abs/*"]}, "relative"),
        ({"kind": "folder", "path": "a", "exclude": ["../*"]}, "relative"),
        ({"kind": "folder", "path": "a", "pattern": "*"}, "Extra inputs"),
        ({"kind": "drawer", "path": "a"}, "folder"),
    ],
)
def test_source_blocks_that_are_wrong(block, message):
    with pytest.raises(ValidationError, match=message):
        TypeAdapter(Source).validate_python(block)


def sink_below(root: Path, name: str, levels: int) -> None:
    """Folders within one another, deeper than any path can say, with a file in each."""
    start = os.open(".", os.O_RDONLY)
    try:
        os.chdir(root)
        for _ in range(levels):
            os.mkdir(name)  # noqa: PTH102
            os.chdir(name)
            Path("note.txt").write_text("x")
    finally:
        os.fchdir(start)
        os.close(start)


def test_links_in_a_ring_are_listed_as_dead_and_stop_nothing(tmp_path):
    fill(tmp_path, "a.txt")
    (tmp_path / "b.txt").symlink_to(tmp_path / "c.txt")
    (tmp_path / "c.txt").symlink_to(tmp_path / "b.txt")
    (tmp_path / "self.txt").symlink_to("self.txt")
    source = folder(path=".")
    entries = list(list_entries(source, tmp_path))
    assert [entry.path for entry in entries] == ["a.txt", "b.txt", "c.txt", "self.txt"]
    for entry in entries[1:]:
        with pytest.raises(SourceError) as caught:
            read_entry(source, entry, tmp_path)
        assert entry.path not in str(caught.value)


def test_a_folder_that_cannot_be_listed_is_a_problem_of_its_own(tmp_path):
    fill(tmp_path, "a.txt")
    name = "d" * 250
    sink_below(tmp_path, name, 20)
    listing = list_entries(folder(path="."), tmp_path)
    (unlisted,) = listing.unlisted
    assert unlisted.count(name) >= 10
    (bad,) = (entry for entry in listing if entry.problem and "cannot be listed" in entry.problem)
    assert name not in (bad.problem or "")
    # Beside it everything is there; what is too deep for the ledger says so.
    assert listing.entries[0].path == "a.txt"
    assert all(len(entry.path.encode()) <= 1500 for entry in listing)
    assert len({entry.path for entry in listing}) == len(listing.entries)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_what_is_left_out_for_what_it_is_is_counted(tmp_path, memory):
    fill(tmp_path, "in/a.txt", "in/.hidden", "in/.git/config", "in/.git/head", "in/~$a.docx", "out")
    (tmp_path / "in/away").symlink_to(tmp_path / "out")
    os.mkfifo(tmp_path / "in/pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "in/socket"))
        listing = list_entries(folder(path="in", exclude=["b*"]), tmp_path)
    assert [entry.path for entry in listing] == ["a.txt"]
    # Two hidden files, a hidden folder, a link, a pipe and a socket.
    assert listing.skipped == 6
    memory.pipe("/bucket/notes/a.txt", b"x")
    memory.pipe("/bucket/notes/.git/config", b"x")
    assert list_entries(folder(url="memory://bucket/notes"), tmp_path).skipped == 1


def test_a_large_file_is_hashed_and_never_held_in_memory(tmp_path, memory):
    (tmp_path / "large.bin").write_bytes(b"0123456789")
    source = folder(path=".")
    (entry,) = list_entries(source, tmp_path)
    found = LargeFile(content_hash(b"0123456789"), 10)
    assert folder_of(source, tmp_path).read(entry.path, entry.size, 9) == found
    assert folder_of(source, tmp_path).read(entry.path, entry.size, 10) == b"0123456789"
    memory.pipe("/bucket/large.bin", b"0123456789")
    remote = folder(url="memory://bucket")
    (entry,) = list_entries(remote, tmp_path)
    assert folder_of(remote, tmp_path).read(entry.path, entry.size, 9) == found
    # Where the listing told no size, or a wrong one.
    unknown = SourceEntry("large.bin", None, None, None)
    assert folder_of(remote, tmp_path).read(unknown.path, unknown.size, 9) == found
    assert folder_of(remote, tmp_path).read(unknown.path, unknown.size, 10) == b"0123456789"


def test_a_file_too_large_to_be_hashed_is_an_error_at_once(tmp_path):
    with (tmp_path / "Jane Doe.img").open("wb") as file:
        file.truncate(LARGEST_HASHED + 1)
    source = folder(path=".")
    (entry,) = list_entries(source, tmp_path)
    with pytest.raises(SourceError, match="larger than 4 GiB") as caught:
        read_entry(source, entry, tmp_path)
    assert "Jane" not in str(caught.value)


@given(st.text(max_size=3000))
def test_every_path_becomes_one_that_the_ledger_can_keep(text):
    entry = _entry(FoundFile(text, 1, None), text)
    for shown, most in ((entry.path, 1500), (entry.record_id or "", 500)):
        assert len(shown.encode("utf-8")) <= most
        assert "\0" not in shown
        assert shown == text or entry.problem
    assert _entry(FoundFile(text + "x", 1, None), text + "x") != entry
