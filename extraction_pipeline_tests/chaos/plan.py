"""Who is to die when: drawn from the seed, the same for each order in which things come to pass."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from extraction_pipeline.crash_points import ANY, VARIABLE, CrashPoint

P = CrashPoint

POINTS: Mapping[str, tuple[CrashPoint, ...]] = {
    "scan_collections": (
        P.TEXTS_STORED,
        P.DOCUMENTS_REGISTERED,
        P.PARTITIONS_ADDED,
        P.EVENTS_PARTLY_WRITTEN,
        P.DOCUMENTS_NOT_MARKED,
    ),
    "submit_missing": (
        P.CLAIMED_NOT_COMMITTED,
        P.INTENT_COMMITTED,
        P.PAYLOAD_STORED,
        P.PAYLOAD_WRITTEN,
        P.UPLOADED,
        P.UPLOAD_WRITTEN,
        P.CREATE_DUE,
        P.LOOKED_LAST,
        *3 * (P.CREATE_ACCEPTED,),
        P.JOB_ID_WRITTEN,
        P.SUBMISSION_NOT_MARKED,
        P.EVENTS_PARTLY_WRITTEN,
    ),
    "resolve_submission": (
        P.SEARCH_DUE,
        P.FOUND,
        P.ADOPTED,
        P.WITHDRAWAL_WRITTEN,
        P.INPUT_DELETED,
        P.INPUT_GONE_WRITTEN,
        P.ABSENCE_WRITTEN,
        P.CREATE_DUE,
        P.CREATE_ACCEPTED,
        P.SUBMISSION_NOT_MARKED,
        P.EVENTS_PARTLY_WRITTEN,
    ),
    "collect_batch": (
        P.RESULTS_FETCHED,
        P.RESULTS_STORED,
        P.RESULT_FILE_WRITTEN,
        P.ROWS_NOT_COMMITTED,
        P.ROWS_LANDED,
        P.LANDED_NOT_MARKED,
        P.COLLECTED,
        P.ANSWERS_JUDGED,
        P.CHOSEN_NOT_COMMITTED,
        P.PARTLY_PUBLISHED,
        P.PUBLISHED_NOT_MARKED,
        P.PUBLISHED,
        P.EVENTS_PARTLY_WRITTEN,
        P.RESPONSES_RECORDED,
        P.RESULTS_NOT_MARKED,
        P.RESULTS_MARKED,
    ),
    "daemon": (P.READING_MADE, P.END_WRITTEN, P.RUN_CLAIMED),
    "nightly": (P.NIGHT_NOT_RECORDED, P.PARTITIONS_ADDED, P.CREATE_ACCEPTED),
    "backfill": (P.INTENT_COMMITTED, P.CREATE_DUE, P.CREATE_ACCEPTED, P.SUBMISSION_NOT_MARKED),
}
"""The points that a process of each kind comes by, as a rule; the worst one more often."""

AT_THE_PROVIDER = (P.CREATE_DUE, P.CREATE_ACCEPTED, P.JOB_ID_WRITTEN)

SPARED, AT_ANY_POINT, AT_RANDOM = 0.2, 0.15, 0.2
"""Shares of processes that live, that die at whichever point comes as the nth, and at a moment of
no meaning. The others die at a point of their own."""
MOST_ARRIVALS = 20
MOST_SECONDS: Mapping[str, float] = {"daemon": 4.0, "server": 40.0}
SECONDS = 1.5


@dataclass(frozen=True)
class Fate:
    """How one process is to end: at a crash point, after so many seconds, or by itself."""

    crash_at: str | None = None
    after: float | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What makes it die at its point."""
        return {VARIABLE: self.crash_at} if self.crash_at else {}

    def __str__(self) -> str:
        """In words, for the log."""
        if self.crash_at:
            return f"at {self.crash_at}"
        return f"after {self.after:.2f} s" if self.after is not None else "not to be killed"


class Meal(StrEnum):
    """What a campaign does when nothing else is to be done."""

    DOCUMENTS = "documents"
    TWO_SUBMITTERS = "two submitters"
    BACKFILL = "backfill"
    REPLAY = "replay"
    NIGHT = "night"


_MEALS = {
    Meal.DOCUMENTS: 10,
    Meal.TWO_SUBMITTERS: 3,
    Meal.BACKFILL: 3,
    Meal.REPLAY: 1,
    Meal.NIGHT: 1,
}


