"""A folder shared with somebody else: a file appears whole, and what is there stays."""

import errno
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from extraction_pipeline.providers.exchange_folder import ExchangeFolder, open_exchange_folder

NAME = "outbox/one.jsonl"


@pytest.fixture(params=["disk", "share without links", "file URL", "no disk"])
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ExchangeFolder]:
    """An exchange folder of each kind, with an empty `outbox` in it."""
    place = str(tmp_path)
    if request.param == "no disk":
        place = f"memory://exchange-{uuid.uuid4().hex}"
    elif request.param == "file URL":
        place = f"file://{tmp_path}"
    elif request.param == "share without links":
        monkeypatch.setattr(os, "link", _no_links)
    opened = open_exchange_folder(place)
    opened.make("outbox")
    yield opened
    if place.startswith("memory:"):
        fsspec.filesystem("memory").rm(place, recursive=True)


def _no_links(*_: object, **__: object) -> None:
    raise OSError(errno.EOPNOTSUPP, "not supported")


def _content(folder: ExchangeFolder) -> bytes:
    with folder.open(NAME) as file:
        return file.read()


def test_of_two_that_are_staged_at_once_the_first_to_come_stays(
    folder: ExchangeFolder, tmp_path: Path
) -> None:
    payload = tmp_path / "payload"
    staged = []
    for content in (b"first", b"second"):
        payload.write_bytes(content)
        staged.append(folder.stage(NAME, payload))
    assert not folder.has(NAME)
    for one in staged:
        folder.put(one, NAME)
        assert _content(folder) == b"first"
    assert not any(map(folder.has, staged))


def test_what_was_staged_for_a_name_is_removed_and_nothing_else(folder: ExchangeFolder) -> None:
    folder.put(folder.stage(NAME, None), NAME)
    half, other = folder.stage(NAME, None), folder.stage("outbox/two.jsonl", None)
    folder.remove_staged(NAME)
    assert [folder.has(name) for name in (NAME, half, other)] == [True, False, True]
    for _ in range(2):
        folder.remove(NAME)
        assert not folder.has(NAME)


def test_nothing_is_staged_for_a_folder_that_is_not_there(folder: ExchangeFolder) -> None:
    folder.remove_staged("inbox/one.jsonl")
    assert not folder.has("inbox/one.jsonl")
