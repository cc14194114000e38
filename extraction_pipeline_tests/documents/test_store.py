import asyncio
import multiprocessing
import os
import resource
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import fsspec
import pytest
from fsspec.asyn import AsyncFileSystem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extraction_pipeline.documents import store_objects
from extraction_pipeline.documents.identity import content_hash
from extraction_pipeline.documents.store import ContentStore
from extraction_pipeline.errors import StoreError


@pytest.fixture(params=["folder", "file-url", "memory"])
def store(request, tmp_path):
    if request.param == "memory":
        yield ContentStore(f"memory://{tmp_path.name}/store")
        fsspec.filesystem("memory").rm("/", recursive=True)
    else:
        root = tmp_path / "store"
        yield ContentStore(root.as_uri() if request.param == "file-url" else str(root))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.binary(max_size=3000))
def test_what_is_put_is_got(store, data):
    digest = store.put(data)
    assert digest == content_hash(data)
    assert store.exists(digest)
    assert store.get(digest) == data
    with store.open(digest) as stream:
        assert stream.read() == data


def test_ranges(store):
    digest = store.put(b"0123456789")
    assert store.read_range(digest, 3, 4) == b"3456"
    assert store.read_range(digest, 0, 10) == b"0123456789"
    assert store.read_range(digest, 10, 0) == b""
    with pytest.raises(StoreError, match="shorter"):
        store.read_range(digest, 8, 4)
    with pytest.raises(ValueError, match="negative"):
        store.read_range(digest, -1, 4)


def test_a_large_file_is_stored_in_pieces(store, tmp_path):
    source = tmp_path / "results.jsonl"
    source.write_bytes(bytes(range(256)) * 20_000)
    digest = store.put_file(source)
    assert digest == content_hash(source.read_bytes())
    assert store.get(digest) == source.read_bytes()
    with pytest.raises(StoreError, match="cannot be opened"):
        store.put_file(tmp_path / "nothing")


def test_a_writer_knows_its_hash_only_when_the_content_is_stored(store):
    with store.writer() as writer:
        writer.write(b"ab")
        writer.write(b"c")
        with pytest.raises(StoreError, match="not stored yet"):
            _ = writer.content_hash
        assert not store.exists(content_hash(b"abc"))
    assert (writer.content_hash, writer.length) == (content_hash(b"abc"), 3)
    assert store.get(writer.content_hash) == b"abc"


def test_nothing_is_stored_when_writing_ends_with_an_error(store):
    with pytest.raises(RuntimeError, match="half"), store.writer() as writer:
        writer.write(b"abc")
        raise RuntimeError("half way")
    assert not store.exists(content_hash(b"abc"))


def test_missing_content_is_an_error_with_its_hash(store):
    digest = content_hash(b"never stored")
    assert not store.exists(digest)
    for attempt in (
        store.get,
        lambda d: store.read_range(d, 0, 1),
        lambda d: store.open(d).__enter__(),
    ):
        with pytest.raises(StoreError, match=digest):
            attempt(digest)


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n"])
def test_only_a_hash_names_content(store, digest):
    with pytest.raises(StoreError, match="64 hexadecimal"):
        store.get(digest)


def _only_file(root: Path) -> Path:
    (path,) = (path for path in root.rglob("*") if path.is_file())
    return path


def test_damaged_content_is_found_and_never_given_out(tmp_path):
    store = ContentStore(str(tmp_path))
    digest = store.put(b"the text that was sent")
    _only_file(tmp_path).write_bytes(b"the text that was SENT")
    with pytest.raises(StoreError, match="damaged") as caught:
        store.get(digest)
    assert "SENT" not in str(caught.value)


def test_content_that_a_power_cut_left_short_is_written_again(tmp_path):
    store = ContentStore(str(tmp_path))
    digest = store.put(b"the text")
    _only_file(tmp_path).write_bytes(b"")
    assert store.put(b"the text") == digest
    assert store.get(digest) == b"the text"


