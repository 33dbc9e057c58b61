"""The progress of long work: a bar (tqdm), or calls of the caller's function."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError

Result = TypeVar("Result")
Progress = bool | Callable[[int, int], object] | None  # the argument ``progress`` of every function that takes long
PATIENCE = 5.0  # seconds before a bar appears if progress is None


def checked_progress(progress: Any) -> Progress:
    """Return ``progress`` if it is True, False, None or a function. Otherwise raise an error.

    >>> checked_progress(3)
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: progress must be True, False, None or a function of two numbers (done, total), not 3
    """
    if progress is None or isinstance(progress, bool):
        return progress
    if callable(progress):
        return cast(Callable[[int, int], object], progress)
    message = f"progress must be True, False, None or a function of two numbers (done, total), not {short_repr(progress)}"
    raise HybridLabError(message, "wrong-type")


@contextmanager
def reporting(progress: Progress, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """Yield a function ``report(done)``, which shows how much of the work is done.

    Parameters
    ----------
    progress : bool, callable or None
        True shows a bar immediately, and False never shows a bar. None shows a bar after five seconds if tqdm is installed. A function is
        called as ``progress(done, total)``.
    total : int
        The amount of the whole work.
    unit : str
        The unit of work, such as "rows".

    Raises
    ------
    HybridLabError
        ``progress`` is something else (``wrong-type``), or it is True and tqdm is not installed (``not-installed``).

    Examples
    --------
    >>> with reporting(lambda done, total: print(f"{done} of {total}"), total=3, unit="rows") as report:
    ...     report(2)
    2 of 3
    """
    checked_progress(progress)
    show_at = time.monotonic() + PATIENCE
    bar = _progress_bar(total, unit, required=True) if progress is True else None

    def report(done: int) -> None:
        nonlocal bar
        if callable(progress):
            progress(done, total)
        elif progress is None and bar is None and time.monotonic() >= show_at:
            bar = _progress_bar(total, unit, required=False)
        if bar is not None:
            bar.update(done - bar.n)  # a bar that appears late starts at 0, so its first update adds all finished work

    try:
        yield report
    finally:
        if bar is not None:
            bar.close()


def with_progress(steps: Iterable[tuple[int, Result]], total: int, progress: Progress, unit: str) -> Iterator[Result]:
    """Yield the result of each step of long work, and report the progress as :func:`reporting` does.

    Parameters
    ----------
    steps : iterable of (int, result)
        For each step, the amount of work in the step, and its result.
    total, progress, unit
        As for :func:`reporting`.

    Examples
    --------
    >>> list(with_progress([(1, "one"), (2, "two")], total=3, progress=False, unit="rows"))
    ['one', 'two']
    """
    done = 0
    with reporting(progress, total, unit) as report:
        for count, result in steps:
            done += count
            report(done)
            yield result


def _progress_bar(total: int, unit: str, required: bool) -> Any:
    """Return a progress bar of tqdm. If tqdm is not installed, raise an error if ``required`` is True, else return None."""
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as why:
        if required:
            message = f"a progress bar comes from tqdm, which cannot be loaded ({why}): pip install tqdm"
            raise HybridLabError(message, "not-installed") from why
        return None
    # The class of tqdm for notebooks ignores TQDM_DISABLE, so read the variable here.
    return tqdm(total=total, unit=f" {unit}", disable=bool(os.environ.get("TQDM_DISABLE")))
