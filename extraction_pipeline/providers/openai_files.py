"""Files at OpenAI: the payloads of batches, and their results."""

from pathlib import Path

from requests_toolbelt import MultipartEncoder

from extraction_pipeline.providers.base import UploadReceipt
from extraction_pipeline.providers.deletion import delete, holds_file
from extraction_pipeline.providers.http import HttpClient
from extraction_pipeline.providers.identifiers import checked_job_key, path_segment
from extraction_pipeline.providers.openai_wire import WireFile


def payload_name(job_key: str) -> str:
    """The file name of a job's payload, by which the job can be found."""
    return f"extraction-{checked_job_key(job_key)}.jsonl"


class OpenAIFiles:
    """`ProviderFiles` over OpenAI's `/files`."""

    def __init__(self, http: HttpClient) -> None:
        self._http = http

    def upload(self, payload: Path, job_key: str) -> UploadReceipt:
        """Stream the payload to `/files`; memory does not grow with it."""
        with payload.open("rb") as content:
            form = MultipartEncoder(
                {
                    "purpose": "batch",
                    "file": (payload_name(job_key), content, "application/jsonl"),
                }
            )
            reply = self._http.upload(
                "/files", form, form.content_type, WireFile.model_validate_json
            )
        return UploadReceipt(reply.value.id, reply.call)

    def holds(self, file_id: str) -> bool:
        """Whether the file is there and seen with this key."""
        return holds_file(self._http, f"/files/{path_segment(file_id)}")

    def delete(self, file_id: str) -> None:
        """Delete a file; a batch that is created with it afterwards fails its validation."""
        delete(self._http, f"/files/{path_segment(file_id)}")
