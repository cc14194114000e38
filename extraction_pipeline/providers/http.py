"""The one place that makes HTTP calls to providers.

No call is ever repeated here: no retries, no redirects. The rest depends on what a call may cost:

- `get`, `post`, `delete` and `upload` are safe to repeat, so every call without a usable answer is
  a `CallFailed`, and whoever polls asks again.
- `create` makes a paid job. Everything that leaves doubt is an `OutcomeUnknown`; `CallRefused` and
  `CallFailed` are proofs that no job exists.
- `download` streams, and a body that was cut short raises.

Errors name the provider, method, path, status, code and request id: no key, no body, no query.
"""

import http.client
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import requests
import urllib3

from extraction_pipeline.providers.base import CallRecord, FailureKind
from extraction_pipeline.providers.bounded_body import BoundedBody
from extraction_pipeline.providers.call_log import CallMade, keep
from extraction_pipeline.providers.dialect import ErrorReading, ProviderDialect
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import (
    CallFailed,
    CallRefused,
    OutcomeUnknown,
    ProviderError,
)
from extraction_pipeline.providers.http_failures import (
    describe,
    failure_kind,
    nothing_was_sent,
    proves_refusal,
    remedy_for,
    retry_after_seconds,
    safe_code,
    safe_token,
)
from extraction_pipeline.providers.http_session import open_session

CHUNK_BYTES = 64 * 1024
LARGEST_ANSWER_BYTES = 64 * 1024 * 1024
"""The longest answer that is held in memory; result files are streamed and not bound by it."""

UNUSABLE = (
    *(requests.RequestException, urllib3.exceptions.HTTPError, http.client.HTTPException),
    *(OSError, ValueError, ArithmeticError),
)
"""What an exchange may raise: the last two are those of libraries that read a broken header."""

T = TypeVar("T")


@dataclass(frozen=True)
class Reply(Generic[T]):
    """A successful call: what was read from its body, and what it said of itself."""

    value: T
    call: CallRecord
    headers: Mapping[str, str] = field(repr=False)


