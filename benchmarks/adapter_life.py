"""One batch of two fictional notes through an adapter, at any server, with a line for each step.

    python -m benchmarks.adapter_life openai http://127.0.0.1:8080/v1 --model some-model

For servers that this project did not write: mocks, compatible services, gateways. Every step is
one method of the adapter, from the search for a job that is not there to a cancel at the end. A
step that fails says why, and those that need nothing of it go on. Exit code 1 if any failed.

Against a service that costs money this makes one job of two requests.
"""

import argparse
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from benchmarks.ending import ended_in_order, temporary_folder
from extraction_pipeline.errors import ExtractionPipelineError
from extraction_pipeline.providers.api import ApiProvider
from extraction_pipeline.providers.base import (
    JobStatus,
    ModelRequest,
    ResultReference,
    Search,
    Sought,
    Submission,
    UndecodableResult,
)
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.registry import BUILDERS, ProviderName, build_api

T = TypeVar("T")
SCHEMA = {
    "type": "object",
    "properties": {"title": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    "required": ["title"],
    "additionalProperties": False,
}


@dataclass
class Life:
    """The steps of one job, and which of them failed."""

    provider: ApiProvider
    model: str
    seconds: float
    job_key: str = field(default_factory=lambda: f"trial.v1.{uuid.uuid4().hex}")
    failed: list[str] = field(default_factory=list)

    @property
    def prefix(self) -> str:
        """What every custom id begins with."""
        return f"{self.job_key[-16:]}-"

    def step(self, name: str, do: Callable[[], T], said: Callable[[T], str]) -> T | None:
        """Do one step and tell; `None` where it failed."""
        try:
            value = do()
        except ExtractionPipelineError as error:
            self.failed.append(name)
            tell(f"{name:<10} FAILED   {error}")
            return None
        tell(f"{name:<10} {said(value)}")
        return value

    def requests(self) -> list[ModelRequest]:
        """Two requests that differ in their note."""
        return [
            ModelRequest(
                custom_id=f"{self.prefix}{number}",
                model=self.model,
                instructions="Extract the title.",
                document=f"Fictional note {number}",
                schema_name="note",
                json_schema=SCHEMA,
                max_output_tokens=500,
            )
            for number in (1, 2)
        ]

    def run(self, folder: Path) -> None:
        """All steps, one after the other."""
        payload = folder / "payload"
        lines = [self.provider.encode_request(one) + b"\n" for one in self.requests()]
        payload.write_bytes(b"".join(lines))
        started = datetime.now(UTC)
        self.step("look", self.provider.look, lambda found: _differences(self.provider, found))
        self.step("find", lambda: self._search(started), _verdict)
        submission = Submission(self.job_key, self.model, payload=payload)
        files = self.provider.files
        if files is not None:
            receipt = self.step(
                "upload", lambda: files.upload(payload, self.job_key), lambda one: one.input_id
            )
            if receipt is None:
                return
            submission = Submission(self.job_key, self.model, input_id=receipt.input_id)
        job = self.step("submit", lambda: self.provider.submit(submission), lambda one: one.job_id)
        if job is not None:
            self.step("find", lambda: self._search(started), _verdict)
            status = self.step("status", lambda: self._ended(job.job_id), _phase)
            for reference in status.results if status else ():
                self.step("results", lambda one=reference: self._answers(one), str)  # type: ignore[misc]
            self.step("cancel", lambda: self.provider.cancel(job.job_id), _phase)
        if files is not None:
            name = submission.input_id or ""
            self.step("delete", lambda: files.delete(name), lambda none: "deleted, or gone already")

    def _search(self, started: datetime) -> Search:
        return self.provider.find(Sought(self.job_key, started, datetime.now(UTC), 2, self.prefix))

    def _ended(self, job_id: str) -> JobStatus:
        """The job at its end, or as it is when the time is over."""
        until = time.monotonic() + self.seconds
        while not (status := self.provider.status(job_id)).phase.is_end:
            if time.monotonic() > until:
                break
            time.sleep(0.5)
        return status

    def _answers(self, reference: ResultReference) -> str:
        outcomes = []
        with self.provider.download(reference) as chunks:
            lines = [line for line in b"".join(chunks).split(b"\n") if line]
        for line in lines:
            try:
                result = self.provider.decode_result(line)
            except UndecodableResult as error:
                outcomes.append(str(error))
            else:
                ours = (
                    "ours" if (result.custom_id or "").startswith(self.prefix) else "of another job"
                )
                outcomes.append(f"{result.outcome} ({ours})")
        return f"{reference.kind}: {', '.join(outcomes) or 'no line'}"


def _verdict(search: Search) -> str:
    return f"{search.verdict} {', '.join(job.job_id for job in search.found)}".rstrip()


def _phase(status: JobStatus) -> str:
    return f"{status.phase} (the server says {status.provider_state}, {status.error_code})"


def _differences(provider: ApiProvider, found: object) -> str:
    readings = found if isinstance(found, tuple) else ()
    told = [str(difference) for reading in readings for difference in reading.differences]
    return "; ".join(told) or "as relied on"


def tell(line: str) -> None:
    """One line for the person who looks on."""
    print(line, flush=True)  # noqa: T201


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("provider", choices=[name.value for name in BUILDERS])
    parser.add_argument("base_url")
    parser.add_argument("--model", default="rules-baseline")
    parser.add_argument("--key", default="no-key", help="for a mock; default: %(default)s")
    parser.add_argument("--seconds", type=float, default=30, help="to wait for the end of the job")
    arguments = parser.parse_args()
    endpoint = ProviderEndpoint(arguments.base_url, arguments.key, read_timeout=30)
    provider = build_api(ProviderName(arguments.provider), endpoint)
    life = Life(provider, arguments.model, arguments.seconds)
    with temporary_folder("life") as folder:
        life.run(folder)
    tell(f"failed: {', '.join(life.failed)}" if life.failed else "every step worked")
    sys.exit(1 if life.failed else 0)


if __name__ == "__main__":
    ended_in_order(main)
