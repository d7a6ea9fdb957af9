"""What a text consists of: its telling words, and the letters they are made of."""

import re
from collections import Counter
from math import sqrt

from terms import PAIRED_RUN, fold, terms

# Words that questions are full of and that say nothing of their subject.
COMMON = frozenset(
    re.findall(
        r"\w+",
        """
        a about after all also am an and any are as at be been before being but by can
        could did do does doing during each for from get had has have he her his how i
        if in into is it its just let may me might more most much must my need no not of
        on one only or other our out over own please same shall she should so some still
        such tell than that the their them then there these they this those through to
        too under until up use us very was we were what when where which while who whom
        whose why will with would you your
        а без бы был была были было быть в вам вас во вот все да для до его ее если есть
        еще же за и из или им их к как какая какие какое какой какую когда кому кто куда
        ли мне может можно мой моя мы на над надо нам нас наш не нет но нужен нужна
        нужно нужны о об он она они от по под почему при про с сам свой себя сколько со
        так также там то того тоже только тот ты у уже чего чем что чтобы эта эти это я
        """,
    )
)
COMMON_TERMS = {term for word in COMMON for term in terms(word)}
COMMON_CHARACTERS = frozenset(
    "的了是在有和也就都不而及与着或一个这那哪谁什么吗呢吧啊怎样为何几多少"
    "能会要可以被把从到对于我你他她它们很还时候"
)
WORD = r"[^\W\d_]{3,}"
ENOUGH = 0.24  # the least strength of evidence; measured on the course's questions


def features(text: str, strict: bool = True) -> Counter[str]:
    """Count what a text consists of: its terms, and each three letters in a row.

    Common words are left out, and pairs with a common Chinese character (if not
    `strict`, those of two). The letters are those inside words: forms of a word that
    share no term still share some.
    """
    telling = [
        term
        for term in terms(text)
        if term not in COMMON_TERMS
        # Only pairs have such characters, and words are longer.
        and (
            len(term) > 2
            or COMMON_CHARACTERS.isdisjoint(term)
            or not (strict or COMMON_CHARACTERS.issuperset(term))
        )
    ]
    return Counter(
        telling
        + [
            word[i : i + 3]
            for word in re.findall(WORD, PAIRED_RUN.sub(" ", fold(text)))
            if word not in COMMON
            for i in range(len(word) - 2)
        ]
    )


def is_evidence(question: str, text: str) -> bool:
    """Return whether a text has enough of a question to be about it.

    With a and b for how often a feature stands in the two, and A and B for all of
    theirs, sum(√(ab)) / √(AB) is their cosine (for square roots of counts), and
    sum(√(ab)) / A tells how much of the question the text has. The first is unfair to
    long texts and the second to short ones; the strength of evidence is their geometric
    mean, in which the cosine counts twice: sum(√(ab)) / (A^(2/3) B^(1/3)). A text that
    has all of the question is evidence in any case. Where a question has no feature,
    both are counted without `strict`.
    """
    # 会员, member, has a common character. If nothing else is asked, it has to count.
    strict = bool(features(question))
    asked, found = features(question, strict), features(text, strict)
    shared = sum(sqrt(count * found[feature]) for feature, count in asked.items())
    # Half of the pairs of a Chinese sentence join the end of a word to the start of
    # the next: the other text need not have them.
    needed = ENOUGH / 2 if PAIRED_RUN.search(question) else ENOUGH
    return shared > 0 and (
        asked.keys() <= found.keys()
        or shared >= needed * asked.total() ** (2 / 3) * found.total() ** (1 / 3)
    )
