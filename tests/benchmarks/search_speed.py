"""How fast a lesson publishes and answers, beside bm25s and SQLite's own FTS5.

    python tests/benchmarks/search_speed.py [--parts 1000 10000 100000]
        [--lessons 07 10] [--questions 40] [--seed 1]

It makes a library of Markdown files: parts of about 500 characters, ten to a document,
in English, Russian and Chinese, with word frequencies as in natural texts (Zipf's law;
the frequent words are those of the course's corpus, the rare ones are made up of its
letters). A tenth of the documents is for editors only. Each lesson is then measured
in a process of its own, since the modules of all lessons have the same names.

FTS5 and bm25s are given the same terms as the lesson, and their question is what the
lesson's is: from its text to the ids of the best four. bm25s is no part of the course;
where it is not installed, its column is empty and the script says so:

    python3 -m venv /tmp/bench && /tmp/bench/bin/pip install bm25s
    /tmp/bench/bin/python tests/benchmarks/search_speed.py

Times are wall-clock on this machine; let it do nothing else meanwhile. With `--cpu`
they are processor time instead, which other programs disturb less: that is how to
measure on a machine that is shared. The memory of questions is the growth of the
largest resident size (RSS) over all of them.
"""

import argparse
import importlib.util
import json
import os
import platform
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

COURSE = Path(__file__).resolve().parents[2]
LANGUAGES = ("en", "ru", "zh")
KINDS = ("short", "long", "common", "russian", "chinese")
CHARACTERS = 500  # in a part
VOCABULARY = {"en": 60_000, "ru": 60_000, "zh": 20_000}  # words
SECTIONS = 10  # parts in a document
COLD_RUNS = 9

# ---- a library of made-up texts


def word_list(language: str, rng: random.Random) -> list[str]:
    """The words of a language, the most frequent first, then made-up ones."""
    folder = COURSE / "shared" / "corpus" / language
    text = " ".join(path.read_text(encoding="utf-8") for path in folder.glob("*.md"))
    if language == "zh":
        # Words of one to three characters, as if Chinese were written with spaces.
        runs = re.findall(r"[\u4e00-\u9fff]+", text)
        units = [run[i : i + rng.choice((1, 2, 2))] for run in runs for i in (0, 2, 4)]
    else:
        units = re.findall(r"[^\W\d_]+", text.casefold())
    words = [word for word, _ in Counter(filter(None, units)).most_common()]
    letters = "".join(units)
    known = set(words)
    while len(words) < VOCABULARY[language]:
        if language == "zh":
            word = "".join(rng.choices(letters, k=rng.choice((2, 2, 3))))
        else:  # pieces of real words, so that letters follow each other as they do
            pieces = rng.choices(units, k=3)
            word = "".join(piece[: rng.randint(2, 4)] for piece in pieces)
        if word not in known:
            known.add(word)
            words.append(word)
    return words


