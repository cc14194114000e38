"""What answers a request: the interface, and the choice by model name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

RULES_MODEL_PREFIX = "rules-baseline"


@dataclass(frozen=True)
class Answered:
    """An HTTP answer to one request: a chat completion, or an error with its status."""

    status_code: int
    body: Mapping[str, Any] = field(repr=False)

    @property
    def succeeded(self) -> bool:
        """Whether the line belongs into the output file."""
        return 200 <= self.status_code < 300


@dataclass(frozen=True)
class NotAnswered:
    """No HTTP answer came about. Neither field holds anything of the request."""

    code: str
    message: str


Answer = Answered | NotAnswered


class Interrupted(Exception):
    """The server is stopping: this request is asked again at the next start."""


class Answerer(Protocol):
    """Answers chat completion bodies, from as many threads at once as `concurrency` says."""

    @property
    def concurrency(self) -> int:
        """How many requests it takes at once."""

    def answer(self, body: Mapping[str, Any]) -> Answer:
        """Answer one request. An exception from here counts as a failure of this request."""


@dataclass(frozen=True)
class AnswererByModel:
    """Rules for the models named after them; the relay, if there is one, for all others."""

    rules: Answerer
    relay: Answerer | None

    @property
    def concurrency(self) -> int:
        """The relay's, since a batch holds one model and rules gain nothing from threads."""
        return self.relay.concurrency if self.relay else self.rules.concurrency

    def answer(self, body: Mapping[str, Any]) -> Answer:
        """Answer one request."""
        model = str(body.get("model"))
        if self.relay is None or model.startswith(RULES_MODEL_PREFIX):
            return self.rules.answer(body)
        return self.relay.answer(body)
