"""Files at Gemini: the payloads of batches."""

from http import HTTPStatus
from pathlib import Path

import orjson

from extraction_pipeline.providers.base import FailureKind, UploadReceipt
from extraction_pipeline.providers.deletion import delete, holds_file
from extraction_pipeline.providers.errors import CallFailed, CallRefused
from extraction_pipeline.providers.gemini_wire import FileBody, WireFile
from extraction_pipeline.providers.http import HttpClient
from extraction_pipeline.providers.identifiers import checked_job_key, path_segment

MIME_TYPE = "application/jsonl"


def resource(collection: str, name: str) -> str:
    """`collection/id` as a part of a path, from a name with or without its collection."""
    return f"{collection}/{path_segment(name.removeprefix(f'{collection}/'))}"


class GeminiFiles:
    """`ProviderFiles` over Gemini's resumable uploads."""

    def __init__(self, name: str, base_url: str, http: HttpClient) -> None:
        self._name = name
        self._base_url = base_url
        self._http = http

    def upload(self, payload: Path, job_key: str) -> UploadReceipt:
        """Begin an upload, then stream the payload to the address that it is given.

        That address must lie under the base URL: it gets patients' data and the key.
        """
        size = payload.stat().st_size
        begun = self._http.upload(
            "/upload/v1beta/files",
            orjson.dumps({"file": {"displayName": checked_job_key(job_key)}}),
            "application/json",
            lambda body: None,
            {
                "X-Goog-Upload-Protocol": "resumable",
                "X-Goog-Upload-Command": "start",
                "X-Goog-Upload-Header-Content-Length": str(size),
                "X-Goog-Upload-Header-Content-Type": MIME_TYPE,
            },
        )
        with payload.open("rb") as content:
            reply = self._http.upload(
                self._own_path(begun.headers.get("X-Goog-Upload-URL", "")),
                content,
                MIME_TYPE,
                FileBody.model_validate_json,
                {"X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize"},
            )
        return UploadReceipt(reply.value.file.name, reply.call)

    def _own_path(self, address: str) -> str:
        base = self._base_url
        if not address.startswith(f"{base}/"):
            raise CallFailed(
                f"{self._name}: the upload was sent to an address outside {base}, or to none.",
                kind=FailureKind.TRANSPORT,
                remedy="Set EXTRACTION_GEMINI_BASE_URL to the address that it names for itself.",
            )
        return address.removeprefix(base)

    def require(self, input_id: str) -> None:
        """Raise `CallFailed` for a file that cannot be made a batch of: with status 404 where it
        is gone, without a status where it is still taken in."""
        try:
            file = self._http.get(
                f"/v1beta/{resource('files', input_id)}", WireFile.model_validate_json
            ).value
        except CallRefused as refusal:
            if refusal.http_status not in (403, 404):
                raise
            file = WireFile(name=input_id, state="FAILED")
        if file.state in ("ACTIVE", None):
            return
        gone = file.state == "FAILED"
        raise CallFailed(
            f"{self._name}: the uploaded payload is {'gone' if gone else 'not ready yet'}; "
            "no job was made.",
            kind=FailureKind.TRANSPORT,
            http_status=HTTPStatus.NOT_FOUND if gone else None,
        )

    def holds(self, file_id: str) -> bool:
        """Whether the file is there and seen with this key."""
        return holds_file(self._http, f"/v1beta/{resource('files', file_id)}")

    def delete(self, file_id: str) -> None:
        """Delete a file; a batch cannot be created with it afterwards."""
        delete(self._http, f"/v1beta/{resource('files', file_id)}")
