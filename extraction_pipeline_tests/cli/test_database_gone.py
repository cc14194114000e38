"""A command whose database goes away, or whose disk is full, ends with one line."""

import subprocess
import sys

import pytest

COMMAND = """
import errno, sys
from extraction_pipeline.cli.group import commands, run_command

@commands.command()
def work():
    from dagster_postgres.utils import retry_pg_connection_fn
    from sqlalchemy import create_engine
    try:
        {work}
    finally:
        raise RuntimeError("of whoever cleaned up")

sys.argv = ["extraction-pipeline", "work"]
sys.exit(run_command())
"""
REFUSED = (
    "retry_pg_connection_fn("
    "create_engine('postgresql://a:secret@127.0.0.1:1/b').connect, retry_limit=0)"
)
FULL = "raise OSError(errno.ENOSPC, 'No space left on device', 'Fictional Name.txt')"


@pytest.mark.parametrize(
    ("work", "code", "said"),
    [
        (
            REFUSED,
            3,
            "Error: The connection to the database broke off (no code). Check the server; what was "
            "under way is repeated safely.",
        ),
        (FULL, 2, "Error: A file could not be written: No space left on device."),
    ],
    ids=["database", "disk"],
)
def test_whatever_it_became_on_its_way_up(work: str, code: int, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COMMAND.format(work=work)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code
    assert done.stderr.splitlines()[-1] == said
    assert "Traceback" not in done.stderr
    assert "Fictional Name" not in done.stderr
