"""`diff --html` in a browser, and `doctor` with every kind of Ollama."""

import http.server
import json
import shutil
import socket
import subprocess
import threading
from html.parser import HTMLParser

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
DIGEST = "a" * 64


class Reader(HTMLParser):
    """Collects tags, text, and whatever would be loaded from outside."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.marked = ""
        self.text = ""

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "col"):
            self.open.append(tag)
        self.loads += [v for k, v in attrs if k in ("src", "href") and v[0] != "#"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] == "mark":
            self.marked += data + "|"


@pytest.fixture
def page(made, tmp_path):
    made.edit("lesson-03/greet.py", "Hello,", "Hallo <b>,")
    for number in range(5):
        made.write(f"lesson-03/a_rather_long_name_{number}.py", "X = 1\n" * 3)
    for number, names in ((2, "abc"), (3, "xyz")):
        lines = "".join(f"{name} = '{name}'\n" for name in names)
        made.write(f"lesson-{number:02}/block.py", lines)
    path = tmp_path / "шаг.html"
    status, output = made.run("diff", "02", "03", "--html", str(path))
    assert status == 0, output
    return path


def test_the_page_is_whole_and_self_contained(page):
    reader = Reader()
    text = page.read_text(encoding="utf-8")
    reader.feed(text)
    assert reader.open == [] and reader.loads == []
    assert "url(" not in text and "@import" not in text and "<script" not in text
    assert '<meta name="viewport"' in text and "@media print" in text
    assert "Hallo <b>," in reader.text and "<b>" not in text
    assert "Hello|" in reader.marked and "Hallo" in reader.marked


def test_a_page_that_cannot_be_written_is_told(made, tmp_path):
    status, output = made.run("diff", "02", "03", "--html", str(tmp_path / "no" / "x"))
    assert status == 1 and "the page cannot be written" in output


def test_the_page_in_a_real_browser(page, tmp_path):
    """Side by side on a wide screen; on a phone nothing is wider than the screen.

    There all old lines of a block stand above all its new ones.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("NO BROWSER: install chromium to have the page looked at")
    probe = (
        "<script>onload = () => {"
        "const box = q => document.querySelector(q).getBoundingClientRect();"
        "const blocks = [...document.querySelectorAll('tbody')];"
        "const some = (b, q) => b.querySelectorAll(q).length > 1;"
        "const block = blocks.find(b => some(b, 'td.del') && some(b, 'td.add'));"
        "const all = q => [...block.querySelectorAll(q)]"
        ".map(each => each.getBoundingClientRect());"
        "const row = 'tr.changed:has(td.del):has(td.add)';"
        "document.title = JSON.stringify({"
        "overflow: document.documentElement.scrollWidth > innerWidth,"
        "halves: Math.abs(box(row + ' td.add').width"
        " - box(row + ' td.del').width) < 2,"
        "below: box(row + ' td.add').top >= box(row + ' td.del').bottom - 1,"
        "apart: Math.max(...all('td.del').map(each => each.bottom))"
        " <= Math.min(...all('td.add').map(each => each.top)) + 1"
        "});};</script></body>"
    )
    copy = tmp_path / "probe.html"
    text = page.read_text(encoding="utf-8").replace("</body>", probe)
    # A window of the browser is never narrower than 500 pixels; a frame is.
    copy.write_text(text, encoding="utf-8")
    found = {}
    for width in (1200, 360):
        frame = tmp_path / f"frame-{width}.html"
        frame.write_text(
            f'<iframe src="probe.html" width="{width}" height="900"></iframe>'
            "<script>onload = () => setTimeout(() => { document.title = "
            "document.querySelector('iframe').contentDocument.title; }, 200)</script>",
            encoding="utf-8",
        )
        done = subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--allow-file-access-from-files",
                f"--user-data-dir={tmp_path / 'profile'}",
                "--virtual-time-budget=3000",
                "--window-size=1400,1000",
                "--dump-dom",
                frame.as_uri(),
            ],
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )
        title = done.stdout.partition("<title>")[2].partition("</title>")[0]
        found[width] = json.loads(title)
    sides = {"overflow": False, "halves": True, "below": False, "apart": False}
    assert found[1200] == sides
    assert found[360] == sides | {"below": True, "apart": True}


@pytest.fixture
def ollama(monkeypatch):
    """A server that lists one model; `ollama.reply` may be replaced."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.server.reply)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    models = {"models": [{"name": "Small:latest", "digest": DIGEST}]}
    server.reply = json.dumps(models).encode()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{server.server_port}")
    yield server
    server.shutdown()
    server.server_close()


def doctor(made) -> str:
    return made.run("doctor")[1]


def test_doctor_tells_about_python_and_the_library(made):
    output = doctor(made)
    assert "ok        Python 3." in output
    assert "ok        SQLite 3." in output
    assert "missing   no library in shared/corpus" in output
    assert made.run("doctor")[0] == 1
    made.write("shared/corpus/a.md", "# A\n")
    assert "ok        library: 1 documents" in doctor(made)
    assert made.run("doctor")[0] == 0


def test_doctor_knows_a_model_that_is_as_set(made, ollama, monkeypatch):
    monkeypatch.setenv("ANSWER_MODEL", "small")
    monkeypatch.setenv("ANSWER_DIGEST", DIGEST)
    output = doctor(made)
    assert "1 models" in output
    assert "ok        ANSWER_MODEL small, digest as set" in output


def test_doctor_knows_a_missing_and_a_changed_model(made, ollama, monkeypatch):
    monkeypatch.setenv("ANSWER_MODEL", "large")
    monkeypatch.setenv("EMBED_MODEL", "small:latest")
    monkeypatch.setenv("EMBED_DIGEST", "b" * 64)
    output = doctor(made)
    assert "ANSWER_MODEL large is not installed\n          ollama pull large" in output
    assert "small:latest is not the model of EMBED_DIGEST" in output
    assert f"EMBED_DIGEST={DIGEST}" in output
    monkeypatch.delenv("EMBED_DIGEST")
    assert "EMBED_DIGEST is not set for small:latest" in doctor(made)


def test_doctor_knows_no_server_and_no_ollama(made, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{port}")
    assert f"Ollama is not running at http://127.0.0.1:{port}" in doctor(made)
    monkeypatch.delenv("OLLAMA_HOST")
    monkeypatch.setenv("PATH", "")
    output = doctor(made)
    assert "Ollama is not installed" in output or "Ollama at http" in output


@pytest.mark.parametrize("reply", [b"", b"hello", b"[]", b'{"models": [1]}'])
def test_doctor_is_not_confused_by_another_server(made, ollama, reply):
    ollama.reply = reply
    assert "no answer from Ollama at" in doctor(made)
