"""Ask the library, and get an answer that names its sources, or a refusal."""

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from textwrap import indent

from answer import BACKENDS, answer
from console import decoded, page, run, safe
from database import StoreError, default_db
from journal import history, last_entry
from library import APPLIES, ROLES
from operations import add_operations, operate, show_operation, wanted
from receipts import make_receipt, save_receipt
from store import refresh

MESSAGES = {
    "sources_only": "these parts were found; they are not a generated answer",
    "quoted": "word for word from the library; no model was asked",
    "generated_quoted": "a model chose these quotes; all of them stand in the sources",
    "generated_unverified": "a model chose these quotes; others could not be verified",
    "insufficient": "no answer; what was found and looked at does not answer this",
    "nothing_found": "no answer; nothing was found that is about this",
    "nothing_fits": "no answer; parts were found, but none is within the budget",
}


def ask(question: str, options: argparse.Namespace) -> dict:
    """Answer the question; the keys are `query` and those of `answer`.

    With `--receipt` what the answer rests on is saved to a new file.
    """
    if options.limit < 1:
        raise ValueError(f"--limit must be 1 or more, not {options.limit}")
    result = answer(
        question,
        options.role,
        dict(options.where),
        options.budget,
        backend=options.backend,
        limit=options.limit,
        path=options.db,
    )
    result = {"query": question, **result}
    if options.receipt:
        settings = {
            **{k: v for k, v in os.environ.items() if k.startswith("ANSWER_")},
            **{name: getattr(options, name) for name in ("limit", "budget", "where")},
            "backend": options.backend or os.environ.get("ANSWER_BACKEND") or "sources",
        }
        try:
            receipt = make_receipt(result, options.role, settings, options.db)
            save_receipt(receipt, options.receipt)
        except (ValueError, OSError) as error:
            # The answer has taken its time: it is shown all the same.
            told = f"no receipt: {error}; {result.get('message', '')}".rstrip("; ")
            result = {"reason": "no_receipt", **result, "message": told}
    return result


def publish(options: argparse.Namespace) -> dict:
    """Publish the library if its files have changed; report it to whoever runs this."""
    before = last_entry(options.db or default_db())
    if published := refresh(options.db, options.library, options.rebuild):
        version, faults = published
        for fault in faults:
            print(safe(f"left out: {fault}"), file=sys.stderr)
        changes = Counter(
            entry["what"]
            for entry in history(options.db or default_db())
            if entry["entry"] > before and entry["version"] == version
        )
        summary = ", ".join(f"{count} {what}" for what, count in changes.items())
        print(f"published version {version}: {summary or 'no change'}", file=sys.stderr)
    return {"status": "published"}


def show(result: dict) -> None:
    """Print a result for a person: what is quoted first, a model's words after it."""
    status = result["status"]
    outcome = result["reason"] if status == "no_sources" else status
    print(page(f"{outcome}: {MESSAGES[outcome]}\n"))
    for source in result.get("looked_at", result["sources"]):
        print(page(f"[{source['id']}] {source['title']}: {source['heading']}"))
        print(page(f"{source['url']}\n"))
        for quote in result.get("quotes", []):
            if quote["source_id"] == source["id"]:
                print(page(f"{quote['quote']}\n"))
        if status == "sources_only":
            print(page(f"{source['quote']}\n"))
    # Indented, no line of a model can pass for one of the app.
    if status.startswith("generated"):
        print(
            "in the model's own words, not verified:",
            indent(page(f"{result['answer']}\n", 76), "    "),
            sep="\n",
        )
    for entry in result.get("rejected", []):
        words = indent(page(entry.get("quote", "a quote of the model"), 76), "    ")
        print(f"rejected, {entry['reason']}:\n{words}\n")
    context = result["context"]
    cost = f"{context['tokens']} of {context['room']} tokens for question and sources"
    bound = context["unit"] == "bytes"
    print(f"at most {cost}: bytes were counted" if bound else cost)


def fact(argument: str) -> tuple[str, str]:
    """Read a fact of the command line, `key=value`, as `applies` has it in a file."""
    if not (match := APPLIES.fullmatch(decoded(argument).strip())):
        raise argparse.ArgumentTypeError(f"{argument!r} is not one fact key=value")
    return match[1], match[2]


def main() -> int:
    """Answer one question; exit status 1 for a fault of input, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        description="Answer a question from the library.",
        # To find out how wide a terminal is would load more modules than we use.
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=78),
    )
    parser.add_argument(
        "question",
        type=decoded,
        nargs="?",
        help="a question, or - to read it from input",
    )
    parser.add_argument("--library", metavar="DIR", help="a folder of Markdown files")
    parser.add_argument(
        "--budget", type=int, metavar="N", help="tokens, fewer than ANSWER_WINDOW"
    )
    parser.add_argument("--limit", type=int, default=6, help="parts to look at")
    parser.add_argument("--role", choices=ROLES, default="reader", help="who asks")
    parser.add_argument(
        "--where",
        type=fact,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a fact of the case, such as channel=overseas",
    )
    parser.add_argument("--db", metavar="FILE", help="where to keep the snapshot")
    parser.add_argument("--rebuild", action="store_true", help="publish it again")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--backend", choices=BACKENDS, help="what makes the answer")
    parser.add_argument("--receipt", metavar="FILE", help="save what it rests on")
    add_operations(parser)
    options = parser.parse_args()
    if len(dict(options.where)) < len(set(options.where)):
        parser.error("--where gives two values for one fact: it has only one")
    if "" in (value for name, value in vars(options).items() if name != "question"):
        parser.error("an option is empty: name something, or leave the option out")
    operation = wanted(options)
    if len(operation) + (options.question is not None) > 1:
        parser.error("a question or one of the operations, not more")
    if options.receipt and options.question is None:
        parser.error("a receipt needs a question")
    if options.question is None and not options.rebuild and not operation:
        parser.error("a question is needed, or --rebuild or another operation")
    try:
        if options.receipt and (
            Path(options.receipt).exists()
            or not os.access(Path(options.receipt).parent, os.W_OK)
        ):
            raise ValueError(f"{options.receipt} must be new, its folder writable")
        if options.question == "-":  # for shells that eat quotes or letters
            with open(0, "rb") as source:
                options.question = source.read().decode("utf-8-sig").strip()
        try:
            result = publish(options)
        except (ValueError, OSError) as error:
            if not operation:
                raise
            # Looking back, and taking away, must work without the folder of the files.
            print(safe(f"not published: {error}"), file=sys.stderr)
        if operation:
            result = operate(options)
        if options.question is not None:
            result = ask(options.question, options)
    except (ValueError, OSError) as error:
        reason = error.reason if isinstance(error, StoreError) else "bad_input"
        result = {"status": "error", "reason": reason, "message": str(error)}
    if "message" in result:
        print(safe(f"error: {result['message']} ({result['reason']})"), file=sys.stderr)
    if options.json:
        print(safe(json.dumps(result, ensure_ascii=False)))
    elif "query" in result:
        show(result)
    else:
        show_operation(result)
    return 1 if "message" in result else 0


if __name__ == "__main__":
    run(main)
