"""What a call asks for, by its method and path."""

import re
from dataclasses import dataclass

from starlette.types import Scope

from extraction_pipeline.batch_server.calls import Call
from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.faults.plan import CallName

_ROUTES = tuple(
    (methods, re.compile(path), name)
    for methods, path, name in (
        ("POST", r"/v1/files", CallName.UPLOAD),
        ("GET", r"/v1/files", CallName.LIST_FILES),
        ("GET", r"/v1/files/(?P<file>[^/]+)", CallName.FILE),
        ("GET", r"/v1/files/(?P<file>[^/]+)/content", CallName.RESULTS),
        ("DELETE", r"/v1/files/[^/]+", CallName.DELETE),
        ("POST", r"/v1/batches", CallName.CREATE),
        ("GET", r"/v1/batches", CallName.LIST),
        ("GET", r"/v1/batches/(?P<batch>[^/]+)", CallName.STATUS),
        ("POST", r"/v1/batches/(?P<batch>[^/]+)/cancel", CallName.CANCEL),
        ("POST", r"/v1/messages/batches", CallName.CREATE),
        ("GET", r"/v1/messages/batches", CallName.LIST),
        ("GET", r"/v1/messages/batches/(?P<batch>[^/]+)", CallName.STATUS),
        ("GET", r"/v1/messages/batches/(?P<batch>[^/]+)/results", CallName.RESULTS),
        ("POST", r"/v1/messages/batches/(?P<batch>[^/]+)/cancel", CallName.CANCEL),
        ("DELETE", r"/v1/messages/batches/[^/]+", CallName.DELETE),
        ("POST PUT", r"/upload/v1beta/files", CallName.UPLOAD),
        ("GET", r"/v1beta/files", CallName.LIST_FILES),
        ("GET", r"(?:/download)?/v1beta/files/batch-(?P<batch>[^/:]+):download", CallName.RESULTS),
        ("GET", r"/v1beta/files/(?P<file>[^/:]+)", CallName.FILE),
        ("DELETE", r"/v1beta/(?:files|batches)/[^/:]+", CallName.DELETE),
        ("POST", r"/v1beta/models/[^/]+:batchGenerateContent", CallName.CREATE),
        ("GET", r"/v1beta/batches", CallName.LIST),
        ("GET", r"/v1beta/batches/(?P<batch>[^/:]+)", CallName.STATUS),
        ("POST", r"/v1beta/batches/(?P<batch>[^/]+):cancel", CallName.CANCEL),
        ("POST", r"/v1/ai/batch/submit", CallName.CREATE),
        ("GET", r"/v1/ai/batch/status/(?P<batch>[^/]+)", CallName.STATUS),
        ("GET", r"/v1/ai/batch/results/(?P<batch>[^/]+)", CallName.RESULTS),
        ("POST", r"/v1/ai/batch/cancel/(?P<batch>[^/]+)", CallName.CANCEL),
    )
)


@dataclass(frozen=True)
class Called:
    """A call to a batch API; `batch_id` or `file_id` is what its path names."""

    dialect: Dialect
    name: CallName
    batch_id: str | None = None
    file_id: str | None = None

    @classmethod
    def of(cls, scope: Scope) -> "Called | None":
        """What an ASGI scope asks for; `None` for what is of no provider, such as `/health`."""
        for methods, pattern, name in _ROUTES:
            if scope["method"] in methods.split() and (match := pattern.fullmatch(scope["path"])):
                ids = match.groupdict()
                return cls(Call.of(scope).dialect, name, ids.get("batch"), ids.get("file"))
        return None
