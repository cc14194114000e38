"""One step of the pipeline in a process of its own, which a test may kill.

python -m extraction_pipeline_tests.faults.worker submit notes
python -m extraction_pipeline_tests.faults.worker migrate
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.migrate import migrate
from extraction_pipeline.lifecycle.collecting import collect
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.submission import submit_documents
from extraction_pipeline.settings import load_settings
from extraction_pipeline_tests.faults.signals import heed_signals


class Worker:
    """A running step, in the environment of the test."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, *arguments],
            env=os.environ.copy(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=heed_signals,
        )

    def kill(self) -> None:
        """SIGKILL: no chance to tidy up."""
        self._signal(signal.SIGKILL)

    def interrupt(self) -> None:
        """SIGINT, as Ctrl-C sends it."""
        self._signal(signal.SIGINT)

    def output(self) -> str:
        """What it printed, once it ended well."""
        out, errors = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, errors[-2000:]
        return out

    def _signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.communicate(timeout=30)
        assert self.process.returncode != 0


@contextmanager
def working(*arguments: str) -> Iterator[Worker]:
    """A step that is gone when the block ends, whatever happened."""
    worker = Worker(*arguments)
    try:
        yield worker
    finally:
        worker.process.kill()
        worker.process.communicate()


def main(step: str, argument: str = "") -> None:
    settings = load_settings()
    if step == "migrate":
        assert settings.database_url is not None
        print(*migrate(open_engine(settings.database_url.get_secret_value())))  # noqa: T201
        return
    pipeline = open_pipeline(settings)
    if step == "submit":
        collection = pipeline.collection(argument)
        report = submit_documents(pipeline, collection, collection.active, actor="worker")
        print(len(report.jobs), report.documents)  # noqa: T201
    else:
        collect(pipeline, int(argument), "worker")


if __name__ == "__main__":
    main(*sys.argv[1:])
