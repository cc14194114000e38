"""Names of common drugs, for text in which no heading says that it lists medications.

Generic names by the stems that the WHO gives to their classes, and a list of names in everyday
use, generic and brand. It is a help for rules, not a formulary: a drug that is missing here is
still found under a heading or beside its dose.
"""

import re
from functools import lru_cache

_MOST_CACHED_WORDS = 16_384
_TOKEN = re.compile(r"[A-Za-z][A-Za-z\-]{2,30}")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_STEMS = _words(
    "actone afil alol amide antel apine artemether azepam azine azolam azole azosin bactam "
    "barbital bendazole bergoline bicin caine ceph ciclovir cillin citabine codone conazole "
    "coxib curonium cycline dipine dopa dronate faxine fenac fentanil feron fibrate floxacin "
    "formin gabalin gatran giline gliclazide gliflozin gliptin glitazone glutide golide grel "
    "grelor ipramine lactone lamide lidomide lukast morphone mustine mycin navir nidazole "
    "nide olol oxacin oxetine oxicam oxifen parin penem peridol peridone plase platin poside "
    "prazole pril prilat profen quine rubicin sartan semide setine setron solone sone statin "
    "stigmine stine sulfan taxel tecan tegravir terol thiazide tidine tinib trexate trexed "
    "triptan triptyline tropium trozole vastatin virin vudine xaban ximab zepam zodone zolid "
    "zumab"
)
_NAMES = frozenset(
    _words(
        "acetaminophen adenosine advair albuterol aldactone allopurinol ambien amiodarone "
        "amoxicillin amphotericin ampicillin antabuse aricept aspirin atenolol ativan "
        "atorvastatin atropine augmentin avandia avelox azathioprine azithromycin bacitracin "
        "baclofen bactrim benadryl bicarbonate bisacodyl bleomycin bortezomib bumex "
        "buspirone caffeine calcitriol captopril carafate carbamazepine carboplatin cardizem "
        "carvedilol cefazolin ceftriaxone celebrex celexa cephalexin chemotherapy cipro "
        "ciprofloxacin cisplatin citalopram clindamycin clonazepam clonidine clopidogrel "
        "codeine colace colchicine combivent compazine coreg corticosteroids cosopt coumadin "
        "cozaar crestor cyclophosphamide cyclosporine cymbalta cytarabine dapsone darvocet "
        "decadron demerol depakote desmopressin dexamethasone dextrose diazepam "
        "dicloxacillin diflucan digoxin dilantin dilaudid diltiazem diovan diphenhydramine "
        "dobutamine docusate dopamine doxycycline dulcolax duoneb duragesic effexor eliquis "
        "enalapril enoxaparin ephedrine epinephrine epogen erythromycin escitalopram "
        "esomeprazole estradiol famotidine fentanyl ferrous flagyl flexeril flomax flonase "
        "flovent fluconazole fluoxetine fluticasone folate folic fosamax furosemide "
        "gabapentin gentamicin glipizide glucagon glucophage glucotrol glyburide guaifenesin "
        "haldol haloperidol heparin humalog humulin hydralazine hydrochlorothiazide "
        "hydrocodone hydrocortisone hydroxychloroquine hydroxyurea hyzaar ibuprofen imdur "
        "immunoglobulin imodium imuran infliximab insulin interferon iron isoniazid "
        "isosorbide kcl keflex keppra ketoconazole ketorolac klonopin kytril labetalol "
        "lactulose lamictal landiolol lanoxin lantus lasix leucovorin levaquin levemir "
        "levetiracetam levodopa levofloxacin levothyroxine lexapro lidocaine linezolid "
        "lipitor lisinopril lithium lomotil loperamide lopressor loratadine lorazepam lortab "
        "losartan lotemax lotensin lotrel lovastatin lovenox lyrica macrobid magnesium "
        "mannitol meclizine medrol megace melatonin meloxicam meperidine mesalamine "
        "metamucil metformin methadone methimazole methotrexate methylprednisolone "
        "metoclopramide metolazone metoprolol metronidazole midazolam miralax mirtazapine "
        "monopril montelukast morphine motrin mucinex mucomyst multivitamin mycophenolate "
        "naloxone namenda naprosyn naproxen narcan neurontin nexium niacin niaspan nicotine "
        "nifedipine nitrofurantoin nitroglycerin norco norepinephrine normodyne "
        "nortriptyline norvasc novolog nystatin olanzapine omeprazole ondansetron "
        "oseltamivir oxaliplatin oxycodone oxycontin oxytocin pantoprazole paracetamol paxil "
        "pentasa pepcid percocet phenazopyridine phenergan phenobarbital phenytoin "
        "piperacillin pirarubicin piribedil plaquenil plavix pravachol pravastatin "
        "prednisolone prednisone premarin prevacid prilosec prinivil procardia procrit "
        "prograf promethazine propofol propranolol protonix proventil prozac pulmicort "
        "quetiapine quinine qvar ranitidine reglan remeron restoril risperdal risperidone "
        "ritalin rituximab robitussin rocephin roxicet salbutamol senna senokot septra "
        "seroquel sertraline sildenafil simvastatin sinemet singulair spiriva spironolactone "
        "sucralfate sulfasalazine sulfonylurea symbicort synthroid tacrolimus tamiflu "
        "tamoxifen tegretol temazepam tenormin terazosin theophylline thiamine tirofiban "
        "tolvaptan topamax toprol toradol tramadol trazodone triazolam tricor tylenol ultram "
        "unasyn ursodiol valium valtrex vancomycin vasotec ventolin verapamil versed viagra "
        "vicodin vincristine vioxx voltaren warfarin wellbutrin xanax xarelto xeloda xopenex "
        "zantac zaroxolyn zestril zetia zithromax zocor zofran zoloft zosyn zyprexa zyrtec "
        "zyvox"
    )
)
_NOT_DRUGS = frozenset(
    _words(
        "acetone aldosterone alongside baseline bedside beside creatinine discipline hormone "
        "inside magazine outside pipeline progesterone quarantine testosterone"
    )
)


@lru_cache(maxsize=_MOST_CACHED_WORDS)
def is_drug_word(word: str) -> bool:
    """Whether `word` is a known drug's name or carries the stem of a class of drugs."""
    lowered = word.lower()
    if lowered in _NAMES:
        return True
    return len(lowered) >= 7 and lowered not in _NOT_DRUGS and lowered.endswith(_STEMS)


def drug_spans(text: str) -> list[tuple[int, int]]:
    """Where drug words stand in `text`, words that follow each other as one."""
    spans: list[tuple[int, int]] = []
    for match in _TOKEN.finditer(text):
        if is_drug_word(match[0]):
            if spans and text[spans[-1][1] : match.start()] in (" ", "-"):
                spans[-1] = (spans[-1][0], match.end())
            else:
                spans.append(match.span())
    return spans
