"""What the cheap comparison of vectors loses, against comparing with every part.

    python tests/benchmarks/nearest_loss.py [--parts 1000 10000] [--lesson 10]
        [--questions 8] [--seed 1]

The library and the questions are those of search_speed.py. For each question the
snapshot's nearest parts are held against a plain comparison with all vectors: how many
of the first 50 and of the first ten are missing, and how often the first one is.
"""

import argparse
import json
import os
import sys
import tempfile
from array import array
from operator import mul
from pathlib import Path

from search_speed import COURSE, KINDS, write_library

ROLE = "reader"


def losses(folder: Path) -> dict[str, list[float]]:
    """Missing shares of the first 50, the first ten and the first, by kind."""
    from embeddings import get_embedder
    from store import open_snapshot

    questions = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    query = """
        SELECT places, numbers FROM parts
        JOIN documents USING (doc_id) JOIN embeddings USING (text_hash)
        WHERE audience = ?"""
    result = {}
    with open_snapshot(folder / "library.db") as snapshot:
        vectors = [
            (array("H", places), array("f", numbers))
            for places, numbers in snapshot.db.execute(query, [ROLE])
        ]
        for kind in KINDS:
            missing = []
            for question in questions[kind]:
                (vector,) = get_embedder().embed([question], question=True)
                number_in = list(vector).__getitem__
                scored = [
                    sum(map(mul, map(number_in, places or range(len(vector))), numbers))
                    for places, numbers in vectors
                ]
                best = sorted((score for score in scored if score > 0), reverse=True)
                rows = snapshot.nearest(vector, ROLE, 50)
                missing.append(
                    [missed(best[:size], rows[:size]) for size in (50, 10, 1)]
                )
            columns = zip(*missing, strict=True)
            result[kind] = [sum(column) / len(column) for column in columns]
    return result


def missed(best: list[float], rows: list[dict]) -> float:
    """The share of the best scores that is missing among the rows.

    Which of several parts with one score is returned is no loss.
    """
    if not best:
        return 0.0
    return 1 - sum(row["score"] >= best[-1] for row in rows) / len(best)


def show(parts: int, result: dict[str, list[float]]) -> None:
    print(f"{parts:,} parts    " + "".join(f"{kind:>10}" for kind in KINDS))
    for place, name in enumerate(("of 50", "of 10", "the first")):
        shares = "".join(f"{result[kind][place]:>10.1%}" for kind in KINDS)
        print(f"  {name:<14}{shares}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--parts", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--lesson", default="10")
    parser.add_argument("--questions", type=int, default=8, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.path.insert(0, str(COURSE / f"lesson-{options.lesson}"))
    for parts in options.parts:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            write_library(folder, parts, options.seed, options.questions)
            os.environ["LIBRARY_DB"] = str(folder / "library.db")
            from store import refresh

            refresh(folder / "library.db", folder / "library")
            show(parts, losses(folder))


if __name__ == "__main__":
    main()
