"""Fictional documents in the styles that hospitals, agencies and payers write."""

DICTATED = """\
ADMITTING DIAGNOSES: 1.  Shortness of breath.
2.  Fever.
DISCHARGE DIAGNOSES: 1.  Community-acquired pneumonia, which responded to treatment.
2.  Hypertension.
3.  History of gout.
PROCEDURE PERFORMED: Bronchoscopy, right lower lobe.
HOSPITAL COURSE: Ms. Quill was admitted on 03/14/2031 with a cough.  She was given ceftriaxone
1 g IV daily and improved.  She was discharged home on 03/19/2031.
CONDITION ON DISCHARGE: Stable.
ALLERGIES: Sulfa, which causes hives and itching, and latex.
DISCHARGE MEDICATIONS: 1.  Amoxicillin 500 mg p.o. t.i.d. for 5 days.
2.  Lisinopril increased to 20 mg p.o. daily.
3.  Brackenol drops, 2 drops in each eye at bedtime.
4.  Stop ibuprofen.
DISCHARGE INSTRUCTIONS: Rest.  Follow up with Dr. Teasel in 2 weeks.
"""

RUNNING = """\
DISCHARGE DIAGNOSIS: Cellulitis of the left leg, also history of psoriasis, and obesity.
HOSPITAL COURSE: The patient received IV vancomycin for three days.  He was discharged to
Larkspur Nursing Home on p.o. Keflex.  He was advised to use ibuprofen two tabs t.i.d.
FOLLOWUP: With me in the office in 10 days.
"""

TABLES = """\
Discharge Summary
Patient: Wren Alder
Admitted: 2031-02-03
Discharged: 2031-02-07
Discharge disposition: Home with services

ALLERGIES AND ADVERSE REACTIONS
Substance | Reaction | Status
Codeine | Nausea | Active

DISCHARGE DIAGNOSIS
Name | Dates | Status
Appendicitis | Onset: 2 Feb 2031 | Active

DISCHARGE MEDICATIONS
Medication | Dose | Route | Frequency | Status
Paracetamol 500mg tablet | 1 g | oral | QID PRN | Active

PROCEDURES
No procedure information is available.
"""

NOTHING_KNOWN = """\
DISCHARGE DIAGNOSIS
Asthma

ALLERGIES
No known drug allergies

MEDICATIONS
None

PROCEDURES
No information.

FOLLOW-UP: ________
"""

CASE_REPORT = """\
A 44-year-old woman with rheumatoid arthritis presented with fever. There was no history of
pulmonary tuberculosis. She was treated with intravenous piperacillin 4 g every 8 hours and
prednisolone. She underwent a splenectomy.
"""

PROTOCOL = """\
# Seizures in adults

## Issued by

Brackwater Ambulance Trust

Version: 4.2

## Effective date

1 January 2031

## Target population

Adults with a seizure of more than five minutes

## Contraindications

None

## Treatment

### First line

1. Protect the airway.
2. Give midazolam 10 mg IM.
3. If the seizure goes on, give lorazepam 4 mg IV, once.
4. Reassess every five minutes.
"""

POLICY = """\
Larkspur Health Plan Medical Policy
Continuous glucose monitoring
Policy Number: LHP-2031-07
Effective Date: January 15, 2031
CPT Codes: 95249, 95250 and HCPCS A4239

COVERAGE RATIONALE

Continuous glucose monitoring is medically necessary when ALL of these criteria are met:

1. The member has diabetes that is treated with insulin.
2. The member was seen within the last
   six months.

LIMITATIONS

- No more than one sensor every 10 days.

DOCUMENTATION REQUIREMENTS

- Office notes of the last visit.
"""

DENIAL = """\
Payer: Larkspur Health Plan
Case Number: 2031-00417
Member ID: 555

Denial Reason: Not medically necessary.

Requested Service:
- CPT 72148 (MRI of the lumbar spine)

ICD-10-CM codes
M54.50\tLow back pain, unspecified
"""
