"""Operations. An operation is one kind of work on one stage for one microbatch."""

import re
from enum import StrEnum
from typing import NamedTuple

from hybridlab.checks import known_name, short_repr, whole_number
from hybridlab.errors import HybridLabError


class Kind(StrEnum):
    """The kind of work of an operation. "B" always means the full backward, never only the input gradient or the weight gradient.

    Raises
    ------
    HybridLabError
        ``Kind(text)`` for another text than "F", "B", "I" or "W" (``unknown-name``).
    """

    F = "F"  # forward
    B = "B"  # full backward: input gradient and weight gradient in one operation
    I = "I"  # input gradient alone  # noqa: E741 - the field's letter
    W = "W"  # weight gradient alone

    @classmethod
    def _missing_(cls, value: object) -> "Kind":
        return cls(known_name(value, list(cls), "kind of operation"))  # raises an error, because Enum knows all names

    @property
    def words(self) -> str:
        """The kind in words, for a sentence.

        >>> Kind.I.words
        'input gradient'
        """
        return _WORDS[self]


_WORDS = {Kind.F: "forward", Kind.B: "backward", Kind.I: "input gradient", Kind.W: "weight gradient"}
KINDS = tuple(Kind)  # in the arrays of a schedule, a kind is its index in this tuple
CODE = {kind: code for code, kind in enumerate(KINDS)}
F, B, I, W = range(len(KINDS))  # noqa: E741 - the field's letters
_OWN_INPUT = {Kind.B: Kind.F, Kind.I: Kind.F, Kind.W: Kind.I}  # B and I read the activation that F has stored

# A number has at most nine digits, so that every number fits in an array.
_TEXT = re.compile(r"([0-9]{1,9})([FBIWfbiw])([0-9]{1,9})")


class _Fields(NamedTuple):
    """The fields of an operation, because a NamedTuple itself cannot check its fields."""

    kind: Kind
    stage: int
    microbatch: int


class Op(_Fields):
    """One operation: one kind of work on one stage for one microbatch.

    The text form of an operation is stage, kind, microbatch, such as ``2F0``. torch.distributed.pipelining uses the same form.

    Parameters
    ----------
    kind : Kind
        Forward, full backward, input gradient or weight gradient.
    stage : int
        The stage, from 0.
    microbatch : int
        The microbatch, from 0.

    Raises
    ------
    HybridLabError
        The kind is none of these four, or the stage or the microbatch is no whole number of at least 0.

    Examples
    --------
    >>> str(Op(Kind.F, 2, 0))
    '2F0'
    >>> Op.parse("2F0")
    Op(kind=<Kind.F: 'F'>, stage=2, microbatch=0)
    """

    __slots__ = ()

    def __new__(cls, kind: Kind, stage: int, microbatch: int) -> "Op":
        """Check the fields; those that are right take a quarter of a microsecond more than in a plain NamedTuple."""
        if not (type(kind) is Kind and type(stage) is int and type(microbatch) is int and stage >= 0 and microbatch >= 0):
            kind = Kind(known_name(kind, KINDS, "kind of operation"))
            stage, microbatch = whole_number(stage, "stage", 0), whole_number(microbatch, "microbatch", 0)
        return tuple.__new__(cls, (kind, stage, microbatch))

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"

    @property
    def words(self) -> str:
        """The operation in words, for a sentence.

        >>> Op.parse("2I7").words
        'the input gradient of microbatch 7 on stage 2'
        """
        return f"the {self.kind.words} of microbatch {self.microbatch} on stage {self.stage}"

    @property
    def own_input(self) -> "Op | None":
        """The operation of the same stage and microbatch whose result this operation reads. None for a forward.

        A backward and an input gradient read the activation that their forward has stored. A weight gradient follows its input gradient.

        >>> str(Op.parse("2W0").own_input), Op.parse("2F0").own_input
        ('2I0', None)
        """
        kind = _OWN_INPUT.get(self.kind)
        return None if kind is None else Op(kind, self.stage, self.microbatch)

    @classmethod
    def parse(cls, text: str) -> "Op":
        """Return the operation that ``text`` names.

        Parameters
        ----------
        text : str
            Stage, kind and microbatch without spaces, such as ``"2F0"`` or ``"2f0"``.

        Raises
        ------
        HybridLabError
            ``text`` does not have this form.

        Examples
        --------
        >>> Op.parse("F0")
        Traceback (most recent call last):
        hybridlab.errors.HybridLabError: 'F0' is not an operation: write stage, kind (F, B, I, W), microbatch, like 2F0
        """
        match = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            wanted = "write stage, kind (F, B, I, W), microbatch, like 2F0"
            raise HybridLabError(f"{short_repr(text)} is not an operation: {wanted}", "unknown-operation")
        stage, kind, microbatch = match.groups()
        return cls(Kind(kind.upper()), int(stage), int(microbatch))
