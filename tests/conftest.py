"""What all tests share: the lessons as parameters, and each lesson in isolation.

A test says from which lesson to which it holds, and runs on each of them:

    @pytest.mark.lessons(4, 17)
    def test_any_text_is_a_legal_question(lesson):
        search = lesson.load("search")
        assert search.search("", []) == []

    @pytest.mark.lessons(2)                       # from 2 on, to the last one
    def test_the_question_may_come_from_stdin(lesson, library):
        library.write("tea.md", "# Tea\\n\\nGreen tea.\\n")
        result = lesson.run("--json", "-", stdin="tea", LIBRARY=library.folder)
        assert result.status == 0 and result.json["status"] == "found"

    @pytest.mark.lessons(7)
    @pytest.mark.task("pack")                     # judges the exercise "pack"
    def test_the_next_row_is_tried(lesson): ...

`lesson` is a `Lesson`, `library` a `Library`; both are described below.

Options: `--lesson=07` runs only this lesson (may be repeated); `--folder=DIR` takes
that folder in place of lesson-07, for the work of a learner (write the `=`: pytest
reads options before it knows ours; may be repeated); `--task=NAME` runs only what
judges that exercise (may be repeated).  With `--record=FILE` the last call of every
exercise function and the outcome of every test are kept as JSON lines for
`python shared/course check`; `--first-failure` runs no more tests on a folder once
one has failed on it.
"""

from __future__ import annotations

import builtins
import faulthandler
import functools
import importlib.util
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import hypothesis
import pytest

COURSE = Path(__file__).resolve().parent.parent
FAILED = pytest.StashKey[set]()  # folders with a failure, for --first-failure
TIME_LIMIT = 120  # seconds for one run of an app; a run normally takes less than one

