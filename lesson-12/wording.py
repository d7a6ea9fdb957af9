"""How a text reads: its words, whatever only belongs to their presentation."""

import re
from functools import lru_cache
from typing import NamedTuple
from unicodedata import category, decomposition, normalize

# Written without spaces between words: Han and kana, with their punctuation.
CHINESE = (
    "\u3001-\u303f\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
NUMERALS = "〇零一二三四五六七八九十百千万萬亿億两兩"
HYPHENS = r"\-\u2010\u2011\ufe63\uff0d"
DASHES = HYPHENS + r"\u2012-\u2015\u2212\u2e3a\u2e3b\ufe58"
APOSTROPHES = "'\u2018-\u201b\u2039\u203a\u02bc"
QUOTATION = '"\u201c-\u201f\u00ab\u00bb\u300c-\u300f\u301d-\u301f'
UNSEEN = "\u00ad\u200b\u200e\u200f\u2060\ufe00-\ufe0f\ufeff"  # such as soft hyphens
# What belongs to the character before it: accents, vowel signs, joiners, skin tones.
MARKS = "\u200c\u200d\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef" + "".join(
    f"{chr(run.start())}-{chr(run.end() - 1)}"
    for run in re.finditer("M+", "".join(category(chr(c))[0] for c in range(0x1F000)))
)

LETTER = rf"[^\W_{CHINESE}]"
LETTERS = rf"(?:{LETTER}[{MARKS}]*)+"
NUMBER = rf"(?:[{NUMERALS}][{MARKS}]*)+"
# One space in a number, 3 260 or 3 万. Where a line or an item ends, two numbers meet.
SPACED = (
    r"(?<=\d)[ \u00a0\u2009\u202f]"
    r"(?:(?<!\d{4}.)(?=\d{3}(?!\d))|(?=[十百千万萬亿億]))"
)
# What a word or a number goes on after: don't, non-refundable, old_path, 4.80, 3–5. All
# other dashes stand between the words of a sentence, with spaces beside them or not.
INSIDE = rf"{APOSTROPHES}{UNSEEN}*_`~\\"
JOINT = (
    rf"(?:[{INSIDE}]|[{HYPHENS}](?![{DASHES}])(?:\n[ >]*)?)+"
    rf"|(?<=\d)(?:[.,:/]|[{INSIDE}{DASHES}]+)(?=\d)|{SPACED}"
)
WORD = re.compile(
    rf"\s+|(?:(?<![\w)])[±+{DASHES}]?\.?(?=\d))?"
    rf"{LETTERS}(?:(?:{JOINT}){LETTERS})*(?:(?<=\d)(?:{SPACED})?{NUMBER})?"
    rf"(?:[+#%％]+(?!{LETTER}))?"
    rf"|{NUMBER}(?:点{NUMBER})*"
    rf"|\S[{MARKS}]*(?:(?<=\u200d)[^\w\s][{MARKS}]*)*"
)

EMPHASIS = "(?:[*_]|~~)+"
# Where a link leads, behind its text: ](/page_(old).php "Title") or ](</a page>).
TARGET = (
    r"\]\(\s*+(?:<[^<>\n]*>|(?:[^()\s]|\([^()\s]*\))*+)"
    r"(?:\s++(?:\"[^\"]*\"|'[^']*'))?\s*+\)"
)
# A piece of text that is read as a whole, in Markdown: white space with the marks of
# quotations and items at line starts; emphasis, code and links; one character.
PIECE = re.compile(
    rf"(?P<inside>{SPACED})"
    r"|(?P<space>(?:\A(?![\W_]*\d)|\\?\s*\n)[\s>]*(?:[-*+][ \t]+)?|\s+)"
    # No marks: 2*3, old_path, 5 * 3 and `*`.
    rf"|(?P<kept>(?<={LETTER}|[{MARKS}]){EMPHASIS}(?={LETTER})"
    rf"|(?<!\S){EMPHASIS}(?!\S)|(?<=`){EMPHASIS}(?=`))"
    rf"|(?P<gone>`+|{EMPHASIS}|!?\[(?=[^][]*{TARGET})|{TARGET})"
    rf"|(?P<hyphen>[{HYPHENS}](?![{DASHES}]))|(?P<dash>[{DASHES}]+)|(?P<dots>\.{{3}})"
    rf"|[\u1100-\u11ff]+|\\[!-/:-@[-`{{-~]|\S[{MARKS}]*"
)
READ_AS = {"inside": "", "space": "\n", "gone": "", "hyphen": "-", "dots": "…"}
ALIKE = str.maketrans({"ё": "е", "Ё": "Е"})
# Forms of a character that say no more than the plain one. Not ² or ½: 10² is not 102.
FORMS = "<wide> <narrow> <small> <vertical> <initial> <medial> <final> <isolated>"
# White space beside Chinese means nothing, but between two numbers.
NEEDLESS = re.compile(
    rf"(?!(?<=[\d{NUMERALS}])\n[{NUMERALS}])(?:(?<=[{CHINESE}])\n|\n(?=[{CHINESE}]))"
)


class Piece(NamedTuple):
    """A word or a character as it is read, and where it stands: `body[start:end]`."""

    text: str
    start: int
    end: int


@lru_cache(maxsize=128)
def words(text: str, dash: str | None) -> tuple[Piece, ...]:
    """Cut a text into words, numbers, white space and single other characters.

    Each Chinese character is a word by itself, but a Chinese number is one word. With
    a `dash`, texts that differ only in presentation give the same words, and dashes are
    read as this one: where it is a hyphen, it makes one word of two.
    """
    signs = (
        [Piece(sign, place, place + 1) for place, sign in enumerate(text)]
        if dash is None
        else fold(text, dash)
    )
    return tuple(
        Piece(word[0], signs[word.start()].start, signs[word.end() - 1].end)
        for word in WORD.finditer("".join(sign.text for sign in signs))
    )


def fold(text: str, dash: str) -> list[Piece]:
    """Return the characters of a text without their presentation, one in each piece.

    Dashes longer than a hyphen are read as `dash`, white space as a line end. A
    character of the source that is read as several, or several that are read as one,
    are never taken apart: the pieces name the place of all.
    """
    signs: list[Piece] = []
    for piece in PIECE.finditer(text):
        plain = (
            dash if piece.lastgroup == "dash" else READ_AS.get(piece.lastgroup or "")
        )
        for sign in plain_form(piece[0]) if plain is None else plain:
            if sign != "\n" or not signs or signs[-1].text != "\n":
                signs.append(Piece(sign, *piece.span()))
    needless = {
        gap.start() for gap in NEEDLESS.finditer("".join(sign.text for sign in signs))
    }
    return [sign for number, sign in enumerate(signs) if number not in needless]


@lru_cache(maxsize=1 << 14)
def plain_form(text: str) -> str:
    """Return a character with its accents in the one form in which it is compared."""
    composed = normalize("NFC", re.sub(r"\A\\(?=.)", "", text))
    spelled = "".join(normalize("NFKC", c) if is_form(c) else c for c in composed)
    plain = re.sub(f"[{UNSEEN}]", "", normalize("NFC", spelled).translate(ALIKE))
    return re.sub(f"[{QUOTATION}]", '"', re.sub(f"[{APOSTROPHES}]", "'", plain))


def is_form(character: str) -> bool:
    """Return whether a character is another form of one or more plain ones.

    Full-width letters are, ligatures too (UAX 44, Decomposition_Type); superscripts,
    fractions and circled numbers are not.
    """
    kind = decomposition(character).partition(" ")[0]
    ligature = kind == "<compat>" and normalize("NFKC", character).isalpha()
    return ligature or (kind != "" and kind in FORMS.split())
