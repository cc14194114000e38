"""What all examples of the state machine share: an installation, and what goes wrong in it."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import pytest
from sqlalchemy import create_engine, make_url, text

from extraction_pipeline import crash_points
from extraction_pipeline_tests.batch_server.process import ServerProcess
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import (
    answer,
    drop_before,
    forward_then,
    forward_then_drop,
    meanwhile,
    saying,
)
from extraction_pipeline_tests.faults.proxy import (
    CONTENT,
    CREATE,
    LIST,
    POLL,
    UPLOAD,
    Fault,
    Proxy,
    Route,
    rewritten,
)
from extraction_pipeline_tests.faults.result_rows import (
    cut,
    repeated,
    reversed_rows,
    said,
    undecodable,
    without,
)
from extraction_pipeline_tests.ledger.databases import emptied
from extraction_pipeline_tests.lifecycle.driving import Driven


class Died(BaseException):
    """The process would be gone: none of its sessions is left, and nothing after it is done."""


class Bench:
    """What all examples share: one installation, one proxy, one server."""

    def __init__(
        self,
        workplace: Workplace,
        proxy: Proxy,
        server: ServerProcess,
        server_url: str,
        max_attempts: int,
    ) -> None:
        workplace.declare(max_attempts=max_attempts)
        self.workplace = workplace
        self.proxy = proxy
        self.driven = Driven(workplace.open(proxy.base_url, READ_TIMEOUT="1"), server)
        self._admin = create_engine(
            make_url(server_url).set(drivername="postgresql+psycopg2"), isolation_level="AUTOCOMMIT"
        )
        url = self.driven.pipeline.engine.url
        self._url = url.render_as_string(hide_password=False)
        self._database = url.database

    def reset(self) -> None:
        self.proxy.forget_plans()
        self.driven.pipeline.engine.dispose()
        emptied(self._url)
        for path in (self.workplace.documents / "notes").iterdir():
            path.unlink()

    def cut_database(self) -> None:
        """End every session of the pipeline, as a restart of the database does."""
        with self._admin.connect() as connection:
            connection.execute(
                text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :it"),
                {"it": self._database},
            )

    @contextmanager
    def dying(self, arrival: int) -> Iterator[None]:
        """Let what is done in here die at this arrival at a crash point."""

        def kill(process: int, number: int) -> None:
            assert (process, number) == (os.getpid(), signal.SIGKILL)
            self.cut_database()
            raise Died

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(crash_points, "_arrivals", Counter())
            patch.setenv(crash_points.VARIABLE, f"{crash_points.ANY}:{arrival}")
            patch.setattr(os, "kill", kill)
            yield

    def close(self) -> None:
        self.driven.pipeline.engine.dispose()
        self._admin.dispose()

    def faults(self) -> Mapping[str, Callable[[], None]]:
        """What goes wrong with the next call of some kind, by name."""
        plan, results = self.proxy.plan, self.proxy.plan_results
        gone = meanwhile(self.cut_database)
        calls: dict[str, tuple[Route, Fault]] = {
            "upload fails": (UPLOAD, answer(503)),
            "upload is lost": (UPLOAD, forward_then_drop),
            "database gone after upload": (UPLOAD, gone),
            "create never arrives": (CREATE, drop_before),
            "create is taken and lost": (CREATE, forward_then_drop),
            "create is taken and answered 500": (CREATE, forward_then(500)),
            "create is limited": (CREATE, answer(429)),
            "create finds no credit": (CREATE, answer(402)),
            "create is rejected": (CREATE, answer(400)),
            "database gone after create": (CREATE, gone),
            "search fails": (LIST, answer(500)),
            "poll fails": (POLL, answer(502)),
            "poll finds nothing": (POLL, answer(404)),
            "poll is late": (
                POLL,
                saying(status="in_progress", output_file_id=None, request_counts=None),
            ),
            "job fails": (POLL, saying(status="failed", output_file_id=None)),
            "database gone after poll": (POLL, gone),
            "download fails": (CONTENT, answer(500)),
            "download is cut": (CONTENT, rewritten(cut)),
            "database gone after download": (CONTENT, gone),
        }
        changes = {
            "rows are shuffled": reversed_rows,
            "a row is missing": without(0),
            "a row comes twice": repeated(0),
            "a row is no JSON": undecodable(0),
            "an answer is no JSON": said(0, "{"),
            "an answer is refused": said(0, None, refusal="no"),
        }
        return {name: partial(plan, *call) for name, call in calls.items()} | {
            name: partial(results, change, times=1) for name, change in changes.items()
        }
