"""Python source to syntax tree, one thread at a time."""

from __future__ import annotations

import ast
import threading

# Python 3.11 counts the depth of the tree it builds in one place for all threads.
# Where the garbage collector lets another thread in, it ends with a SystemError.
ONE_AT_A_TIME = threading.Lock()


def parse(source: str | bytes) -> ast.Module:
    """The syntax tree of a file.  SyntaxError or ValueError if it is no Python."""
    with ONE_AT_A_TIME:
        return ast.parse(source)
