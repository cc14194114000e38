"""Names that travel to a provider: job keys and custom ids. They hold hashes, never contents."""

import hashlib
import re
import uuid

_CUSTOM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def new_job_key(collection: str, version: str) -> str:
    """A name for a batch job that exists before the call. At most 117 characters."""
    return f"{collection}.{version}.{uuid.uuid4().hex}"


def custom_id(job_key: str, document_key: str, document_hash: str) -> str:
    """The id of one request: 57 characters of `[0-9a-f-]`, within every provider's rules.

    The first part proves the job, the second the document and the text that was sent. The document
    hash is in it because two documents of different bytes can have the same text.
    """
    subject = hashlib.sha256(f"{document_key}\0{document_hash}".encode()).hexdigest()[:40]
    return f"{custom_id_prefix(job_key)}{subject}"


def custom_id_prefix(job_key: str) -> str:
    """What every custom id of this job begins with, and of no other job."""
    return f"{hashlib.sha256(job_key.encode()).hexdigest()[:16]}-"


def is_custom_id(given: str) -> bool:
    """Whether this could be the custom id of a request of ours; a provider may send any text."""
    return _CUSTOM_ID.fullmatch(given) is not None
