"""Who may read what, decided before anything is searched or counted."""

from collections.abc import Iterable, Mapping

from library import ROLES, Document

# A document belongs to one audience, the first that may read it; a role reads those
# of several. Whatever is counted is counted for each audience apart.
AUDIENCES = {"reader": ("reader",), "editor": ("reader", "editor")}


def visible(documents: Iterable[Document], role: str = "reader") -> list[Document]:
    """Return the documents that `role` may read, in the given order.

    Raises ValueError for a role that does not exist.
    """
    if role not in ROLES:
        raise ValueError(f"unknown role {role!r}: use one of {', '.join(ROLES)}")
    return [document for document in documents if may_read(role, document)]


def may_read(role: str, document: Document) -> bool:
    """Return whether `role` may read a document.

    Readers read what is published for readers. Editors also read what is for
    editors, and drafts. Nobody reads what is withdrawn, or what names no role.
    """
    if role == "editor":
        return document.role in ROLES and document.status in ("published", "draft")
    return document.role == "reader" and document.status == "published"


def applicable(document: Document, facts: Mapping[str, str]) -> bool:
    """Return whether a document holds in the case that `facts` describe.

    It does not if it names another value for one of the facts; a fact that is not
    given excludes nothing.
    """
    return all(facts.get(key, value) == value for key, value in document.applies)


def audience(document: Document) -> str | None:
    """Return the audience that a document belongs to; None if nobody may read it."""
    return next((role for role in AUDIENCES if may_read(role, document)), None)
