"""A process that uses the embedded PostgreSQL until it is told to end."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from extraction_pipeline.installation.embedded_postgres import embedded_postgres
with embedded_postgres(Path(sys.argv[1])) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


class Sharer:
    """The process. It ends in good order when its standard input ends."""

    def __init__(self, data: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, str(data)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def url(self) -> str:
        """The URL, once the server runs."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def leave(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(30) == 0

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()


@contextmanager
def sharing(data: Path) -> Iterator[Sharer]:
    """A sharer that has ended when the block has."""
    sharer = Sharer(data)
    try:
        yield sharer
    finally:
        sharer.kill()
        for pipe in (sharer.process.stdin, sharer.process.stdout):
            assert pipe is not None
            pipe.close()
