"""Runs Python sessions (>>> lines) and prints them as they really go.

Reads a JSON list of sessions from standard input and writes the same list with the
true output below each example.  A process of its own, because a session imports the
modules of one lesson.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import sys
import traceback


def played(session: str, names: dict) -> str:
    """The session with every output replaced by the true one."""
    lines: list[str] = []
    for piece in doctest.DocTestParser().parse(session):
        if isinstance(piece, str):
            if piece.strip():
                raise ValueError(f"this is neither >>> nor output: {piece.strip()!r}")
            if piece.startswith("\n") or lines:
                lines += piece.removesuffix("\n").split("\n") if piece else []
            continue
        source = piece.source.rstrip("\n").split("\n")
        lines.append(f">>> {source[0]}")
        lines += [f"... {line}".rstrip() for line in source[1:]]
        output = result_of(piece.source, names)
        lines += output.rstrip("\n").split("\n") if output else []
    return "\n".join(lines)


def result_of(source: str, names: dict) -> str:
    """What the interpreter shows for one example, in the form of doctest."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        try:
            exec(compile(source, "<session>", "single"), names)
        except Exception as error:
            last = "".join(traceback.format_exception_only(error)).rstrip("\n")
            return f"Traceback (most recent call last):\n    ...\n{last}"
    return output.getvalue()


if __name__ == "__main__":
    shared: dict = {"__name__": "session"}
    sessions = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    results = [played(session, shared) for session in sessions]
    sys.stdout.buffer.write(json.dumps(results).encode("utf-8"))
