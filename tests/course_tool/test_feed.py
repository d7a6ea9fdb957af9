"""`feed`: a fix arrives in every later lesson, or stops with nothing half done."""

import subprocess
import sys

import pytest


def test_feed_carries_a_fix_on(repository):
    made = repository
    two, three = made.read("lesson-02/app.py"), made.read("lesson-03/app.py")
    made.edit("lesson-01/app.py", '"bye"', '"goodbye"')
    made.edit("lesson-03/app.py", '"""Greets."""', '"""Greets everybody."""')
    status, output = made.run("feed", "01", "--no-test")
    assert status == 0, output
    assert made.read("lesson-02/app.py") == two.replace('"bye"', '"goodbye"')
    expected = three.replace('"bye"', '"goodbye"').replace("Greets", "Greets everybody")
    assert made.read("lesson-03/app.py") == expected
    assert made.run("feed", "01", "--no-test")[1].count("nothing to do") == 2


def test_feed_keeps_identical_files_identical(repository):
    made = repository
    made.edit("lesson-02/greet.py", "'world'", "'everybody'")
    made.run("feed", "02", "--no-test")
    assert made.read("lesson-03/greet.py") == made.read("lesson-02/greet.py")


def test_feed_carries_new_and_removed_files(repository):
    made = repository
    made.write("lesson-02/polite.py", "WORD = 1\n")
    (made.root / "lesson-02" / "greet.py").unlink()
    assert made.run("feed", "02", "--no-test")[0] == 0
    assert made.read("lesson-03/polite.py") == "WORD = 1\n"
    assert not (made.root / "lesson-03" / "greet.py").exists()


def test_feed_stops_at_a_conflict_with_nothing_half_merged(repository):
    made = repository
    made.edit("lesson-02/app.py", "    print(greet(name))", "    print(greet(name), 1)")
    made.edit("lesson-02/greet.py", "Hello", "Hi")
    before = made.snapshot()
    status, output = made.run("feed", "02", "--no-test")
    assert status == 1
    assert "stopped at lesson-03" in output
    assert "    print(greet(name), 1)\n=======\n    for each in name.split():" in output
    assert made.snapshot() == before


def test_feed_dry_run_changes_nothing(repository):
    made = repository
    made.edit("lesson-01/app.py", '"bye"', '"goodbye"')
    before = made.snapshot()
    status, output = made.run("feed", "01", "--dry-run")
    assert status == 0
    assert "lesson-02: would change app.py" in output
    assert made.snapshot() == before


def test_feed_takes_an_older_commit_as_its_start(repository):
    made = repository
    made.edit("lesson-01/app.py", '"bye"', '"goodbye"')
    subprocess.run(["git", "commit", "-qam", "fix"], cwd=made.root, check=True)
    assert "nothing to carry" in made.run("feed", "01", "--no-test")[1]
    assert made.run("feed", "01", "--no-test", "--since", "HEAD~1")[0] == 0
    assert "goodbye" in made.read("lesson-03/app.py")
    status, output = made.run("feed", "01", "--since", "nowhere", "--no-test")
    assert status == 1 and "nowhere" in output


def test_merge_agrees_with_git(course_tool, tmp_path):
    """Where both merge, the results are the same; conflicts are the same too."""
    merge = course_tool.load("feed").merge
    base = "".join(f"line {n}\n" for n in range(30))
    ours = base.replace("line 3\n", "LINE 3\nnew\n").replace("line 20\n", "")
    theirs = base.replace("line 9\n", "nine\n").replace("line 29\n", "line 29\nend\n")
    cases = [(ours, theirs), (ours, ours), (base, theirs), (ours, base)]
    cases.append((ours, base.replace("line 3\n", "three\n")))
    for one, other in cases:
        for name, text in (("base", base), ("ours", one), ("theirs", other)):
            (tmp_path / name).write_text(text, encoding="utf-8", newline="\n")
        done = subprocess.run(
            ["git", "merge-file", "-p", "ours", "base", "theirs"],
            cwd=tmp_path,
            capture_output=True,
        )
        merged, conflicts = merge(base.encode(), one.encode(), other.encode())
        assert bool(conflicts) == bool(done.returncode)
        if not conflicts:
            assert merged == done.stdout


def test_feed_carries_bytes_that_are_no_text_as_they_are(repository):
    """Before the merge and after it; both sides changed the file."""
    made = repository
    made.edit("lesson-01/app.py", '"bye"', '"goodbye"')
    path = made.root / "lesson-01" / "app.py"
    path.write_bytes(path.read_bytes().replace(b"Say", b"Sa\xff"))
    status, output = made.run("feed", "01", "--no-test")
    assert status == 0, output
    later = (made.root / "lesson-03" / "app.py").read_bytes()
    assert b'"""Sa\xff goodbye."""' in later and b'"goodbye"' in later


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_feed_takes_no_link_for_a_file_that_went_away(repository):
    made = repository
    path = made.root / "lesson-02" / "greet.py"
    path.unlink()
    path.symlink_to("../lesson-03/greet.py")
    status, output = made.run("feed", "02", "--no-test")
    assert status == 1 and "lesson-02/greet.py is a link" in output
    assert (made.root / "lesson-03" / "greet.py").is_file()
