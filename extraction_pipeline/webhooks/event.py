"""What a delivery is about: the kind of event and the provider's id of the job. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extraction_pipeline.providers.names import ProviderName
from extraction_pipeline.webhooks.signature import usable_id

ABOUT_BATCHES = "batch."
"""What kinds of events about batches begin with at OpenAI and Gemini."""
GEMINI_JOBS = "batches/"

_KIND = re.compile(r"[A-Za-z0-9._:-]{1,100}")


class Unreadable(ValueError):
    """It is not of a form that is known."""


@dataclass(frozen=True)
class Event:
    """`job_id` is `None` where the event is about no batch job."""

    kind: str | None
    job_id: str | None


def read_body(body: bytes) -> Mapping[str, Any]:
    """The one JSON object of a body. Raises `Unreadable`, without a quote; so it does for a name
    that stands twice, because which of the two is meant nobody knows."""
    try:
        content = json.loads(body.decode("utf-8-sig"), object_pairs_hook=_each_once)
    except (ValueError, RecursionError):
        raise Unreadable from None
    if not isinstance(content, dict):
        raise Unreadable
    return content


def read_event(provider: ProviderName, content: Mapping[str, Any]) -> Event:
    """What an object says. Raises `Unreadable` where it names no job and must."""
    if provider in (ProviderName.OPENAI, ProviderName.LOCAL, ProviderName.GEMINI):
        kind = _kind(content, "type")
        if kind is None:
            raise Unreadable
        if not kind.startswith(ABOUT_BATCHES):
            return Event(kind, None)
        job_id = _job_id(content, (("data", "id"),))
        if provider is ProviderName.GEMINI and "/" not in job_id:
            job_id = GEMINI_JOBS + job_id  # its documents write the id without, its jobs with it
        return Event(kind, job_id)
    return Event(_kind(content, "event", "type"), _job_id(content, _ANY_PLACE))


_ANY_PLACE = (
    ("data", "batch_id"),
    ("data", "job_id"),
    ("data", "id"),
    ("batch_id",),
    ("job_id",),
)
"""Where an id may stand, for senders of whom no source says it."""


def _job_id(content: Mapping[str, Any], places: Sequence[Sequence[str]]) -> str:
    for place in places:
        value: object = content
        for name in place:
            value = value.get(name) if isinstance(value, dict) else None
        if (job_id := usable_id(value)) is not None:
            return job_id
    raise Unreadable


def _kind(content: Mapping[str, Any], *names: str) -> str | None:
    for name in names:
        value = content.get(name)
        if isinstance(value, str) and _KIND.fullmatch(value):
            return value
    return None


def _each_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(members)
    if len(content) != len(members):
        raise Unreadable
    return content
