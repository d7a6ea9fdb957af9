"""Versions: names for what the library holds, and a quick look for changes."""

import json
import os
import time
from collections.abc import Iterable
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
    racy), for links, and for a folder without such files.
    """
    now, found = time.time_ns(), []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.lower().endswith(".md") and not name.startswith("."):
                path = os.path.join(place, name)
                try:
                    seen = os.lstat(path)
                except OSError:
                    return ""
                changed = max(seen.st_mtime_ns, seen.st_ctime_ns)
                if not S_ISREG(seen.st_mode) or changed + SURE > now:
                    return ""
                stamp = (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino)
                found.append((os.fsencode(path), stamp))
    return sha256(repr(sorted(found)).encode()).hexdigest() if found else ""
