"""Programs of students whose results have another form with each call, so that one check of a program asks for all its forms."""

from collections.abc import Callable
from itertools import cycle
from typing import Any


def form_by_form(program: Callable[..., Any], *forms: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a program that gives its first result in the first form, its second one in the second form, and so on in a circle."""
    order = cycle(forms)
    return lambda *arguments: next(order)(program(*arguments))
