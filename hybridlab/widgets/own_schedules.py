"""The schedules that a timeline explorer offers: those of the registry, and functions that return orders."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hybridlab.checks import counted, short_repr
from hybridlab.errors import HybridLabError, InvalidSchedule, UnsupportedSize
from hybridlab.schedule import Problem, Schedule
from hybridlab.schedule.text import turns_in
from hybridlab.schedules import REGISTRY, Family, build, known_schedule
from hybridlab.widgets.choices import one_or_several, schedule_names
from hybridlab.widgets.measured_data import SUFFIX
from hybridlab.widgets.page_data import too_many_to_draw

LONGEST_TITLE = 40  # characters
LONGEST_MESSAGE = 200  # characters of the message of an exception that a function raises
MOST_COPIES = 2  # largest number of copies of the weights for which the views have words


@dataclass(frozen=True, eq=False)
class OwnSchedule:
    """A schedule whose orders come from a function. It has those members of :class:`Family` that a timeline explorer needs.

    Parameters
    ----------
    name : str
        The name, which is also the title.
    function : callable
        A function of devices and microbatches, or of devices, microbatches and chunks. It returns the orders: a list with a line of
        operations for each device, a text with such lines, a :class:`Schedule`, or lists of operations.
    chunk_step : int
        1 if the function takes a number of chunks. With 0 each device has 1 chunk.
    """

    name: str
    function: Callable[..., Any]
    chunk_step: int
    fewest_chunks: int = 1
    # size -> the schedule, or the sentence why there is none; the function runs only once for each size
    _known: dict[tuple[int, int, int], Schedule | str] = field(default_factory=dict, repr=False)

    @property
    def title(self) -> str:
        """The name that the view shows."""
        return self.name

    @property
    def copies(self) -> int:
        """The largest number of copies of the weights in the orders so far."""
        return max((found.copies for found in self._known.values() if isinstance(found, Schedule)), default=1)

    def refusal(self, devices: int, microbatches: int, chunks: int) -> str | None:
        """Return None if the function returns orders that can run. If not, return a sentence with the reason.

        >>> OwnSchedule("mine", lambda devices, microbatches: ["0B0 0F0"], chunk_step=0).refusal(1, 1, 1)
        "the orders of 'mine' cannot run: device 0 runs 0B0 before 0F0, the forward that it needs"
        """
        found = self._found(devices, microbatches, chunks)
        return found if isinstance(found, str) else None

    def build(self, devices: int, microbatches: int, chunks: int) -> Schedule:
        """Return the schedule for these sizes. Raise :class:`UnsupportedSize` with the sentence of ``refusal`` if there is none."""
        found = self._found(devices, microbatches, chunks)
        if isinstance(found, str):
            raise UnsupportedSize(found, "unsupported-size")
        return found

    def _found(self, devices: int, microbatches: int, chunks: int) -> Schedule | str:
        size = (devices, microbatches, chunks)
        if size not in self._known:
            self._known[size] = self._run(*size)
        return self._known[size]

    def _run(self, devices: int, microbatches: int, chunks: int) -> Schedule | str:
        """Call the function, and return its schedule or a sentence that says why there is none."""
        size = (devices, microbatches, chunks)
        if not self.chunk_step and chunks != 1:
            return f"the function of {self.name!r} does not take a number of chunks, so a device has 1 chunk, not {chunks}"
        if too_many := too_many_to_draw(*size):
            return too_many
        try:
            result = self.function(*size) if self.chunk_step else self.function(devices, microbatches)
            turns = result.turns if isinstance(result, Schedule) else turns_in(result)
            return self._fitting(Schedule(self.name, turns), size)
        except InvalidSchedule as why:
            problem = next(iter(why.problems), None)
            if isinstance(problem, Problem):
                return f"the orders of {self.name!r} cannot run: {problem.sentence}"
            return f"{self._must_return}, {f'not {short_repr(result)}' if why.code == 'not-a-list' else f'but {in_one_line(why)}'}"
        except Exception as why:  # a student's function can raise any error, and the view shows it as the reason
            return f"the function of {self.name!r} raises {': '.join(filter(None, (type(why).__name__, in_one_line(why))))}"

    @property
    def _must_return(self) -> str:
        return f"the function of {self.name!r} must return a line of operations for each device, such as ['0F0 0B0', '1F0 1B0']"

    def _fitting(self, schedule: Schedule, size: tuple[int, int, int]) -> Schedule | str:
        """Return the schedule if it has the asked size, or a sentence that names the first difference."""
        found = (schedule.devices, schedule.microbatches, schedule.chunks)
        for has, asked, noun, where in zip(found, size, ("device", "microbatch", "chunk"), ("", "", " a device"), strict=True):
            if has != asked:
                return f"the function of {self.name!r} returns orders with {counted(has, noun)}{where}, not {asked}"
        if schedule.copies > MOST_COPIES:
            return f"the orders of {self.name!r} have {schedule.copies} copies of the weights, and a view draws at most {MOST_COPIES}"
        return schedule


Offered = Family | OwnSchedule


def offered_schedules(schedules: Any) -> dict[str, Offered]:
    """Return the schedules that a view offers, by name.

    Parameters
    ----------
    schedules : str, iterable of str, or mapping
        Names of the registry. Or a mapping of the title to a name of the registry or to a function, see :class:`OwnSchedule`. The name of
        a function is its title.

    Raises
    ------
    HybridLabError
        A name or a title is wrong, or a function takes other arguments.

    Examples
    --------
    >>> own = offered_schedules({"mine": lambda devices, microbatches: ["0F0 0B0"], "the rule": "1F1B"})
    >>> [(name, each.title) for name, each in own.items()]
    [('mine', 'mine'), ('1f1b', 'the rule')]
    """
    if not isinstance(schedules, Mapping):
        return {name: REGISTRY[name] for name in schedule_names(schedules)}
    offered: dict[str, Offered] = {}
    for title, value in one_or_several(schedules.items(), "schedules"):
        each = _offered(checked_title(title), value)
        if each.name in offered:
            both = f"the titles {offered[each.name].title!r} and {title!r} are both for {each.name}"
            raise HybridLabError(f"{both}: leave one of them out", "duplicate-name")
        offered[each.name] = each
    return offered


def build_offered(schedule: Offered, devices: int, microbatches: int, chunks: int) -> Schedule:
    """Return the schedule for these sizes. Raise :class:`UnsupportedSize` if it does not exist."""
    size = (devices, microbatches, chunks)
    return schedule.build(*size) if isinstance(schedule, OwnSchedule) else build(schedule.name, *size)


def _offered(title: str, value: Any) -> Offered:
    """Return what a title stands for. Raise an error if this is neither a name nor a function, or if the title is a name of another one."""
    family = next((each for each in REGISTRY.values() if title.lower() in (each.name.lower(), each.title.lower())), None)
    named = REGISTRY[known_schedule(value)] if isinstance(value, str) else None
    if named is None and not callable(value):
        wanted = f"{title!r} must stand for a name of the registry, such as '1f1b', or for a function"
        raise HybridLabError(f"{wanted} of devices and microbatches, not {short_repr(value)}", "wrong-type")
    if family is not None and family is not named:
        raise HybridLabError(f"{title!r} is the name of a schedule of the registry: choose another title", "duplicate-name")
    return OwnSchedule(title, value, int(_takes_chunks(title, value))) if named is None else replace(named, title=title)


def checked_title(title: Any) -> str:
    """Return the title, or raise an error if it is not a short text that can be printed."""
    if not isinstance(title, str) or not title.strip() or len(title) > LONGEST_TITLE or not title.isprintable():
        wanted = f"a few words of at most {LONGEST_TITLE} characters"
        raise HybridLabError(f"a title must be {wanted}, not {short_repr(title)}", "malformed-name")
    if title.endswith(SUFFIX):
        raise HybridLabError(f"only measured steps have names that end with {SUFFIX!r}, so {title!r} cannot be a title", "malformed-name")
    return title


def _takes_chunks(name: str, function: Callable[..., Any]) -> bool:
    """Return whether a function takes a number of chunks. Raise an error if it takes neither two nor three arguments.

    A third parameter with a default value is a number of chunks only if its name is ``chunks``.
    """
    inner = getattr(function, "function", None)  # a part of the course accepts all arguments and passes them to this function
    try:
        signature = inspect.signature(inner if callable(inner) else function)
    except (TypeError, ValueError):  # the arguments of some functions that are written in C are not known
        return False
    third = [each for each in signature.parameters.values() if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)][2:3]
    chunks = any(each.default is each.empty or each.name == "chunks" for each in third)
    try:
        signature.bind(*range(2 + chunks))
    except TypeError:
        wanted = "(devices, microbatches) or (devices, microbatches, chunks)"
        raise HybridLabError(f"the function of {name!r} must take {wanted}, not {signature}", "wrong-type") from None
    return chunks


def in_one_line(why: Exception) -> str:
    """Return the message of an error as the end of a sentence: one line, short, and without a full stop."""
    words = " ".join(str(why).split()).rstrip(".")
    return words if len(words) <= LONGEST_MESSAGE else f"{words[: LONGEST_MESSAGE - 3]}..."
