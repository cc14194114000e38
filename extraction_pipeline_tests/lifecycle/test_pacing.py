"""How long is waited: properties of pure functions."""

from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.lifecycle.pacing import next_poll

seconds = st.floats(min_value=0.01, max_value=3600)
counts = st.integers(min_value=0, max_value=10_000_000)


@given(counts, counts, seconds, seconds, st.none() | st.floats(min_value=0, max_value=86_400))
def test_a_wait_is_within_its_bounds(
    polls: int, troubles: int, first: float, longest: float, retry_after: float | None
) -> None:
    wait = next_poll(polls, troubles, first=first, longest=longest, retry_after=retry_after)
    assert wait >= (retry_after or 0)
    assert wait >= 0.9 * min(first, longest)
    assert wait <= max(1.1 * longest, retry_after or 0)


JITTER = 0.9 / 1.1


@given(counts, counts)
def test_more_readings_and_more_troubles_never_mean_a_shorter_wait(
    polls: int, troubles: int
) -> None:
    wait = next_poll(polls, troubles, first=1, longest=1e9)
    assert next_poll(polls + 1, troubles, first=1, longest=1e9) >= JITTER * wait
    assert next_poll(polls, troubles + 1, first=1, longest=1e9) >= JITTER * wait


@given(st.integers(0, 30), st.integers(0, 15))
def test_below_its_limit_the_wait_grows_with_every_reading_and_doubles_with_every_trouble(
    polls: int, troubles: int
) -> None:
    wait = next_poll(polls, troubles, first=1, longest=1e12)
    assert next_poll(polls + 1, troubles, first=1, longest=1e12) >= 1.5 * JITTER * wait
    assert next_poll(polls, troubles + 1, first=1, longest=1e12) >= 2.0 * JITTER * wait


def test_a_day_of_polling_is_a_bounded_number_of_calls() -> None:
    """Field report 50: after an hour a job is read about every quarter of an hour."""
    elapsed, polls = 0.0, 0
    while elapsed < 86_400:
        elapsed += next_poll(polls, 0, first=15, longest=900)
        polls += 1
    assert polls < 130
