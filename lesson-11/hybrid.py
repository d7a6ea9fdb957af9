"""Two rankings of one snapshot become one: by words, and by nearness of vectors."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from database import default_db
from embeddings import get_embedder
from features import is_evidence
from rows import HybridRow, RankedRow
from store import open_snapshot, refresh

DEPTH = 50  # parts of each ranking that take part
K = 60  # the higher, the less the first ranks are ahead of the next ones


def hybrid_search(
    query: str,
    role: str = "reader",
    limit: int = 6,
    facts: Mapping[str, str] | None = None,
    path: Path | str | None = None,
) -> list[HybridRow]:
    """Return the best `limit` parts for a question, by two rankings, as rows.

    There are none if not one in both rankings is evidence. Where nothing is published
    at `path` yet, the library is. Raises ValueError for an unknown role, a negative
    limit, and whatever is wrong with the file, the server or the settings.
    """
    return search_view(query, role, limit, facts, path)[0]


def search_view(
    query: str,
    role: str = "reader",
    limit: int = 6,
    facts: Mapping[str, str] | None = None,
    path: Path | str | None = None,
) -> tuple[list[HybridRow], str]:
    """Return the rows of `hybrid_search`, and the version of the view they are from.

    Both are read in one transaction: a moment later it may be another version.
    """
    if limit < 0:
        raise ValueError(f"limit must be 0 or more, not {limit}")
    if not Path(path or default_db()).exists():
        refresh(path)
    embedder = get_embedder()
    (vector,) = embedder.embed([query], question=True)
    with open_snapshot(path) as snapshot:
        snapshot.check_space(embedder.space)
        by_words = snapshot.search(query, role, DEPTH, facts)
        by_vectors = snapshot.nearest(vector, role, DEPTH, facts) if vector else []
        rows = fuse(by_words, by_vectors, embedder.space)
        return (
            rows[:limit] if any(is_evidence(query, row["text"]) for row in rows) else []
        ), snapshot.view_version(role)


def fuse(
    by_words: Sequence[RankedRow], by_vectors: Sequence[RankedRow], space: str
) -> list[HybridRow]:
    """Merge two rankings by reciprocal rank fusion; ties are ordered by id.

    A row scores 1 / (60 + rank) for each ranking that it is in, ranks counted from 1
    (Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods", 2009). The scores they came with do not count:
    those of two rankings cannot be compared.
    """
    words, vectors = (
        {row["id"]: rank for rank, row in enumerate(ranking, start=1)}
        for ranking in (by_words, by_vectors)
    )
    rows: list[HybridRow] = [
        {
            **row,
            "score": sum(
                1 / (K + ranks[i]) for ranks in (words, vectors) if i in ranks
            ),
            "lexical_rank": words.get(i),
            "vector_rank": vectors.get(i),
            "space": space,
        }
        for i, row in {row["id"]: row for row in (*by_words, *by_vectors)}.items()
    ]
    return sorted(rows, key=lambda row: (-row["score"], row["id"]))
