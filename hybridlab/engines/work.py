"""The work of a run: the methods with which every engine computes the operations of a rank."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import short_repr
from hybridlab.errors import HybridLabError
from hybridlab.schedule import Op

WorkFunction = Callable[[int, Op, Any], Any]  # (rank, operation, output that the operation needs) -> output of the operation


class StepWork:
    """The arithmetic of a run. A subclass overrides methods of this class; the methods of this class itself compute nothing.

    In the engine "threads", all ranks share one object. In the engines "mpi" and "torch", each rank has its own process, and this process
    gets a copy of the object. So pickle must be able to store the object, and a rank cannot see values that other ranks store in their
    copies.

    Examples
    --------
    >>> class Count(StepWork):
    ...     def work(self, rank, op, message):
    ...         return 1 if message is None else message + 1
    >>> Count().work(rank=1, op=Op.parse("1F0"), message=1)
    2
    """

    def begin(self, rank: int, step: int) -> None:
        """Prepare step number ``step``, counted from 0."""

    def work(self, rank: int, op: Op, message: Any) -> Any:
        """Return the output of ``op``. ``message`` is the output of the operation that ``op`` needs, or None."""

    def gradients(self, rank: int, stage: int) -> Floats:
        """Return the gradients of a stage, float64, shape (parameters,). The ring of the stage averages this array in place."""
        return np.zeros(0)

    def update(self, rank: int) -> None:
        """Update the weights after the rings of a step."""

    def result(self, rank: int) -> Any:
        """Return the result of this rank for the caller, after the last step."""


class FunctionWork(StepWork):
    """Work that calls a function with the arguments of :meth:`StepWork.work` for each operation. With None, operations compute nothing."""

    def __init__(self, function: Any) -> None:
        if function is not None and not callable(function):
            raise HybridLabError(f"work is a StepWork, a function, or None, not {short_repr(function)}", "wrong-type")
        self._function = function

    def work(self, rank: int, op: Op, message: Any) -> Any:
        """Return the output of the function, or None without a function."""
        return None if self._function is None else self._function(rank, op, message)
