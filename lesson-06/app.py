"""Ask the library: what of it fits before whoever answers?"""

import argparse
import json
import sys
from dataclasses import dataclass

from console import decoded, page, run, safe
from database import StoreError
from library import APPLIES, ROLES
from store import open_snapshot, refresh


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


def ask(question: str, options: argparse.Namespace) -> dict:
    """Return those of the best parts for the question that fit the budget.

    The keys are those that `--json` prints: query, status, rows, skipped (ids),
    used and budget (characters).
    """
    if options.limit < 1:
        raise ValueError(f"--limit must be 1 or more, not {options.limit}")
    with open_snapshot(options.db) as snapshot:
        rows = snapshot.search(
            question, options.role, options.limit, dict(options.where)
        )
    candidates = [Fragment(row["id"], row["text"], row["score"]) for row in rows]
    chosen, skipped, used = assemble(candidates, options.budget)
    return {
        "query": question,
        "status": "found" if chosen else "nothing_fits" if skipped else "nothing_found",
        "rows": [row for note in chosen for row in rows if row["id"] == note.name],
        "skipped": skipped,
        "used": used,
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
        print(page(f"== {row['title']}: {row['heading']}\n{row['url']}\n"))
        print(page(f"{row['body']}\n"))
    print(
        f"{result['status']}: {result['used']} of {result['budget']} characters"
        f", no room for {len(result['skipped'])} more"
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
