"""The course tool: python3 shared/course VERB.  `--help` lists the verbs."""

import io
import os
import sys
from pathlib import Path

if sys.version_info < (3, 11):
    found = ".".join(map(str, sys.version_info[:2]))
    sys.exit(
        "The course needs Python 3.11 or newer; this is Python " + found + ".\n"
        "Install a newer one from https://www.python.org/downloads/ and call it by "
        "its own name, for example: python3.11 shared/course list"
    )

from manifest import Course, find_root, load_course  # noqa: E402
from verbs import main  # noqa: E402


def find_course(root: "Path | None") -> Course:
    return load_course(root.resolve() if root else find_root(Path(__file__).resolve()))


for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):
        # Redirected output on Windows would be in an old code page.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")

if __name__ == "__main__":
    try:
        status = main(sys.argv[1:], find_course)
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads this stopped reading, as `head` does.  Python flushes once more at
        # its end: let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)
