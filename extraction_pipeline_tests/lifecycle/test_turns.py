"""Whose turn it is: the quick before the slow, and nobody is left out for long."""

from collections.abc import Iterable, Iterator

from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.lifecycle.turns import LEFT_OUT_SECONDS, Turns

providers = st.sampled_from(["anthropic", "gemini", "infrai", "local", "openai"])


SHARE = 1.0


def ticking() -> Iterator[float]:
    now = 0.0
    while True:
        yield (now := now + 1)


def well(names: Iterable[str]) -> dict[str, bool]:
    """Providers without a reading that failed."""
    return dict.fromkeys(names, False)


def test_the_slow_come_last_and_the_longest_unread_first() -> None:
    clock = ticking()
    turns = Turns(lambda: next(clock))
    assert list(turns.order(well("ba"), SHARE)) == ["b", "a"]
    for name, seconds in (("b", 9.0), ("a", 0.1), ("c", 0.1), ("d", 9.0)):
        turns.took(name, seconds)
    assert list(turns.order(well("abcde"), SHARE)) == ["e", "a", "c", "b", "d"]
    assert turns.order(well("ab"), SHARE) == {"a": False, "b": True}
    turns.took("b", 9.0)
    turns.took("d", 0.1)
    assert list(turns.order(well("abcde"), SHARE)) == ["e", "a", "c", "d", "b"]
    for _ in range(int(LEFT_OUT_SECONDS)):
        next(clock)
    turns.took("a", 0.1)
    assert turns.order(well("ab"), SHARE) == {"b": False, "a": False}


@given(st.dictionaries(providers, st.sampled_from([0.1, 5.0]), min_size=1))
def test_every_slow_provider_is_first_of_the_slow_in_turn(took: dict[str, float]) -> None:
    clock = ticking()
    turns = Turns(lambda: next(clock))
    for name, seconds in took.items():
        turns.took(name, seconds)
    slow = [name for name, seconds in took.items() if seconds >= SHARE]
    firsts = []
    for _ in slow:
        order = list(turns.order(well(took), SHARE))
        assert {order.index(one) for one in slow} == set(range(len(took) - len(slow), len(took)))
        first = next(one for one in order if one in slow)
        turns.took(first, 5.0)
        firsts.append(first)
    assert firsts == slow


def test_who_takes_no_more_than_its_share_is_not_kept_behind_those_who_are_quicker() -> None:
    turns = Turns(lambda: 1.0)
    turns.took("a", 0.9)
    turns.took("b", 1.1)
    assert turns.order(well("ab"), share=2.0) == {"a": False, "b": False}
    assert turns.order(well("ab"), share=1.0) == {"a": False, "b": True}


def test_after_a_start_who_failed_before_it_waits_for_its_turn() -> None:
    clock = ticking()
    turns = Turns(lambda: next(clock))
    failing = {"a": True, "b": False}
    assert turns.order(failing, SHARE) == {"b": False, "a": True}
    turns.took("a", 0.1)
    assert turns.order(failing, SHARE) == {"b": False, "a": False}, "it was read since, and quickly"
    turns = Turns(lambda: next(clock))
    turns.order(failing, SHARE)
    for _ in range(int(LEFT_OUT_SECONDS)):
        next(clock)
    turns.took("b", 0.1)
    assert turns.order(failing, SHARE) == {"a": False, "b": False}, "nobody is left out for long"
