"""The embedded PostgreSQL: shared, interrupted, killed, and under any path."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import text

from extraction_pipeline.errors import DatabaseUnavailable
from extraction_pipeline.installation.embedded_postgres import embedded_postgres
from extraction_pipeline.installation.postmaster import Postmaster, read_postmaster
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.installation.sharer import sharing


@pytest.fixture
def home() -> Iterator[Path]:
    # Not in pytest's folder: as root the server runs as another user, and pytest closes its folder
    # to all others whenever a second test run begins.
    with TemporaryDirectory(prefix="extraction-tests-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def complete_cluster() -> Iterator[Path]:
    """A data folder that nothing runs in."""
    with TemporaryDirectory(prefix="extraction-tests-") as folder:
        with embedded_postgres(Path(folder) / "postgres"):
            pass
        yield Path(folder) / "postgres"


@pytest.fixture
def data(complete_cluster: Path, home: Path) -> Path:
    """A copy of it in a home of its own."""
    copy = home / "postgres"
    shutil.copytree(complete_cluster, copy)
    for path in (copy, *copy.rglob("*")):
        owner = (complete_cluster / path.relative_to(copy)).stat()
        os.chown(path, owner.st_uid, owner.st_gid)
    return copy


def running(data: Path) -> Postmaster | None:
    found = read_postmaster(data)
    return found if found is not None and found.alive else None


def answers(url: str) -> bool:
    engine = open_engine(url)
    with engine.connect() as connection:
        answer = connection.execute(text("SELECT 1")).scalar_one()
    engine.dispose()
    return bool(answer == 1)


def test_a_start_that_is_killed_midway_is_made_anew(home: Path) -> None:
    data = home / "postgres"
    unfinished = home / "postgres.unfinished"
    with sharing(data) as sharer:
        wait_until(lambda: (unfinished / "PG_VERSION").exists())
        sharer.kill()
    assert not data.exists()
    assert unfinished.exists(), "killed in the middle of it"
    with embedded_postgres(data) as url:
        assert answers(url)
    assert not unfinished.exists()


def test_two_that_begin_at_once_in_a_new_home_share_one_server(home: Path) -> None:
    data = home / "postgres"
    with sharing(data) as one, sharing(data) as other:
        assert one.url() == other.url()
        one.leave()
        assert running(data), "the other uses it"
        other.leave()
    assert running(data) is None


@pytest.mark.parametrize(
    "name", ["with space", 'O\'Neil "x", 50% $HOME #1?', "Kürzel-文書", "x" * 120]
)
def test_a_home_may_have_any_name(home: Path, data: Path, name: str) -> None:
    odd = home / name / "postgres"
    odd.parent.mkdir()
    data.rename(odd)
    with embedded_postgres(odd) as url:
        assert answers(url)
        server = running(odd)
        assert server is not None
        assert server.socket_folder is not None
    assert running(odd) is None
    assert not server.socket_folder.exists()


def test_a_home_with_an_odd_name_is_made(home: Path) -> None:
    odd = home / "it's a home" / "postgres"
    odd.parent.mkdir()
    with embedded_postgres(odd) as url:
        assert answers(url)


def test_the_next_one_ends_what_a_killed_one_left(data: Path) -> None:
    with sharing(data) as sharer:
        sharer.url()
        sharer.kill()
    left = running(data)
    assert left is not None
    with embedded_postgres(data) as url:
        assert answers(url)
        assert running(data) == left
    assert running(data) is None


def test_a_killed_one_does_not_take_the_server_from_another(data: Path) -> None:
    with sharing(data) as living:
        url = living.url()
        with sharing(data) as killed:
            killed.url()
            killed.kill()
        with embedded_postgres(data):
            pass
        assert answers(url)
        living.leave()
    assert running(data) is None


def test_a_server_that_was_killed_is_started_again(data: Path) -> None:
    with embedded_postgres(data):
        server = running(data)
        assert server is not None
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: not server.alive)
        with embedded_postgres(data) as url:
            assert answers(url)
    assert running(data) is None


def test_the_number_of_a_dead_server_may_be_another_process_s(data: Path) -> None:
    (data / "postmaster.pid").write_text(f"{os.getppid()}\n{data}\n1\n5432\n{data}\n\n\nready\n")
    with embedded_postgres(data) as url:
        assert answers(url)


def test_a_folder_with_something_else_in_it_is_left_alone(home: Path) -> None:
    other = home / "postgres"
    other.mkdir()
    (other / "thesis.txt").touch()
    with pytest.raises(DatabaseUnavailable, match="holds something else"), embedded_postgres(other):
        pass
    assert (other / "thesis.txt").exists()


def test_a_damaged_cluster_is_kept_and_the_cause_is_said(data: Path) -> None:
    (data / "global" / "pg_control").unlink()
    with pytest.raises(DatabaseUnavailable, match="pg_control"), embedded_postgres(data):
        pass
    assert (data / "PG_VERSION").exists()