# A test sees none of the settings of the person who runs it.  Everything else that
# Python and SQLite need on the three systems is passed on.
PASSED_ON = (
    *("PATH", "PATHEXT", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC"),
    *("TEMP", "TMP", "TMPDIR", "HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"),
    "LD_LIBRARY_PATH",
)
SETTINGS = (
    "LIBRARY",
    "LIBRARY_DB",
    "ANSWER_",
    "EMBED_",
    "OLLAMA_",
    "DATABASE_",
    "RECEIPT",
    "PG",
    "TOKENS",
)
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

hypothesis.settings.register_profile(
    "course",
    deadline=None,  # a slow machine is no fault
    # CI, and `check` for a learner, give the same verdict twice.
    derandomize=bool(os.environ.get("CI") or os.environ.get("COURSE_TASKS")),
    print_blob=True,
    suppress_health_check=[
        # `lesson` and `library` serve all examples of a test: lessons keep no state.
        hypothesis.HealthCheck.function_scoped_fixture,
        hypothesis.HealthCheck.too_slow,
    ],
)
hypothesis.settings.load_profile("course")


def heed_ctrl_c() -> None:
    """Let a process that is about to start hear Ctrl+C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def is_setting(name: str) -> bool:
    """Whether an environment variable could change what an app answers."""
    return name.upper().startswith(SETTINGS) or name.lower() in PROXIES


@dataclass
class Result:
    """What a run of an app left: exit `status`, `stdout` and `stderr` as text.

    Output that is not UTF-8 is a failure of the test.  Windows line ends are read
    as plain newlines.
    """

    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict:
        """The one JSON object on stdout (anything beside it is an error)."""
        return json.loads(self.stdout)


class Namespace:
    """The modules of one lesson, imported without leaving traces for other lessons.

    Modules of different lessons have the same names, so none may stay in
    `sys.modules` under that name, and no folder may stay on `sys.path`.  Therefore
    each module gets an `__import__` of its own: it serves the lesson's files from
    here and everything else as usual.  It works in an `import` at the top of a
    module and in one that a function runs much later.

    Under the full name (`lesson_07.search`) the modules do stand in `sys.modules`
    while the test runs: dataclasses and type hints look there.

    The built-ins are copied with it.  To replace one for a test, set the name in the
    module: `monkeypatch.setattr(search, "open", broken, raising=False)`.
    """

    def __init__(self, folder: Path, prefix: str, watch: Recorder | None = None):
        self.folder = folder
        self.prefix = prefix
        self.modules: dict[str, ModuleType] = {}
        self.watch = watch

    def load(self, name: str) -> ModuleType:
        """The module `name` of the lesson; all calls share one import of it."""
        if name in self.modules:
            return self.modules[name]
        path = self.folder / f"{name}.py"
        if not path.is_file():
            raise ModuleNotFoundError(f"{path} does not exist", name=name)
        full_name = f"{self.prefix}.{name}"
        spec = importlib.util.spec_from_file_location(full_name, path)
        module = importlib.util.module_from_spec(spec)
        module.__builtins__ = {**vars(builtins), "__import__": self.import_}
        self.modules[name] = sys.modules[full_name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            self.forget(name)
            raise
        if self.watch:
            self.watch.wrap(module, name)
        return module

    def import_(self, name, globals=None, locals=None, fromlist=(), level=0):
        if level == 0 and (self.folder / f"{name}.py").is_file():
            return self.load(name)
        return builtins.__import__(name, globals, locals, fromlist, level)

    def forget(self, name: str) -> None:
        self.modules.pop(name, None)
        sys.modules.pop(f"{self.prefix}.{name}", None)

    def close(self) -> None:
        for name in list(self.modules):
            self.forget(name)


@dataclass
class Lesson:
    """One lesson under test: `number` (from 1), `folder`, `load`, `run`."""

    number: int
    folder: Path
    home: Path = field(repr=False)  # a folder of this test, for its database
    settings: dict[str, str] = field(repr=False)  # what every run gets
    namespace: Namespace = field(repr=False)

    def load(self, module: str, fresh: bool = False) -> ModuleType:
        """Import a module of this lesson, apart from all other lessons.

        Within one test all modules belong together (`load("library").Document` is
        the class that `load("search")` works with); the next test gets them anew.
        `fresh=True` imports the whole lesson again, for a test about importing.
        """
        if fresh:
            self.namespace.close()
        return self.namespace.load(module)

    def is_end(self, first: int) -> bool:
        """Whether this is the first or the last lesson of a long test.

        In between, the code is the same or nearly so: a share of the work will do.
        """
        return self.number in (first, existing_lessons()[-1])

    def has(self, module: str) -> bool:
        """Whether this lesson has the module."""
        return (self.folder / f"{module}.py").is_file()

    def environment(self, **env: object) -> dict[str, str]:
        """The environment of a run: clean, with a database of this test.

        A value of None takes a variable away.
        """
        clean = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        clean |= self.settings
        for name, value in env.items():
            if value is None:
                clean.pop(name, None)
            else:
                clean[name] = str(value)
        return clean

    def command(self, *args: object) -> list[str]:
        """The command line of this lesson's app."""
        return [sys.executable, str(self.folder / "app.py"), *map(str, args)]

    def start(self, *args: object, **env: object) -> subprocess.Popen:
        """Start app.py and do not wait (for tests that stop it or talk to it)."""
        return subprocess.Popen(
            self.command(*args),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=self.environment(**env),
            # Tests that run in the background were told to ignore Ctrl+C, and so
            # would be what they start.
            preexec_fn=heed_ctrl_c if os.name == "posix" else None,
        )

    def run(
        self,
        *args: object,
        stdin: str | bytes | None = None,
        timeout: float = TIME_LIMIT,
        **env: object,
    ) -> Result:
        """Run app.py with these arguments in a process of its own.

        `stdin` is text (sent as UTF-8) or bytes; without it standard input is empty.
        Keywords in capitals set the environment: `LIBRARY=library.folder`.
        A file that is opened without an encoding is an error in such a run.
        """
        done = subprocess.run(
            self.command(*args),
            input=stdin.encode() if isinstance(stdin, str) else stdin or b"",
            capture_output=True,
            cwd=self.folder,
            env=self.environment(**env),
            timeout=timeout,
        )
        stdout, stderr = (
            output.decode("utf-8").replace("\r\n", "\n")
            for output in (done.stdout, done.stderr)
        )
        return Result(done.returncode, stdout, stderr)


@dataclass
class Library:
    """A folder of Markdown files for one test: `folder`, `write`."""

    folder: Path

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file (UTF-8, newlines as given) and return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def __fspath__(self) -> str:
        return str(self.folder)

    def __str__(self) -> str:
        return str(self.folder)


class Recorder:
    """Keeps the last call of every exercise function, for `check`.

    The names come from the environment: COURSE_TASKS=context.pack,search.terms
    """

    def __init__(self) -> None:
        names = os.environ.get("COURSE_TASKS", "").split(",")
        self.names = {name for name in names if name}
        self.calls: dict[str, dict] = {}

    def wrap(self, module: ModuleType, module_name: str) -> None:
        for name in self.names:
            home, _, function = name.partition(".")
            original = getattr(module, function, None)
            if home == module_name and callable(original):
                setattr(module, function, self.watched(function, original))

    def watched(self, name: str, original):
        @functools.wraps(original)
        def call(*args, **kwargs):
            shown = [short(value) for value in args]
            shown += [f"{key}={short(value)}" for key, value in kwargs.items()]
            record = {"called": f"{name}({', '.join(shown)})"}
            self.calls[name] = record
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                record["raised"] = f"{type(error).__name__}: {error}"
                raise
            finally:
                self.calls[name] = record  # a recursive call came in between
            record["returned"] = short(result)
            return result

        return call


def short(value: object, limit: int = 300) -> str:
    """A value as a learner would write it, cut where it gets long."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def pytest_addoption(parser):
    group = parser.getgroup("course")
    group.addoption(
        "--lesson",
        action="append",
        type=int,
        default=[],
        metavar="NN",
        help="run on this lesson only (may be repeated)",
    )
    group.addoption(
        "--folder",
        action="append",
        type=Path,
        default=[],
        metavar="DIR",
        help="take this folder in place of lesson-NN (needs one --lesson NN; may be "
        "repeated)",
    )
    group.addoption(
        "--first-failure",
        action="store_true",
        help="once a test has failed on a folder, run no other on it",
    )
    group.addoption(
        "--task",
        action="append",
        default=[],
        metavar="NAME",
        help="run only tests that judge this exercise (may be repeated)",
    )
    group.addoption(
        "--record",
        type=Path,
        metavar="FILE",
        help="write outcomes and calls there, one JSON object per line",
    )


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "lessons(first, last=99): run the test on every existing lesson in this range",
    )
    config.addinivalue_line(
        "markers", "task(*names): the test judges these exercises of the lesson"
    )
    if config.option.folder and len(config.option.lesson) != 1:
        raise pytest.UsageError("--folder DIR needs exactly one --lesson NN")


def existing_lessons() -> list[int]:
    """Numbers of all lesson folders."""
    folders = COURSE.glob("lesson-[0-9][0-9]")
    return sorted(int(folder.name[-2:]) for folder in folders if folder.is_dir())


class Place(NamedTuple):
    """A lesson as the parameter of a test: its number and the folder to take."""

    number: int
    folder: Path


def lesson_range(first: int, last: int = 99) -> range:
    return range(first, last + 1)


def pytest_generate_tests(metafunc):
    if "lesson" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("lessons")
    if marker is None:
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid} uses `lesson` but does not say from which "
            "lesson it holds: add @pytest.mark.lessons(first, last)"
        )
    wanted = metafunc.config.option.lesson
    holds = lesson_range(*marker.args, **marker.kwargs)
    places = [
        Place(number, folder.resolve())
        for number in existing_lessons()
        if number in holds and (not wanted or number in wanted)
        for folder in metafunc.config.option.folder or [COURSE / f"lesson-{number:02}"]
    ]
    several = len(metafunc.config.option.folder) > 1
    ids = [
        f"lesson-{place.number:02}" + (f"-{place.folder.name}" if several else "")
        for place in places
    ]
    metafunc.parametrize("lesson", places, ids=ids, indirect=True)


def pytest_collection_modifyitems(config, items):
    """With --lesson, leave out what is about no lesson or about other ones.

    With --record, leave out what began in an earlier run: it did not come back.
    """
    if not config.option.lesson:
        return
    earlier = earlier_lines(config.option.record)
    began = {line["test"] for line in earlier}
    ended = {line["test"] for line in earlier if line["outcome"] != "began"}
    config.stash[FAILED] = {
        Path(line["folder"])
        for line in earlier
        if line["outcome"] == "failed" or line["test"] not in ended
    }
    kept, left_out = [], []
    for item in items:
        place = place_of(item)
        wanted = (
            place is not None
            and place.number in config.option.lesson
            and item.nodeid not in began
        )
        if config.option.task:
            marker = item.get_closest_marker("task")
            judged = marker.args if marker else ()
            wanted = wanted and not set(config.option.task).isdisjoint(judged)
        (kept if wanted else left_out).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)


def place_of(item) -> Place | None:
    """Which lesson a test is about, None for a test about no lesson."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    place = parameters.get("lesson")
    return place if isinstance(place, Place) else None


@pytest.fixture(scope="session")
def course_tool():
    """The modules of the course tool: `course_tool.load("texts").check_text(…)`."""
    namespace = Namespace(COURSE / "shared" / "course", "course_tool")
    yield namespace
    namespace.close()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path):
    """No test sees settings from outside; the database is one of this test."""
    for name in list(os.environ):
        if is_setting(name):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LIBRARY_DB", str(tmp_path / "library.db"))


