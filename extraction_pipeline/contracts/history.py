"""The contracts that were seen, in the state folder, each with its hash and when it was first read.

    <home>/contracts/<provider>/<subject>.json    {"versions": [{contract_hash, read_at, document}]}

The last version is the one in force. A reading that changed nothing adds none.
"""

import re
from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.contract import ContractText
from extraction_pipeline.whole_file import write_whole

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class KeptVersion(BaseModel):
    """One contract as it was read: `read_at` is when it was so for the first time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    contract_hash: str = Field(pattern="^[0-9a-f]{64}$")
    read_at: AwareDatetime
    document: str


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid")

    versions: list[KeptVersion] = []


class ContractHistory:
    """What was kept of the contracts of all providers in one home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "contracts"

    def versions(self, provider: str, subject: str) -> list[KeptVersion]:
        """All that was read of one subject, oldest first.

        Raises `ConfigurationError` for a file that cannot be read.
        """
        path = self._path(provider, subject)
        try:
            return _Kept.model_validate_json(path.read_bytes()).versions
        except FileNotFoundError:
            return []
        except (OSError, ValidationError):
            raise ConfigurationError(
                f"The contracts kept in {path} cannot be read.",
                remedy="Move the file away; the next check begins a new one.",
            ) from None

    def all_of(self, provider: str) -> dict[str, list[KeptVersion]]:
        """The same for every subject of a provider. Raises as `versions` does."""
        names = sorted(path.stem for path in (self._folder / provider).glob("*.json"))
        return {name: self.versions(provider, name) for name in names}

    def keep(
        self, provider: str, subject: str, text: ContractText, now: datetime
    ) -> KeptVersion | None:
        """Make a contract the one in force; the one that it replaces, if that was another.

        Raises `ConfigurationError` where the folder cannot be written.
        """
        versions = self.versions(provider, subject)
        if versions and versions[-1].contract_hash == text.contract_hash:
            return None
        version = KeptVersion(contract_hash=text.contract_hash, read_at=now, document=text.document)
        self._write(self._path(provider, subject), _Kept(versions=[*versions, version]))
        return versions[-1] if versions else None

    def _path(self, provider: str, subject: str) -> Path:
        return self._folder / provider / f"{_UNSAFE.sub('_', subject)}.json"

    def _write(self, path: Path, kept: _Kept) -> None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path, kept.model_dump_json(indent=1).encode())
        except OSError as error:
            raise ConfigurationError(
                f"The contracts cannot be kept in {path.parent}: {error.strerror}.",
                remedy="Make EXTRACTION_HOME a folder that can be written.",
            ) from None
