"""Whom to tell of the ends of batches: a file of JSON that may change while the server runs.

    {"openai": {"url": "https://your.host/webhooks/openai", "secret": "whsec_…"}}

Anthropic is not among the wire formats: it sends no webhooks for batches.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError

from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.webhooks.secret import keys_of
from extraction_pipeline.whole_file import read_whole

LARGEST = 64 * 1024
"""Bytes."""


class Target(BaseModel):
    """Where the events of one wire format go, and the secret that they are signed with or show."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: Annotated[str, Field(pattern=r"^https?://[!-~]+$")]
    secret: SecretStr

    @property
    def key(self) -> bytes:
        """What signatures are made with."""
        return keys_of(self.secret.get_secret_value())[0]


_Named = Literal[Dialect.OPENAI, Dialect.GEMINI, Dialect.INFRAI]
_FILE = TypeAdapter(dict[_Named, Target])


def read_targets(path: Path) -> dict[Dialect, Target]:
    """The targets in a file; none if it is not there. Raises `ConfigurationError`, which quotes
    nothing of it."""
    try:
        found = _FILE.validate_json(read_whole(path, LARGEST))
        unusable = [one for one in found.values() if not keys_of(one.secret.get_secret_value())]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigurationError(
            f"The file of webhooks {path} cannot be read: {error.strerror}."
        ) from None
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise ConfigurationError(
            f"The file of webhooks {path} is wrong{place and f' at {place}'}: {fault['msg']}.",
            remedy='Write it as {"openai": {"url": "https://…", "secret": "whsec_…"}}.',
        ) from None
    if unusable:
        raise ConfigurationError(f"The file of webhooks {path} holds a secret that is no base64.")
    return {Dialect(name): target for name, target in found.items()}
