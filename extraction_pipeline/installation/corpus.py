"""Which documents the shipped collections read: a folder that the home remembers.

A command that forgot it would read the samples instead, and take all other documents for vanished.
"""

import os
from collections.abc import Callable
from pathlib import Path

VARIABLE = "EXTRACTION_CORPUS"
_MEMORY = "corpus"


def choose_corpus(
    home: Path, given: Path | None, tell: Callable[[str], None], *, collection: str | None = None
) -> str | None:
    """Set the environment to the corpus: the given one, that of the environment, or the one that
    was used last in this home. A folder becomes an absolute path without links, so that it means
    the same wherever a command is called. `None`: the samples.

    For one `collection`, a remembered folder counts only if it has documents of it.
    """
    memory = home / _MEMORY
    named = str(given) if given is not None else os.environ.get(VARIABLE)
    if named:
        corpus = named if "://" in named else str(Path(named).expanduser().resolve())
        _remember(memory, corpus)
    elif memory.exists():
        corpus = os.fsdecode(memory.read_bytes())
        if collection is not None and not _has(corpus, collection):
            return None
        tell(f"Documents of {corpus}, as before; --corpus or {VARIABLE} names others.")
    else:
        return None
    os.environ[VARIABLE] = corpus
    return corpus


def _has(corpus: str, collection: str) -> bool:
    return "://" in corpus or Path(corpus, collection).is_dir()


def _remember(memory: Path, corpus: str) -> None:
    draft = memory.with_name(f"{memory.name}.{os.getpid()}")
    draft.write_bytes(os.fsencode(corpus))
    draft.replace(memory)
