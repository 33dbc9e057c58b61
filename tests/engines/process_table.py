"""The processes on this machine that belong to a test: all that have its mark in their environment."""

import os
from pathlib import Path


def marked(mark: str) -> dict[int, str]:
    """Return the command lines of all living processes whose environment has ``mark``, without this process."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # it has ended meanwhile, or it is another user's
    return found
