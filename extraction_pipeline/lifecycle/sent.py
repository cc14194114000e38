"""How far the sending of a job came."""

from dataclasses import dataclass

from extraction_pipeline.ledger.states import JobState

TAKEN = frozenset({JobState.SUBMITTED, JobState.ENDED, JobState.COLLECTED, JobState.PUBLISHED})


@dataclass(frozen=True)
class Sent:
    """How far a job came. `stop` says that the account, not the job, is at fault, `no_room` that as
    much is under way as may be, `paused` that the account was asked to wait, and `given_back` how
    many requests need smaller jobs, because this one was refused for its size."""

    state: JobState
    cause: str | None = None
    stop: bool = False
    no_room: bool = False
    paused: bool = False
    given_back: int = 0

    @property
    def submitted(self) -> bool:
        """Whether the provider has the job, or had it, and its id is written: another run may have
        taken it further by now."""
        return self.state in TAKEN
