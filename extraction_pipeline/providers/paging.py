"""Lists in pages, read to their end or not at all: only a whole list proves a job absent."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from extraction_pipeline.providers.base import FailureKind
from extraction_pipeline.providers.errors import CallFailed
from extraction_pipeline.providers.http import HttpClient

LONGEST_SEARCH_PAGES = 2_000
"""Pages that a search reads before it gives up, and says so."""


class _Named(Protocol):
    @property
    def id(self) -> str: ...


class _IdPage(Protocol):
    @property
    def data(self) -> Sequence[_Named]: ...
    @property
    def has_more(self) -> bool: ...


class _TokenPage(Protocol):
    @property
    def next_page_token(self) -> str | None: ...


IdPage = TypeVar("IdPage", bound=_IdPage)
TokenPage = TypeVar("TokenPage", bound=_TokenPage)


def pages_by_id(
    http: HttpClient,
    path: str,
    read: Callable[[bytes], IdPage],
    params: Mapping[str, str],
    cursor: str,
) -> Iterator[IdPage]:
    """Pages of a list that goes on after the last id, given as the parameter `cursor`.

    Raises `CallFailed` rather than ending before the list does.
    """
    seen: set[str] = set()
    query = dict(params)
    for _ in range(LONGEST_SEARCH_PAGES):
        page = http.get(path, read, query).value
        yield page
        if not page.has_more:
            return
        new = [item.id for item in page.data if item.id not in seen]
        if not new:
            raise _incomplete(path, "a page brought nothing new")
        seen.update(new)
        query[cursor] = page.data[-1].id
    raise _incomplete(path, f"there are more than {LONGEST_SEARCH_PAGES} pages")


def pages_by_token(
    http: HttpClient,
    path: str,
    read: Callable[[bytes], TokenPage],
    params: Mapping[str, str],
    parameter: str,
) -> Iterator[TokenPage]:
    """Pages of a list whose pages each name the next one. Raises as `pages_by_id` does."""
    seen: set[str] = set()
    query = dict(params)
    for _ in range(LONGEST_SEARCH_PAGES):
        page = http.get(path, read, query).value
        yield page
        token = page.next_page_token
        if not token:
            return
        if token in seen:
            raise _incomplete(path, "a page names one that was read before")
        seen.add(token)
        query[parameter] = token
    raise _incomplete(path, f"there are more than {LONGEST_SEARCH_PAGES} pages")


def _incomplete(path: str, why: str) -> CallFailed:
    return CallFailed(
        f"The search of {path} could not be completed: {why}.", kind=FailureKind.TRANSPORT
    )
