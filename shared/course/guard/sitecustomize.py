"""Loaded first by every Python that checks a submission for `grade`.

Keeps honest mistakes of a submission from doing harm: no network beyond this
machine, no writing or deleting outside the folder COURSE_GUARD, no more memory than
COURSE_MEMORY.  It is no prison for somebody who wants to break out; for that, grade
in a container or on a machine of its own.
"""

import os
import sys
from typing import Any

ALLOWED = os.path.realpath(os.environ["COURSE_GUARD"]) + os.sep
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
REMOVING = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate"}
REMOVING |= {"shutil.rmtree", "shutil.move", "os.chmod", "os.link", "os.symlink"}
LOCAL = ("127.0.0.1", "::1", "localhost", "")


def is_inside(path: Any) -> bool:
    if isinstance(path, int) or path is None:
        return True  # a file that is open already
    full = os.path.realpath(os.fsdecode(path))
    return (full + os.sep).startswith(ALLOWED) or full == os.devnull


def guard(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, mode, flags = arguments
        writes = (mode and set(mode) & set("wax+")) or (flags or 0) & WRITING
        if writes and not is_inside(path):
            raise PermissionError(f"a submission may not write to {path!r}")
    elif event in REMOVING:
        for path in arguments[:2]:
            if isinstance(path, (str, bytes, os.PathLike)) and not is_inside(path):
                raise PermissionError(f"a submission may not change {path!r}")
    elif event == "sqlite3.connect":
        name = os.fsdecode(arguments[0])
        name = name.removeprefix("file:").partition("?")[0]
        if name and ":memory:" not in name and not is_inside(name):
            raise PermissionError(f"a submission may not open {name!r}")
    elif event == "socket.connect":
        address = arguments[1]
        if isinstance(address, tuple) and address[0] not in LOCAL:
            raise PermissionError("a submission may not use the network")
    elif event == "socket.getaddrinfo" and arguments[0] not in (*LOCAL, None):
        raise PermissionError("a submission may not use the network")


def limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    limit = int(os.environ["COURSE_MEMORY"])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


limit_memory()
sys.addaudithook(guard)
