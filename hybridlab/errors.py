"""The errors of the library. Each has a sentence, which says what would work, and a code, which names the fault."""


class HybridLabError(ValueError):
    """The library cannot do what it was asked for.

    Parameters
    ----------
    message : str
        The sentence for a reader: what was wrong and what would work. It may be reworded from version to version.
    code : str
        The name of the fault for programs, such as ``"not-a-whole-number"``. It stays when the sentence is improved.

    Examples
    --------
    >>> from hybridlab import build
    >>> try:
    ...     build("1f1b", devices=2.5, microbatches=8)
    ... except HybridLabError as error:
    ...     print(error.code)
    not-a-whole-number
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class InvalidSchedule(HybridLabError):
    """A schedule is incomplete or inconsistent, or cannot run.

    ``problems`` has one entry for each fault found (see :class:`hybridlab.schedule.Problem`); each has a code of its own.
    """

    def __init__(self, message: str, code: str = "", problems: tuple[object, ...] = ()) -> None:
        super().__init__(message, code)
        self.problems = problems


class Deadlock(InvalidSchedule):
    """A schedule has all its operations, but in its order devices wait for each other, or for themselves, for ever."""


class UnsupportedSize(HybridLabError):
    """A schedule, a plan or a closed form does not exist for these sizes; the sentence names sizes that work."""


class RunFailed(HybridLabError):
    """A real run stopped too early: a device failed, was killed, or did not come back from an operation.

    ``rank`` is this device, and ``op`` the operation that it ran. ``rank`` is None if the device is not known. ``op`` is None if the
    device ran no operation. ``measured`` has a row for each operation that ended before, as in ``Timeline.to_rows``, with its step and
    with times in seconds. Only processes leave such rows.
    """

    def __init__(self, message: str, code: str = "", rank: int | None = None, op: object = None) -> None:
        super().__init__(message, code)
        self.rank, self.op = rank, op
        self.measured: list[dict[str, object]] = []