class Texts:
    """Made-up texts of the three languages, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.words = {name: word_list(name, self.rng) for name in LANGUAGES}
        # Zipf's law as Mandelbrot mended it for the first ranks.
        self.weights = {
            name: list(accumulate(1 / (r + 2.7) for r in range(len(words))))
            for name, words in self.words.items()
        }

    def draw(self, language: str, count: int) -> list[str]:
        """So many words, drawn with their frequencies."""
        words, weights = self.words[language], self.weights[language]
        return self.rng.choices(words, cum_weights=weights, k=count)

    def text(self, language: str, characters: int = CHARACTERS) -> str:
        """A text of about so many characters."""
        chosen: list[str] = []
        length = 0
        space = "" if language == "zh" else " "
        drawn = iter(self.draw(language, characters))
        while length < characters:
            chosen.append(next(drawn))
            length += len(chosen[-1]) + len(space)
        return space.join(chosen)

    def document(self, number: int) -> str:
        """A Markdown file of ten sections; every tenth one is for editors only."""
        language = LANGUAGES[number % 3]
        role = "editor" if number % 10 == 9 else "reader"
        lines = ["---", f"id: made-{number:06}", f"title: Paper {number}"]
        lines += [f"lang: {language}", f"role: {role}", "---"]
        for section in range(1, SECTIONS + 1):
            lines += [f"## {self.text(language, 12)} {section}", ""]
            lines += [self.text(language), ""]
        return "\n".join(lines)

    def questions(self, each: int) -> dict[str, list[str]]:
        """So many questions of each kind, in words of the library."""
        rng = self.rng
        questions: dict[str, list[str]] = {}
        common = {language: words[:100] for language, words in self.words.items()}
        pieces = {
            "short": ("en", 2, 3),
            "long": ("en", 15, 25),
            "russian": ("ru", 5, 8),
            "chinese": ("zh", 4, 6),
        }
        for kind, (language, least, most) in pieces.items():
            questions[kind] = []
            for _ in range(each):
                drawn = self.draw(language, 200)
                # A third are common words; the rest says what it is about.
                telling = [word for word in drawn if word not in common[language]]
                count = rng.randint(least, most)
                usual = [word for word in drawn if word in common[language]]
                chosen = usual[: count // 3] + telling[: count - count // 3]
                questions[kind].append(("" if language == "zh" else " ").join(chosen))
        questions["common"] = [
            ("" if language == "zh" else " ").join(rng.sample(common[language][:15], 5))
            for language in rng.choices(LANGUAGES, k=each)
        ]
        return questions


def write_library(folder: Path, parts: int, seed: int, each: int) -> Path:
    """Write the files of a library and its questions; return the questions' file."""
    texts = Texts(seed)
    for number in range(parts // SECTIONS):
        path = folder / "library" / f"{number // 100:04}" / f"{number:06}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts.document(number), encoding="utf-8", newline="\n")
    asked = folder / "questions.json"
    questions = texts.questions(each)
    asked.write_text(json.dumps(questions), encoding="utf-8")
    return asked


# ---- what is measured, each in a process of its own


CPU = "SEARCH_SPEED_CPU"  # the setting by which the processes know of --cpu


def now() -> float:
    """Seconds on the chosen clock; processor time includes that of child processes."""
    if not os.environ.get(CPU):
        return time.perf_counter()
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def seconds(action: Callable[[], object]) -> float:
    """How long something takes."""
    start = now()
    action()
    return now() - start


def peak_mb() -> float:
    """The largest resident size of this process so far; NaN where it is unknown."""
    # On Linux the size of the parent counts as well in what `getrusage` tells.
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"VmHWM:\s+(\d+)", status.read_text("utf-8"))[0]) / 1024
    try:
        import resource
    except ImportError:
        return float("nan")
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1024 if sys.platform != "darwin" else 1024 * 1024)


def all_times(
    questions: dict[str, list[str]], ask: Callable[[str], object]
) -> dict[str, list[float]]:
    """Milliseconds for each question, by kind; some questions are asked before."""
    for kind in KINDS:
        ask(questions[kind][0])
    return {
        kind: [1000 * seconds(lambda q=q: ask(q)) for q in questions[kind]]
        for kind in KINDS
    }


def measure_publish(folder: Path) -> dict[str, Any]:
    """Time to publish everything, and then one changed document."""
    import library
    import store

    db, files = folder / "library.db", folder / "library"
    time.sleep(3)  # only files that are older than two seconds are known by their times
    result = {"publish": seconds(lambda: store.refresh(db, files))}
    result["size_mb"] = db.stat().st_size / 1e6
    path = min(files.rglob("*.md"))
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "\nA last word.\n", encoding="utf-8", newline="\n")
    time.sleep(3)
    result["change_file"] = seconds(lambda: store.refresh(db, files))
    if hasattr(store, "put"):
        documents = library.load(files)[0][10:210:20]
        changed = [
            replace(document, body=document.body + "\n\nA new last word.")
            for document in documents
        ]
        times = [seconds(lambda d=d: store.put(db, d)) for d in changed]
        result["change"] = statistics.median(times)
    return result


def measure_questions(folder: Path) -> dict[str, Any]:
    """Times of lexical and of hybrid questions, and the memory that they take."""
    from store import open_snapshot

    db = folder / "library.db"
    questions = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    before = peak_mb()
    result: dict[str, Any] = {}
    for role in ("reader", "editor"):

        def ask(question: str, role: str = role) -> object:
            with open_snapshot(db) as snapshot:
                return snapshot.search(question, role, 4)

        result[role] = all_times(questions, ask)
    result["memory"] = peak_mb() - before
    try:
        from hybrid import hybrid_search
    except ImportError:
        return result
    for role in ("reader", "editor"):
        result[f"hybrid {role}"] = all_times(
            questions, lambda q, role=role: hybrid_search(q, role, 6, path=db)
        )
    result["memory"] = peak_mb() - before
    return result


