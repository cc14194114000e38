"""An object store that cannot be reached for a while: nothing counts as lost because of it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import fsspec
import pytest
from fsspec.asyn import AsyncFileSystem

from extraction_pipeline.documents.store import ContentStore
from extraction_pipeline.errors import StoreUnavailable
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.proxy import CONTENT, Proxy
from extraction_pipeline_tests.lifecycle.driving import Driven


class Bucket(AsyncFileSystem):  # type: ignore[misc]  # its package has no types
    """An object store that a test takes from the network."""

    protocol = "bucket"
    cachable = False
    contents: ClassVar[dict[str, bytes]] = {}
    away: ClassVar[bool] = False

    async def _pipe_file(self, path: str, value: bytes, **options: object) -> None:
        Bucket.contents[path] = value

    async def _put_file(self, lpath: str, rpath: str, **options: object) -> None:
        with open(lpath, "rb") as file:  # noqa: PTH123
            Bucket.contents[rpath] = file.read()

    async def _info(self, path: str, **options: object) -> dict[str, object]:
        if path not in Bucket.contents:
            raise FileNotFoundError(path)
        return {"name": path, "size": len(Bucket.contents[path]), "type": "file"}

    async def _cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **options: object
    ) -> bytes:
        if Bucket.away:
            raise ConnectionError("no route")
        if path not in Bucket.contents:
            raise FileNotFoundError(path)
        return Bucket.contents[path][start:end]


@pytest.fixture
def remote(driven: Driven) -> Iterator[Driven]:
    """The collection over an object store."""
    fsspec.register_implementation("bucket", Bucket, clobber=True)
    Bucket.contents.clear()
    Bucket.away = False
    yield replace(driven, pipeline=replace(driven.pipeline, store=ContentStore("bucket://texts")))
    Bucket.contents.clear()


def test_a_job_whose_texts_cannot_be_read_now_waits_and_is_sent_later(
    remote: Driven, workplace: Workplace
) -> None:
    workplace.write(3)
    remote.scan()
    Bucket.away = True
    report = remote.submit()
    (job,) = report.waiting
    assert remote.job(job).state is JobState.PREPARING
    assert "cannot read content" in report.causes[0]
    ((states,),) = remote.rows("SELECT array_agg(DISTINCT state::text) FROM extraction.batch_items")
    assert states == ["claimed"]
    Bucket.away = False
    assert remote.submit().submitted == [job]


def test_a_text_that_the_store_does_not_hold_is_one_documents_own_trouble(
    remote: Driven, workplace: Workplace
) -> None:
    workplace.write(3)
    remote.scan()
    del Bucket.contents[min(Bucket.contents)]
    assert len(remote.submit().submitted) == 1
    states = "SELECT state::text, count(*) FROM extraction.batch_items GROUP BY 1 ORDER BY 1"
    assert [tuple(row) for row in remote.rows(states)] == [("claimed", 2), ("failed", 1)]


def test_of_many_contents_each_says_that_the_store_is_away(remote: Driven) -> None:
    store = remote.pipeline.store
    digest = store.put(b"fever")
    store.flush()
    Bucket.away = True
    for read in store.get_many([digest, digest]):
        with pytest.raises(StoreUnavailable, match="ConnectionError"):
            read()


def test_results_are_not_fetched_again_because_the_store_is_away(
    remote: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(3)
    remote.scan()
    (job,) = remote.submit().submitted
    remote.ended(job)
    remote.collect(job)
    fetched = proxy.count(CONTENT)
    Bucket.away = True
    with pytest.raises(StoreUnavailable, match="ConnectionError"):
        remote.collect(job)
    with pytest.raises(StoreUnavailable, match="ConnectionError"):
        remote.publish(job)
    assert proxy.count(CONTENT) == fetched
    Bucket.away = False
    assert len(remote.publish(job).published) == 3
    assert proxy.count(CONTENT) == fetched
