"""How well a lesson finds and refuses, on the questions of shared/questions.

    python tests/benchmarks/evidence.py [--lesson 08] [--set tune|test]

Three tables. Recall: how many questions that the library answers have one of the
expected documents (or of the parts that hold the answer) among the first four, for the
ranking by words, the ranking by vectors, and both fused; the evidence rule does not
count here. Alone: how many of them only one of the two rankings finds so. Refusals:
how many questions of each kind get nothing, for several thresholds; the lesson's own
is marked. Everything is asked in the library of all three languages at once, in the
space that EMBED_BACKEND chooses.
"""

import argparse
import importlib
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Load = Callable[[str], Any]  # imports a module of the lesson
COURSE = Path(__file__).resolve().parents[2]
LANGUAGES = ("en", "ru", "zh")
FIRST = 4
THRESHOLDS = (0.16, 0.2, 0.24, 0.28, 0.32)
REFUSED = ("unanswerable", "near_miss", "hidden")  # the rest has an answer


def questions(language: str, wanted: str | None) -> list[dict[str, Any]]:
    """The questions of one language; of one half where `wanted` names it."""
    path = COURSE / "shared" / "questions" / f"{language}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return [question for question in found if wanted in (None, question["set"])]


class Asked:
    """One question, what both rankings gave, and what they give together."""

    def __init__(
        self, question: dict[str, Any], db: Path, load: Load = importlib.import_module
    ) -> None:
        hybrid, self.features = load("hybrid"), load("features")
        self.question = question
        self.is_answerable = question["kind"] not in REFUSED
        text, role, facts = (question[key] for key in ("question", "role", "facts"))
        (vector,) = load("embeddings").get_embedder().embed([text], question=True)
        with load("store").open_snapshot(db) as snapshot:
            words = snapshot.search(text, role, hybrid.DEPTH, facts)
            vectors = snapshot.nearest(vector, role, hybrid.DEPTH, facts)
            fused = hybrid.fuse(words, vectors, snapshot.space)
        self.rankings = {"words": words, "vectors": vectors, "fused": fused}

    def finds(self, ranking: str, key: str = "expected") -> bool:
        """Whether an expected document, or a `part`, is among the first four."""
        ids = ("doc_id", "id")[key == "part"]
        first = self.rankings[ranking][:FIRST]
        return any(row[ids] in self.question[key] for row in first)

    def is_refused(self) -> bool:
        """Whether no candidate is evidence."""
        is_evidence, text = self.features.is_evidence, self.question["question"]
        return not any(is_evidence(text, row["text"]) for row in self.rankings["fused"])


def percent(part: int, whole: int) -> str:
    """A share as people read it, with the number behind it."""
    return f"{100 * part / whole:3.0f} % ({part}/{whole})" if whole else "-"


def recall(asked: list[Asked]) -> list[str]:
    """Recall by document and by part, for each ranking."""
    answerable = [one for one in asked if one.is_answerable]
    cells = []
    for ranking in ("words", "vectors", "fused"):
        shares = (
            sum(one.finds(ranking, key) for one in answerable) / len(answerable)
            for key in ("expected", "part")
        )
        cells.append(" / ".join(f"{share:.2f}" for share in shares))
    return cells


def alone(asked: list[Asked]) -> list[str]:
    """What one ranking finds among the first four and the other does not."""
    pairs = [
        (one.finds("words"), one.finds("vectors"), one.finds("fused"))
        for one in asked
        if one.is_answerable
    ]
    return [
        str(sum(words and not vectors for words, vectors, _ in pairs)),
        str(sum(vectors and not words for words, vectors, _ in pairs)),
        str(sum(not words and not vectors for words, vectors, _ in pairs)),
        str(sum((words or vectors) and not fused for words, vectors, fused in pairs)),
    ]


def refusals(asked: list[Asked]) -> list[str]:
    """How many of the answerable questions are refused, and of each other kind."""
    groups = [[one for one in asked if one.is_answerable]]
    groups += [[o for o in asked if o.question["kind"] == kind] for kind in REFUSED]
    return [percent(sum(o.is_refused() for o in g), len(g)) for g in groups]


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print a table in Markdown."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, ["-" * width for width in widths], *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"| {' | '.join(cells)} |")
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--lesson", default="08", help="two digits, from 08 on")
    parser.add_argument("--set", choices=("tune", "test"), help="one half only")
    options = parser.parse_args()
    sys.path.insert(0, str(COURSE / f"lesson-{options.lesson}"))
    import features
    from store import refresh

    own = features.ENOUGH
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder, "library.db")
        refresh(db, COURSE / "shared" / "corpus")
        asked = {
            language: [Asked(q, db) for q in questions(language, options.set)]
            for language in LANGUAGES
        }
    print(f"Recall among the first {FIRST}, by document / by part\n")
    rows = [[language, *recall(asked[language])] for language in LANGUAGES]
    table(["", "by words", "by vectors", "fused"], rows)
    print(
        f"Found among the first {FIRST} by one ranking only, of the answerable ones\n"
    )
    rows = [[language, *alone(asked[language])] for language in LANGUAGES]
    table(["", "words only", "vectors only", "neither", "lost by fusion"], rows)
    print("Refused, of each kind\n")
    rows = []
    for language in LANGUAGES:
        for features.ENOUGH in THRESHOLDS:
            mark = " (the rule)" if own == features.ENOUGH else ""
            cells = refusals(asked[language])
            rows.append([language, f"{features.ENOUGH:.2f}{mark}", *cells])
    table(["", "threshold", "answerable", *REFUSED], rows)


if __name__ == "__main__":
    main()
