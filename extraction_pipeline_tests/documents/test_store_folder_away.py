"""A folder of contents that cannot be asked for a while: nothing in it counts as lost."""

import errno
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from extraction_pipeline.documents import store_folder
from extraction_pipeline.documents.store import ContentStore
from extraction_pipeline.errors import StoreError, StoreUnavailable


def _opened(store: ContentStore, digest: str) -> bytes:
    with store.open(digest) as stream:
        return stream.read()


READINGS: dict[str, Callable[[ContentStore, str], bytes]] = {
    "get": ContentStore.get,
    "get_many": lambda store, digest: next(store.get_many([digest]))(),
    "open": _opened,
    "read_range": lambda store, digest: store.read_range(digest, 0, 5),
}


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("mount_point", [True, False], ids=["empty", "missing"])
def test_a_disk_that_is_not_mounted_is_waited_for(
    tmp_path: Path, reading: str, mount_point: bool
) -> None:
    root, elsewhere = tmp_path / "store", tmp_path / "elsewhere"
    store = ContentStore(str(root))
    digest = store.put(b"fever")
    root.rename(elsewhere)
    if mount_point:
        root.mkdir()
    with pytest.raises(StoreUnavailable, match="its folder is missing or empty"):
        READINGS[reading](store, digest)
    if mount_point:
        root.rmdir()
    elsewhere.rename(root)
    assert READINGS[reading](store, digest) == b"fever"


@pytest.mark.parametrize("reading", READINGS)
def test_an_error_that_is_not_about_the_content_does_not_make_it_lost(
    tmp_path: Path, reading: str
) -> None:
    store = ContentStore(str(tmp_path / "store"))
    digest = store.put(b"fever")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(StoreUnavailable, match="Too many open files"):
            READINGS[reading](store, digest)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert READINGS[reading](store, digest) == b"fever"


@pytest.mark.parametrize("reading", READINGS)
def test_a_content_that_lacks_beside_others_is_lost(tmp_path: Path, reading: str) -> None:
    store = ContentStore(str(tmp_path / "store"))
    store.put(b"cough")
    digest = store.put(b"fever")
    (place,) = tmp_path.rglob(digest)
    for damage in (place.unlink, place.mkdir):
        damage()
        with pytest.raises(StoreError) as raised:
            READINGS[reading](store, digest)
        assert not isinstance(raised.value, StoreUnavailable)


@pytest.mark.parametrize("reading", READINGS)
def test_a_content_whose_bytes_the_disk_does_not_give_out_is_lost(
    tmp_path: Path, reading: str
) -> None:
    store = ContentStore(str(tmp_path / "store"))
    digest = store.put(b"fever")
    (place,) = tmp_path.rglob(digest)
    place.unlink()
    place.symlink_to("/proc/self/mem")  # it can be opened, and its first byte cannot be read
    with pytest.raises(StoreError, match="Input/output error") as raised:
        READINGS[reading](store, digest)
    assert not isinstance(raised.value, StoreUnavailable)


@pytest.mark.parametrize("code", [errno.EIO, errno.EBADMSG, errno.EUCLEAN])
def test_a_file_that_its_file_system_finds_damaged_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    store = ContentStore(str(tmp_path / "store"))
    digest = store.put(b"fever")

    def opened(*_: object, **__: object) -> NoReturn:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(store_folder, "open", opened, raising=False)
    with pytest.raises(StoreError) as raised:
        store.get(digest)
    assert not isinstance(raised.value, StoreUnavailable)
