"""Which documents the shipped collections read: a folder that the home remembers.

A command that forgot it would read the samples instead, and take all other documents for vanished.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.documents.sources import FolderSource
from extraction_pipeline.errors import ConfigurationError, SourceError

VARIABLE = "EXTRACTION_CORPUS"
_MEMORY = "corpus"


@dataclass(frozen=True)
class Corpus:
    """A folder, as an absolute path without links, or the URL of one. `remembered` says that the
    home named it, `given` that the command line did."""

    place: str
    given: bool = False
    remembered: bool = False

    def lacks(self, collection: Collection) -> bool:
        """Whether the collection reads a folder of this corpus, and there is none."""
        source = collection.source
        if not isinstance(source, FolderSource) or source.path is None:
            return False
        folder = Path(source.path)
        return folder.is_relative_to(self.place) and not folder.is_dir()

    def lacking(self, collections: Sequence[Collection]) -> list[Collection]:
        """Those of the collections that it has no folder for. Raises `ConfigurationError` if that
        is all of them."""
        lacking = [collection for collection in collections if self.lacks(collection)]
        if len(lacking) == len(collections):
            raise ConfigurationError(
                f"{self.place} has no folder that is named after a collection.",
                remedy=f"Name one {' or '.join(one.name for one in collections)}, or another "
                "corpus with --corpus DIR.",
            )
        return lacking

    def require(self, collection: Collection) -> None:
        """Raise `SourceError` where this corpus lacks the collection's folder."""
        if self.lacks(collection):
            whose = "this home remembers" if self.remembered else "was named"
            raise SourceError(
                f"{collection.name}: the corpus that {whose}, {self.place}, has no folder for it.",
                remedy="Name the corpus that has one with --corpus DIR.",
            )

    def remember(self, home: Path) -> None:
        """Keep it in mind for later commands over this home, if the command line gave it. Only a
        command that found something in it does so: a slip must not outlive its command."""
        if self.given:
            memory = home / _MEMORY
            draft = memory.with_name(f"{memory.name}.{os.getpid()}")
            draft.write_bytes(os.fsencode(self.place))
            draft.replace(memory)


def choose_corpus(home: Path, given: Path | None, tell: Callable[[str], None]) -> Corpus | None:
    """Set the environment to the corpus: the given one, that of the environment, or the one that
    the command line gave last in this home. A folder becomes an absolute path without links, so
    that it means the same wherever a command is called. `None`: the samples.
    """
    memory = home / _MEMORY
    named = str(given) if given is not None else os.environ.get(VARIABLE)
    if named:
        place = named if "://" in named else str(Path(named).expanduser().resolve())
        corpus = Corpus(place, given=given is not None)
    elif memory.exists():
        corpus = Corpus(os.fsdecode(memory.read_bytes()), remembered=True)
        tell(f"Documents of {corpus.place}, as before; --corpus or {VARIABLE} names others.")
    else:
        return None
    os.environ[VARIABLE] = corpus.place
    return corpus
