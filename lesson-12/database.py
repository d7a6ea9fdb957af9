"""The file: where it is, what its tables are, and how it is opened safely."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import error as StructError

APPLICATION = 0x534F5243  # "SORC" in the file's head: a snapshot of this course
FORMAT = 412  # the fourth form of the tables of lesson 12
BUSY_SECONDS = 5.0  # how long to wait for a process that has locked the file

SCHEMA = """
CREATE TABLE library (version TEXT, files TEXT, space TEXT);
CREATE TABLE views (role TEXT PRIMARY KEY, version TEXT, parts INTEGER, terms INTEGER);
CREATE TABLE documents (
    doc_id TEXT PRIMARY KEY, hash TEXT, audience TEXT, title TEXT, url TEXT, body TEXT,
    lang TEXT, revision INTEGER, role TEXT, status TEXT, applies TEXT);
CREATE TABLE parts (
    number INTEGER PRIMARY KEY, doc_id TEXT, part INTEGER, heading TEXT,
    start INTEGER, stop INTEGER, terms INTEGER, text_hash TEXT,
    tokenizer TEXT, tokens INTEGER, UNIQUE (doc_id, part));
CREATE TABLE postings (
    audience TEXT, term TEXT, first INTEGER, tops BLOB, levels BLOB, entries BLOB,
    PRIMARY KEY (audience, term)) WITHOUT ROWID;
CREATE TABLE embeddings (
    text_hash TEXT PRIMARY KEY, space TEXT, places BLOB, numbers BLOB);
CREATE TABLE sides (
    audience TEXT, side INTEGER, block INTEGER, bits BLOB,
    PRIMARY KEY (audience, side, block));
CREATE INDEX parts_by_text ON parts (text_hash);
CREATE INDEX sides_by_block ON sides (block);
CREATE TABLE sources (doc_id TEXT PRIMARY KEY, hash TEXT);
CREATE TABLE journal (
    entry INTEGER PRIMARY KEY, what TEXT, doc_id TEXT, from_revision INTEGER,
    to_revision INTEGER, by_hand INTEGER, version TEXT, document TEXT);
CREATE INDEX journal_by_document ON journal (doc_id);
"""

# What a file of lesson 10 lacks; its journal is kept.
WITHOUT_COUNTS = 410
ADD_COUNTS = """
ALTER TABLE parts ADD COLUMN tokenizer TEXT;
ALTER TABLE parts ADD COLUMN tokens INTEGER;
"""


class StoreError(ValueError):
    """The file cannot be used; `reason` names the kind of trouble."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def default_db() -> Path:
    """Return where the snapshot is kept: LIBRARY_DB, or else beside this file.

    Where this folder cannot be written, it is the user's folder for caches. Raises
    StoreError if there is none, or it cannot be written either.
    """
    if path := os.environ.get("LIBRARY_DB"):
        return Path(path)
    folder = Path(__file__).resolve().parent
    if not os.access(folder, os.W_OK):
        try:
            folder = Path(
                os.environ.get("XDG_CACHE_HOME")
                or os.environ.get("LOCALAPPDATA")
                or Path.home() / ".cache",
                *("how-an-answer", folder.name),
            )
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError) as error:  # RuntimeError: who has no home
            raise StoreError(
                "bad_file", f"name a file with --db or in LIBRARY_DB: {error}"
            ) from error
    return folder / "library.db"


@contextmanager
def connection(path: Path | str, mode: str) -> Iterator[sqlite3.Connection]:
    """Open the file with SQLite's `mode` (rw, or rwc to create it) and close it.

    Raises StoreError for whatever SQLite finds wrong in between.
    """
    try:
        db = sqlite3.connect(
            f"{Path(path).absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
        )
        try:
            db.row_factory = sqlite3.Row
            check_file(db, path)
            yield db
        finally:
            db.close()
    except (sqlite3.Error, IndexError, StructError) as error:  # of a damaged number
        # The low byte is the kind of error: SQLite tells several busy ones apart.
        busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
        raise StoreError(
            "locked" if busy else "bad_file",
            f"{path} cannot be used now: {error}; try again, or use --db FILE",
        ) from error


def check_file(db: sqlite3.Connection, path: Path | str) -> None:
    """Raise StoreError if the file is not a snapshot that this lesson may replace."""
    # The tables first: whoever publishes meanwhile commits the two numbers with them.
    tables, application, made_by = (
        db.execute(query).fetchone()[0]
        for query in (
            "SELECT count(*) FROM sqlite_master",
            "PRAGMA application_id",
            "PRAGMA user_version",
        )
    )
    if tables and (application != APPLICATION or made_by > FORMAT):
        raise StoreError("foreign_file", f"{path} is another program's: use --db FILE")
