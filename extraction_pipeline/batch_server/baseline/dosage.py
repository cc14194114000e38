"""How documents write doses, routes and frequencies, as bounded patterns."""

import re

_AMOUNT = (
    r"(?:[0-9][0-9,]{0,8}(?:\.[0-9]{1,4})?|one-half|one|two|three|four|half|a)"
    r"(?:\s?(?:-|\u2013|to|/|or)\s?(?:[0-9][0-9,]{0,8}(?:\.[0-9]{1,4})?|one|two|three|four))?"
)
_UNIT = (
    r"(?:mg|mcg|ug|µg|gm|grams?|g|kg|ml|cc|units?|unt|iu|meq|mmol|%|puffs?|sprays?|drops?|gtts?"
    r"|tabs?|tablets?|caps?|capsules?|pills?|patch(?:es)?|cans?|inhalations?|teaspoons?"
    r"|tablespoons?|tsp|tbsp|amps?|vials?|suppositor(?:y|ies)|lozenges?|packets?|(?:more )?doses?)"
)
_PER = r"(?:/(?:kg|m2|ml|hr?|hour|min(?:ute)?|day|dose|actuat|[0-9.]{1,4}\s?ml|lb)){0,3}"
DOSE = re.compile(rf"(?<![\w.]){_AMOUNT}[\s-]?{_UNIT}(?![A-Za-z]){_PER}(?![A-Za-z])", re.IGNORECASE)
ROUTE = re.compile(
    r"(?<![\w.])(?:(?:iv|io|im|in|po|sc|sq)(?:/(?:iv|io|im|in|po|sc|sq)){1,3}"
    r"|p\.\s?o\.|po|by mouth|per os|orally|oral|i\.v\.|iv|intravenous(?:ly)?|i\.m\.|im"
    r"|intramuscular(?:ly)?|s\.c\.|sc|sub-?q|sub-?cutaneous(?:ly)?|s\.l\.|sl|sublingual(?:ly)?"
    r"|p\.r\.(?!n)|per rectum|rectally|topical(?:ly)?|inhaled|via nebulizer|by nebulizer|neb"
    r"|intranasal(?:ly)?|intra-?arterial(?:ly)?|transdermal(?:ly)?|metered dose inhaler"
    r"|(?:in|to) (?:each|both|the (?:left|right)|left|right) (?:eyes?|ears?|nostrils?)"
    r"|each (?:eye|nostril)|via (?:peg|g-?tube|ng)(?: tube)?|io)(?![\w])",
    re.IGNORECASE,
)
_COUNT = r"(?:[0-9]{1,2}|one|two|three|four|five|six)"
_RANGE = rf"{_COUNT}(?:\s?(?:-|\u2013|to)\s?{_COUNT})?"
_ONE_FREQUENCY = (
    rf"(?:(?:once|twice|{_RANGE}\s(?:times?|x))\s(?:(?:a|per|each)\s)?"
    r"(?:daily|day|week|month|weekly|monthly|nightly)"
    rf"|every\s(?:(?:other|{_RANGE}|{_COUNT}\s\({_COUNT}\)\sto\s{_COUNT}\s\({_COUNT}\))\s)?"
    r"(?:hours?|hrs?|h|minutes?|min|days?|weeks?|months?|morning|evening|night|bedtime)"
    rf"|q\.?\s?{_RANGE}\s?(?:hours?|hrs?\.?|h\.?|min(?:utes)?|days?)"
    r"|q\.?\s?(?:day|daily|week|wk|month|hour|h\.?s\.?|o\.?d\.?|d\.?|a\.?m\.?|p\.?m\.?|a\.?c\.?)"
    r"|b\.?\s?i\.?\s?d\.?|t\.?\s?i\.?\s?d\.?|q\.?\s?i\.?\s?d\.?|h\.?s\.?|b\.?d\.?|o\.?d\.?|t\.?d\.?s\.?|q\.?d\.?s\.?|nocte|daily|nightly|weekly"
    r"|monthly|hourly|at bedtime|at night|in the (?:morning|evening)|before meals|with meals"
    r"|(?:a|per|each)\sday|/day|stat)"
)
_AS_NEEDED = r"(?:p\.?\s?r\.?\s?n\.?|as needed)"
FREQUENCY = re.compile(
    rf"(?<![\w.])(?:{_ONE_FREQUENCY}(?:,?\s{{1,3}}{_AS_NEEDED})?|{_AS_NEEDED})(?![A-Za-z])",
    re.IGNORECASE,
)
