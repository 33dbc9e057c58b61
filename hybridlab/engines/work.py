"""The work of a run: the methods that every engine calls to compute operations, each with the rank for which it works."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Op

WorkFunction = Callable[[int, Op, Any], Any]  # takes the rank, the operation and the output that it needs; returns its own output


class StepWork:
    """The arithmetic of a run. A subclass defines the methods that it needs; here none of them computes anything.

    In the engine "threads" all ranks share one object. In the engines "mpi" and "torch" each rank has a process of its own, and this
    process gets a copy of the object. So the object must be one that can be pickled, and what a rank stores is lost to the others.

    Examples
    --------
    >>> class Count(StepWork):
    ...     def work(self, rank, op, message):
    ...         return 1 if message is None else message + 1
    >>> Count().work(rank=1, op=Op.parse("1F0"), message=1)
    2
    """

    def begin(self, rank: int, step: int) -> None:
        """Prepare a step, which is a number from 0."""

    def work(self, rank: int, op: Op, message: Any) -> Any:
        """Compute an operation from the output of the operation that it needs, and return its own output."""

    def gradients(self, rank: int, stage: int) -> Floats:
        """Return the float64 array, shape (parameters,), that the ring of the stage averages in place."""
        return np.zeros(0)

    def update(self, rank: int) -> None:
        """Update the weights after the rings of a step."""

    def result(self, rank: int) -> Any:
        """Return what the caller gets for this rank after the last step."""


class FunctionWork(StepWork):
    """StepWork whose operations are computed by a function with the arguments of :meth:`StepWork.work`; None computes nothing."""

    def __init__(self, function: Any) -> None:
        if function is not None and not callable(function):
            raise HybridLabError(f"work is a StepWork, a function, or None, not {short_repr(function)}", "wrong-type")
        self._function = function

    def work(self, rank: int, op: Op, message: Any) -> Any:
        """Return the output of the function; None without a function."""
        return None if self._function is None else self._function(rank, op, message)
