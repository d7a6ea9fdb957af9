"""Ask the library: what of it fits before whoever answers?"""

import argparse
import json
import sys

from console import decoded, page, run, safe
from context import cost, pack
from database import StoreError
from library import APPLIES, ROLES
from store import open_snapshot, refresh

MESSAGES = {
    "found": "found: the parts above",
    "nothing_found": "nothing_found: no part shares a word with the question",
    "nothing_fits": "nothing_fits: parts were found, but none is within the budget",
}


def ask(question: str, options: argparse.Namespace) -> dict:
    """Search for the question, and pack what was found into the budget.

    The keys are those that `--json` prints: query, status, rows, skipped (ids),
    used and budget (characters).
    """
    if options.limit < 1:
        raise ValueError(f"--limit must be 1 or more, not {options.limit}")
    with open_snapshot(options.db) as snapshot:
        rows = snapshot.search(
            question, options.role, options.limit, dict(options.where)
        )
    chosen = pack(rows, options.budget)
    return {
        "query": question,
        "status": "found" if chosen else "nothing_fits" if rows else "nothing_found",
        "rows": chosen,
        "skipped": [row["id"] for row in rows if row not in chosen],
        "used": sum(map(cost, chosen)),
        "budget": options.budget,
    }


def publish(options: argparse.Namespace) -> dict:
    """Publish the library if its files have changed; report it to whoever runs this."""
    if published := refresh(options.db, options.library, options.rebuild):
        version, faults = published
        for fault in faults:
            print(safe(f"left out: {fault}"), file=sys.stderr)
        print(f"published version {version}", file=sys.stderr)
    return {"status": "published"}


def show(result: dict) -> None:
    """Print a result for a person."""
    for row in result["rows"]:
        print(page(f"== {row['title']}: {row['heading']} ({cost(row)} characters)"))
        print(page(f"{row['url']}\n\n{row['body']}\n"))
    print(MESSAGES[result["status"]])
    print(
        f"{result['used']} of {result['budget']} characters used,"
        f" no room for {len(result['skipped'])} more"
    )


def fact(argument: str) -> tuple[str, str]:
    """Read a fact of the command line, `key=value`, as `applies` has it in a file."""
    if not (match := APPLIES.fullmatch(decoded(argument).strip())):
        raise argparse.ArgumentTypeError(f"{argument!r} is not one fact key=value")
    return match[1], match[2]


def main() -> int:
    """Answer one question; exit status 1 for a fault of input, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        description="Find what fits a question.",
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
    parser.add_argument("--budget", type=int, default=2400, help="characters to fill")
    parser.add_argument("--limit", type=int, default=4, help="parts to look at")
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
    options = parser.parse_args()
    if len(dict(options.where)) < len(set(options.where)):
        parser.error("--where gives two values for one fact: it has only one")
    if "" in (value for name, value in vars(options).items() if name != "question"):
        parser.error("an option is empty: name something, or leave the option out")
    if options.question is None and not options.rebuild:
        parser.error("a question is needed, or --rebuild")
    try:
        if options.question == "-":  # for shells that eat quotes or letters
            with open(0, "rb") as source:
                options.question = source.read().decode("utf-8-sig").strip()
        result = publish(options)
        if options.question is not None:
            result = ask(options.question, options)
    except (ValueError, OSError) as error:
        print(safe(f"error: {error}"), file=sys.stderr)
        reason = error.reason if isinstance(error, StoreError) else "bad_input"
        result = {"status": "error", "reason": reason, "message": str(error)}
    if options.json:
        print(safe(json.dumps(result, ensure_ascii=False)))
    elif "rows" in result:
        show(result)
    return 1 if result["status"] == "error" else 0


if __name__ == "__main__":
    run(main)