@dataclass(frozen=True)
class Feeding:
    """One meal: where, how many documents, and which part of the old partitions."""

    meal: Meal
    collection: str
    documents: int
    first: float
    last: float


_CALLS: Sequence[tuple[float, Mapping[str, object]]] = (
    (0.06, {"kind": "drop", "call": "create", "accepted": True}),
    (0.04, {"kind": "drop", "call": "create"}),
    (0.06, {"kind": "answer", "call": "create", "accepted": True, "status": 500}),
    (0.03, {"kind": "answer", "call": "create", "status": 503}),
    (0.04, {"kind": "answer", "call": "create", "status": 429, "retry_after": 1}),
    (0.03, {"kind": "hang", "call": "create", "accepted": True, "seconds": 8}),
    (0.05, {"kind": "drop", "call": "upload", "accepted": True}),
    (0.05, {"kind": "answer", "call": "upload", "status": 503}),
    (0.08, {"kind": "answer", "call": "status", "status": 502, "page": True}),
    (0.04, {"kind": "answer", "call": "status", "status": 429, "retry_after": 1}),
    (0.02, {"kind": "answer", "call": "status", "status": 404}),
    (0.05, {"kind": "drop", "call": "status"}),
    (0.08, {"kind": "answer", "call": "list", "status": 500}),
    (0.08, {"kind": "answer", "call": "list_files", "status": 500}),
    (0.1, {"kind": "drop", "call": "delete", "accepted": True}),
    (0.1, {"kind": "answer", "call": "results", "status": 503}),
    (0.08, {"kind": "cut", "at": "mid_line"}),
    (0.08, {"kind": "cut", "at": "line_end"}),
    (0.08, {"kind": "cut", "at": "line_end", "announced": True}),
)
_BATCHES: Sequence[tuple[float, Mapping[str, object]]] = (
    (0.3, {"kind": "rows", "what": "shuffled"}),
    (0.1, {"kind": "rows", "what": "repeated"}),
    (0.1, {"kind": "rows", "what": "foreign"}),
)
"""What goes wrong at the provider, and with which probability. None of it loses an answer for good,
so no document may be asked about twice."""


def troubles(seed: int) -> Iterator[list[Mapping[str, object]]]:
    """A plan of faults for each start of the batch server."""
    drawn = random.Random(f"{seed}/troubles")
    while True:
        yield [
            {**fault, "probability": probability, "seed": drawn.randrange(10**6)}
            for probability, fault in (*_CALLS, *_BATCHES)
        ]


def fates(seed: int, kind: str) -> Iterator[Fate]:
    """The fates of the processes of one kind, in the order in which they are started."""
    drawn = random.Random(f"{seed}/{kind}")
    points = list(POINTS.get(kind, ()))
    deck: list[CrashPoint] = []
    while True:
        lot = drawn.random()
        most = MOST_SECONDS.get(kind, SECONDS)
        if not points:
            yield Fate(after=drawn.uniform(most / 3, most))
        elif lot < SPARED:
            yield Fate()
        elif lot < SPARED + AT_ANY_POINT:
            yield Fate(crash_at=f"{ANY}:{drawn.randint(1, MOST_ARRIVALS)}")
        elif lot < SPARED + AT_ANY_POINT + AT_RANDOM:
            yield Fate(after=drawn.uniform(0, most))
        else:
            if not deck:  # a shuffled deck, so that every point has its turn
                deck = drawn.sample(points, len(points))
            yield Fate(crash_at=f"{deck.pop()}:{drawn.choice((1, 1, 1, 2))}")


def first_fates(seed: int) -> Iterator[Fate]:
    """The fates of submissions to a collection over which none has died yet: at its provider."""
    drawn = random.Random(f"{seed}/first")
    while True:
        yield Fate(crash_at=drawn.choice(AT_THE_PROVIDER))


def feedings(seed: int, collections: Sequence[str]) -> Iterator[Feeding]:
    """What is done, one after the other, when there is nothing else to do: first new documents for
    each collection."""
    drawn = random.Random(f"{seed}/feedings")
    names, weights = list(_MEALS), list(_MEALS.values())
    new = drawn.sample(collections, len(collections))
    while True:
        (meal,) = drawn.choices(names, weights)
        collection = drawn.choice(collections)
        documents, first, last = drawn.randint(1, 5), drawn.random(), drawn.random()
        if new:
            meal, collection = Meal.DOCUMENTS, new.pop()
        yield Feeding(meal, collection, documents, first, last)