@pytest.fixture
def lesson(request, tmp_path):
    """The lesson under test, a `Lesson`."""
    number, folder = request.param
    settings = {
        "LIBRARY_DB": str(tmp_path / "library.db"),
        "PYTHONWARNDEFAULTENCODING": "1",
        "PYTHONWARNINGS": "error::EncodingWarning",
    }
    first_failure = request.config.option.first_failure
    if first_failure and folder in request.config.stash.get(FAILED, ()):
        pytest.skip("a test has failed on this folder")
    if COURSE not in folder.parents:  # a learner's folder far from the course
        settings["LIBRARY"] = str(COURSE / "shared" / "corpus")
        settings["TOKENS"] = str(COURSE / "shared" / "tokens" / "merges.txt")
        for name in ("LIBRARY", "TOKENS"):
            request.getfixturevalue("monkeypatch").setenv(name, settings[name])
    if "COURSE_GUARD" in os.environ:  # `grade`: what an app may do is limited too
        for name in ("PYTHONPATH", "COURSE_GUARD", "COURSE_MEMORY"):
            settings[name] = os.environ[name]
    watch = Recorder() if request.config.option.record else None
    namespace = Namespace(folder, f"lesson_{number:02}", watch)
    request.node.course_recorder = watch
    yield Lesson(number, folder, tmp_path, settings, namespace)
    namespace.close()