def measure_fts5(folder: Path) -> dict[str, Any]:
    """The same library and questions in FTS5, ranked by its own bm25."""
    from library import load, split
    from terms import terms

    documents, _ = load(folder / "library")
    questions = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    db = sqlite3.connect(folder / "fts5.db")

    def texts() -> Iterator[tuple[str]]:
        for document in documents:
            for part in split(document):
                yield (" ".join(terms(f"{part.heading}\n{part.body}")),)

    def publish() -> None:
        db.execute("CREATE VIRTUAL TABLE parts USING fts5(text)")
        with db:
            db.executemany("INSERT INTO parts VALUES (?)", texts())

    def ask(question: str) -> object:
        words = " OR ".join(f'"{term}"' for term in dict.fromkeys(terms(question)))
        query = "SELECT rowid FROM parts WHERE parts MATCH ? ORDER BY rank LIMIT 4"
        return db.execute(query, [words]).fetchall()

    result: dict[str, Any] = {"publish": seconds(publish)}
    before = peak_mb()
    result["editor"] = all_times(questions, ask)
    result["memory"] = peak_mb() - before
    return result


def measure_bm25s(folder: Path) -> dict[str, Any]:
    """The same library and questions in bm25s, in memory, ready to be asked."""
    import bm25s
    from library import load, split
    from terms import terms

    documents, _ = load(folder / "library")
    questions = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = {}
    ranker = bm25s.BM25(k1=1.2, b=0.75)

    def publish() -> None:
        ids = [
            [
                vocabulary.setdefault(term, len(vocabulary))
                for term in terms(f"{part.heading}\n{part.body}")
            ]
            for document in documents
            for part in split(document)
        ]
        ranker.index((ids, vocabulary), show_progress=False)

    def ask(question: str) -> object:
        ids = [vocabulary[term] for term in terms(question) if term in vocabulary]
        return ranker.retrieve([ids], k=4, show_progress=False)

    result: dict[str, Any] = {"publish": seconds(publish)}
    before = peak_mb()
    result["editor"] = all_times(questions, ask)
    result["memory"] = peak_mb() - before
    return result


def measure_cold(folder: Path, lesson: str) -> dict[str, float]:
    """Milliseconds of app.py, from its start to the packed context, over a `pass`."""
    questions = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    app = COURSE / f"lesson-{lesson}" / "app.py"
    where = ["--library", folder / "library", "--db", folder / "library.db", "--json"]

    def run(*arguments: object) -> float:
        command = [sys.executable, *map(str, arguments)]
        options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        # Some machines tell Python not to keep compiled modules: that is not measured.
        options["env"] = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
        return 1000 * seconds(lambda: subprocess.run(command, check=True, **options))

    asked = [questions[kind][0] for kind in KINDS]
    run(app, *where, asked[0])
    times, nothing = [], []
    for number in range(COLD_RUNS):
        nothing.append(run("-c", "pass"))
        times.append(run(app, *where, asked[number % len(asked)]))
    return {"cold": statistics.median(times) - statistics.median(nothing)}


MEASURES = {
    "publish": measure_publish,
    "questions": measure_questions,
    "fts5": measure_fts5,
    "bm25s": measure_bm25s,
}


def measured(what: str, lesson: str, folder: Path) -> dict[str, Any]:
    """Measure something in a process of its own."""
    command = [sys.executable, __file__, "--measure", what, lesson, str(folder)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(run.stdout)


# ---- the table


def share(times: list[float], part: float) -> float:
    """The time that this share of the questions does not exceed."""
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]


def everything(times: dict[str, list[float]]) -> list[float]:
    return [one for kind in KINDS for one in times[kind]]


def p50(times: dict[str, list[float]]) -> float:
    return share(everything(times), 0.5)


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print a table in Markdown."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, ["-" * width for width in widths], *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"| {' | '.join(cells)} |")
    print(flush=True)


def show_questions(results: dict[str, dict[str, Any]]) -> None:
    """Print p50 and p95 in milliseconds, for each kind of question."""
    rows = []
    for name, result in results.items():
        for key in ("reader", "editor", "hybrid reader", "hybrid editor"):
            if key in result:
                times = [result[key][kind] for kind in KINDS] + [
                    everything(result[key])
                ]
                cells = [f"{share(t, 0.5):.1f} / {share(t, 0.95):.1f}" for t in times]
                rows.append([f"{name}, {key}", *cells])
    print("Milliseconds for a question, p50 / p95\n")
    table(["", *KINDS, "all"], rows)


