"""Run many small cases in one test, where a failure names its case, and expect errors by their code."""

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

from hybridlab import HybridLabError


def in_turn(names: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that runs a test with all values in turn; use it for cheap cases, like ``pytest.mark.parametrize``.

    ``names`` are the test's arguments, separated by commas; where there are several, each value is a tuple.
    """
    arguments, listed = [name.strip() for name in names.split(",")], list(values)
    assert listed, "a test without a case cannot fail"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def all_of_them(**given: Any) -> None:
            failed = []
            for value in listed:
                case = dict(zip(arguments, value if len(arguments) > 1 else [value], strict=True))
                try:
                    test(**given, **case)
                except (Exception, pytest.fail.Exception) as why:
                    line = traceback.extract_tb(why.__traceback__)[-1].lineno
                    told = ", ".join(f"{name}={shown!r:.80}" for name, shown in case.items())
                    failed.append(f"{told}: line {line}: {type(why).__name__}: {why}")
            assert not failed, f"{len(failed)} of {len(listed)} cases failed:\n" + "\n\n".join(failed)

        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in arguments]
        all_of_them.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return all_of_them

    return decorate


@contextmanager
def refusal(code: str, *words: object, kind: type[HybridLabError] = HybridLabError) -> Iterator[None]:
    """Expect an error with this ``code``. Its sentence must contain all ``words`` (names and numbers); the rest may be reworded.

    >>> with refusal("unknown-name", "1f1", "1f1b"):
    ...     raise HybridLabError("unknown schedule '1f1': did you mean '1f1b'?", "unknown-name")
    """
    with pytest.raises(kind) as caught:
        yield
    assert caught.value.code == code, f"{caught.value.code!r} in place of {code!r}: {caught.value}"
    for word in words:
        assert str(word) in str(caught.value), f"{word!r} is not in: {caught.value}"
