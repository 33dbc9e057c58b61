"""The base class of views. A view has a setting: values that both the page and Python can change."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import traitlets

from hybridlab.checks import known_name, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.widgets.still import Pictured


class Refused(HybridLabError, traitlets.TraitError):
    """The error for a value that a view does not accept.

    The class is also a TraitError, because only after a TraitError does traitlets undo the other changes of the same message.
    """


class Checked(traitlets.TraitType[Any, Any]):
    """A trait in the setting of a view. The view's method ``checked`` checks each new value."""

    def validate(self, obj: Any, value: Any) -> Any:
        """Return the value that the view's method ``checked`` returns for it."""
        with as_trait_error():
            return obj.checked(str(self.name), value)


class View(Pictured):
    """The base class of views. ``SETTING`` has the names of the traits that the page and Python can change."""

    SETTING: ClassVar[tuple[str, ...]]

    def checked(self, name: str, value: Any) -> Any:
        """Return a new value in the form that the trait stores, or raise an error if the view does not accept the value.

        Parameters
        ----------
        name : str
            The trait's name, one of ``SETTING``.
        value : object
            The new value, from Python or from the page.

        Raises
        ------
        HybridLabError
            If the view does not accept the value.
        """
        raise NotImplementedError(f"{type(self).__name__} does not check {name} = {short_repr(value)}")

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Set traits to the values that the page sends. After an error, send the old setting and the error's message to the page."""
        try:
            super().set_state(sync_data)
        except Exception as why:
            # The controls of the page already show the refused value, so send the current setting to the page.
            self.send_state(self.SETTING)
            self.send({"refused": str(why)})
            raise  # also show the error in the log of the kernel


@contextmanager
def as_trait_error() -> Iterator[None]:
    """Turn a :class:`HybridLabError` into :class:`Refused`, with the same message and code."""
    try:
        yield
    except HybridLabError as why:
        raise Refused(str(why), why.code) from None  # the first error has no more information


def shown_first(show: Any, known: Iterable[str], example: str) -> dict[str, Any]:
    """Return the values in the argument ``show`` of a view, the author's first setting.

    Parameters
    ----------
    show : mapping or None
        Name of a trait -> value. None gives no values.
    known : iterable of str
        The allowed names of traits.
    example : str
        A correct ``show``, for the message of an error.

    Raises
    ------
    HybridLabError
        If ``show`` is not a mapping (``wrong-type``) or has a name that the view does not have (``unknown-name``).

    Examples
    --------
    >>> shown_first({"ranks": 4}, ("ranks", "step"), '{"ranks": 2}')
    {'ranks': 4}
    >>> shown_first({"rank": 4}, ("ranks", "step"), '{"ranks": 2}')
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: unknown part of a setting 'rank': did you mean 'ranks'? Known: ranks, step
    """
    if not isinstance(show, Mapping | None):
        raise HybridLabError(f"show must be a setting to begin with, such as {example}, not {short_repr(show)}", "wrong-type")
    return {known_name(name, known, "part of a setting"): value for name, value in (show or {}).items()}
