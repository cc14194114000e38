"""The headings of discharge summaries and clinical notes."""

import re

from extraction_pipeline.batch_server.baseline.headings import Vocabulary, concept, words_of

HISTORY = "history"
ADMISSION_DATE = "admission_date"
DISCHARGE_DATE = "discharge_date"
ENCOUNTER_DATE = "encounter_date"
ALLERGIES = "allergies"
ADMISSION_DIAGNOSES = "admission_diagnoses"
DIAGNOSES = "diagnoses"
FURTHER_DIAGNOSES = "further_diagnoses"
PROBLEMS = "problems"
DISCHARGE_MEDICATIONS = "discharge_medications"
HOSPITAL_MEDICATIONS = "hospital_medications"
MEDICATIONS = "medications"
PROCEDURES = "procedures"
CHIEF_COMPLAINT = "chief_complaint"
COURSE = "course"
CONDITION = "condition"
DISPOSITION = "disposition"
FOLLOW_UP = "follow_up"
INSTRUCTIONS = "instructions"
ASSESSMENT = "assessment"
OTHER = "other"
"""What no field is read from, and what ends the section before it."""

_DRUGS = "medications medication meds medicines prescriptions"
_DIAGNOSES = "diagnosis diagnoses dx"

VOCABULARY = Vocabulary(
    concepts=(
        concept(
            HISTORY,
            "past family social surgical",
            "history",
            companions="medical psychiatric procedures problems",
        ),
        concept(ADMISSION_DATE, "admitted"),
        concept(ADMISSION_DATE, "admission admit", "date", companions="time"),
        concept(DISCHARGE_DATE, "discharged"),
        concept(DISCHARGE_DATE, "discharge", "date", companions="time"),
        concept(ENCOUNTER_DATE, "date", "service visit encounter exam examination consultation"),
        concept(
            ALLERGIES,
            "allergies allergy intolerances",
            companions="adverse reactions alerts drug food known list intolerance " + _DRUGS,
        ),
        concept(
            ADMISSION_DIAGNOSES,
            "admission admitting preoperative preliminary provisional",
            _DIAGNOSES,
            companions="pre",
        ),
        concept(
            FURTHER_DIAGNOSES,
            "secondary additional other associated comorbid",
            f"{_DIAGNOSES} conditions",
            companions="discharge medical",
        ),
        concept(
            DIAGNOSES,
            _DIAGNOSES,
            companions="discharge final principal primary encounter postoperative post operative "
            "active chronic current main list clinical",
        ),
        concept(
            PROBLEMS,
            "problems problem",
            companions="list active current medical chronic unresolved",
        ),
        concept(
            DISCHARGE_MEDICATIONS,
            "discharge home",
            _DRUGS,
            companions="instructions list going new current take start continue",
        ),
        concept(
            HOSPITAL_MEDICATIONS,
            "inpatient admission administered preoperative",
            _DRUGS,
            companions="during stay",
        ),
        concept(
            MEDICATIONS,
            _DRUGS,
            companions="current list active outpatient take new given prescribed",
        ),
        concept(
            PROCEDURES,
            "procedure procedures operation operations surgeries",
            companions="performed done principal list surgical major operative invasive other "
            "secondary treatment treatments this during stay",
        ),
        concept(
            CHIEF_COMPLAINT, "complaint complaints", companions="chief presenting main reason visit"
        ),
        concept(
            CHIEF_COMPLAINT,
            "reason",
            "admission visit hospitalization consult consultation referral encounter",
            companions="chief complaint",
        ),
        concept(COURSE, "course", companions="brief history stay clinical summary by problem"),
        concept(COURSE, "summary progress", companions="stay brief clinical"),
        concept(CONDITION, "condition", companions="discharge final"),
        concept(DISPOSITION, "disposition destination", companions="discharge final"),
        concept(
            FOLLOW_UP,
            "followup appointments appointment review",
            companions="care instructions plan plans discharge future",
        ),
        concept(
            INSTRUCTIONS,
            "instructions instruction plan plans recommendations",
            companions="discharge care treatment further",
        ),
        concept(
            ASSESSMENT,
            "assessment assessments impression impressions",
            companions="plan clinical",
        ),
        concept(
            OTHER,
            "results result vitals vital immunizations immunization functional mental cognitive "
            "goals goal concerns encounters payers payer insurance equipment examination "
            "laboratory imaging presentation lifestyle stopped directives",
            companions="health history section list status signs medical physical social tests "
            "test studies diagnostic data last filed discharge key worth knowing other advance "
            "medications medicines providers",
        ),
    ),
    fillers=words_of("the of at on upon for and or to from hospital s in a patient is"),
    introductions={
        DISCHARGE_MEDICATIONS: re.compile(
            r"prescribed[^.]{0,40}medication"
            r"|\b(?:discharge|home|following)[^.]{0,20} medications?[^.]{0,30}$"
        ),
        PROCEDURES: re.compile(r"procedures?[^.]{0,40}(?:conducted|performed|done)\W*$"),
    },
)
