"""The store's disk takes no more, at each write of a job's life: one line says so, and when there
is room again everything goes on where it was."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from extraction_pipeline.errors import StoreError
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.proxy import CONTENT, CREATE, Proxy
from extraction_pipeline_tests.lifecycle.driving import Driven

SMALL = 64
"""Bytes: nothing that this project stores is smaller."""


@contextmanager
def no_room() -> Iterator[None]:
    """No file of this process may grow: what a full disk does to it. The database is another."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def refused(work: Callable[[], object]) -> str:
    with no_room():
        try:
            work()
        except StoreError as error:
            said = str(error)
        else:
            pytest.fail("it was written")
    assert "\n" not in said
    assert "note-0" not in said  # a file's name can carry a patient's
    return said


def test_a_store_without_room_loses_nothing_and_buys_nothing_twice(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(3)
    assert "free space" in refused(driven.scan)
    assert driven.summary().published == 0
    assert len(driven.scan().new) == 3

    with no_room():
        report = driven.submit()
    assert (report.submitted, proxy.count(CREATE)) == ([], 0)
    assert "free space" in report.causes[0]
    assert "\n" not in report.causes[0]
    driven.execute("UPDATE extraction.batch_jobs SET due_at = now()")
    (job_id,) = driven.submit().submitted

    driven.ended(job_id)
    assert "free space" in refused(lambda: driven.collect(job_id))
    assert driven.rows("SELECT FROM extraction.raw_responses") == []
    driven.collect(job_id)
    downloads = proxy.count(CONTENT)
    with no_room():
        published = driven.publish(job_id)  # it needs no room
    assert len(published.published) == 3
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 1)
    assert proxy.count(CONTENT) == downloads
    assert driven.summary().published == 3
