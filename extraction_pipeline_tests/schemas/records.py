"""Answers as a model would give them, for fictional documents."""

from typing import Any


def discharge_answer() -> dict[str, Any]:
    return {
        "chief_complaint": "Shortness of breath",
        "admission_date": {"as_written": "3 May 2031", "iso": "2031-05-03"},
        "discharge_date": {"as_written": "05/09/31", "iso": None},
        "encounter_date": None,
        "diagnoses": [{"name": "Heart failure", "evidence": ["decompensated heart failure"]}],
        "procedures": [],
        "medications": [
            {
                "name": "Furosemide",
                "dose": "40 mg",
                "route": "p.o.",
                "frequency": "b.i.d.",
                "evidence": ["Furosemide 40 mg p.o. b.i.d."],
                "status": "changed",
            }
        ],
        "allergies": [
            {"substance": "Penicillin", "reactions": ["rash"], "evidence": ["Penicillin: rash"]}
        ],
        "hospital_course": "Diuresed with good effect.",
        "condition_at_discharge": "",
        "disposition": "Home with services",
        "follow_up": None,
    }


def protocol_answer() -> dict[str, Any]:
    return {
        "title": "Severe hypoglycaemia",
        "issuing_body": "Brackwater Ambulance Trust",
        "version": "4",
        "published_date": {"as_written": "2030", "iso": None},
        "reviewed_date": None,
        "effective_date": {"as_written": "2031-01-01", "iso": "2031-01-01"},
        "population": "Adults",
        "indications": [{"text": "Glucose below 3", "evidence": []}],
        "contraindications": None,
        "steps": [
            {"text": "Recheck glucose", "evidence": ["Recheck glucose"]},
            {"text": "Give glucose", "evidence": ["Give glucose"]},
            {"text": "Recheck glucose", "evidence": ["Recheck glucose"]},
        ],
        "medications": [
            {
                "name": "Glucagon",
                "dose": "1 mg",
                "route": "IM",
                "frequency": None,
                "evidence": ["Glucagon 1 mg IM"],
            }
        ],
        "monitoring": [{"text": "Glucose every 10 minutes", "evidence": []}],
    }


def payer_answer() -> dict[str, Any]:
    return {
        "payer": "Larkspur Health Plan",
        "policy_number": "LHP-114",
        "policy_title": "Home oxygen",
        "effective_date": None,
        "service": "Home oxygen",
        "codes": [
            {"system": "HCPCS", "code": "E1390", "description": None, "evidence": ["HCPCS E1390"]}
        ],
        "criteria": [{"text": "SpO2 of 88% or less", "evidence": ["SpO2 of 88% or less"]}],
        "limitations": [],
        "decision": "covered_with_criteria",
        "decision_reason": None,
        "documents_required": None,
    }


ANSWERS = {
    "discharge_summary": discharge_answer,
    "care_protocol": protocol_answer,
    "payer_note": payer_answer,
}
