"""The bodies of OpenAI's files and batches, as this server sends and takes them.

Fields without a value are left out, as OpenAI's description has it: there, file ids and times are
strings and integers, never null.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from extraction_pipeline.batch_server.records import Batch, BatchState, StoredFile

Purpose = Literal["assistants", "batch", "fine-tune", "vision", "user_data", "evals"]


class _Wire(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)


class CreateBatch(_Wire):
    """The body of `POST /v1/batches`."""

    input_file_id: Annotated[str, Field(min_length=1)]
    endpoint: Literal["/v1/chat/completions"]
    completion_window: Literal["24h"]
    metadata: (
        Annotated[
            dict[
                Annotated[str, StringConstraints(max_length=64)],
                Annotated[str, StringConstraints(max_length=512)],
            ],
            Field(max_length=16),
        ]
        | None
    ) = None


class FileObject(_Wire):
    """A file."""

    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    filename: str
    purpose: str
    status: Literal["processed"] = "processed"

    @classmethod
    def of(cls, file: StoredFile) -> "FileObject":
        """The wire's view of a stored file."""
        return cls(
            id=file.id,
            bytes=file.size,
            created_at=int(file.created_at),
            filename=file.filename,
            purpose=file.purpose,
        )


class BatchError(_Wire):
    """One reason why a batch failed."""

    code: str
    message: str
    param: str | None
    line: int | None


class BatchErrors(_Wire):
    """Why a batch failed."""

    object: Literal["list"] = "list"
    data: list[BatchError]


class RequestCounts(_Wire):
    """How far a batch is."""

    total: int
    completed: int
    failed: int


class Usage(_Wire):
    """Tokens of a whole batch."""

    input_tokens: int
    input_tokens_details: dict[str, int] = {"cached_tokens": 0}
    output_tokens: int
    output_tokens_details: dict[str, int] = {"reasoning_tokens": 0}
    total_tokens: int


class BatchObject(_Wire):
    """A batch."""

    id: str
    object: Literal["batch"] = "batch"
    endpoint: str
    model: str | None
    errors: BatchErrors | None
    input_file_id: str
    completion_window: str
    status: BatchState
    output_file_id: str | None
    error_file_id: str | None
    created_at: int
    in_progress_at: int | None
    expires_at: int
    finalizing_at: int | None
    completed_at: int | None
    failed_at: int | None
    expired_at: int | None
    cancelling_at: int | None
    cancelled_at: int | None
    request_counts: RequestCounts
    usage: Usage | None
    metadata: dict[str, str] | None

    @classmethod
    def of(cls, batch: Batch) -> "BatchObject":
        """The wire's view of a batch."""
        at = {
            f"{state.value}_at": int(batch.reached[state]) if state in batch.reached else None
            for state in BatchState
            if state is not BatchState.VALIDATING
        }
        tally = batch.tally
        faults = [BatchError(**vars(fault)) for fault in batch.faults]
        return cls(
            id=batch.id,
            endpoint=batch.asked.endpoint,
            model=batch.model,
            errors=BatchErrors(data=faults) if faults else None,
            input_file_id=batch.asked.input_file_id,
            completion_window=batch.asked.completion_window,
            status=batch.state,
            output_file_id=batch.output_file_id,
            error_file_id=batch.error_file_id,
            created_at=int(batch.created_at),
            expires_at=int(batch.expires_at),
            **at,
            request_counts=RequestCounts(
                total=batch.total or 0, completed=tally.completed, failed=tally.failed
            ),
            usage=Usage(
                input_tokens=tally.input_tokens,
                output_tokens=tally.output_tokens,
                total_tokens=tally.input_tokens + tally.output_tokens,
            )
            if batch.state.is_end and batch.total is not None
            else None,
            metadata=None if batch.asked.metadata is None else dict(batch.asked.metadata),
        )


class ObjectList(_Wire):
    """One page of files or batches."""

    object: Literal["list"] = "list"
    data: list[FileObject] | list[BatchObject]
    first_id: str
    last_id: str
    has_more: bool

    @classmethod
    def of(cls, data: list[FileObject] | list[BatchObject], has_more: bool) -> "ObjectList":
        """A page of these; its ids are empty strings where there is nothing."""
        ids = [item.id for item in data] or [""]
        return cls(data=data, first_id=ids[0], last_id=ids[-1], has_more=has_more)


class DeletedFile(_Wire):
    """The answer to `DELETE /v1/files/{id}`."""

    id: str
    object: Literal["file"] = "file"
    deleted: Literal[True] = True
