"""The processes on this machine that belong to a test, which have its mark in their environment, and the memory that processes leave."""

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


def unused_memory(folder: Path = Path("/dev/shm")) -> set[Path]:  # noqa: S108  # where MPICH has the memory that its processes share
    """Return the files of MPICH for shared memory that are this user's and that no process has in its memory."""
    files = {file for file in folder.glob("mpich_shm*") if owned(file)}
    used = set()
    for maps in Path("/proc").glob("[0-9]*/maps") if files else ():
        try:
            text = maps.read_text()
        except OSError:
            continue
        used |= {file for file in files if str(file) in text}
    return files - used


def owned(file: Path) -> bool:
    try:
        return file.stat().st_uid == os.getuid()
    except OSError:  # it has gone just now
        return False
