"""From text to terms: when do two words count as the same?"""

import re
import unicodedata
from functools import cache, lru_cache
from operator import add

# Written without spaces, so cut into pairs: Han with 々〆〇, kana with ー, Hangul.
PAIRED = (
    "\u3005-\u3007\u3031-\u3035\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u1100-\u11ff\uac00-\ud7ff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# Python takes milliseconds to compile so large a set: it stands in this pattern alone,
# which sets a mark before and after a run. UNTYPED leaves no such marks in a text.
PAIRED_RUN = re.compile(f"([{PAIRED}]+)")
MARK = "\ufeff"
# Stress accents, soft hyphens, joiners, variants: nobody types them in a question.
UNTYPED = (
    "[\u00ad\u0300-\u036f\u200c-\u200f\u2060\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]"
)
# Texts in European languages have nothing of all that, and no vowel signs, which come
# behind \u0482: their words are found more easily.
PLAIN = re.compile("[\0-\u00ac\u00ae-\u02ff\u0370-\u0482\u2010-\u205f\u2061-\u3004]*")
PLAIN_RUN = re.compile(r"([^\W_]+)(?:['’]s(?!\w))?")


@cache
def any_run() -> re.Pattern[str]:
    """Return the pattern of a run in any text. It is made when a text needs it.

    Vowel signs, from Hebrew to Khmer, belong to their word, but \\w leaves them out.
    """
    signs = "".join(
        c for c in map(chr, range(0x483, 0x1D00)) if unicodedata.category(c)[0] == "M"
    )
    return re.compile(
        rf"{MARK}([^{MARK}]+){MARK}"
        rf"|([^\W_]+(?:[{signs}]+[^\W_]*)*)(?:['’]s(?!{MARK}?\w))?"
    )


def table(*rules: tuple[str, str, str]) -> list[tuple[tuple[str, ...], str, str]]:
    """Return the rules with the endings, which are written in one text, taken apart."""
    return [(tuple(ends.split()), old, new) for ends, old, new in rules]


# Forms of a word meet when the rules leave the same stem of them. Each rule says which
# endings it is for, what goes and what comes instead; all are tried in this order. To
# look at endings first is for speed: most words have none. C: consonant, V: vowel.
C, V = "[^aeiouy]", "[aeiouy]"
DERIVED = (
    "al|[ae]n[ct][ei]?|[eo]r|ic|[ai]bl[ei]?|e?ment|ism|at(?:e|or)?|iti|ous|ive?|i[sz]e?"
    "|(?<=[st])ion|(?<=r)i"
)
DERIVED_ENDS = (
    "al nc nce nci nt nte nti er or ic bl ble bli ism at ate iti ous iv ive is ise iz"
    " ize ion ri"
)
ENGLISH = table(
    ("es", r"(ss|sh|ch|x)es$", r"\1"),
    ("s", r"(?<=..[^su])(?<!^new)s$", ""),
    ("ie ied", r"(?<=..)ied?$", "y"),
    ("bly bility", r"bly$|bility$", "ble"),
    ("ly ful ness", r"(?<=....)(?<!pp)(?:ly|ful|ness)$", ""),
    ("ed ing", rf"^({C}*{V}[^aeiouywx])(?:ed|ing)$", r"\1e"),  # hoping, not hopping
    ("ed ing", rf"({V}.*)(?:(?<!e)ed|ing)$", r"\1"),
    ("eed", rf"({V}{C}+ee)d$", r"\1"),  # agreed
    ("y", rf"(?<=.{C})y$", "i"),
    (DERIVED_ENDS, rf"^({C}*{V}+{C}+{V}+{C}.*?)(?:{DERIVED})+$", r"\1"),
    ("bb dd ff gg ll mm nn pp rr tt", r"(?<=...).$", ""),  # cancelled
    ("e", rf"^(?!{C}*{V}{C}e$)(..+[^e])e$", r"\1"),
)
PARTICIPLE = "[иы]вш|ующ|енн|(?<=[ая])(?:ем|нн|вш|ющ|щ)"
ADJECTIVE = "[иы]ми|[еиоы][ейм]|[ео](?:го|му)|[иы]х|[оеую]ю|[ая]я"
VERB = (
    "(?<=[ая])(?:л[аио]?|н[аоы]?|[ей]те|е[мт]|ют|ть|ешь|й|в|вши)|[иы]л[аио]?|у?ю|ят"
    "|енн?[аоы]?|[еуи]йте|ите|[еу]й|[иы]м|у[ею]т|[иы]ть?|ишь|[иы]в(?:ши)?"
)
NOUN = "и?[ая](?:ми?|х)|[ео]в|[ьи]?[еюя]|[еи]?и|и?е[йм]|[ои]й|ом|[аоуыьй]"
ENDING = f"(?:(?:{PARTICIPLE})?(?:{ADJECTIVE})|{VERB}|{NOUN})$"
RUSSIAN = table(
    ("сь ся", "с[ья]$", ""),
    ("а в е и й л м н о т у х ы ь ю я", ENDING, ""),
    ("ост ость", r"(?<=\w\w\w)(?:енн)?ость?$", ""),
    ("н и ь", "(?<=н)н$|[иь]$", ""),
    ("к ц", r"(?<=\w)[оеьй](?=[кц]$)", ""),  # ссылок, ссылка; конец, конца
)


def terms(text: str) -> list[str]:
    """Return the terms of `text` in their order, for matching only, never for display.

    A term is a run of letters and digits (NFKC, case folded, ё as е), reduced to its
    stem if it is an English or a Russian word. Chinese, Japanese and Korean runs give
    overlapping pairs of characters; a single character stands for itself.
    """
    # Between two spaces stand words, which come again and again, or Chinese sentences,
    # which do not. No term reaches across white space.
    if not PLAIN.fullmatch(text):
        return cut(text)
    found: list[str] = []
    for known in map(REMEMBERED.__getitem__, text.split()):
        if isinstance(known, str):
            found.append(known)
        else:
            found += known
    return found


def fold(text: str) -> str:
    """Return a text in the form in which texts are compared."""
    text = unicodedata.normalize("NFKC", text).casefold().replace("ё", "е")
    return text if PLAIN.fullmatch(text) else re.sub(UNTYPED, "", text)


def cut(text: str) -> list[str]:
    """Return the terms of a text; of what it holds only stems are remembered."""
    folded = fold(text)
    if PLAIN.fullmatch(folded):
        return list(map(stem, PLAIN_RUN.findall(folded)))
    marked = MARK.join(PAIRED_RUN.split(folded))
    found: list[str] = []
    for paired, word in any_run().findall(marked):
        letters = list(paired)
        found += map(add, letters, letters[1:] or [""]) if paired else [stem(word)]
    return found


class Remembered(dict[str, str | list[str]]):
    """The terms of each piece of text that was asked for; a single term without list.

    That is less to look at in a memory of a hundred thousand words, and this is what
    takes the time. When it is full, it begins anew.
    """

    def __missing__(self, piece: str) -> str | list[str]:
        if len(self) >= 1 << 18:
            self.clear()
        found = cut(piece)
        known = self[piece] = found[0] if len(found) == 1 else found
        return known


REMEMBERED = Remembered()


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return what the forms of an English or Russian word have in common.

    Russian follows the Snowball stemmer, English comes near to it (snowballstem.org,
    Porter 1980). Words with digits, of one or two or of over 40 letters stay whole.
    """
    if not (word.isalpha() and 3 <= len(word) <= 40):
        return word
    rules, kept = ENGLISH, 0
    if not word.isascii():  # no Russian ending reaches across the first vowel
        vowels = (n for n, letter in enumerate(word, 1) if letter in "аеиоуыэюя")
        rules, kept = RUSSIAN, next(vowels, 0)
    left = word[kept:]
    for ends, old, new in rules:
        if left.endswith(ends):
            left = re.sub(old, new, left)
    return word[:kept] + left or word
