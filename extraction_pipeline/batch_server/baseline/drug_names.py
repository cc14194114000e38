"""Names of common drugs, for text in which no heading says that it lists medications.

Generic names by the stems that the WHO gives to their classes, and a list of names in everyday
use, generic and brand. It is a help for rules, not a formulary: a drug that is missing here is
still found under a heading or beside its dose.
"""

import re
from functools import lru_cache

_STEMS = (
    "cillin cycline floxacin mycin oxacin azole conazole vudine vir ciclovir tegravir navir "
    "pril prilat sartan olol alol dipine afil statin vastatin fibrate gliptin glitazone gliflozin "
    "glutide formin gliclazide azosin triptan setron prazole tidine terol tropium sone solone "
    "nide lukast dronate mab ximab zumab tinib platin rubicin taxel tecan poside bicin citabine "
    "trexate trexed parin xaban gatran grel grelor plase caine curonium barbital azepam azolam "
    "zepam zodone oxetine faxine triptyline ipramine peridol azine apine peridone gabalin setine "
    "thiazide semide actone lactone amide profen coxib fenac oxicam codone morphone fentanil "
    "mustine sulfan lidomide stigmine dopa giline antel bendazole quine artemether nidazole "
    "cef ceph penem bactam zolid virin stine trozole oxifen golide bergoline lamide feron"
).split()

_NAMES = (
    "acetaminophen adenosine amphotericin bicarbonate bleomycin bortezomib corticosteroids cytarabine desmopressin advair albuterol aldactone allopurinol ambien amiodarone amoxicillin "
    "ampicillin antabuse aricept aspirin atenolol ativan atorvastatin atropine augmentin avandia "
    "avelox azathioprine azithromycin baclofen bactrim bacitracin benadryl bisacodyl bumex "
    "buspirone caffeine calcitriol captopril carafate carbamazepine carboplatin cardizem "
    "carvedilol cefazolin ceftriaxone celebrex celexa cephalexin chemotherapy cipro ciprofloxacin "
    "cisplatin citalopram clindamycin clonazepam clonidine clopidogrel codeine colace colchicine "
    "combivent compazine coreg cosopt coumadin cozaar crestor cyclophosphamide cyclosporine "
    "cymbalta dapsone darvocet decadron demerol depakote dexamethasone dextrose diazepam dicloxacillin "
    "diflucan digoxin dilantin dilaudid diltiazem diovan diphenhydramine dobutamine docusate "
    "dopamine doxycycline dulcolax duoneb duragesic effexor eliquis enalapril enoxaparin "
    "ephedrine epinephrine epogen erythromycin escitalopram esomeprazole estradiol famotidine "
    "fentanyl ferrous flagyl flexeril flomax flonase flovent fluconazole fluoxetine fluticasone "
    "folate folic fosamax furosemide gabapentin gentamicin glipizide glucagon glucophage "
    "glucotrol glyburide guaifenesin haldol haloperidol heparin humalog humulin "
    "hydralazine hydrochlorothiazide hydrocodone hydrocortisone hydroxychloroquine hydroxyurea "
    "hyzaar immunoglobulin interferon ibuprofen imdur imodium imuran infliximab insulin iron isoniazid isosorbide kcl "
    "keflex keppra ketoconazole ketorolac klonopin kytril labetalol lactulose lamictal lanoxin "
    "lantus lasix leucovorin levaquin levemir levetiracetam levofloxacin levothyroxine lexapro "
    "lidocaine linezolid lipitor lisinopril lithium lomotil loperamide lopressor loratadine "
    "landiolol levodopa lorazepam lortab losartan lotemax lotensin lotrel lovastatin lovenox lyrica macrobid "
    "magnesium mannitol meclizine medrol megace melatonin meloxicam meperidine mesalamine "
    "metamucil methimazole metformin methadone methotrexate methylprednisolone metoclopramide metolazone "
    "metoprolol metronidazole midazolam miralax mirtazapine monopril montelukast morphine motrin "
    "mucinex mucomyst multivitamin mycophenolate naloxone namenda naproxen naprosyn narcan "
    "neurontin nexium niacin niaspan nicotine nifedipine nitrofurantoin nitroglycerin "
    "norco norepinephrine normodyne nortriptyline norvasc novolog nystatin olanzapine omeprazole "
    "ondansetron oxycodone oxycontin oseltamivir oxaliplatin oxytocin pantoprazole paracetamol paxil pentasa pepcid "
    "percocet phenazopyridine phenergan phenobarbital phenytoin piperacillin pirarubicin piribedil plaquenil plavix "
    "pravachol pravastatin prednisolone prednisone premarin prevacid prilosec prinivil procardia "
    "procrit prograf promethazine propofol propranolol protonix proventil prozac pulmicort "
    "quetiapine quinine qvar ranitidine reglan remeron restoril risperdal risperidone ritalin "
    "rituximab robitussin rocephin roxicet salbutamol senna senokot septra seroquel sertraline "
    "sildenafil simvastatin sinemet singulair spironolactone spiriva sucralfate sulfasalazine "
    "sulfonylurea symbicort synthroid tacrolimus tamiflu tamoxifen tegretol temazepam tenormin "
    "terazosin theophylline thiamine tirofiban topamax toprol toradol tramadol trazodone triazolam "
    "tolvaptan tricor tylenol ultram unasyn ursodiol valium valtrex vancomycin vasotec ventolin verapamil vincristine "
    "versed viagra vicodin vioxx voltaren warfarin wellbutrin xanax xarelto xeloda xopenex zantac "
    "zaroxolyn zestril zetia zithromax zocor zofran zoloft zosyn zyprexa zyrtec zyvox"
).split()

_NOT_DRUGS = frozenset(
    "magazine quarantine outside inside beside alongside bedside baseline discipline pipeline "
    "creatinine hormone testosterone progesterone aldosterone acetone".split()
)

_TOKEN = re.compile(r"[A-Za-z][A-Za-z\-]{2,30}")
_ENDINGS = tuple(sorted({stem for stem in _STEMS if len(stem) >= 4}))
_KNOWN = frozenset(_NAMES)


@lru_cache(maxsize=16_384)
def is_drug_word(word: str) -> bool:
    """Whether `word` is a known drug's name or carries the stem of a class of drugs."""
    lowered = word.lower()
    if lowered in _KNOWN:
        return True
    return len(lowered) >= 7 and lowered not in _NOT_DRUGS and lowered.endswith(_ENDINGS)


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
