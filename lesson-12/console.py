"""What goes in and out of a terminal: UTF-8 everywhere, control characters never."""

import os
import re
import sys
from collections.abc import Callable
from unicodedata import east_asian_width

# C0 and C1 controls but tab and newline, and the marks that reorder a line of text:
# raw, they could repaint the terminal or disguise what a document says.
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
# A line of a page: up to so many columns, and it ends at spaces, behind a wide
# character (marked with NUL) or with the text. An address stays in one piece, and so
# does a word.
LINE = (
    r"(\w+://\S+$|.{1,%d}|[^ \t]+?)"
    "(?:$|[ \t]+|(?<=[^（「『《“【]\0)"
    "(?![，。、；：！？）」』》”】’…\u3099\u309a\ufe0f\u200d]))"
)


def run(main: Callable[[], int]) -> None:
    """Run a program and end with the exit status that it returns.

    It writes UTF-8 whatever the locale; what that cannot hold is shown as an escape.
    Ctrl+C, or a reader that stops reading (as `head` does), is no reason to complain.
    """
    # How arguments and names of files are decoded is settled when Python starts. Where
    # the locale is not UTF-8, it starts once more, in a mode in which they are.
    if os.name == "posix" and sys.getfilesystemencoding() != "utf-8":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None if it was closed
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        status: int | str = main()
        print(end="", flush=True)  # now, where a full disk is still noticed
    except KeyboardInterrupt:
        status = 130  # what shells report for a program that Ctrl+C ended
    except OSError as error:
        # Python flushes once more at its end: let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0 if isinstance(error, BrokenPipeError) else f"error: {error}"
    sys.exit(status)  # a text goes to stderr, and the status is 1


def safe(text: str) -> str:
    """Return `text` with each control character shown as `\\uXXXX`."""
    return CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def page(text: str, columns: int = 80) -> str:
    """Return `text` made safe, long lines broken for so many columns.

    They are broken at spaces and behind Chinese characters, which are two columns wide.
    What has neither, such as an address, stays in one piece.
    """
    wide = "".join(c + "\0" * (east_asian_width(c) in "WF") for c in safe(text))
    return "\n".join(
        "\n".join(re.findall(LINE % columns, line)) for line in wide.split("\n")
    ).replace("\0", "")


def decoded(argument: str) -> str:
    """Return a command-line argument read as UTF-8, also under another locale."""
    return os.fsencode(argument).decode("utf-8", "replace")
