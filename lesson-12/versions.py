"""Versions: names for what the library holds, and a quick look for changes."""

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG

from library import Document

SURE = 2_000_000_000  # nanoseconds: no clock of a file system is coarser


def document_hash(document: Document) -> str:
    """Return the hash of everything in a document that can change an answer."""
    fields = json.dumps([*astuple(document)[:-1], sorted(document.applies)])
    return sha256(fields.encode()).hexdigest()


def version_of(hashes: Iterable[tuple[str, str]]) -> str:
    """Return the version, 12 hex digits, of documents given as (id, hash)."""
    return sha256(json.dumps(sorted(hashes)).encode()).hexdigest()[:12]


def fingerprint(folder: Path | str) -> str:
    """Return a text that is another one when a Markdown file below `folder` changed.

    No file is read: it is made of names, sizes, times and numbers of the files. It is
    empty where these are no proof: for a file that changed less than two seconds ago,
    since it could change again within one tick of the clock (as Git puts it, it is
    racy), for links, for what cannot be looked at, and for a folder without such files.
    """
    now, found = time.time_ns(), []
    try:
        for path, seen in markdown_files(os.fsencode(folder)):
            times = seen.st_mtime_ns, seen.st_ctime_ns
            if not S_ISREG(seen.st_mode) or max(times) + SURE > now:
                return ""
            found.append(b"%s %d %d %d %d" % (path, seen.st_size, seen.st_ino, *times))
    except OSError:
        return ""
    return sha256(b"\0".join(sorted(found))).hexdigest() if found else ""


def markdown_files(folder: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield path and state of each Markdown file below a folder but of hidden ones."""
    with os.scandir(folder) as entries:
        for entry in (e for e in entries if not e.name.startswith(b".")):
            if entry.is_dir(follow_symlinks=False):
                yield from markdown_files(entry.path)
            elif entry.name.lower().endswith(b".md"):
                yield entry.path, os.lstat(entry.path)
