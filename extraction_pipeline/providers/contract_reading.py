"""What a provider itself says of its contract, and how that differs from what is relied on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from extraction_pipeline.providers.contract import ContractText
from extraction_pipeline.providers.http import HttpClient

_SEARCH_FAILS = "a search for a job of unknown outcome fails, so that such a job is held"


@dataclass(frozen=True)
class Difference:
    """One way in which a provider differs from what its adapter relies on, and what it means.

    One that does not `breaks` changes nothing that is done, and is told all the same.
    """

    what: str
    meaning: str
    breaks: bool = True

    def __str__(self) -> str:
        return f"{self.what}: {self.meaning}"


@dataclass(frozen=True)
class Reading:
    """What was looked at, and how it differs. `text` is the provider's own description of it,
    `None` where the provider publishes none or no longer knows it."""

    subject: str
    differences: tuple[Difference, ...]
    text: ContractText | None = None


def read_first_page(
    http: HttpClient, path: str, form: type[BaseModel], params: Mapping[str, str]
) -> tuple[Reading, ...]:
    """The cheapest call that proves address, key and form: one entry of a list. It changes nothing.

    Raises `ProviderError`.
    """
    differences = http.get(path, _faults(form), params).value
    return (Reading(f"GET {path}", differences),)


def _faults(form: type[BaseModel]) -> Callable[[bytes], tuple[Difference, ...]]:
    def read(body: bytes) -> tuple[Difference, ...]:
        try:
            form.model_validate_json(body)
        except ValidationError as error:
            return tuple(
                Difference(
                    f"{'.'.join(str(part) for part in fault['loc']) or 'the answer'}: "
                    f"{fault['msg'][:1].lower()}{fault['msg'][1:]}",
                    _SEARCH_FAILS,
                )
                for fault in error.errors(include_input=False, include_url=False)
            )
        return ()

    return read
