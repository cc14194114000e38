"""Checking a provider: what is sent and what the provider says, against what was kept before."""

from dataclasses import dataclass
from datetime import datetime

from extraction_pipeline.contracts.changes import changes
from extraction_pipeline.contracts.history import ContractHistory, KeptVersion
from extraction_pipeline.providers.api import ApiProvider
from extraction_pipeline.providers.contract import ContractText
from extraction_pipeline.providers.contract_document import contract_document
from extraction_pipeline.providers.contract_reading import Difference

OWN = "relied on"
"""The subject under which is kept what this project's own adapter relies on."""


@dataclass(frozen=True)
class Checked:
    """One subject after a check. `changed` has a line for each change since `before`, the version
    that was in force until now; `text` is `None` where the provider publishes no description."""

    subject: str
    text: ContractText | None
    before: KeptVersion | None
    changed: tuple[str, ...]
    differences: tuple[Difference, ...]

    @property
    def is_broken(self) -> bool:
        """Whether the provider is not what its adapter relies on."""
        return any(one.breaks for one in self.differences)


def keep_own(history: ContractHistory, provider: ApiProvider, now: datetime) -> Checked:
    """Keep what the adapter relies on, which needs no call."""
    return _kept(history, provider.name, OWN, ContractText.of(contract_document(provider)), (), now)


def check(history: ContractHistory, provider: ApiProvider, now: datetime) -> list[Checked]:
    """Look at what the provider says, and keep it. Raises `CallRefused` or `CallFailed`."""
    return [
        _kept(history, provider.name, one.subject, one.text, one.differences, now)
        for one in provider.look()
    ]


def _kept(
    history: ContractHistory,
    provider: str,
    subject: str,
    text: ContractText | None,
    differences: tuple[Difference, ...],
    now: datetime,
) -> Checked:
    before = history.keep(provider, subject, text, now) if text else None
    changed = tuple(changes(before.document, text.document)) if before and text else ()
    return Checked(subject, text, before, changed, differences)
