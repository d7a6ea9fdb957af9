"""Versions: a name for what the library holds, made from its content."""

import json
from collections.abc import Iterable
from dataclasses import astuple
from hashlib import sha256

from library import Document


def document_hash(document: Document) -> str:
    """Return the hash of everything in a document that can change an answer."""
    fields = json.dumps([*astuple(document)[:-1], sorted(document.applies)])
    return sha256(fields.encode()).hexdigest()


def version_of(hashes: Iterable[tuple[str, str]]) -> str:
    """Return the version, 12 hex digits, of documents given as (id, hash)."""
    return sha256(json.dumps(sorted(hashes)).encode()).hexdigest()[:12]