@pytest.mark.parametrize("left", [b"the test", b"", b"the text and more"])
def test_damage_of_any_length_is_mended_by_putting_the_content_again(tmp_path, left):
    store = ContentStore(str(tmp_path))
    digest = store.put(b"the text")
    _only_file(tmp_path).write_bytes(left)
    assert store.put(b"the text") == digest
    assert store.get(digest) == b"the text"


def test_what_is_missing_or_of_another_length_is_told(store):
    sound, missing = store.put(b"sound"), content_hash(b"never stored")
    other = store.put(b"something else")
    assert store.incomplete({sound: 5, missing: 5, other: 5}) == {missing, other}
    assert store.incomplete({sound: None, missing: None, other: None}) == {missing}
    assert store.incomplete({}) == set()
    with pytest.raises(StoreError, match="64 hexadecimal"):
        store.incomplete({"../../etc/passwd": 1})


@pytest.mark.parametrize("listed_from", [0, 1000])
def test_a_store_that_is_listed_answers_as_one_that_is_asked(store, monkeypatch, listed_from):
    monkeypatch.setattr(store_objects, "_LISTED_FROM", listed_from)
    texts = [f"text {number}".encode() for number in range(40)]
    sizes = {store.put(text): len(text) for text in texts}
    wrong = {content_hash(b"never stored"): 12, **dict.fromkeys(list(sizes)[:3], 100)}
    assert store.incomplete(dict(sorted({**sizes, **wrong}.items()))) == set(wrong)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.binary(max_size=300), st.binary(max_size=300))
def test_whatever_lies_under_a_name_only_the_content_itself_is_given_out(tmp_path, data, other):
    store = ContentStore(str(tmp_path / "store"))
    digest = store.put(data)
    place = tmp_path / "store" / digest[:2] / digest[2:4] / digest
    place.write_bytes(other)
    if other == data:
        assert store.get(digest) == data
    else:
        with pytest.raises(StoreError, match="damaged"):
            store.get(digest)
    store.put(data)
    assert store.get(digest) == data


