import sys
from pathlib import Path
from typing import Any

import pytest

from extraction_pipeline import schemas
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.schemas.document_type import DocumentType
from extraction_pipeline.schemas.registry import document_type_names, find_document_type

REFERRAL = """
from pydantic import BaseModel
from extraction_pipeline.schemas.document_type import DocumentType

class Referral(BaseModel):
    reason: str | None

class Unregistered(BaseModel):
    reason: str

{name} = DocumentType(
    name="referral", model=Referral, schema_version="referral/2", instructions="Read it."
)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def refusal(reference: str):
    with pytest.raises(ConfigurationError) as refused:
        find_document_type(reference)
    assert refused.value.remedy
    return refused.value


def test_the_shipped_types_are_found_by_name():
    assert document_type_names() == ("care_protocol", "discharge_summary", "payer_note")
    for name in document_type_names():
        found = find_document_type(name)
        assert found.name == name
        assert found.schema_version == f"{name}/1"
        assert find_document_type(name) is found


def test_one_new_module_in_the_package_is_a_new_type(tmp_path, monkeypatch):
    (tmp_path / "referral.py").write_text(REFERRAL.format(name="DOCUMENT_TYPE"))
    monkeypatch.setattr(schemas, "__path__", [*schemas.__path__, str(tmp_path)])
    try:
        assert "referral" in document_type_names()
        assert find_document_type("referral").schema_version == "referral/2"
    finally:
        sys.modules.pop(f"{schemas.__name__}.referral", None)
        if hasattr(schemas, "referral"):
            delattr(schemas, "referral")


def test_types_outside_the_package_are_found_by_module_and_name(folder: Path):
    (folder / "ward_types").mkdir()
    (folder / "ward_types" / "__init__.py").write_text("")
    (folder / "ward_types" / "letters.py").write_text(REFERRAL.format(name="DOCUMENT_TYPE"))
    (folder / "my_types.py").write_text(REFERRAL.format(name="LETTER"))
    by_module = find_document_type("ward_types.letters")
    assert by_module.name == "referral"
    assert find_document_type("ward_types.letters:DOCUMENT_TYPE") is by_module
    assert find_document_type("my_types:LETTER").name == "referral"
    assert find_document_type("my_types:Referral").model.__name__ == "Referral"
    assert "Unregistered" in refusal("my_types:Unregistered").message
    assert "DOCUMENT_TYPE" in refusal("ward_types.letters:Unregistered").remedy
    assert "module:Name" in refusal("ward_types").remedy


def test_errors_say_what_to_do(folder: Path):
    (folder / "broken_types.py").write_text("raise RuntimeError('no licence')")
    (folder / "half_types.py").write_text("import a_library_that_is_missing")
    (folder / "wrong_types.py").write_text(REFERRAL.replace('"referral/2"', '"2"').format(name="X"))
    unknown = refusal("discharge_sumary")
    assert "discharge_summary" in str(unknown)
    assert "PYTHONPATH" in str(refusal("no_such_package.types"))
    assert "no licence" in str(refusal("broken_types:X"))
    assert "a_library_that_is_missing" in str(refusal("half_types:X"))
    assert "referral/1" in str(refusal("wrong_types:X"))
    for reference in ("", "my types", "a:b:c", "../etc", "a.", ".a", "1a"):
        assert "\n" not in str(refusal(reference))


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Discharge Summary"},
        {"name": "x" * 65, "schema_version": "x" * 65 + "/1"},
        {"schema_version": "payer_note/0"},
        {"schema_version": "other/1"},
        {"instructions": " \n"},
    ],
)
def test_an_incomplete_type_is_refused(change):
    known = find_document_type("payer_note")
    parts: dict[str, Any] = {
        "name": known.name,
        "model": known.model,
        "schema_version": known.schema_version,
        "instructions": known.instructions,
    }
    DocumentType(**parts)
    with pytest.raises(ConfigurationError):
        DocumentType(**{**parts, **change})


def test_instructions_are_not_shown_by_repr():
    assert "never an instruction" not in repr(find_document_type("payer_note"))
