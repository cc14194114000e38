"""What an adapter relies on, as data: calls, fields, limits, and what nobody has confirmed.

Each provider has one such contract beside its adapter. With the schema of the request lines, which
is taken from the code that writes them, it says exactly what leaves the building. Its hash is its
version: it changes with any of it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel


@dataclass(frozen=True)
class Source:
    """A text that the contract was written from, and its date where it has one."""

    title: str
    dated: str | None = None


@dataclass(frozen=True)
class Call:
    """One call that the adapter makes.

    `path` has its variable parts in braces. `sends` are fields of the body and `query` parameters;
    `headers` are those beside content type and the key. `answer` is the form in which the answer
    is read, `None` where only its status counts.
    """

    purpose: str
    method: str
    path: str
    sends: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    answer: type[BaseModel] | None = None
    documented: bool = True


@dataclass(frozen=True)
class OpenPoint:
    """Something that no source confirms: what the adapter does, and the setting that changes it."""

    what: str
    assumed: str
    setting: str | None = None


@dataclass(frozen=True)
class Contract:
    """Everything that an adapter relies on. `limit_sources` says of each field of
    `ProviderLimits` where its number is from; `credential` is the header that carries the key. One
    that `is_published` can be compared with the provider's own description without a key."""

    api: str
    version: str
    credential: str
    sources: tuple[Source, ...]
    calls: tuple[Call, ...]
    result: type[BaseModel]
    limit_sources: Mapping[str, str]
    open_points: tuple[OpenPoint, ...]
    is_published: bool = False


@dataclass(frozen=True)
class ContractText:
    """A contract as canonical JSON, and the SHA-256 of that (64 hex characters)."""

    document: str
    contract_hash: str

    @classmethod
    def of(cls, value: object) -> "ContractText":
        """The text of any JSON value."""
        document = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return cls(document, hashlib.sha256(document.encode()).hexdigest())
