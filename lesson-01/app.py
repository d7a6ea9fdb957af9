"""The desk: choose notes for an answer when there is not room for all of them."""

import argparse
import os
import sys
from dataclasses import dataclass
from io import TextIOWrapper


@dataclass(frozen=True)
class Fragment:
    """One note that may be put before whoever answers.

    `relevance` orders the optional notes, higher first; a `required` note is
    never weighed against others.
    """

    name: str
    text: str
    relevance: float
    required: bool = False


def assemble(
    fragments: list[Fragment], budget: int
) -> tuple[list[Fragment], list[str], int]:
    """Choose the notes whose texts together fit into `budget` characters.

    Returns the chosen notes, the names of the skipped ones and the characters
    used. Required notes come first, in the given order. Optional ones are tried
    by relevance falling, then shorter, then by name; one that does not fit is
    skipped and the next is tried.

    Raises ValueError if the budget is not a whole number from 0 on, or if the
    required notes alone are longer than it.
    """
    # A bool is an int in Python, but True is not a number of characters.
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 0:
        raise ValueError(f"the budget must be a whole number from 0 on, not {budget!r}")
    chosen = [fragment for fragment in fragments if fragment.required]
    used = sum(len(fragment.text) for fragment in chosen)
    if used > budget:
        names = ", ".join(fragment.name for fragment in chosen)
        raise ValueError(
            f"{used} characters are required ({names}),"
            f" {used - budget} more than the budget of {budget}"
        )
    optional = [fragment for fragment in fragments if not fragment.required]
    optional.sort(key=lambda note: (-note.relevance, len(note.text), note.name))
    skipped = []
    for fragment in optional:
        if used + len(fragment.text) <= budget:
            chosen.append(fragment)
            used += len(fragment.text)
        else:
            skipped.append(fragment.name)
    return chosen, skipped, used


FRAGMENTS = {
    "en": [
        Fragment("rule", "An answer names its source.", 0, required=True),
        Fragment("refunds", "Refunds take three to five working days.", 10),
        Fragment("history", "Yesterday we spoke about old addresses.", 5),
        Fragment("delivery", "Delivery takes two days.", 1),
    ],
    "ru": [
        Fragment("правило", "Ответ называет свой источник.", 0, required=True),
        Fragment("возврат", "Деньги возвращают за три–пять рабочих дней.", 10),
        Fragment("история", "Вчера говорили о старых адресах.", 5),
        Fragment("доставка", "Доставка занимает два дня.", 1),
    ],
    "zh": [
        Fragment("规则", "回答注明来源", 0, required=True),
        Fragment("退款", "退款一般三到五个工作日到账", 10),
        Fragment("历史", "昨天谈到了旧地址", 5),
        Fragment("配送", "配送需要两天", 1),
    ],
}
# Two budgets that can be met and one that cannot, for each language.
BUDGETS = {"en": (70, 110, 20), "ru": (80, 110, 20), "zh": (20, 30, 3)}
# The words of the report: head, chosen, skipped, comma, "none", refusal.
WORDS = {
    "en": ("budget={}, used={}", "chosen: ", "left out: ", ", ", "none", "too small: "),
    "ru": (
        "бюджет={}, занято={}",
        "выбрано: ",
        "не вошло: ",
        ", ",
        "нет",
        "малый бюджет: ",
    ),
    "zh": ("预算={}，已用={}", "选入：", "暂未选入：", "、", "无", "小预算："),
}


def show(lang: str, budget: int) -> bool:
    """Print what `budget` characters hold; False if the required notes do not fit."""
    head, chosen_label, skipped_label, comma, none, refusal = WORDS[lang]
    try:
        chosen, skipped, used = assemble(FRAGMENTS[lang], budget)
    except ValueError as error:
        # Only a budget that is one can be too small.
        print(f"{refusal if budget >= 0 else ''}{error}")
        return False
    print(head.format(budget, used))
    print(chosen_label + (comma.join(note.name for note in chosen) or none))
    print(skipped_label + (comma.join(skipped) or none))
    for note in chosen:
        print(f"[{note.name}] {note.text}")
    return True


def main() -> int:
    """Run the demonstration; exit status 1 if a budget given by hand is too small."""
    # Redirected or not, whatever the locale: a note must print on every machine.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    parser = argparse.ArgumentParser(description="Choose notes for a budget.")
    parser.add_argument("--lang", choices=FRAGMENTS, default="en")
    parser.add_argument("--budget", type=int, metavar="N", help="characters to fill")
    options = parser.parse_args()
    if options.budget is not None:
        return 0 if show(options.lang, options.budget) else 1
    for budget in BUDGETS[options.lang]:
        show(options.lang, budget)
        print()
    return 0


if __name__ == "__main__":
    try:
        status: int | str = main()
        print(end="", flush=True)  # now, where a full disk is still noticed
    except OSError as error:
        # Whoever read this stopped (as `head` does), or the disk is full. Python writes
        # what is left once more at its end: let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0 if isinstance(error, BrokenPipeError) else f"error: {error}"
    sys.exit(status)  # a text goes to stderr, and the status is 1
