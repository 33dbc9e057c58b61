"""What all views share: their style, and settings that the page and Python both change."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from hybridlab.checks import known_name, short_repr
from hybridlab.errors import HybridLabError

HERE = Path(__file__).parent


def style_of(*kinds: str, sheets: Iterable[str]) -> str:
    """Return the text of the style of these kinds of views: the shared ``view.css``, then ``sheets`` in their order.

    Shared rules target ``.hybridlab-view``; the classes of the kinds take its place. A page with several kinds of views has a copy of
    the shared rules for each of them, so no kind changes the look of another.

    >>> style_of("mesh", sheets=["mesh_view.css"]).count(".hybridlab-view")
    0
    """
    names = ", ".join(f".hybridlab-{kind}" for kind in kinds)
    text = "\n".join((HERE / name).read_text(encoding="utf-8") for name in ("view.css", *sheets))
    return text.replace(".hybridlab-view", f":is({names})")


class Refused(HybridLabError, traitlets.TraitError):
    """A setting that a view does not have; being a TraitError too, it takes back what was set together with it."""


@contextmanager
def refusing() -> Iterator[None]:
    """Turn a refusal of the library into one that traits understand."""
    try:
        yield
    except HybridLabError as why:
        raise Refused(str(why)) from None


class Checked(traitlets.TraitType[Any, Any]):
    """A trait of a setting: what it is set to goes through its view's ``checked``."""

    def validate(self, obj: Any, value: Any) -> Any:
        with refusing():
            return obj.checked(str(self.name), value)


class View(anywidget.AnyWidget):
    """A view with a setting: traits, named in ``SETTING``, that follow the controls of the page and that Python can set."""

    SETTING: ClassVar[tuple[str, ...]]

    def checked(self, name: str, value: Any) -> Any:
        """Return ``value`` for the part ``name`` of the setting, or refuse it with :class:`HybridLabError`."""
        raise NotImplementedError(f"{type(self).__name__} does not check {name} = {short_repr(value)}")

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what a view sends. An error in it would be seen by nobody, so the view is told, and what holds now."""
        try:
            super().set_state(sync_data)
        except Exception as why:
            self.send_state(self.SETTING)
            self.send({"refused": str(why)})
            raise


def asked_for(show: Any, known: Iterable[str], example: str) -> dict[str, Any]:
    """Return the setting that ``show`` asks for, or refuse what is none, with an ``example`` of one.

    >>> asked_for({"ranks": 4}, ("ranks", "step"), '{"ranks": 2}')
    {'ranks': 4}
    >>> asked_for({"rank": 4}, ("ranks", "step"), '{"ranks": 2}')
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: unknown part of a setting 'rank': did you mean 'ranks'? Known: ranks, step
    """
    if not isinstance(show, Mapping | None):
        raise HybridLabError(f"show is a setting to begin with, such as {example}, not {short_repr(show)}")
    return {known_name(name, known, "part of a setting"): value for name, value in (show or {}).items()}
