"""Finds a document type by the reference that a collection's YAML gives.

| reference             | where it is looked for                                                   |
|-----------------------|--------------------------------------------------------------------------|
| `discharge_summary`   | the module of that name in this package: its `DOCUMENT_TYPE`             |
| `my_package.my_type`  | that module: its `DOCUMENT_TYPE`                                         |
| `my_types:Referral`   | that module: the `DocumentType` called `Referral`, or the one whose    |
|                       | model is the class `Referral`                                            |

A type outside this package needs no entry anywhere; its module has to be installed, on PYTHONPATH,
or in the current folder, which is looked through last.
"""

import importlib
import os
import pkgutil
import re
import sys
from contextlib import suppress
from types import ModuleType

from extraction_pipeline import schemas
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.schemas.document_type import DocumentType

__all__ = ["DocumentType", "document_type_names", "find_document_type"]

_REFERENCE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?::([A-Za-z_]\w*))?", re.ASCII)
_DEFAULT_NAME = "DOCUMENT_TYPE"


def find_document_type(reference: str) -> DocumentType:
    """The document type that `reference` names; see the table above. Imports its module.

    Raises `ConfigurationError` with a remedy where there is no such module, where it cannot be
    imported, or where it holds no such type.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise ConfigurationError(f"{reference!r} names no document type.", remedy=_remedy())
    module_name, attribute = match.groups()
    if attribute is None and "." not in module_name:
        if module_name not in document_type_names():
            raise ConfigurationError(
                f"There is no document type {module_name!r}.", remedy=_remedy()
            )
        module_name = f"{schemas.__name__}.{module_name}"
    else:
        _look_here_last()
    return _type_in(_import(module_name), attribute or _DEFAULT_NAME)


def document_type_names() -> tuple[str, ...]:
    """The names of the types that this package holds, sorted."""
    return tuple(
        sorted(
            info.name
            for info in pkgutil.iter_modules(schemas.__path__)
            if hasattr(importlib.import_module(f"{schemas.__name__}.{info.name}"), _DEFAULT_NAME)
        )
    )


def _look_here_last() -> None:
    with suppress(FileNotFoundError):  # the folder was removed
        here = os.getcwd()  # noqa: PTH109
        if here not in sys.path:
            sys.path.append(here)


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ConfigurationError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigurationError(
                f"The document type's module {name} was not found.",
                remedy="Install it, add its folder to PYTHONPATH, or start in that folder.",
            ) from error
        raise _broken(name, error) from error
    except Exception as error:
        # A user's module can fail in any way; whatever it was, the user is told which module.
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"The document type's module {name} cannot be imported ({type(error).__name__}: {error}).",
        remedy=f"See it with: python -c 'import {name}'.",
    )


def _type_in(module: ModuleType, attribute: str) -> DocumentType:
    found = getattr(module, attribute, None)
    if isinstance(found, DocumentType):
        return found
    for candidate in vars(module).values():
        if isinstance(candidate, DocumentType) and candidate.model is found:
            return candidate
    raise ConfigurationError(
        f"The module {module.__name__} has no document type {attribute}.",
        remedy=f"Add to it {_DEFAULT_NAME} = DocumentType(name=..., model=..., "
        "schema_version=..., instructions=...).",
    )


def _remedy() -> str:
    return (
        f"Use one of {', '.join(document_type_names())}, or name your own as module.path or "
        "module:Name."
    )
