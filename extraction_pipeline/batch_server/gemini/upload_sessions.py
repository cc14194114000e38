"""Uploads that are on their way: the state between the calls of Google's resumable protocol.

It is in memory: an upload that a killed server was taking has to begin again, as nobody was told
that it had arrived.
"""

import hashlib
import secrets
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

MOST_SESSIONS = 1000
LONGEST_SESSION = 24 * 3600.0


@dataclass
class UploadSession:
    """One file that arrives in pieces. Pieces are taken one after another."""

    id: str
    content: Path
    display_name: str
    media_type: str
    started: float = field(default_factory=time.monotonic)
    size: int = 0
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256, repr=False)
    busy: bool = False


class UploadSessions:
    """The open uploads, by an id that cannot be guessed: it stands for the key in later calls."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sessions: dict[str, UploadSession] = {}
        self._lock = threading.Lock()

    def begin(self, display_name: str, media_type: str) -> UploadSession:
        """A new, empty one. The oldest give way where there are too many."""
        session_id = secrets.token_urlsafe(24)
        content = self._folder / f"upload-{session_id}"
        content.touch()
        session = UploadSession(session_id, content, display_name, media_type)
        with self._lock:
            self._make_room()
            self._sessions[session_id] = session
        return session

    def take(self, session_id: str) -> UploadSession | None:
        """The session, for this caller alone until `give_back`; `None` if there is none, or
        another call is at it."""
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None or session.busy:
                return None
            session.busy = True
            return session

    def give_back(self, session: UploadSession) -> None:
        """Let the next call have it."""
        session.busy = False

    def end(self, session: UploadSession) -> None:
        """Forget it, and its content unless that was moved away."""
        with self._lock:
            self._sessions.pop(session.id, None)
        session.content.unlink(missing_ok=True)

    def _make_room(self) -> None:
        oldest = sorted(self._sessions.values(), key=lambda session: session.started)
        surplus = len(oldest) - MOST_SESSIONS + 1
        horizon = time.monotonic() - LONGEST_SESSION
        for number, session in enumerate(oldest):
            if not session.busy and (number < surplus or session.started < horizon):
                del self._sessions[session.id]
                session.content.unlink(missing_ok=True)
