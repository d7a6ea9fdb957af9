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
DASHES = r"\-\u2010-\u2015\u2212\u2e3a\u2e3b\ufe58\ufe63\uff0d"
APOSTROPHES = "'\u2018-\u201b\u2039\u203a\u02bc"
QUOTATION = '"\u201c-\u201f\u00ab\u00bb\u300c-\u300f\u301d-\u301f'
UNSEEN = "\u00ad\u200b\u200e\u200f\u2060\ufe00-\ufe0f\ufeff"  # such as soft hyphens
# What belongs to the character before it: accents, vowel signs, joiners, skin tones.
MARKED = "".join(
    "M" if category(chr(code))[0] == "M" else "." for code in range(0x1F000)
)
MARKS = "\u200c\u200d\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef" + "".join(
    f"{chr(run.start())}-{chr(run.end() - 1)}" for run in re.finditer("M+", MARKED)
)

LETTER = rf"[^\W_{CHINESE}]"
LETTERS = rf"(?:{LETTER}[{MARKS}]*)+"
NUMBER = rf"(?:[{NUMERALS}][{MARKS}]*)+"
# What a word or a number goes on after: don't, non-refundable, old_path, 4.80, 3 260.
JOINT = (
    rf"[{APOSTROPHES}{DASHES}{UNSEEN}*_`~\\]+"
    r"|(?<=\d)[.,:/](?=\d)|(?<=\d)(?<!\d{4})\s+(?=\d{3}(?!\d))"
)
WORD = re.compile(
    rf"\s+|(?:(?<![\w)])[±+{DASHES}](?=\d))?"
    rf"{LETTERS}(?:(?:{JOINT}){LETTERS})*(?:(?<=\d)\s?{NUMBER})?"
    rf"|{NUMBER}(?:点{NUMBER})*"
    rf"|\S[{MARKS}]*(?:(?<=\u200d)[^\w\s][{MARKS}]*)*"
)

EMPHASIS = "(?:[*_]|~~)+"
# A piece of text that is read as a whole, in Markdown: white space with the marks of
# quotations and items at line starts; emphasis, code and links; one character.
PIECE = re.compile(
    r"(?P<space>(?:\A(?![\W_]*\d)|\\?\s*\n)[\s>]*(?:[-*+][ \t]+)?|\s+)"
    # No marks: 2*3, old_path, 5 * 3 and `*`.
    rf"|(?P<kept>(?<={LETTER}|[{MARKS}]){EMPHASIS}(?={LETTER})"
    rf"|(?<!\S){EMPHASIS}(?!\S)|(?<=`){EMPHASIS}(?=`))"
    rf"|(?P<gone>`+|{EMPHASIS}|!?\[(?=[^][]*\]\()|\]\([^()\s]*\))"
    rf"|(?P<dash>[{DASHES}]+)|(?P<dots>\.{{3}})"
    rf"|[\u1100-\u11ff]+|\\[!-/:-@[-`{{-~]|\S[{MARKS}]*"
)
READ_AS = {"space": " ", "gone": "", "dash": "-", "dots": "…"}
ALIKE = str.maketrans({"ё": "е", "Ё": "Е"})
# Forms of a character that say no more than the plain one. Not ² or ½: 10² is not 102.
FORMS = "<wide> <narrow> <small> <vertical> <initial> <medial> <final> <isolated>"
# Spaces that mean nothing: beside Chinese, and between the thousands of a number.
NEEDLESS = re.compile(
    rf"(?<=[{CHINESE}]) | (?=[{CHINESE}])|(?<=\d)(?<!\d{{4}}) (?=\d{{3}}(?!\d))"
)


class Piece(NamedTuple):
    """A word or a character as it is read, and where it stands: `body[start:end]`."""

    text: str
    start: int
    end: int


@lru_cache(maxsize=32)
def words(text: str, folded: bool) -> tuple[Piece, ...]:
    """Cut a text into words, numbers, white space and single other characters.

    Each Chinese character is a word by itself, but a Chinese number is one word.
    With `folded`, texts that differ only in presentation give the same words.
    """
    signs = fold(text) if folded else [Piece(s, i, i + 1) for i, s in enumerate(text)]
    return tuple(
        Piece(word[0], signs[word.start()].start, signs[word.end() - 1].end)
        for word in WORD.finditer("".join(sign.text for sign in signs))
    )


def fold(text: str) -> list[Piece]:
    """Return the characters of a text without their presentation, one in each piece.

    A character of the source that is read as several, or several that are read as one,
    are never taken apart: the pieces name the place of all.
    """
    signs: list[Piece] = []
    for piece in PIECE.finditer(text):
        plain = READ_AS.get(piece.lastgroup or "")
        for sign in plain_form(piece[0]) if plain is None else plain:
            if sign != " " or not signs or signs[-1].text != " ":
                signs.append(Piece(sign, *piece.span()))
    gaps = NEEDLESS.finditer("".join(sign.text for sign in signs))
    needless = {gap.start() for gap in gaps}
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