@pytest.fixture
def library(tmp_path):
    """An empty library for this test, a `Library`."""
    folder = tmp_path / "library"
    folder.mkdir()
    return Library(folder)


def earlier_lines(record: Path | None) -> list[dict]:
    """What an earlier run, which did not come to its end, has recorded."""
    if record is None or not record.is_file():
        return []
    lines = record.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.endswith("}")]


def write_record(item, outcome: str, **more: object) -> None:
    """With --record, one line about a test: its name, what it says, its outcome."""
    if item.config.option.record is None:
        return
    marker = item.get_closest_marker("task")
    line = {
        "test": item.nodeid,
        "says": (item.function.__doc__ or item.originalname).strip(),
        "tasks": list(marker.args) if marker else [],
        "folder": str(place.folder) if (place := place_of(item)) else "",
        "outcome": outcome,
    }
    with item.config.option.record.open("a", encoding="utf-8", newline="\n") as lines:
        lines.write(json.dumps(line | more, ensure_ascii=False) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """With --record, a test that does not end takes the whole process with it.

    `check` then goes on behind it; a loop inside one process cannot be stopped in
    another way that works on every system.
    """
    seconds = float(os.environ.get("COURSE_TEST_SECONDS", "0"))
    if item.config.option.record is None or not seconds:
        return (yield)
    write_record(item, "began")
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_assertrepr_compare(config, op, left, right):
    """Keeps what a failing comparison expected; pytest explains it as always."""
    config.course_expected = short(right) if op == "==" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """With --record, keep the outcome, the last calls and the message."""
    report = yield
    if report.failed and item.config.option.first_failure and place_of(item):
        item.config.stash.setdefault(FAILED, set()).add(place_of(item).folder)
    if report.when == "call" or not report.passed:
        watch = getattr(item, "course_recorder", None)
        more: dict[str, object] = {"calls": watch.calls if watch else {}}
        if call.excinfo is not None:
            more["error"] = call.excinfo.typename
            more["message"] = call.excinfo.exconly()
            expected = getattr(item.config, "course_expected", None)
            if expected and isinstance(call.excinfo.value, AssertionError):
                more["expected"] = expected
        item.config.course_expected = None
        write_record(item, report.outcome, **more)
    return report
