"""A database that ends idle connections keeps one that holds a lock while a provider is called."""

import time

import pytest
from sqlalchemy import text

from extraction_pipeline.ledger.database import RECORD_LOCK, lock_until_commit
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import meanwhile
from extraction_pipeline_tests.faults.proxy import UPLOAD, Proxy
from extraction_pipeline_tests.lifecycle.driving import Driven


@pytest.fixture
def limited(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> Driven:
    """Its database ends what is idle for a tenth of a second."""
    limits = ("idle_session_timeout", "idle_in_transaction_session_timeout")
    monkeypatch.setenv("PGOPTIONS", " ".join(f"-c {limit}=100ms" for limit in limits))
    driven.pipeline.engine.dispose()
    return driven


def test_a_job_whose_upload_takes_longer_goes_out(
    limited: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Its lock went with the connection, at each try anew."""
    workplace.write(1)
    proxy.plan(UPLOAD, meanwhile(lambda: time.sleep(0.4)), times=None)
    (job_id,) = limited.submitted()
    assert limited.creates(job_id) == 1


def test_a_transaction_that_holds_a_lock_is_kept(limited: Driven) -> None:
    with limited.pipeline.engine.begin() as holder:
        lock_until_commit(holder, RECORD_LOCK, "notes")
        time.sleep(0.4)
        assert holder.execute(text("SELECT 1")).scalar_one() == 1
