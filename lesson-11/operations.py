"""What the operator of a library does with it, from the command line."""

import argparse
from pathlib import Path
from unicodedata import normalize

from console import decoded, safe
from database import default_db
from library import default_library, read
from receipts import recheck
from store import delete, history, purge, put, withdraw

CHANGES = {
    "withdraw": "take a document away from all readers, and keep it",
    "delete": "take a document out of the library",
    "purge": "erase a document and its past",
}


def add_operations(parser: argparse.ArgumentParser) -> None:
    """Let a command line name one operation."""
    one = parser.add_argument_group("operations, one at a time")
    one.add_argument("--recheck", metavar="FILE", help="does a saved answer stand?")
    one.add_argument("--put", metavar="FILE", help="put or change one document")
    for verb, does in CHANGES.items():
        one.add_argument(f"--{verb}", type=as_id, metavar="ID", help=does)
    one.add_argument("--history", action="store_true", help="what happened so far")


def as_id(argument: str) -> str:
    """Read the id of a document: letters with accents have one form in all ids."""
    return normalize("NFC", decoded(argument))


def wanted(options: argparse.Namespace) -> list[str]:
    """Return the operations that the command line names."""
    names = ("recheck", "put", *CHANGES, "history")
    return [name for name in names if getattr(options, name) not in (None, False)]


def operate(options: argparse.Namespace) -> dict:
    """Carry out the operation that the command line names; return what came of it."""
    path = options.db or default_db()
    if options.put is not None:
        file, root = Path(options.put), Path(options.library or default_library())
        if file.suffix.lower() != ".md" or not file.is_file():
            raise ValueError(f"{file} is no Markdown file")
        # Inside the library a file has the id that publishing would give it.
        root = root if file.resolve().is_relative_to(root.resolve()) else file.parent
        name = decoded(file.resolve().relative_to(root.resolve()).as_posix())
        if "/." in f"/{name}":
            raise ValueError(f"{file} is hidden: a library has no hidden files")
        (document,) = read(file, name, root.resolve())
        return {"status": "put", "version": put(path, document)}
    for verb, change in (("withdraw", withdraw), ("delete", delete), ("purge", purge)):
        if (doc_id := getattr(options, verb)) is not None:
            return {"status": verb, "version": change(path, doc_id)}
    if options.recheck is not None:
        return recheck(options.recheck, options.role, path)
    return {"status": "history", "entries": history(path)}


def show_operation(result: dict) -> None:
    """Print for a person what an operation did or found."""
    for entry in result.get("entries", []):
        revisions = f"{entry['from_revision'] or '-'} -> {entry['to_revision'] or '-'}"
        print(
            f"{entry['entry']:>4}  {entry['version']}  {entry['what']:<8}"
            f"  {revisions:<9}  {on_one_line(entry['doc_id'])}"
        )
    for source in result.get("sources", []):
        stands = {True: ", the quote still stands", False: ", the quote is gone"}
        why = f" ({source['why']})" if "why" in source else ""
        state = source["state"] + stands.get(source.get("quote_stands"), why)
        print(
            on_one_line(
                f"[{source['id']}] {source['doc_id']}, part {source['part']}: {state}"
            )
        )
    if (same := result.get("same_version")) is not None:
        print(
            "what the answer was chosen from",
            "is as it was" if same else "has changed since",
        )
    if "version" in result:
        print(f"{result['status']}: the library is now version {result['version']}")


def on_one_line(text: str) -> str:
    """Return `text` made safe; with a line end it could pass for another entry."""
    return safe(text).replace("\n", "\\n")
