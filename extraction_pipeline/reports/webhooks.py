"""What came of webhooks, in a line for a person. Pure."""

from collections.abc import Mapping

from extraction_pipeline.ledger.states import DeliveryOutcome

_WORDS: Mapping[DeliveryOutcome, str] = {
    DeliveryOutcome.MADE_DUE: "that made a job due",
    DeliveryOutcome.SETTLED: "about a job whose end was read before",
    DeliveryOutcome.UNKNOWN_JOB: "about a job that is not here (the account may have other users)",
    DeliveryOutcome.IGNORED: "about no batch (ask the provider for batch events only)",
    DeliveryOutcome.UNREADABLE: "signed and of an unknown form (look at what is sent there)",
}


def webhook_line(counts: Mapping[DeliveryOutcome, int]) -> str | None:
    """How many deliveries there are and what came of them; `None` without any."""
    told = [f"{counts[one]:,} {words}" for one, words in _WORDS.items() if counts.get(one)]
    return f"Webhooks of the last weeks: {'; '.join(told)}" if told else None
