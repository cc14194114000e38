"""What a batch server is told at its start."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from extraction_pipeline.batch_server.faults.plan import FaultPlan
from extraction_pipeline.errors import ConfigurationError

_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


@dataclass(frozen=True)
class RelayConfig:
    """The chat endpoint that answers in place of the rules.

    `url` is its base URL (with or without `/chat/completions`), `model` replaces the model that a
    request names, `concurrency` is how many requests it gets at once, `timeout` the seconds that
    one answer may take, `attempts` how often one request is sent before it counts as failed, and
    `first_pause` the seconds between the first two of them; each further pause is twice as long.
    """

    url: str
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    concurrency: int = 4
    timeout: float = 600.0
    attempts: int = 8
    first_pause: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what could not work. Raises `ConfigurationError`."""
        if not self.url.startswith(("http://", "https://")):
            raise ConfigurationError(
                "The relay's URL is not an http or https URL.",
                remedy="Give it as in http://127.0.0.1:11434/v1.",
            )
        if self.concurrency < 1 or self.attempts < 1 or self.timeout <= 0:
            raise ConfigurationError("The relay's concurrency, attempts and time-out start at one.")

    @property
    def chat_url(self) -> str:
        """Where requests are sent."""
        url = self.url.rstrip("/")
        return url if url.endswith("/chat/completions") else f"{url}/chat/completions"


@dataclass(frozen=True)
class Limits:
    """How many requests a batch may hold, and how many bytes the call that brings them."""

    requests: int
    bytes: int


@dataclass(frozen=True)
class ServerConfig:
    """One server. Port 0 takes a free one; times are in seconds, sizes in bytes.

    `delay` is how long a batch takes at least, `window` when it expires, `faults` what is to go
    wrong, and `webhooks` the file that says whom to tell of the ends of batches. `max_requests` and
    `max_file_bytes` are those of OpenAI's API (batch guide: 50,000 requests, 200 MB). The others
    are those of the documents of Anthropic (100,000 requests or 256 MB) and of Google (inline
    requests under 20 MB, files of 2 GB; the number of requests is this server's own choice);
    Infrai documents none, so that its are those of OpenAI.
    """

    state: Path
    host: str = "127.0.0.1"
    port: int = 8765
    port_file: Path | None = None
    api_key: str | None = field(default=None, repr=False)
    delay: float = 0.0
    window: float = 24 * 3600.0
    relay: RelayConfig | None = None
    faults: FaultPlan = field(default_factory=FaultPlan)
    webhooks: Path | None = None
    max_requests: int = 50_000
    max_file_bytes: int = 200_000_000
    anthropic: Limits = Limits(requests=100_000, bytes=256_000_000)
    gemini: Limits = Limits(requests=200_000, bytes=20_000_000)
    gemini_file_bytes: int = 2_000_000_000
    infrai: Limits = Limits(requests=50_000, bytes=200_000_000)

    def __post_init__(self) -> None:
        """Refuse what would be unsafe or could not work. Raises `ConfigurationError`."""
        if not self.is_loopback and not self.api_key:
            raise ConfigurationError(
                f"A batch server that others can reach (on {self.host}) holds documents and has no "
                "API key.",
                remedy="Give it one through --api-key-variable, or bind it to 127.0.0.1.",
            )
        if not 0 <= self.port <= 65535:
            raise ConfigurationError(f"{self.port} is no port; ports go from 0 (any) to 65535.")
        if self.delay < 0 or self.window <= 0:
            raise ConfigurationError("The delay cannot be negative, and the window starts above 0.")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether this host name or address is this machine itself."""
    return _LOOPBACK.fullmatch(host) is not None
