"""Services that the processes of one home share: the first starts one, the last one stops it.

The kernel keeps the count. Who uses a service holds a shared lock on a file; a killed process loses
its locks with its life, so that no list of users can be stale.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol, TypeVar

from extraction_pipeline.errors import ConfigurationError

Address = TypeVar("Address", covariant=True)


class Service(Protocol[Address]):
    """What can be shared. Neither method is ever called by two processes at once."""

    def start(self, mutex: int) -> Address:
        """The address of the running service; starts it where it does not run.

        `mutex` is the descriptor of the lock that is held meanwhile. A child that inherits it keeps
        other processes out for as long as it lives, should this one be killed.
        """

    def stop(self) -> None:
        """End the service, and return when nothing of it runs."""


@contextmanager
def shared(place: Path, service: Service[Address]) -> Iterator[Address]:
    """Use a service whose lock files lie beside `place`; yields its address.

    Raises what the service raises, and `ConfigurationError` where no lock file can be made.
    """
    with _open(_users_file(place)) as users:
        with _changing_hands(place) as mutex:
            alone = try_lock(users)
            try:
                address = service.start(mutex.fileno())
            except BaseException:  # Ctrl-C as well: nobody else would end what was begun
                if alone:
                    service.stop()
                raise
            # Nobody can come between the two locks: all that change hands do so under the mutex.
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield address
        finally:
            with _changing_hands(place):
                if try_lock(users):
                    service.stop()


def end_unused(place: Path, service: Service[Address]) -> None:
    """End a service that nobody uses: one whose last user was killed."""
    if _users_file(place).exists():
        with _open(_users_file(place)) as users, _changing_hands(place):
            if try_lock(users):
                service.stop()


def try_lock(file: IO[bytes]) -> bool:
    """Lock an open file for this process alone; whether it was free."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _changing_hands(place: Path) -> Iterator[IO[bytes]]:
    """The lock under which services are started, stopped, joined and left."""
    with _open(place.with_name(f"{place.name}.lock")) as mutex:
        fcntl.flock(mutex, fcntl.LOCK_EX)
        yield mutex


def _users_file(place: Path) -> Path:
    return place.with_name(f"{place.name}.users")


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("ab")
    except OSError as error:
        raise ConfigurationError(
            f"The folder {path.parent} cannot be written: {error.strerror}.",
            remedy="Set EXTRACTION_HOME to a folder that can.",
        ) from None