class HttpClient:
    """HTTP calls to one provider at one base URL. Safe to share between threads.

    `read` arguments translate a 2xx body and raise `ValueError` for one that is not as expected.
    """

    def __init__(self, endpoint: ProviderEndpoint, dialect: ProviderDialect) -> None:
        self._endpoint = endpoint
        self._dialect = dialect
        self._pooled = self._opened()

    def get(
        self, path: str, read: Callable[[bytes], T], params: Mapping[str, str] | None = None
    ) -> Reply[T]:
        """A small read. Raises `CallRefused` or `CallFailed`."""
        seconds = min(self._endpoint.poll_timeout, self._endpoint.read_timeout)
        return self._repeatable(self._pooled, "GET", path, read, params=params, seconds=seconds)

    def fetch(self, path: str, read: Callable[[bytes], T]) -> Reply[T]:
        """A read that may take long, such as results inside JSON. Raises as `get` does."""
        return self._repeatable(self._pooled, "GET", path, read)

    def post(self, path: str, read: Callable[[bytes], T]) -> Reply[T]:
        """An action that may be asked for twice, such as a cancel. Raises as `get` does."""
        with self._opened() as session:
            return self._repeatable(session, "POST", path, read)

    def delete(self, path: str) -> None:
        """Delete something; what is gone already may be asked for again. Raises as `get` does."""
        with self._opened() as session:
            self._repeatable(session, "DELETE", path, lambda body: None)

    def upload(
        self,
        path: str,
        body: Any,
        content_type: str,
        read: Callable[[bytes], T],
        headers: Mapping[str, str] | None = None,
    ) -> Reply[T]:
        """Send bytes, or a file-like `body` as a stream; nothing paid comes of it. Raises as `get`
        does."""
        sent = {"Content-Type": content_type, **(headers or {})}
        with self._opened() as session:
            return self._repeatable(session, "POST", path, read, data=body, headers=sent)

    def create(
        self,
        path: str,
        body: Any,
        read: Callable[[bytes], T],
        headers: Mapping[str, str] | None = None,
        *,
        last_look: Callable[[], None],
    ) -> Reply[T]:
        """Make a job: one request, once, over a connection of its own. `body` as for `upload`.

        `last_look` is called before the body goes out: of a stream, when the connection is open and
        its first byte is about to be sent. What it raises is passed on, and no job exists.

        A pooled connection may have been closed by the server meanwhile, which shows only after
        sending and would leave the outcome unknown for nothing.
        """
        unknown = "whether the job exists is not known"
        sent = {"Content-Type": "application/json", "Connection": "close", **(headers or {})}
        if isinstance(body, bytes):
            last_look()
        else:
            body = BoundedBody(body, self._endpoint.send_timeout, last_look)
        with self._opened() as session:
            try:
                answer = self._exchange(session, "POST", path, data=body, headers=sent)
            except _NoAnswer as failure:
                error: ProviderError = (
                    OutcomeUnknown(
                        f"{self._name('POST', path)}: {failure.what}; {unknown}.",
                        kind=FailureKind.TRANSPORT,
                    )
                    if failure.sent
                    else self._failed("POST", path, f"{failure.what}; nothing was sent")
                )
            else:
                if 200 <= answer.status < 300:
                    try:
                        return Reply(read(answer.body), answer.call, answer.headers)
                    except ValueError:
                        what = "the answer could not be read"
                elif proves_refusal(answer.status):
                    raise self._error("POST", path, answer)
                else:
                    what = "no proof of refusal"
                error = OutcomeUnknown(
                    f"{self._name('POST', path, answer)}: {what}; {unknown}.",
                    kind=FailureKind.TRANSPORT,
                    **self._details(answer),
                )
        raise error

    @contextmanager
    def download(
        self,
        path: str,
        expected_bytes: int | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Iterator[Iterator[bytes]]:
        """Stream a body in chunks. `expected_bytes` is its size as told elsewhere, if known.

        The iterator raises `CallFailed` when the body ends before its framing or that size says.
        A body that has neither a length nor chunks nor an expected size is not taken at all: it
        would end in the same way whether it is whole or cut. Neither is one that is compressed, or
        longer than expected.
        """
        try:
            response = self._send(self._pooled, "GET", path, params=params)
        except _NoAnswer as failure:
            _keep("GET", path, CallRecord(None, None))
            raise self._failed("GET", path, failure.what) from None
        _keep("GET", path, self._record(response))
        with response:
            if response.status_code != 200:
                answer = self._drain_for_error("GET", path, response)
                raise self._error("GET", path, answer)
            yield self._chunks(path, response, expected_bytes)

    def _chunks(
        self, path: str, response: requests.Response, expected_bytes: int | None
    ) -> Iterator[bytes]:
        framed = "content-length" in response.headers or (
            response.headers.get("transfer-encoding", "").lower() == "chunked"
        )
        if not framed and expected_bytes is None:
            raise self._failed("GET", path, "the answer has no length, so its end proves nothing")
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity"):
            what = "the answer is compressed, which was not asked for and has no bound"
            raise self._failed("GET", path, what)
        received = 0
        failure: str | None = None
        try:
            for chunk in response.iter_content(CHUNK_BYTES):
                received += len(chunk)
                if expected_bytes is not None and received > expected_bytes:
                    break
                yield chunk
        except UNUSABLE as error:
            failure = describe(error)
        if failure is None and expected_bytes is not None and received < expected_bytes:
            failure = "the answer was cut short"
        elif failure is None and expected_bytes is not None and received > expected_bytes:
            failure = "the answer is longer than the file; it was left"
        if failure is not None:
            raise self._failed("GET", path, f"{failure} after {received} bytes")

    def _repeatable(
        self,
        session: requests.Session,
        method: str,
        path: str,
        read: Callable[[bytes], T],
        **arguments: Any,
    ) -> Reply[T]:
        try:
            answer = self._exchange(session, method, path, **arguments)
        except _NoAnswer as failure:
            error: ProviderError = self._failed(method, path, failure.what)
        else:
            if not 200 <= answer.status < 300:
                raise self._error(method, path, answer)
            try:
                return Reply(read(answer.body), answer.call, answer.headers)
            except ValueError:
                error = CallFailed(
                    f"{self._name(method, path, answer)}: the answer could not be read.",
                    kind=FailureKind.TRANSPORT,
                    remedy="Check that the base URL leads to this provider's API.",
                    **self._details(answer),
                )
        raise error

    def _exchange(
        self, session: requests.Session, method: str, path: str, **arguments: Any
    ) -> "_Answer":
        """One request and its whole answer, of any status. Raises `_NoAnswer` only."""
        made = CallRecord(None, None)
        try:
            with self._send(session, method, path, **arguments) as response:
                made = self._record(response)
                seconds = arguments.get("seconds") or self._endpoint.read_timeout
                answer = _Answer(response, self._body(response, seconds), self._dialect)
                made = answer.call
                return answer
        finally:
            _keep(method, path, made)

    def _send(
        self,
        session: requests.Session,
        method: str,
        path: str,
        seconds: float | None = None,
        **arguments: Any,
    ) -> requests.Response:
        endpoint = self._endpoint
        connect = endpoint.connect_timeout
        try:
            return session.request(
                method,
                endpoint.base_url + path,
                timeout=(min(connect, seconds or connect), seconds or endpoint.read_timeout),
                allow_redirects=False,
                stream=True,
                **arguments,
            )
        except UNUSABLE as error:
            failure = _NoAnswer(describe(error), sent=not nothing_was_sent(error))
        raise failure

    def _record(self, response: requests.Response) -> CallRecord:
        """What an answer says of itself before its body is read."""
        header = self._dialect.request_id_header
        request_id = response.headers.get(header) if header is not None else None
        return CallRecord(response.status_code, safe_token(request_id))

    def _body(self, response: requests.Response, seconds: float) -> bytes:
        """The body, bounded in size and, since a server may drip bytes for ever, in time: that of
        the call once more."""
        end = time.monotonic() + seconds
        body = bytearray()
        try:
            while chunk := response.raw.read1(CHUNK_BYTES, decode_content=True):
                body += chunk
                if len(body) > LARGEST_ANSWER_BYTES:
                    raise _NoAnswer("the answer is too large", sent=True)
                if time.monotonic() > end:
                    raise _NoAnswer("the answer took too long", sent=True)
            return bytes(body)
        except UNUSABLE as error:
            failure = _NoAnswer(
                "no answer within the time-out"
                if isinstance(error, urllib3.exceptions.ReadTimeoutError)
                else "the answer was cut short",
                sent=True,
            )
        raise failure

    def _drain_for_error(self, method: str, path: str, response: requests.Response) -> "_Answer":
        try:
            body = self._body(response, self._endpoint.read_timeout)
            return _Answer(response, body, self._dialect)
        except _NoAnswer as failure:
            what = failure.what
        raise self._failed(method, path, f"HTTP {response.status_code}, and {what}")

    def _error(self, method: str, path: str, answer: "_Answer") -> ProviderError:
        """The error for an answer whose status is not a success."""
        kind = answer.error.kind or failure_kind(answer.status, None, frozenset())
        refused = 400 <= answer.status < 500 and answer.status not in (408, 425)
        error = CallRefused if refused else CallFailed
        return error(
            f"{self._name(method, path, answer)}.",
            kind=kind,
            remedy=remedy_for(answer.status, kind),
            **self._details(answer),
        )

    def _failed(self, method: str, path: str, what: str) -> CallFailed:
        return CallFailed(f"{self._name(method, path)}: {what}.", kind=FailureKind.TRANSPORT)

    def _name(self, method: str, path: str, answer: "_Answer | None" = None) -> str:
        name = f"{self._dialect.provider}: {method} {path.partition('?')[0]}"
        if answer is None:  # then it matters which server was asked
            return f"{name} at {self._endpoint.base_url}"
        said = ", ".join(
            [f"HTTP {answer.call.http_status}"]
            + ([f"code {answer.error.code}"] if answer.error.code else [])
            + ([f"request id {answer.call.request_id}"] if answer.call.request_id else [])
        )
        return f"{name} answered {said}"

    def _details(self, answer: "_Answer") -> dict[str, Any]:
        return {
            "http_status": answer.call.http_status,
            "code": answer.error.code,
            "request_id": answer.call.request_id,
            "retry_after": answer.retry_after,
        }

    def _opened(self) -> requests.Session:
        return open_session(self._dialect.headers, local=self._endpoint.is_loopback)


def _keep(method: str, path: str, made: CallRecord) -> None:
    keep(CallMade(f"{method} {path.partition('?')[0]}", made.http_status, made.request_id))


class _NoAnswer(Exception):
    """No whole answer came. `sent` is false only where the request provably never left."""

    def __init__(self, what: str, *, sent: bool) -> None:
        super().__init__(what)
        self.what = what
        self.sent = sent


class _Answer:
    """A whole HTTP answer. `status` is what it means, which a provider may say in the body only."""

    def __init__(self, response: requests.Response, body: bytes, dialect: ProviderDialect) -> None:
        self.body = body
        self.headers = response.headers
        self.status = dialect.status_within(response.status_code, body)
        request_id = dialect.request_id_within(body)
        if dialect.request_id_header is not None:
            request_id = response.headers.get(dialect.request_id_header) or request_id
        self.call = CallRecord(response.status_code, safe_token(request_id))
        self.error = ErrorReading()
        if not 200 <= self.status < 300:
            said = dialect.read_error(self.status, self.headers, body)
            self.error = replace(said, code=safe_code(said.code))
        told = retry_after_seconds(self.headers, datetime.now(UTC))
        self.retry_after = self.error.retry_after if told is None else told
