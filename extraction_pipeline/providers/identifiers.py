"""Names of ours and of a provider, in the form in which they travel."""

import re
from urllib.parse import quote

_JOB_KEY = re.compile(r"[A-Za-z0-9._-]{1,200}")


def checked_job_key(job_key: str) -> str:
    """The job key, which must have a form that every provider takes. Raises `ValueError`."""
    if not _JOB_KEY.fullmatch(job_key):
        raise ValueError("a job key consists of 1 to 200 of A-Z, a-z, 0-9, '.', '_' and '-'")
    return job_key


def path_segment(identifier: str) -> str:
    """An id of the provider's as one segment of a path. Raises `ValueError`."""
    segment = quote(identifier, safe="")
    if segment in ("", ".", ".."):
        raise ValueError("an id of the provider's is empty or a path")
    return segment
