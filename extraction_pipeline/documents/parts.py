"""Parts of a source, so that several workers can read it at once. Pure."""

import hashlib
import re
from dataclasses import dataclass

_KEY = re.compile(r"(?P<collection>.+) (?P<number>[1-9][0-9]*) of (?P<parts>[1-9][0-9]*)")


@dataclass(frozen=True)
class Part:
    """One of so many parts. An entry is in just one of them, by its path alone, whatever else the
    source holds; `document_sources` are parted in the same way."""

    number: int
    parts: int

    def holds(self, path: str) -> bool:
        """Whether the entry of this path is in this part."""
        digest = hashlib.md5(path.encode("utf-8", "surrogatepass"), usedforsecurity=False)
        return int(digest.hexdigest()[:7], 16) % self.parts == self.number - 1

    def key(self, collection: str) -> str:
        """The name of this part of a collection."""
        return f"{collection} {self.number} of {self.parts}"


WHOLE = Part(1, 1)


def part_keys(collection: str, parts: int) -> list[str]:
    """The names of all parts of a collection."""
    return [Part(number, parts).key(collection) for number in range(1, parts + 1)]


def part_of_key(key: str) -> tuple[str, Part]:
    """The collection and the part of a name. Raises `ValueError`."""
    found = _KEY.fullmatch(key)
    if found is None or not 1 <= int(found["number"]) <= int(found["parts"]):
        raise ValueError(f"{key} is no part of a collection")
    return found["collection"], Part(int(found["number"]), int(found["parts"]))
