"""What all kinds of signatures have in common: what is looked at, and what comes of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from starlette.datastructures import Headers

from extraction_pipeline.webhooks.refusal import Refused, Why

DELIVERY_ID = "webhook-id"
_ID = re.compile(r"[!-~]{1,200}")


@dataclass(frozen=True)
class LetIn:
    """A genuine delivery: its id, what it says where that is not the body, and whether the id is
    only made from its content, because its sender gave none."""

    delivery_id: str
    claims: Mapping[str, Any] | None = field(default=None, repr=False)
    by_content: bool = False


class Signature(Protocol):
    """One way to tell whether a delivery is genuine. May wait for a network, in seconds."""

    def check(self, headers: Headers, body: bytes) -> LetIn:
        """Raises `Refused` or `CannotTell`."""


def only(headers: Headers, name: str) -> str:
    """The one header of this name. Raises `Refused` for none, and for two: which one a proxy on
    the way looked at is not known."""
    match headers.getlist(name):
        case [value]:
            return value
    raise Refused(Why.NOT_SIGNED)


def usable_id(value: object) -> str | None:
    """An id as senders write them, or `None` for what is something else."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else None
