"""Temporary folders that do not stay behind: each is locked while its process lives, and the next start removes unlocked ones."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "hybridlab-run-"


@contextmanager
def temporary_folder(within: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Yield a new folder that only this user can read, and remove it at the end. First remove the folders of processes that have ended.

    The system releases the lock of a folder when its process ends, even after ``kill -9``. So a folder without a lock belongs to no
    process. A folder with a lock is never removed, even if a process in another container uses it.

    Parameters
    ----------
    within : path, optional
        The folder for the new folder. None means the folder of the system for temporary files.

    Examples
    --------
    >>> with temporary_folder() as folder:
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """
    place = Path(tempfile.gettempdir() if within is None else within)
    remove_dead(place)
    while True:
        with tempfile.TemporaryDirectory(prefix=PREFIX, dir=place, ignore_cleanup_errors=True) as name, _locked(name):
            if Path(name).exists():  # another process can have found it before it was locked, and have removed it
                yield Path(name)
                return


def remove_dead(place: Path) -> None:
    """Remove this user's folders of :func:`temporary_folder` in ``place`` whose processes have ended."""
    if not _has_locks():
        return
    with suppress(OSError), os.scandir(place) as entries:
        for entry in [each for each in entries if each.name.startswith(PREFIX)]:
            with suppress(OSError):  # another process uses the folder, or has just removed it
                if entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                    with _locked(entry.path, wait=False):
                        shutil.rmtree(entry.path, ignore_errors=True)


@contextmanager
def _locked(folder: str, wait: bool = True) -> Iterator[None]:
    """Lock a folder. With ``wait=False``, raise BlockingIOError if another process has locked it."""
    if not _has_locks():
        yield
        return
    import fcntl

    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield  # there is nothing to lock
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            if not wait:  # also on a network file system without locks: there, nothing is removed
                raise
        yield
    finally:
        os.close(lock)


def _has_locks() -> bool:
    """Return whether this system can lock a folder. Windows and Python in a browser cannot."""
    return sys.platform not in ("win32", "emscripten")
