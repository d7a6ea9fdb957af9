"""Source is read in several threads, whatever the garbage collector does meanwhile."""

import gc
import sys
import threading
from pathlib import Path

COURSE = Path(__file__).resolve().parents[2] / "shared" / "course"


def test_threads_read_source_side_by_side(monkeypatch):
    # A tree is built without letting another thread in, except while the garbage
    # collector calls somebody.  Python 3.11 then ends with a SystemError.
    monkeypatch.syspath_prepend(str(COURSE))
    from pieces import pieces

    sources = [
        path.read_text(encoding="utf-8") for path in sorted(COURSE.glob("m*.py"))
    ]
    wanted = [list(pieces(source)) for source in sources]
    found = []

    def deeper(frames):
        if frames:
            return deeper(frames - 1)
        return [list(pieces(source)) for source in sources]

    def collected(phase, info):
        sum(number for number in range(200))

    threads = [
        threading.Thread(target=lambda frames=frames: found.append(deeper(frames)))
        for frames in range(4)
    ]
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    gc.callbacks.append(collected)
    try:
        sys.setswitchinterval(1e-6)
        gc.set_threshold(50)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.callbacks.remove(collected)
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)
    assert found == [wanted] * len(threads)
