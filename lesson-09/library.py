"""The shelf: a folder of Markdown files becomes documents."""

import difflib
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

from parts import first_heading
from parts import split as split

# The keys of front matter that this program understands; it ignores all others.
KEYS = ("id", "title", "url", "lang", "revision", "role", "status", "applies")
# Who reads: a document names one of them, or nobody. How far a document has come.
ROLES = ("reader", "editor")
STATUSES = ("published", "draft", "withdrawn")
KEY_LINE = re.compile(r"(?P<key>[^\s:#][^:]*):(?:\s+(?P<value>.*))?")
QUOTED = re.compile(r"""^(["'])((?:(?!\1).)*)\1$""")
APPLIES = re.compile(r"([^\s=,]+)\s*=\s*([^\s=,](?:[^=,]*[^\s=,])?)")
# Control characters, and halves of characters that come from broken file names.
CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff]")
# Other letters that look like those of the keys, and what they look like.
ALIKE = str.maketrans("агеіорѕтԁӏѵıαερτινυοη", "areiopstdlviaeptivuon")


@dataclass(frozen=True)
class Document:
    """One Markdown file: what its front matter says, and the text below it.

    An empty `role` means that nobody may read it; `applies` are the facts that must
    hold, as pairs of name and value, and none where it holds everywhere.
    """

    id: str
    title: str
    url: str
    body: str
    lang: str
    revision: int = 1
    role: str = "reader"
    status: str = "published"
    applies: tuple[tuple[str, str], ...] = ()


class Fault(ValueError):
    """Why a file was left out: its relative path, the line (from 1), the mend."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        # With a line end in it, a name could pass for a message of its own.
        super().__init__(file.replace("\n", "\\n") + f":{line}: {reason:.500}")
        self.file, self.line, self.reason = file, line, reason


def default_library() -> Path:
    """Return the folder to read: LIBRARY, or else the course's own library."""
    if folder := os.environ.get("LIBRARY"):
        return Path(folder)
    for parent in Path(__file__).resolve().parents:
        if (parent / "shared" / "course.toml").is_file():
            return parent / "shared" / "corpus"
    raise ValueError("which library? name its folder with --library or in LIBRARY")


def load(folder: Path | str) -> tuple[list[Document], list[Fault]]:
    """Read every Markdown file below `folder`; hidden files and folders are left out.

    Returns the documents, sorted by id, and a fault for each file that cannot be
    one of them. Raises ValueError if there is no such folder.
    """
    root = Path(folder)
    if not root.is_dir() or not os.access(root, os.R_OK):
        raise ValueError(f"there is no library folder {root} that can be read")
    found: list[tuple[str, Document]] = []
    faults: list[Fault] = []
    home = root.resolve()
    for path in root.rglob("*"):
        # Names are UTF-8 on the disk, also for a Python that runs in another locale.
        name = os.fsencode(path.relative_to(root).as_posix()).decode(
            "utf-8", "surrogateescape"
        )
        try:
            if "/." not in f"/{name}" and (
                name.lower().endswith(".md") or path.is_dir()
            ):
                found += [(name, document) for document in read(path, name, home)]
        except Fault as fault:
            faults.append(fault)
        except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
            faults.append(Fault(name, 1, f"cannot be read: {error}"))
    times = Counter(document.id for _, document in found)
    faults += [
        Fault(name, 1, f"another file has the id {document.id!r} too")
        for name, document in found
        if times[document.id] > 1
    ]
    return (
        sorted((d for _, d in found if times[d.id] == 1), key=lambda d: d.id),
        sorted(faults, key=str),
    )


