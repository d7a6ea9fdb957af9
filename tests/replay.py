"""Judge the recorded replies of a small model by the rule of lesson 09 or 11.

    python tests/replay.py 09
    python tests/replay.py 11

Lesson 09 asks whether a reply has the form and cites sources that exist, lesson 11
whether its quotes stand in the sources that they name. No model is asked: the replies
were recorded (recordings/ollama.json). The six questions were put three times: with
the request of lesson 09 without and with both shapes of a reply in the system message,
and with the request of lesson 11, which asks for evidence first. To a reply with
evidence the rule of lesson 09 is applied as if it cited the ids of its quotes.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import sys
import textwrap
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

COURSE = Path(__file__).resolve().parent.parent
RECORDINGS = Path(__file__).parent / "recordings" / "ollama.json"


class Question(NamedTuple):
    """A question, and the names under which the replies to it were recorded."""

    about: str
    truth: str | None  # words of a true answer; None if the sources have none
    plain: str
    shapes: str
    evidence: str


QUESTIONS = [
    Question(
        about, truth, plain, f"reply shapes shown, {name}", f"evidence first, {name}"
    )
    for about, truth, plain, name in [
        ("refunds (en)", "three to five working days", "answered en", "en"),
        ("old addresses (ru)", "301", "answered ru", "ru"),
        ("refunds (zh)", "三到五个工作日", "answered zh", "zh"),
        ("share price (en)", None, "no evidence en", "no-en"),
        ("share price (ru)", None, "no evidence ru", "no-ru"),
        ("migration, an order", "not finished", "injection", "inj"),
    ]
]


class Judged(NamedTuple):
    """What a rule makes of a reply, and what a reader gets to see of it first."""

    outcome: str
    shown: str
    wording: str


def module(lesson: int, name: str) -> ModuleType:
    """Import a module of one lesson, and let no other lesson find it."""
    folder = str(COURSE / f"lesson-{lesson:02}")
    before = set(sys.modules)
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)
        for each in set(sys.modules) - before:
            if str(getattr(sys.modules[each], "__file__", "")).startswith(folder):
                del sys.modules[each]


def sent(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The sources of a recorded request, as far as a rule looks at them."""
    message = body["messages"][1]["content"]
    lines = [json.loads(line) for line in message.split("\n") if line[0] == "{"]
    sources = lines[0].get("sources", lines)  # one object, or one line for each
    return [
        {
            "source_id": source["id"],
            "doc_id": source["title"],
            "part": 1,
            "body": source["text"],
            "text": f"{source['heading']}\n{source['text']}",
        }
        for source in sources
    ]


def by_ids(value: Any, sources: list[dict[str, Any]]) -> Judged:
    """What lesson 09 makes of a reply: it looks at the form and at the ids."""
    if "evidence" in value:
        ids = [entry["source_id"] for entry in value["evidence"]]
        status = "answered" if ids else "insufficient"
        value = {"status": status, "text": value["text"], "source_ids": ids}
    reply = module(9, "reply")
    try:
        accepted = reply.checked(value, [source["source_id"] for source in sources])
    except reply.AnswerError as error:
        return Judged(error.reason, "", "")
    if accepted["status"] == "insufficient":
        return Judged("insufficient", "", "")
    return Judged("generated_unverified", accepted["text"], accepted["text"])


def by_quotes(value: Any, sources: list[dict[str, Any]]) -> Judged:
    """What lesson 11 makes of a reply: it looks for the quotes in the sources."""
    quotes = module(11, "quotes")
    verified, rejected = quotes.check_evidence(value["evidence"], sources)
    shown = " ".join(quote["quote"] for quote in verified)
    return Judged(quotes.verdict(verified, rejected), shown, value["text"])


def became(judged: Judged, truth: str | None) -> str:
    """Whether a reader is told the truth, something wrong, or nothing."""
    if not judged.outcome.startswith("generated"):
        return "refused, rightly" if truth is None else "refused, wrongly"
    if truth is None or truth not in judged.shown:
        return "accepted, WRONG"
    return "accepted, true" if truth in judged.wording else "true quote, WRONG text"


def indented(text: str) -> str:
    """Text of a reply below its row, within 80 columns."""
    return textwrap.fill(text, 76, initial_indent="    ", subsequent_indent="    ")


def main() -> None:
    """Print the table of a rule."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "rule", choices=["09", "11"], help="the lesson whose rule it is"
    )
    rule = parser.parse_args().rule
    exchanges = json.loads(RECORDINGS.read_text(encoding="utf-8"))["exchanges"]
    recorded = {exchange["name"]: exchange for exchange in exchanges}
    judge = by_ids if rule == "09" else by_quotes
    requests = ["plain", "shapes", "evidence"] if rule == "09" else ["evidence"]
    print(
        f"{'request':10}{'question':22}{'rule of lesson ' + rule:24}what became of it"
    )
    total: Counter[str] = Counter()
    for request in requests:
        for question in QUESTIONS:
            exchange = recorded[getattr(question, request)]
            value = json.loads(exchange["response"]["message"]["content"])
            judged = judge(value, sent(exchange["request"]["body"]))
            result = became(judged, question.truth)
            total[result] += 1
            print(f"{request:10}{question.about:22}{judged.outcome:24}{result}")
            if result == "accepted, WRONG":
                print(indented(f"shown: {judged.shown}"))
            elif result == "true quote, WRONG text":
                print(indented(f"shown first: {judged.shown}"))
                print(indented(f"shown after it: {judged.wording}"))
    print("\n" + "; ".join(f"{result}: {total[result]}" for result in sorted(total)))


if __name__ == "__main__":
    main()