@pytest.fixture
def small_files_only():
    """No file may grow over 64 KiB: what a full disk does, at a place that a test can choose."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_takes_no_more_is_an_error_of_one_line(tmp_path, small_files_only):
    store = ContentStore(str(tmp_path / "store"))
    large = bytes(100_000)
    with pytest.raises(StoreError, match="File too large") as put:
        store.put(large)
    with pytest.raises(StoreError, match="File too large") as written, store.writer() as writer:
        for _ in range(100):
            writer.write(large[:1000])
    for caught in (put, written):
        assert "free space" in (caught.value.remedy or "")
        assert "\n" not in str(caught.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_file_to_store_that_cannot_be_read_is_an_error_of_one_line(store, tmp_path):
    with pytest.raises(StoreError, match="Is a directory"):
        store.put_file(tmp_path)
    if Path("/proc/self/mem").exists():
        # It can be opened, and its first byte cannot be read.
        with pytest.raises(StoreError, match="cannot be read: Input/output error"):
            store.put_file(Path("/proc/self/mem"))


def test_content_that_is_there_is_not_written_again(tmp_path):
    store = ContentStore(str(tmp_path))
    store.put(b"the text")
    before = _only_file(tmp_path).stat()
    store.put(b"the text")
    with store.writer() as writer:
        writer.write(b"other")
    after = (tmp_path / content_hash(b"the text")[:2]).rglob("*")
    assert [path.stat().st_ino for path in after if path.is_file()] == [before.st_ino]


def test_only_the_owner_can_read_and_nothing_unfinished_stays_behind(tmp_path):
    root = tmp_path / "store"
    old = os.umask(0)
    try:
        store = ContentStore(str(root))
        store.put(b"small")
        with store.writer() as writer:
            writer.write(b"large")
    finally:
        os.umask(old)
    store.flush()
    paths = [root, *root.rglob("*")]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_dir()}
    assert modes == {0o700}
    files = [path for path in paths if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert {path.name for path in files} == {content_hash(b"small"), content_hash(b"large")}


def _write_all(root: str, start: int) -> None:
    store = ContentStore(root)
    for number in range(300):
        store.put(b"document %d" % ((number + start) % 300))
    with store.writer() as writer:
        writer.write(b"results")


def test_two_writers_at_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_write_all, args=(str(tmp_path), start)) for start in (0, 150, 0)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    store = ContentStore(str(tmp_path))
    for number in range(300):
        text = b"document %d" % number
        assert store.get(content_hash(text)) == text
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 301


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_that_cannot_be_written(tmp_path):
    (tmp_path / "store").mkdir(mode=0o500)
    with pytest.raises(StoreError, match="Permission denied"):
        ContentStore(str(tmp_path / "store")).put(b"x")


def test_a_store_below_a_file_is_an_error_of_one_line(tmp_path):
    (tmp_path / "file").write_text("x")
    store = ContentStore(str(tmp_path / "file" / "store"))
    with pytest.raises(StoreError, match="Not a directory") as caught:
        store.put(b"x")
    assert "\n" not in str(caught.value)


def test_an_unknown_protocol_is_named():
    with pytest.raises(StoreError, match="nowhere"):
        ContentStore("nowhere://bucket/prefix")


class Slow(AsyncFileSystem):  # type: ignore[misc]  # its package has no types
    """An object store that takes a moment for each call, and counts those under way."""

    protocol = "slow"
    cachable = False
    contents: ClassVar[dict[str, bytes]] = {}
    at_once: ClassVar[int] = 0
    most: ClassVar[int] = 0

    async def _call(self) -> None:
        Slow.at_once += 1
        Slow.most = max(Slow.most, Slow.at_once)
        await asyncio.sleep(0.02)
        Slow.at_once -= 1

    async def _pipe_file(self, path: str, value: bytes, **options: object) -> None:
        await self._call()
        if b"refused" in value:
            raise PermissionError("no")
        if path.startswith("nowhere/"):
            raise FileNotFoundError(path)
        Slow.contents[path] = value

    async def _cat_file(self, path: str, start=None, end=None, **options: object) -> bytes:
        await self._call()
        if path not in Slow.contents:
            raise FileNotFoundError(path)
        return Slow.contents[path][start:end]


@pytest.fixture
def slow() -> Iterator[ContentStore]:
    fsspec.register_implementation("slow", Slow, clobber=True)
    Slow.contents.clear()
    Slow.most = 0
    yield ContentStore("slow://bucket")
    Slow.contents.clear()


def test_an_object_store_is_written_and_read_many_at_a_time(slow: ContentStore) -> None:
    texts = [f"text {number}".encode() for number in range(100)]
    began = time.monotonic()
    digests = [slow.put(text) for text in texts]
    slow.flush()
    assert len(Slow.contents) == 100
    assert [read() for read in slow.get_many(digests)] == texts
    assert 8 < Slow.most <= 16
    assert time.monotonic() - began < 2.0, "one after the other it takes four seconds"


def test_what_is_put_can_be_got_before_it_is_flushed(slow: ContentStore) -> None:
    assert slow.get(slow.put(b"fever")) == b"fever"


def test_a_write_that_failed_is_told_by_flush(slow: ContentStore) -> None:
    slow.put(b"refused")
    with pytest.raises(StoreError, match="cannot write"):
        slow.flush()
    slow.flush()


def test_a_bucket_that_is_not_there_is_told_with_what_to_do(slow: ContentStore) -> None:
    store = ContentStore("slow://nowhere")
    store.put(b"fever")
    with pytest.raises(StoreError, match=r"bucket is not there\. Make it, or correct"):
        store.flush()


def test_each_content_of_many_fails_on_its_own(store, slow: ContentStore) -> None:
    for one in (store, slow):
        there, gone = one.put(b"here"), content_hash(b"gone")
        found = list(one.get_many([there, gone, there]))
        assert (found[0](), found[2]()) == (b"here", b"here")
        with pytest.raises(StoreError, match=f"holds no content {gone}"):
            found[1]()
