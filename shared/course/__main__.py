"""The course tool: python3 shared/course VERB.  `--help` lists the verbs."""

import io
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
    sys.exit(main(sys.argv[1:], find_course))
