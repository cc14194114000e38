"""A batch script as providers' own examples have it: upload, create, poll, download, write.

    python -m benchmarks.plain_script.script FOLDER BASE_URL RECORDS

It is no straw man: it gives every document an id, keeps the id of its batch in a file so that it
can be started again, retries calls as the vendors' SDKs do (twice, after errors of connections,
time-outs, 429 and 5xx), and joins results by their ids. It knows nothing of the pipeline.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

RETRIES = 2
"""As in the SDKs of OpenAI and Anthropic."""
TIMEOUT = 3.0
"""Seconds; theirs is ten minutes, for which nobody waits here."""
POLL_SECONDS = 0.2


def main(folder: Path, base_url: str, records: Path) -> None:
    """Extract every document of a folder, and write one line for each record."""
    session = requests.Session()
    retry = Retry(
        total=RETRIES,
        status_forcelist=[408, 409, 429, 500, 502, 503, 504],
        allowed_methods=None,
        backoff_factor=0.1,
    )
    session.mount("http://", HTTPAdapter(max_retries=retry))
    kept = records.with_suffix(".batch_id")
    if kept.exists():
        batch_id = kept.read_text()
    else:
        batch_id = submit(session, folder, base_url)
        kept.write_text(batch_id)
    batch = wait(session, base_url, batch_id)
    if batch["status"] != "completed":
        kept.unlink()
        raise SystemExit(f"The batch ended as {batch['status']}; start again.")
    content = get(session, f"{base_url}/files/{batch['output_file_id']}/content").text
    with records.open("a") as output:
        for line in content.splitlines():
            row = json.loads(line)
            answer = row["response"]["body"]["choices"][0]["message"]["content"]
            output.write(json.dumps({"id": row["custom_id"], "record": json.loads(answer)}) + "\n")
    kept.unlink()


def submit(session: requests.Session, folder: Path, base_url: str) -> str:
    """Upload the requests and create the batch; its id."""
    lines = [
        json.dumps(
            {
                "custom_id": document.stem,
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {
                    "model": "rules-baseline",
                    "messages": [
                        {"role": "system", "content": "Extract the discharge summary as JSON."},
                        {"role": "user", "content": document.read_text()},
                    ],
                    "response_format": {"type": "json_schema", "json_schema": SCHEMA},
                },
            }
        )
        for document in sorted(folder.iterdir())
    ]
    file = session.post(
        f"{base_url}/files",
        files={"file": ("requests.jsonl", "\n".join(lines) + "\n")},
        data={"purpose": "batch"},
        timeout=TIMEOUT,
    )
    file.raise_for_status()
    batch = session.post(
        f"{base_url}/batches",
        json={
            "input_file_id": file.json()["id"],
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
        },
        timeout=TIMEOUT,
    )
    batch.raise_for_status()
    return str(batch.json()["id"])


def wait(session: requests.Session, base_url: str, batch_id: str) -> dict[str, Any]:
    """Poll until the batch has ended."""
    while True:
        batch = get(session, f"{base_url}/batches/{batch_id}").json()
        if batch["status"] in ("completed", "failed", "expired", "cancelled"):
            return dict(batch)
        time.sleep(POLL_SECONDS)


def get(session: requests.Session, url: str) -> requests.Response:
    """One reading."""
    answer = session.get(url, timeout=TIMEOUT)
    answer.raise_for_status()
    return answer


SCHEMA = {
    "name": "discharge_summary",
    "schema": {
        "type": "object",
        "properties": {"discharge_diagnoses": {"type": ["array", "null"]}},
    },
}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
