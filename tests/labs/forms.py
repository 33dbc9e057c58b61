"""Programs whose results change their form with each call, so that one check of a program tries all forms."""

from collections.abc import Callable
from itertools import cycle
from typing import Any


def form_by_form(program: Callable[..., Any], *forms: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a program that gives its first result in the first form, the next one in the next form, and so on round and round."""
    order = cycle(forms)
    return lambda *arguments: next(order)(program(*arguments))
