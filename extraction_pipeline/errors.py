"""The errors a user can meet, as one tree.

Every error carries a sentence that names the cause and, where there is one, a remedy. Neither may
hold document text, a prompt, an answer or a key: both are logged and shown.

    ExtractionPipelineError
    ├── ConfigurationError      a setting, a file or a command line is wrong
    │   └── CollectionError     a collection's YAML is wrong (names file, line and remedy)
    ├── SourceError             a source cannot be listed, or one file of it cannot be read
    ├── StoreError              the content-addressed store cannot be read or written
    ├── LedgerError             the database refuses, or holds something that must not be
    │   ├── DatabaseUnavailable the database cannot be reached
    │   └── RecipeChanged       a used extraction version no longer means what it meant
    └── ProviderError           a call to a provider failed (see `providers.errors`)
"""

import errno

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})
"""Numbers of an OSError that says that nothing more can be written to a disk or a file."""


class ExtractionPipelineError(Exception):
    """Base of all errors of this project: one line of cause, and one of remedy.

    `exit_code` is what a command that ends with the error gives to its shell.
    """

    exit_code = 1

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}" if self.remedy else self.message


class ConfigurationError(ExtractionPipelineError):
    """A setting, a file or a command line is wrong; nothing was done."""

    exit_code = 2


class CollectionError(ConfigurationError):
    """A collection's YAML is wrong. The message names the file and the line."""


class SourceError(ExtractionPipelineError):
    """A source cannot be listed, or a file of it cannot be read. Never taken for an empty one."""

    exit_code = 4


class StoreError(ExtractionPipelineError):
    """The content-addressed store cannot be read or written, or holds other bytes than named."""

    exit_code = 4


class StoreUnavailable(StoreError):
    """The store cannot be reached: nothing is known of what it holds."""


class LedgerError(ExtractionPipelineError):
    """The ledger refuses a change, or holds something that must not be."""

    exit_code = 3


class DatabaseUnavailable(LedgerError):
    """The database cannot be reached; nothing was changed."""


class RecipeChanged(LedgerError):
    """An extraction version that was used before now has another recipe."""

    exit_code = ConfigurationError.exit_code  # the collection's YAML is what has to be corrected
