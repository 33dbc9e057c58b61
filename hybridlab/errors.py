"""The errors of the library. An error has a sentence for a reader, and a code that names the fault for programs."""


class HybridLabError(ValueError):
    """The library cannot do what the caller asked for.

    Parameters
    ----------
    message : str
        The sentence for a reader: what was wrong and what would work. A new version of the library can have other words.
    code : str
        The name of the fault for programs, such as ``"not-a-whole-number"``. New versions do not change the code.

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

    ``problems`` has one entry for each fault (see :class:`hybridlab.schedule.Problem`). Each entry has its own code.
    """

    def __init__(self, message: str, code: str = "", problems: tuple[object, ...] = ()) -> None:
        super().__init__(message, code)
        self.problems = problems


class Deadlock(InvalidSchedule):
    """A complete schedule cannot run: devices would wait for ever for each other or for themselves."""


class UnsupportedSize(HybridLabError):
    """A schedule, a plan or a closed form does not exist for these sizes. The sentence names sizes that work."""


class RunFailed(HybridLabError):
    """A real run stopped too early: a device failed, was killed, or hangs in an operation.

    ``rank`` is this device (None if unknown). ``op`` is the operation that this device ran (None if none). ``measured`` has a row for each
    operation that ended before the failure, as in ``Timeline.to_rows``, with its step and times in seconds. ``measured`` is empty for the
    engine "threads".
    """

    def __init__(self, message: str, code: str = "", rank: int | None = None, op: object = None) -> None:
        super().__init__(message, code)
        self.rank, self.op = rank, op
        self.measured: list[dict[str, object]] = []
