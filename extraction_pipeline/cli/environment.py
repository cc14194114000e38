"""The settings of a command, and a warning for each variable that none of them is."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from extraction_pipeline.cli.output import say
from extraction_pipeline.collections.environment import referenced_names
from extraction_pipeline.collections.yaml_document import MOST_BYTES
from extraction_pipeline.installation.stack import require_reachable
from extraction_pipeline.settings import PREFIX, Settings, load_settings, variables
from extraction_pipeline.whole_file import read_whole

OTHERS = frozenset({"EXTRACTION_CORPUS"})
"""Variables that no setting is made of: this one is what the shipped collections refer to."""


def read_settings() -> Settings:
    """The settings of this process. Says which variables look like settings and are none.

    Raises `ConfigurationError` naming the variables at fault, or a state folder that nobody can
    look into.
    """
    settings = load_settings()
    require_reachable(settings.home)
    for line in unknown_variables(os.environ, settings.collections):
        say(line)
    return settings


_HOST = "_SERVICE_HOST"
_OF_A_SERVICE = re.compile(
    r"_SERVICE_(HOST|PORT(_\w+)?)|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?"
)
"""What Kubernetes writes behind the name of a service, into each pod beside it."""


def unknown_variables(environ: Mapping[str, str], collections: Sequence[Path]) -> list[str]:
    """One line for each variable that begins like a setting and is neither one nor referred to by
    a YAML in the folders of collections."""
    known = variables() | OTHERS
    services = [
        name.removesuffix(_HOST)
        for name in environ
        if name.startswith(PREFIX) and name.endswith(_HOST)
    ]
    strange = {name for name in environ if name.startswith(PREFIX)} - known
    strange -= {one for one in strange if _is_of_a_service(one, services)}
    if strange:
        known |= set(_referred_to(collections))
    return [
        f"Warning: {name} is no setting and has no effect.{_meant(name, known)}"
        for name in sorted(strange - known)
    ]


def _is_of_a_service(name: str, services: Iterable[str]) -> bool:
    return any(name.startswith(one) and _OF_A_SERVICE.fullmatch(name, len(one)) for one in services)


def _meant(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1)
    return f" Did you mean {near[0]}?" if near else ""


def _referred_to(folders: Sequence[Path]) -> Iterator[str]:
    # What cannot be read the loader names, with its remedy.
    for folder in folders:
        files: list[Path] = []
        with suppress(OSError):
            files = list(folder.glob("*"))
        for file in files:
            if file.suffix.lower() in (".yaml", ".yml"):
                with suppress(OSError):
                    text = read_whole(file, MOST_BYTES).decode(errors="replace")
                    yield from referenced_names(text)
