"""The errors a caller can meet: every one is a sentence that says what would work."""


class HybridLabError(ValueError):
    """Something the library was asked for cannot be done; the message says why and what would work."""


class InvalidSchedule(HybridLabError):
    """A schedule that is incomplete, inconsistent, or cannot run.

    ``problems`` holds one entry for each fault found (see :class:`hybridlab.validation.Problem`).
    """

    def __init__(self, message: str, problems: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class Deadlock(InvalidSchedule):
    """A complete schedule whose order makes devices wait for each other, or for themselves, for ever."""


class UnsupportedSize(HybridLabError):
    """A schedule does not exist for these numbers of devices, microbatches or chunks."""
