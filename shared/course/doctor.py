"""`doctor`: one line for each thing the course needs, with the mend where it lacks."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sqlite3
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import testing
from manifest import Course

OLLAMA_SECONDS = 3
NEEDED = ("EMBED", "ANSWER")  # EMBED_MODEL and EMBED_DIGEST, ANSWER_MODEL, …


@dataclass
class Finding:
    """One line: `state` is "ok", "optional" (works without it) or "missing"."""

    state: str
    what: str
    mend: str = ""

    def __str__(self) -> str:
        mend = f"\n          {self.mend}" if self.mend else ""
        return f"{self.state:<8}  {self.what}{mend}"


def examine(course: Course) -> Iterator[Finding]:
    """All findings, the needed things first."""
    yield python()
    yield sqlite()
    yield encoding()
    yield library(course)
    yield packages(course)
    yield git()
    yield client()
    yield from ollama()


def python() -> Finding:
    # __main__.py has refused older ones already.
    return Finding("ok", f"Python {sys.version.split()[0]} ({sys.executable})")


def sqlite() -> Finding:
    what = f"SQLite {sqlite3.sqlite_version}"
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
    except sqlite3.OperationalError:
        mend = "The lessons work; for FTS5 install Python from https://www.python.org/."
        return Finding("optional", f"{what} without FTS5", mend)
    finally:
        connection.close()
    return Finding("ok", f"{what} with FTS5")


def encoding() -> Finding:
    """What a terminal would get; the apps write UTF-8 whatever it is."""
    name = (sys.__stdout__.encoding if sys.__stdout__ else "") or "unknown"
    try:
        "Адреса 规则 ₽ ✓".encode(name)
    except (LookupError, UnicodeEncodeError):
        mend = "Set PYTHONUTF8=1; on Windows use Windows Terminal."
        return Finding("optional", f"encoding {name}: not all can be shown", mend)
    return Finding("ok", f"encoding {name}")


def library(course: Course) -> Finding:
    folder = course.root / course.corpus
    count = len(list(folder.rglob("*.md")))
    if not count:
        mend = "The checkout is not whole: clone it again."
        return Finding("missing", f"no library in {course.corpus}", mend)
    return Finding("ok", f"library: {count} documents in {course.corpus}")


def packages(course: Course) -> Finding:
    folder = testing.environment_folder(course.root)
    if testing.has_pip(testing.python_in(folder)):
        return Finding("ok", f"test packages in {folder}")
    mend = "python3 shared/course test makes it."
    if importlib.util.find_spec("ensurepip") is None:
        mend = "Debian and Ubuntu: sudo apt install python3-venv. Then: " + mend
    return Finding("optional", "no .venv for the tests yet", mend)


def git() -> Finding:
    if shutil.which("git"):
        return Finding("ok", "git")
    mend = "Needed for `feed` only: https://git-scm.com/downloads"
    return Finding("optional", "git is not installed", mend)


def client() -> Finding:
    if importlib.util.find_spec("ollama"):
        return Finding("ok", "Python package ollama")
    mend = "For the model backends (lessons 08 on): python3 -m pip install ollama"
    return Finding("optional", "no Python package ollama", mend)


def ollama() -> Iterator[Finding]:
    """The server and the models that the settings name."""
    host = os.environ.get("OLLAMA_HOST", "") or "127.0.0.1:11434"
    address = host if "://" in host else f"http://{host}"
    try:
        models = installed_models(address)
    except (OSError, ValueError) as error:
        yield no_server(address, error)
        return
    yield Finding("ok", f"Ollama at {address}: {len(models)} models")
    for prefix in NEEDED:
        name = os.environ.get(f"{prefix}_MODEL", "")
        if name:
            yield model(prefix, name, os.environ.get(f"{prefix}_DIGEST", ""), models)


def installed_models(address: str) -> dict[str, str]:
    """Names and digests of the models; OSError or ValueError without an answer."""
    # A proxy of the machine has nothing to do with a server on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{address}/api/tags", timeout=OLLAMA_SECONDS) as reply:
        data = json.loads(reply.read().decode("utf-8"))
    try:
        return {each["name"].casefold(): each["digest"] for each in data["models"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("this is no list of models") from error


def no_server(address: str, error: Exception) -> Finding:
    if shutil.which("ollama") is None and "OLLAMA_HOST" not in os.environ:
        mend = "Only for the model backends: https://ollama.com/download"
        return Finding("optional", "Ollama is not installed", mend)
    reason = getattr(error, "reason", error)
    if isinstance(reason, ConnectionRefusedError):
        mend = "Start it: ollama serve (or the Ollama app)."
        return Finding("optional", f"Ollama is not running at {address}", mend)
    return Finding("optional", f"no answer from Ollama at {address}: {reason}")


def model(prefix: str, name: str, digest: str, models: dict[str, str]) -> Finding:
    full = (name if ":" in name.rpartition("/")[2] else f"{name}:latest").casefold()
    if full not in models:
        mend = f"ollama pull {name}"
        return Finding("missing", f"{prefix}_MODEL {name} is not installed", mend)
    found = models[full].removeprefix("sha256:")
    if not digest:
        mend = f"Set {prefix}_DIGEST={found}"
        return Finding("missing", f"{prefix}_DIGEST is not set for {name}", mend)
    if found != digest:
        mend = f"The one that is installed: {prefix}_DIGEST={found}"
        return Finding("missing", f"{name} is not the model of {prefix}_DIGEST", mend)
    return Finding("ok", f"{prefix}_MODEL {name}, digest as set")
