"""The measuring script, on a corpus of two fictional documents."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from extraction_pipeline_tests.batch_server_baseline import notes

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "baseline_quality.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        timeout=60,
    )


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "gold").mkdir()
    (tmp_path / "dictated.txt").write_text(notes.DICTATED)
    (tmp_path / "case.txt").write_text(notes.CASE_REPORT)
    (tmp_path / "empty.txt").write_text("")
    gold = [
        {
            "doc": "dictated.txt",
            "set": "mtsamples",
            "annotated_fields": [
                "diagnoses",
                "medications",
                "allergies",
                "admission_date",
                "disposition",
                "follow_up",
            ],
            "fields": {
                # One right, one missed; two more are reported and not annotated.
                "diagnoses": ["pneumonia", "Pleural effusion"],
                "medications": [
                    {"name": "Amoxicillin", "dose": "500 mg", "route": None, "frequency": "t.i.d."},
                    {"name": "Lisinopril", "dose": "10 mg", "route": "p.o.", "frequency": None},
                ],
                "allergies": None,
                "admission_date": "03/14/2031",
                "disposition": "discharged home",
                "follow_up": None,
            },
            "optional_medications": ["Brackenol"],
            "must_not_report": ["latex", "warfarin"],
        },
        {
            "doc": "case.txt",
            "set": "maccrobat",
            "annotated_fields": ["medications"],
            "fields": {
                "medications": [
                    {"name": "piperacillin", "dose": None, "route": None, "frequency": None},
                    {"name": "antibiotics", "dose": None, "route": None, "frequency": None},
                ]
            },
        },
        {
            "doc": "dictated.txt",
            "set": "ccda",
            "annotated_fields": ["medications"],
            "fields": {
                # Coded names match on the first word; a null detail is not annotated here.
                "medications": [{"name": "Amoxicillin trihydrate", "dose": None, "route": "p.o."}]
            },
        },
        {"doc": "empty.txt", "set": "mtsamples", "annotated_fields": [], "fields": {}},
    ]
    lines = "\n".join(json.dumps(line) for line in gold)
    (tmp_path / "gold" / "gold.jsonl").write_text(lines + "\n")
    return tmp_path


def test_counts_follow_the_rules_of_scoring(corpus: Path):
    done = run(str(corpus), "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    first = result["mtsamples"]
    assert (first["documents"], first["unreadable"], first["traps"]) == (1, 1, 1)
    counts = {
        name: (field["right"], field["reported"], field["annotated"])
        for name, field in first["fields"].items()
    }
    assert counts == {
        "diagnoses": (1, 3, 2),
        # The optional one and the stopped one count on neither side.
        "medications": (2, 2, 2),
        "medications.dose": (1, 2, 2),
        "medications.route": (1, 2, 1),
        "medications.frequency": (1, 2, 1),
        "allergies": (0, 2, 0),
        "admission_date": (1, 1, 1),
        "disposition": (1, 1, 1),
        "follow_up": (0, 1, 0),
    }
    coded = result["ccda"]["fields"]
    assert (coded["medications"]["right"], coded["medications"]["reported"]) == (1, 3)
    assert coded["medications.route"]["precision"] == 1.0
    assert "medications.dose" not in coded
    second = result["maccrobat"]["fields"]["medications"]
    assert second["precision"] is None
    assert second["recall"] == 0.5


def test_the_table_and_the_choice_of_a_set(corpus: Path):
    done = run(str(corpus), "--set", "maccrobat")
    assert done.returncode == 0, done.stderr
    assert "maccrobat: 1 documents" in done.stdout
    assert "mtsamples" not in done.stdout


def test_a_folder_without_gold_is_refused_in_a_line(tmp_path: Path):
    done = run(str(tmp_path))
    assert done.returncode == 2
    assert "no gold/gold.jsonl" in done.stderr
    assert "Traceback" not in done.stderr
