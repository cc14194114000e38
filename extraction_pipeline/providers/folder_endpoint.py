"""Where a service without an API is reached: a folder that both sides see."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.limits import AccountLimits

SETTING = "EXTRACTION_OUTSIDE_FOLDER"


@dataclass(frozen=True)
class FolderEndpoint:
    """A path or any fsspec URL, or `None` where none is set. Nothing is looked at here.

    Raises `ConfigurationError` for a URL with a password, which would be kept with every job; it
    is not quoted.
    """

    folder: str | None
    limits: AccountLimits = field(default_factory=AccountLimits)

    def __post_init__(self) -> None:
        """Refuse a password, and settle the form: a local path is made absolute."""
        folder = self.folder or None  # an empty variable means unset
        if folder is not None and "://" not in folder:
            folder = str(Path(folder).expanduser().absolute())
        elif folder is not None:
            folder = folder.rstrip("/")
            if _has_password(folder):
                raise ConfigurationError(
                    f"{SETTING} is a URL with a password, or none that can be read.",
                    remedy="Give the plain URL, and the password by the file system's own means, "
                    "such as fsspec's configuration.",
                )
        object.__setattr__(self, "folder", folder)


def _has_password(url: str) -> bool:
    try:
        return urlsplit(url).password is not None
    except ValueError:
        return True
