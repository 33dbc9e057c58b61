"""The seconds that functions give for the parts of an iteration, beside those of the planner in a cluster explorer."""

from collections.abc import Callable, Mapping
from typing import Any

from hybridlab.checks import known_name, one_time, short_repr
from hybridlab.errors import HybridLabError
from hybridlab.widgets.cluster_explorer_data import PARTS, ClusterCase
from hybridlab.widgets.own_schedules import checked_title, in_one_line
from hybridlab.widgets.page_data import Data, nine_digits

Functions = Mapping[str, Callable[..., Mapping[str, float]]]


def offered_functions(own: Any) -> Functions:
    """Return the functions that an explorer compares with the planner, by title.

    Parameters
    ----------
    own : mapping of str to callable, or None
        Title -> function. None gives no function.

    Raises
    ------
    HybridLabError
        ``own`` is not a mapping, a title is wrong, or a value is not a function.
    """
    if not isinstance(own, Mapping | None):
        raise HybridLabError(f"own must be functions by title, such as {{'mine': my_parts}}, not {short_repr(own)}", "wrong-type")
    for title, function in (own or {}).items():
        if not callable(function):
            wanted = f"{checked_title(title)!r} must stand for a function of model, plan, gpu and wire"
            raise HybridLabError(f"{wanted}, not {short_repr(function)}", "wrong-type")
    return {checked_title(title): function for title, function in (own or {}).items()}


def own_times(functions: Functions, case: ClusterCase) -> Data:
    """Return what the functions give for one setting.

    Parameters
    ----------
    functions : mapping of str to callable
        Title -> a function of the model, the plan, the GPU with its network port, and the wire format of gradients. It returns the
        seconds of some parts of the iteration by name, see :attr:`IterationTime.parts`.
    case : ClusterCase
        The setting.

    Returns
    -------
    dict
        ``times`` has the seconds of each part for each title. ``problems`` has a sentence for each function that gives no times.

    Raises
    ------
    UnsupportedSize
        The planner refuses the plan, so it has no times.

    Examples
    --------
    >>> from hybridlab import A100_80GB, FP16, Plan, Transformer
    >>> case = ClusterCase(Transformer(24, 2304, 24), Plan(1, 1, 1, 1, 1), A100_80GB, FP16)
    >>> own_times({"mine": lambda model, plan, gpu, wire: {"matmul": model.layers / 4}}, case)
    {'times': {'mine': {'matmul': 6}}, 'problems': {}}
    """
    found: Data = {"times": {}, "problems": {}}
    case.time()
    for title, function in functions.items():
        try:
            found["times"][title] = _seconds(function(case.model, case.plan, case.profile, case.wire))
        except HybridLabError as why:
            found["problems"][title] = in_one_line(why)
        except Exception as why:  # a student's function can raise any error, and the view shows it as the reason
            found["problems"][title] = ": ".join(filter(None, (type(why).__name__, in_one_line(why))))
    return found


def _seconds(result: Any) -> dict[str, float]:
    """Return the seconds of each part in the result of a function, or raise an error."""
    if not isinstance(result, Mapping) or not result:
        raise HybridLabError(f"it must return seconds by part, such as {{'matmul': 12.5}}, not {short_repr(result)}", "wrong-type")
    names = [known_name(name, PARTS, "part of an iteration") for name in result]
    return dict(zip(names, nine_digits(one_time(each, name) for name, each in result.items()), strict=True))
