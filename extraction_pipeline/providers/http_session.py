"""Sessions that send each request once, as it is: no retries, no redirects, no cookies."""

from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy

import requests
from requests.auth import AuthBase
from urllib3.util import Retry

from extraction_pipeline.providers.bounded_head import BoundedHeadAdapter


def open_session(headers: Mapping[str, str], *, local: bool) -> requests.Session:
    """A session that sends these headers with every request. `local`: to this machine alone."""
    session = _Session()
    never = Retry(total=0, connect=0, read=False, redirect=0, status=0, other=0)
    for scheme in ("http://", "https://"):
        session.mount(scheme, BoundedHeadAdapter(max_retries=never))
    session.headers["Accept-Encoding"] = "identity"  # result bytes are kept verbatim
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    # Setting `auth` keeps a .netrc from replacing the key. Proxies and certificate bundles of
    # the environment hold for real hosts; a call to this machine goes through no proxy.
    session.auth = _FixedHeaders(headers)
    session.trust_env = not local
    return session


class _Session(requests.Session):
    """A session to which no answer is a redirect. It would read the whole body of one, and the
    address that it names, although it does not follow."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        return None


class _FixedHeaders(AuthBase):
    """The provider's own headers, credentials among them, on every request."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = dict(headers)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers.update(self._headers)
        return request
