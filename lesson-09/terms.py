"""From text to terms: when do two words count as the same?"""

import re
import unicodedata
from functools import lru_cache

# Written without spaces, so cut into pairs: Han with 々〆〇, kana with ー, Hangul.
PAIRED = (
    "\u3005-\u3007\u3031-\u3035\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u1100-\u11ff\uac00-\ud7ff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# Vowel signs, from Hebrew to Khmer, belong to their word although \w leaves them out.
SIGNS = "".join(
    c for c in map(chr, range(0x483, 0x1D00)) if unicodedata.category(c)[0] == "M"
)
# Stress accents, soft hyphens, joiners, variants: nobody types them in a question.
UNTYPED = re.compile(
    "[\u00ad\u0300-\u036f\u200c-\u200f\u2060\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]"
)
LETTER = rf"[^\W_{PAIRED}]"
RUN = re.compile(rf"([{PAIRED}]+)|({LETTER}+(?:[{SIGNS}]+{LETTER}*)*)(?:['’]s\b)?")

# Forms of a word meet when the rules leave the same stem of them. Each rule says what
# goes and what comes instead; all are tried in this order. C: consonant, V: vowel.
C, V = "[^aeiouy]", "[aeiouy]"
DERIVED = (
    "al|[ae]n[ct][ei]?|[eo]r|ic|[ai]bl[ei]?|e?ment|ism|at(?:e|or)?|iti|ous|ive?|i[sz]e?"
    "|(?<=[st])ion|(?<=r)i"
)
ENGLISH = [
    (r"(ss|sh|ch|x)es$", r"\1"),
    (r"(?<=..[^su])(?<!^new)s$", ""),
    (r"(?<=..)ied?$", "y"),
    (r"bly$|bility$", "ble"),
    (r"(?<=....)(?<!pp)(?:ly|ful|ness)$", ""),
    (rf"^({C}*{V}[^aeiouywx])(?:ed|ing)$", r"\1e"),  # hoping, but not hopping
    (rf"({V}.*)(?:(?<!e)ed|ing)$", r"\1"),
    (rf"({V}{C}+ee)d$", r"\1"),  # agreed
    (rf"(?<=.{C})y$", "i"),
    (rf"^({C}*{V}+{C}+{V}+{C}.*?)(?:{DERIVED})+$", r"\1"),
    (r"(?<=..)([bdfglmnprt])\1$", r"\1"),  # cancelled
    (rf"^(?!{C}*{V}{C}e$)(..+[^e])e$", r"\1"),
]
PARTICIPLE = "[иы]вш|ующ|енн|(?<=[ая])(?:ем|нн|вш|ющ|щ)"
ADJECTIVE = "[иы]ми|[еиоы][ейм]|[ео](?:го|му)|[иы]х|[оеую]ю|[ая]я"
VERB = (
    "(?<=[ая])(?:л[аио]?|н[аоы]?|[ей]те|е[мт]|ют|ть|ешь|й|в|вши)|[иы]л[аио]?|у?ю|ят"
    "|енн?[аоы]?|[еуи]йте|ите|[еу]й|[иы]м|у[ею]т|[иы]ть?|ишь|[иы]в(?:ши)?"
)
NOUN = "и?[ая](?:ми?|х)|[ео]в|[ьи]?[еюя]|[еи]?и|и?е[йм]|[ои]й|ом|[аоуыьй]"
RUSSIAN = [
    ("^([^аеиоуыэюя]*[аеиоуыэюя])", r"\1|"),  # no ending reaches across this bar
    ("с[ья]$", ""),
    (f"(?:(?:{PARTICIPLE})?(?:{ADJECTIVE})|{VERB}|{NOUN})$", ""),
    (r"(?<=\w\w\w)(?:енн)?ость?$", ""),
    ("(?<=н)н$|[иь]$", ""),
    (r"(?<=\w)[оеьй](?=[кц]$)", ""),  # ссылок, ссылка; конец, конца
    (r"\|", ""),
]


def terms(text: str) -> list[str]:
    """Return the terms of `text` in their order, for matching only, never for display.

    A term is a run of letters and digits (NFKC, case folded, ё as е), reduced to its
    stem if it is an English or a Russian word. Chinese, Japanese and Korean runs give
    overlapping pairs of characters; a single character stands for itself.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("ё", "е")
    found = []
    for paired, word in RUN.findall(UNTYPED.sub("", folded)):
        if word:
            found.append(stem(word))
        else:
            last = max(1, len(paired) - 1)
            found.extend(paired[start : start + 2] for start in range(last))
    return found


@lru_cache(maxsize=1 << 18)
def stem(word: str) -> str:
    """Return what the forms of an English or Russian word have in common.

    Russian follows the Snowball stemmer, English comes near to it (snowballstem.org,
    Porter 1980). Words with digits, of one or two or of over 40 letters stay whole.
    """
    left = word
    if word.isalpha() and 3 <= len(word) <= 40:
        for old, new in ENGLISH if word.isascii() else RUSSIAN:
            left = re.sub(old, new, left)
    return left or word
