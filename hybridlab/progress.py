"""A progress bar (tqdm) for long work."""

import os
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from hybridlab.errors import HybridLabError

Result = TypeVar("Result")
PATIENCE = 5.0  # seconds before a bar appears if progress is None


def with_progress(steps: Iterable[tuple[int, Result]], total: int, progress: bool | None, unit: str) -> Iterator[Result]:
    """Yield the result of each step of long work, and show the progress in a bar.

    Parameters
    ----------
    steps : iterable of (int, result)
        For each step, the amount of work in the step, and its result.
    total : int
        The amount of the whole work.
    progress : bool or None
        True shows the bar immediately, and False never shows a bar. None shows the bar after five seconds if tqdm is installed.
    unit : str
        The unit of work, such as "rows".

    Examples
    --------
    >>> list(with_progress([(1, "one"), (2, "two")], total=3, progress=False, unit="rows"))
    ['one', 'two']
    """
    show_at, done = time.monotonic() + PATIENCE, 0
    bar = _progress_bar(total, unit, required=True) if progress else None
    try:
        for count, result in steps:
            done += count
            if progress is None and bar is None and time.monotonic() >= show_at:
                bar = _progress_bar(total, unit, required=False)
            if bar is not None:
                bar.update(done - bar.n)  # a bar that appears late starts at 0, so its first update adds all finished work
            yield result
    finally:
        if bar is not None:
            bar.close()


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
