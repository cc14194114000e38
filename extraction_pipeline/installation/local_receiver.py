"""The receiver of webhooks of a `dev`: in its own process, and announced to its batch server.

<home>/batch_server.webhooks    whom the batch server tells, while the receiver runs
"""

import base64
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr

from extraction_pipeline.settings import Settings
from extraction_pipeline.webhooks.secret import PREFIX
from extraction_pipeline.webhooks.senders import senders
from extraction_pipeline.webhooks.server import Receiving, receiving
from extraction_pipeline.whole_file import write_whole

LOOPBACK = "127.0.0.1"
KEY_BYTES = 32


@contextmanager
def local_receiver(settings: Settings, port: int, targets: Path | None) -> Iterator[Receiving]:
    """Receive while the block lasts, from every provider that has a secret.

    With `targets`, the batch server that reads this file tells of its batches, signed with the
    secret of the settings or one that nobody else knows. Raises `ConfigurationError`.
    """
    if not settings.local_webhook_secret:
        made = PREFIX + base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
        settings = settings.model_copy(update={"local_webhook_secret": (SecretStr(made),)})
    assert settings.database_url is not None
    url = settings.database_url.get_secret_value()
    with receiving(senders(settings), url, LOOPBACK, port) as running:
        if targets is None:
            yield running
            return
        _write(targets, running.url, settings.local_webhook_secret[0])
        try:
            yield running
        finally:
            targets.unlink(missing_ok=True)


def _write(targets: Path, url: str, secret: SecretStr) -> None:
    target = {"url": f"{url}/webhooks/local", "secret": secret.get_secret_value()}
    write_whole(targets, json.dumps({"openai": target}).encode())
