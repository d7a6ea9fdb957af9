"""Commands as they are typed on this machine, and prose for 80 columns.

All texts write `python3`.  On Windows it is `python`, and so it is on a machine that
has no python3.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap


def python_name() -> str:
    """What starts Python here; COURSE_PYTHON decides for texts that are compared."""
    if "COURSE_PYTHON" in os.environ:
        return os.environ["COURSE_PYTHON"]
    if sys.platform != "win32" and shutil.which("python3"):
        return "python3"
    return "python"


def as_typed(text: str) -> str:
    """A text of the course tool with its commands as they are typed here."""
    return text.replace("python3 ", f"{python_name()} ")


def prose(text: str, indent: int = 0) -> str:
    """A paragraph in lines of 80 columns; words and code names stay whole."""
    space = " " * indent
    return textwrap.fill(
        text,
        80,
        initial_indent=space,
        subsequent_indent=space,
        break_long_words=False,
        break_on_hyphens=False,
    )
