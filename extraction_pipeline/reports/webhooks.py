"""What came of webhooks, in lines for a person. Pure."""

from collections.abc import Mapping

from extraction_pipeline.ledger.states import DeliveryOutcome

WORDS: Mapping[DeliveryOutcome, str] = {
    DeliveryOutcome.MADE_DUE: "that made a job due",
    DeliveryOutcome.SETTLED: "about a job whose end was read before",
    DeliveryOutcome.UNKNOWN_JOB: "about a job that is not here (the account may have other users)",
    DeliveryOutcome.IGNORED: "about no batch (ask the provider for batch events only)",
    DeliveryOutcome.UNREADABLE: "signed and of an unknown form (look at what is sent there)",
}


def webhook_lines(counts: Mapping[DeliveryOutcome, int]) -> list[str]:
    """How many deliveries there are and what came of them, a line for each outcome."""
    return [f"{counts[one]:,} {words}" for one, words in WORDS.items() if counts.get(one)]