def show_goals(
    parts: int, results: dict[str, dict[str, Any]], smaller: dict[str, float]
) -> dict[str, float]:
    """Print the figures beside the goals; return p50 by lesson, for the growth."""
    rows, medians = [], {}
    other = results.get("bm25s")
    for name in [name for name in results if name.isdigit()]:
        result = results[name]
        medians[name] = p50(result["editor"])
        for role in ("reader", "editor"):
            times = everything(result[role])
            ratio = p50(result[role]) / p50(other["editor"]) if other else None
            rows += [
                [f"{name}: question by words, {role}, p50", "≤ 5 ms"]
                + [f"{share(times, 0.5):.1f} ms"],
                [f"{name}: question by words, {role}, p95", "≤ 60 ms"]
                + [f"{share(times, 0.95):.1f} ms"],
                [f"{name}: p50 over that of bm25s, {role}", "≤ 0.5"]
                + [f"{ratio:.2f}" if ratio else "bm25s is not installed"],
            ]
            if hybrid := result.get(f"hybrid {role}"):
                rows.append(
                    [f"{name}: hybrid question, {role}, p50", "≤ 45 ms"]
                    + [f"{p50(hybrid):.1f} ms"]
                )
        rows += [
            [f"{name}: memory added by questions", "≤ 60 MB"]
            + [f"{result['memory']:.0f} MB"],
            [f"{name}: publish", "≥ 6,000 parts/s"]
            + [f"{parts / result['publish']:,.0f} parts/s"],
            [f"{name}: one changed file, found and published", "≥ 50 times faster"]
            + [f"{result['publish'] / result['change_file']:.0f} times"],
            [f"{name}: cold start over `pass`", "≤ 150 ms", f"{result['cold']:.0f} ms"],
        ]
        if "change" in result:
            rows.append(
                [f"{name}: one changed document, put", "≥ 50 times faster"]
                + [f"{result['publish'] / result['change']:.0f} times"]
            )
        if name in smaller:
            rows.append(
                [f"{name}: p50 over that of ten times fewer parts", "≤ 12"]
                + [f"{medians[name] / smaller[name]:.1f}"]
            )
        rows.append([f"{name}: size of the file", "-", f"{result['size_mb']:.0f} MB"])
    for name in ("fts5", "bm25s"):
        if name in results:
            rate = parts / results[name]["publish"]
            rows.append([f"{name}: publish", "-", f"{rate:,.0f} parts/s"])
            memory = results[name]["memory"]
            rows.append([f"{name}: memory added by questions", "-", f"{memory:.0f} MB"])
    print("Figures and goals (the goals are those for 100,000 parts)\n")
    table(["", "goal", "figure"], rows)
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--parts", type=int, nargs="+", default=[1000, 10000, 100000])
    parser.add_argument("--lessons", nargs="+", default=["07", "10"])
    parser.add_argument("--questions", type=int, default=40, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu", action="store_true", help="processor time")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        what, lesson, folder = options.measure
        sys.path.insert(0, str(COURSE / f"lesson-{lesson}"))
        print(json.dumps(MEASURES[what](Path(folder))))
        return
    if options.cpu:
        os.environ[CPU] = "1"
    print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version},")
    print(f"{platform.system()}, {os.cpu_count()} cores,")
    print("processor time\n" if options.cpu else "wall-clock time\n")
    medians: dict[str, float] = {}
    for parts in options.parts:
        print(f"## {parts:,} parts\n", flush=True)
        results: dict[str, dict[str, Any]] = {}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_library(folder, parts, options.seed, options.questions)
            first = options.lessons[0]
            results["fts5"] = measured("fts5", first, folder)
            if importlib.util.find_spec("bm25s"):
                results["bm25s"] = measured("bm25s", first, folder)
            else:
                print("bm25s is NOT installed: no comparison with it\n", flush=True)
            for lesson in options.lessons:
                (folder / "library.db").unlink(missing_ok=True)
                result = results[lesson] = measured("publish", lesson, folder)
                result |= measured("questions", lesson, folder)
                result |= measure_cold(folder, lesson)
        show_questions(results)
        medians = show_goals(parts, results, medians)


if __name__ == "__main__":
    main()
