"""A slip in a `dagster.yaml` that a person wrote is told in one line, before Dagster meets it.

So is an instance that stores in SQLite, as it is with `DAGSTER_HOME` of another project: the checks
ask PostgreSQL alone, and the records of this project would lie among those of that.
"""

import re
from pathlib import Path

import yaml
from dagster import DagsterInstance, DagsterInvalidConfigError
from dagster._core.instance.ref import InstanceRef
from dagster_postgres import PostgresEventLogStorage
from dagster_shared.check import CheckError

from extraction_pipeline.errors import ConfigurationError, ExtractionPipelineError
from extraction_pipeline.ledger.lost_database import lost_database

_UNSET = re.compile(r'environment variable "(\w+)" which is not set')
_SHOWN = re.compile(r"(?<=Found value )`[^`]*` |(?<=^Object ).* (?=is not )")
_VALUES = (
    *(' Value "', " of original value", ". Expected", ", instead got", " got ", ". Got "),
    *(". You must", "\n"),
)
"""What begins the part of Dagster's sentence that shows what was written, or all that may be."""


def require_usable_instance(folder: Path) -> None:
    """Open the instance of this folder once. Raises `ConfigurationError`, which holds no value of
    the file's, where Dagster cannot."""
    if not (folder / "dagster.yaml").exists():
        raise _stores_elsewhere(folder)  # before Dagster makes its files there
    try:
        with DagsterInstance.from_ref(InstanceRef.from_dir(str(folder))) as opened:
            if isinstance(opened.event_log_storage, PostgresEventLogStorage):
                return
        raise _stores_elsewhere(folder)
    except ExtractionPipelineError:
        raise
    except yaml.MarkedYAMLError as error:
        place = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        fault = f"it is no YAML{place}"
    except (yaml.YAMLError, UnicodeDecodeError):
        fault = "it is no YAML in UTF-8"
    except OSError as error:
        fault = error.strerror or "it cannot be read"
    except DagsterInvalidConfigError as error:
        said = error.errors[0].message if error.errors else error.message
        unset = _UNSET.search(said)
        fault = f"{unset.group(1)} is not set" if unset else _without_values(said)
    except CheckError as error:
        fault = _without_values(str(error).removeprefix("Failure condition: "))
    except Exception as error:  # noqa: BLE001
        # A section without its lines, for one, and whatever a class that is named there may raise.
        fault = f"it ends in {type(error).__name__}, as where a section lacks its lines"
        if lost_database(error) is not None:
            fault = "the database that it names cannot be reached"
    raise ConfigurationError(
        f"Dagster cannot use {folder / 'dagster.yaml'}: {fault}.",
        remedy="Mend it; one that is deleted in the state folder is written anew.",
    )


def _stores_elsewhere(folder: Path) -> ConfigurationError:
    return ConfigurationError(
        f"Dagster's instance in {folder} stores elsewhere than in PostgreSQL.",
        remedy="Unset DAGSTER_HOME, if it is that of another project, or name a folder with a "
        "dagster.yaml whose storage is that of ours; an emptied one in the state folder is written "
        "anew once it is deleted.",
    )


def _without_values(sentence: str) -> str:
    sentence = _SHOWN.sub("", sentence)
    for beginning in _VALUES:
        sentence = sentence.partition(beginning)[0]
    return sentence.strip().rstrip(".")
