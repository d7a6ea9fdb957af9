"""What every lesson promises, whatever it is about."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys

import pytest

# Installed packages that a lesson may import, and only when that backend is chosen.
ON_REQUEST = {"ollama": 8, "psycopg": 17}

TEA = "---\nid: tea\ntitle: Tea\n---\nGreen tea.\n\n## Чай\n\nЗелёный чай.\n"
WORDS = [
    "green",
    "paper",
    "чай",
    "cup",
    "three",
    "milk",
    "退款",
    "harbour",
    "seven",
    "days",
]
# Many words in uneven shares: sums that depend on the order of adding would differ.
MORE = {
    f"more-{number}": " ".join(WORDS[number % 5 :] + WORDS[: number % 4] * (number % 3))
    for number in range(12)
}


def imported(nodes):
    """Names of the modules that these statements import, with their line."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield ("." if node.level else node.module.partition(".")[0]), node


def at_start(tree):
    """All nodes that run when a module is imported: not those inside functions."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        ]


def trees(lesson):
    for path in sorted(lesson.folder.glob("*.py")):
        yield path.name, ast.parse(path.read_text(encoding="utf-8"), path.name)


@pytest.mark.lessons(1)
def test_only_the_standard_library_and_its_own_files_are_imported_at_start(lesson):
    own = {path.stem for path in lesson.folder.glob("*.py")}
    for name, tree in trees(lesson):
        for module, node in imported(at_start(tree)):
            assert module in sys.stdlib_module_names | own, (
                f"{name}:{node.lineno} imports {module} at its start"
            )


@pytest.mark.lessons(1)
def test_other_packages_come_with_the_lesson_that_needs_them(lesson):
    own = {path.stem for path in lesson.folder.glob("*.py")}
    allowed = {name for name, first in ON_REQUEST.items() if lesson.number >= first}
    for name, tree in trees(lesson):
        for module, node in imported(ast.walk(tree)):
            assert module in sys.stdlib_module_names | own | allowed, (
                f"{name}:{node.lineno} imports {module}"
            )


@pytest.mark.lessons(1)
def test_no_file_of_a_lesson_hides_a_module_of_the_standard_library(lesson):
    own = {path.stem for path in lesson.folder.glob("*.py")}
    assert own & set(sys.stdlib_module_names) == set()


@pytest.mark.lessons(1)
def test_it_runs_with_no_package_installed_and_no_setting_read(lesson, library):
    library.write("tea.md", TEA)
    copy = library.folder.parent / "lesson"  # -E hides LIBRARY_DB, so a folder apart
    shutil.copytree(lesson.folder, copy, ignore=shutil.ignore_patterns("*.db*", "__*"))
    words = ["--library", library.folder, "green"] if lesson.number > 1 else []
    done = subprocess.run(
        [sys.executable, "-S", "-E", copy / "app.py", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=lesson.environment(),
    )
    assert done.returncode == 0, done.stderr.decode()
    wanted = "Green tea" if lesson.number > 1 else "rule"
    assert wanted in done.stdout.decode("utf-8")


@pytest.mark.lessons(1)
def test_no_file_is_opened_without_an_encoding_and_nothing_warns(lesson, library):
    library.write("tea.md", TEA)
    words = ["--json", "чай"] if lesson.number > 1 else []
    flags = ["-X", "warn_default_encoding", "-W", "error"]
    done = subprocess.run(
        [sys.executable, *flags, *lesson.command(*words)[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=lesson.environment(LIBRARY=library.folder, PYTHONWARNINGS=None),
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"Warning" not in done.stderr


@pytest.mark.lessons(1)
def test_help_names_every_option(lesson):
    result = lesson.run("--help", COLUMNS=80)
    assert (result.status, result.stderr) == (0, "")
    assert result.stdout.startswith("usage: ")
    assert max(map(len, result.stdout.splitlines())) <= 80
    options = {
        argument.value
        for _, tree in trees(lesson)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") == "add_argument"
        for argument in node.args
        if isinstance(argument, ast.Constant)
    }
    assert options and all(option in result.stdout for option in options)


@pytest.mark.lessons(2)
def test_options_arrive_with_the_lesson_that_needs_them(lesson):
    text = lesson.run("--help").stdout
    first = {"--library": 2, "--budget": 2, "--json": 2, "--limit": 4, "--role": 5}
    first |= {"--where": 5, "--db": 6, "--rebuild": 6}
    for option, number in first.items():
        assert (option in text) == (lesson.number >= number), option


@pytest.mark.lessons(2)
def test_results_depend_on_neither_hash_seed_nor_order_of_files(lesson, tmp_path):
    outputs = set()
    names = list(MORE)
    orders = {0: names, 1: names[::-1], 7: names[3:] + names[:3]}
    for seed, order in orders.items():
        folder = tmp_path / "library"
        folder.mkdir()
        for name in order:
            (folder / f"{name}.md").write_bytes(MORE[name].encode())
        result = lesson.run(
            "--json",
            "--budget=99999",
            " ".join(WORDS),
            LIBRARY=folder,
            LIBRARY_DB=tmp_path / f"{seed}.db",
            PYTHONHASHSEED=seed,
        )
        assert result.status == 0
        outputs.add(result.stdout)
        folder.rename(tmp_path / f"library-{seed}")
    assert len(outputs) == 1, "the same library gave different answers"


@pytest.mark.lessons(2)
def test_the_working_folder_and_the_time_do_not_matter(lesson, library, tmp_path):
    library.write("tea.md", TEA)
    command = lesson.command("--json", "чай")
    outputs = []
    for folder, zone in ((tmp_path, "UTC"), (lesson.folder, "Asia/Shanghai")):
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=folder,
            env=lesson.environment(LIBRARY=library.folder, TZ=zone),
        )
        outputs.append((done.returncode, done.stdout))
    assert outputs[0] == outputs[1] and outputs[0][0] == 0
