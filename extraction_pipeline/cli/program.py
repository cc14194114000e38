"""How this program was called, so that commands in hints can be pasted."""

import re
import shlex
import shutil
import sys
from pathlib import Path

_NAME = "extraction-pipeline"
_HINT = re.compile(rf"(?<![\w./-]){_NAME}(?= [a-z])")


def program() -> str:
    """What to type for this program: its name, or where a shell does not find it, as it was
    called."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m extraction_pipeline.cli"
    found = shutil.which(_NAME)
    if found is not None and Path(found).resolve() == called.resolve():
        return _NAME
    return shlex.quote(str(called))


def with_program(text: str) -> str:
    """A text with the commands in it as they can be typed here."""
    return _HINT.sub(lambda _: program(), text)
