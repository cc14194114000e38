"""Whose turn it is: the quick before the slow, and nobody is left out for long."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.lifecycle.turns import LEFT_OUT_SECONDS, Turns

providers = st.sampled_from(["anthropic", "gemini", "infrai", "local", "openai"])

SHARE = 1.0


class Watched:
    """Turns, and the clock that they look at."""

    def __init__(self) -> None:
        self.now = 0.0
        self.turns = Turns(lambda: self.now)

    def took(self, provider: str, seconds: float) -> None:
        with self.turns.reading(provider):
            self.now += seconds

    def order(self, names: Iterable[str], failing: str = "", share: float = SHARE) -> str:
        """The quick in turn, and behind a dash the slow."""
        order = self.turns.order({name: name in failing for name in names}, share)
        quick, slow = ([one for one, is_slow in order.items() if is_slow == of] for of in (0, 1))
        assert list(order) == quick + slow
        return " ".join(quick) + (" - " + " ".join(slow) if slow else "")


def test_the_slow_come_last_and_the_longest_unread_first() -> None:
    watched = Watched()
    assert watched.order("ba") == "b a"
    for name, seconds in (("b", 9.0), ("a", 0.1), ("c", 0.1), ("d", 9.0)):
        watched.took(name, seconds)
    assert watched.order("abcde") == "e a c - b d"
    watched.took("b", 9.0)
    watched.took("d", 0.1)
    assert watched.order("abcde") == "e a c d - b"
    watched.now += LEFT_OUT_SECONDS
    watched.took("a", 0.1)
    assert watched.order("ab") == "b a"


@given(st.dictionaries(providers, st.sampled_from([0.1, 5.0]), min_size=1))
def test_every_slow_provider_is_first_of_the_slow_in_turn(took: dict[str, float]) -> None:
    watched = Watched()
    for name, seconds in took.items():
        watched.took(name, seconds)
    slow = [name for name, seconds in took.items() if seconds >= SHARE]
    firsts = []
    for _ in slow:
        first = watched.order(took).partition("- ")[2].split()[0]
        watched.took(first, 5.0)
        firsts.append(first)
    assert firsts == slow


def test_who_takes_no_more_than_its_share_is_not_kept_behind_those_who_are_quicker() -> None:
    watched = Watched()
    watched.took("a", 0.9)
    watched.took("b", 1.1)
    assert watched.order("ab", share=2.0) == "a b"
    assert watched.order("ab", share=1.0) == "a - b"


def test_after_a_start_who_failed_before_it_waits_for_its_turn() -> None:
    watched = Watched()
    assert watched.order("ab", failing="a") == "b - a"
    watched.took("a", 0.1)
    assert watched.order("ab", failing="a") == "b a", "it was read since, and quickly"
    watched = Watched()
    watched.order("ab", failing="a")
    watched.now += LEFT_OUT_SECONDS
    watched.took("b", 0.1)
    assert watched.order("ab", failing="a") == "a b", "nobody is left out for long"


def test_who_leaves_a_tick_waiting_is_not_asked_by_the_others() -> None:
    watched = Watched()
    with watched.turns.reading("a"):
        with watched.turns.reading("a"):
            assert watched.order("ab") == "b"
        assert watched.order("ab") == "b"
    assert watched.order("ab") == "b a"
