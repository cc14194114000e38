"""What providers announced by webhook, as far as it is not settled when it arrives."""

from extraction_pipeline.ledger import deliveries
from extraction_pipeline.lifecycle.pipeline import Pipeline


def attend(pipeline: Pipeline) -> None:
    """Give deliveries that were faster than the writing of their job's id to their jobs, and forget
    old ones: a bounded number of each."""
    with pipeline.engine.begin() as connection:
        deliveries.meet(connection)
        deliveries.forget_old(connection)