def read(path: Path, name: str, home: Path) -> list[Document]:
    """Return the document of a Markdown file; none for a folder, which holds others.

    `home` is the library's own place, without links. Raises Fault where the file cannot
    be understood and OSError where it cannot be read.
    """
    # A link out of the library would publish what nobody put on this shelf.
    if not path.resolve().is_relative_to(home) or not (path.is_file() or path.is_dir()):
        raise Fault(name, 1, "is no file of this library: copy the file, link none")
    if path.is_dir():
        os.scandir(path).close()  # or a folder without read permission goes unnoticed
        return []
    check("name", name, name, 1)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Fault(
            name,
            len(re.split(rb"\r\n?|\n", error.object[: error.start])),
            "is not UTF-8: save it in that encoding",
        ) from None
    # One kind of line end, so that the same text is the same document everywhere.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    values, first = front_matter(lines, name)
    body = "\n".join(lines[first:])
    return [
        Document(
            id=normalize("NFC", values.get("id", name[:-3])),
            title=values.get("title") or first_heading(body) or Path(name).stem,
            url=values.get("url") or name,
            body=body,
            lang=values.get("lang", ""),
            revision=int(values.get("revision", 1)),
            role=values.get("role", "reader"),
            status=values.get("status", "published"),
            applies=tuple(APPLIES.findall(values.get("applies", ""))),
        )
    ]


def front_matter(lines: list[str], name: str) -> tuple[dict[str, str], int]:
    """Read the `key: value` lines between two lines `---` at the start of a file.

    Returns the known keys with their values, as the strings that were written,
    and the index of the first line of the body. Raises Fault: a block that cannot
    be read must never make its file one without rules.
    """
    if lines[0] != "---":
        return {}, 0
    if "---" not in lines[1:]:
        raise Fault(name, 1, "front matter never closes: end it with a line ---")
    end = lines.index("---", 1)
    values: dict[str, str] = {}
    key = ""
    for number, line in enumerate(lines[1:end], start=2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line.startswith((" ", "\t", "- ")) or line == "-":
            # Indented or listed: it belongs to the key above it.
            if not key or key in KEYS:
                raise Fault(name, number, f"{line!r} must stand on a 'key: value' line")
            continue
        if not (match := KEY_LINE.fullmatch(line)):
            raise Fault(name, number, f"{line!r} is not a 'key: value' line")
        key, value = match["key"].rstrip(), (match["value"] or "").strip()
        if key in values:
            raise Fault(name, number, f"the key {key} is given twice")
        if key in KEYS:
            values[key] = QUOTED.sub(r"\2", value)
            check(key, values[key], name, number)
        elif meant := near_miss(key):
            raise Fault(name, number, f"unknown key {key!r}: write {meant!r}")
    return values, end + 1


def check(key: str, value: str, name: str, line: int) -> None:
    """Raise Fault if a known key has a value it cannot have."""
    if CONTROLS.search(value) or key == "id" and not value.strip():
        raise Fault(name, line, f"{key} is empty or holds a control character")
    if key == "revision" and not re.fullmatch(r"[1-9][0-9]{0,8}", value):
        raise Fault(name, line, f"revision must be a number from 1 on, not {value!r}")
    if key == "role" and value not in ("", *ROLES):
        raise Fault(name, line, f"role is {value!r}, not one of {', '.join(ROLES)}")
    if key == "status" and value not in STATUSES:
        raise Fault(
            name, line, f"status is {value!r}, not one of {', '.join(STATUSES)}"
        )
    if key == "applies" and value:
        facts = [fact.strip() for fact in value.split(",")]
        distinct = len(dict(APPLIES.findall(value))) == len(facts)
        if not distinct or not all(map(APPLIES.fullmatch, facts)):
            raise Fault(name, line, f"applies is {value!r}, not 'key=value, other=x'")


def near_miss(key: str) -> str | None:
    """Return the known key that `key` is probably meant to be, or None."""
    plain = re.sub(r"[\W_]", "", normalize("NFKC", key)).casefold().translate(ALIKE)
    return next(
        (
            known
            for known in difflib.get_close_matches(plain, KEYS, cutoff=0.75)
            if known[0] == plain[0]
        ),
        None,
    )
