"""bespokelabs-curator: one `LLM` in batch mode over a list of rows."""

from typing import Any

from bespokelabs import curator

from benchmarks.others.programs.settings import (
    API_KEY,
    INSTRUCTIONS,
    MAX_OUTPUT_TOKENS,
    MODEL,
    RECORD,
    fair,
    tell,
)


class Extraction(curator.LLM):
    """A row to a record."""

    response_format = RECORD

    def prompt(self, input: dict[str, str]) -> list[dict[str, str]]:
        """The messages of one row."""
        return [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": input["document"]},
        ]

    def parse(self, input: dict[str, str], response: Any) -> dict[str, str]:
        """The row that is kept."""
        return {"id": input["id"], "record": response.model_dump_json()}


def main() -> None:
    """Extract every document."""
    settings = fair()
    extraction = Extraction(
        model_name=MODEL,
        backend="openai",
        batch=True,
        generation_params={"max_completion_tokens": MAX_OUTPUT_TOKENS},
        backend_params={
            "base_url": settings.base_url,
            "api_key": API_KEY,
            "batch_size": settings.batch_size,
            "batch_check_interval": settings.poll_seconds,
        },
    )
    rows = [{"id": name, "document": text} for name, text in settings.texts()]
    answered = extraction(rows, working_dir=str(settings.state))
    tell(settings.output, [(row["id"], True) for row in answered.dataset])


if __name__ == "__main__":
    main()
