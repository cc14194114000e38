"""Names of ours and of a provider, in the form in which they travel."""

import hashlib
import re
from urllib.parse import quote

_JOB_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}")


def checked_job_key(job_key: str) -> str:
    """The job key, which must have a form that every provider takes. Raises `ValueError`."""
    if not _JOB_KEY.fullmatch(job_key):
        raise ValueError("a job key consists of 1 to 200 of A-Z, a-z, 0-9, '.', '_' and '-'")
    return job_key


def account_id(*parts: str | None) -> str:
    """A name for what all calls of one account share, from which no part can be told."""
    joined = "\0".join(part or "" for part in ("account", *parts))
    return hashlib.sha256(joined.encode()).hexdigest()[:16]


def path_segment(identifier: str) -> str:
    """An id of the provider's as one segment of a path. Raises `ValueError`."""
    segment = quote(identifier, safe="")
    if segment in ("", ".", ".."):
        raise ValueError("an id of the provider's is empty or a path")
    return segment
