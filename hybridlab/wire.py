"""Wire formats: the encoding of numbers in messages between devices, with the size of messages and the rounding error."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Rng, readonly
from hybridlab.checks import known_name, random_source, refuse_masked, short_repr, true_or_false, whole_number
from hybridlab.errors import HybridLabError

Real = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Single = npt.NDArray[np.float32]

LEVELS = 127  # the largest INT8 code; codes from -127 to 127 represent 0 exactly and give both signs the same range
CODES: dict[str, Any] = {"FP32": np.float32, "FP16": np.float16, "BF16": np.uint16, "INT8": np.int8}
SCALES: dict[str, Any] = {"FP32": np.float32, "FP16": np.float16}
LARGEST_NUMBER = {"FP32": 3.4028235e38, "FP16": 65504.0, "BF16": 3.3895314e38, "INT8": 3.4028232e38}  # INT8: 127 times the largest scale
ROUNDOFF = {"FP32": 2.0**-24, "FP16": 2.0**-11, "BF16": 2.0**-8}


@dataclass(frozen=True, eq=False)
class Packet:
    """An encoded message: one code for each number and, in INT8, one scale for each block of numbers.

    The byte counts are the sizes of the arrays ``codes`` and ``scales``. :meth:`WireFormat.encode` returns a packet.
    """

    wire: "WireFormat"
    codes: npt.NDArray[Any]
    scales: npt.NDArray[Any]

    @property
    def payload_bytes(self) -> int:
        """Bytes of the codes."""
        return self.codes.nbytes

    @property
    def scale_bytes(self) -> int:
        """Bytes of the scales."""
        return self.scales.nbytes

    @property
    def nbytes(self) -> int:
        """Bytes of the whole message."""
        return self.payload_bytes + self.scale_bytes


@dataclass(frozen=True)
class WireFormat:
    """The encoding of numbers in a message: FP32, FP16, BF16, or INT8 with one scale for each message or each block.

    FP32, FP16 and BF16 round each number to the nearest value of the format, with ties to even. BF16 first converts the number to float32.
    INT8 divides the numbers of a block by the scale of the block, which is at least max|x| / 127, and rounds the results to whole numbers
    from -127 to 127.

    No format clips numbers or turns numbers into infinity. Numbers that are too small for a format become 0.

    Parameters
    ----------
    name : str
        "FP32", "FP16", "BF16" or "INT8".
    block : int or None
        The number of numbers that share a scale. None means one scale for the whole message. INT8 only.
    stochastic : bool
        False rounds to the nearest code. True rounds up with a probability equal to the fractional part, and otherwise down. So with True
        the expected value of the rounded number is the number itself. INT8 only.
    scale : str
        The format of the scales, "FP32" (4 bytes) or "FP16" (2 bytes). INT8 only.

    Raises
    ------
    HybridLabError
        The name is unknown, or another format gets an argument for INT8. :meth:`encode` raises an error for NaN and infinity
        (``not-finite``) and for numbers above the largest number of the format (``too-large``).

    References
    ----------
    Stochastic rounding: QSGD, Alistarh et al., NIPS 2017.

    Examples
    --------
    >>> INT8.nbytes(30), WireFormat("INT8", block=16, scale="FP16").nbytes(30), FP16.nbytes(30)
    (34, 34, 60)
    >>> INT8.decode(INT8.encode([0.0, 127.0, -50.4]))
    array([  0., 127., -50.], dtype=float32)
    """

    name: str
    block: int | None = None
    stochastic: bool = False
    scale: str = "FP32"

    def __post_init__(self) -> None:
        known_name(self.name, CODES, "wire format")
        known_name(self.scale, SCALES, "form of the scale")
        object.__setattr__(self, "stochastic", true_or_false(self.stochastic, "stochastic"))
        if self.block is not None:
            object.__setattr__(self, "block", whole_number(self.block, "block"))
        if self.name != "INT8" and (self.block, self.stochastic, self.scale) != (None, False, "FP32"):
            raise HybridLabError(
                f"{self.name} has no scale and rounds to the nearest: block, stochastic and scale are for INT8", "conflicting-arguments"
            )

    def __str__(self) -> str:
        block = f", block {self.block}" if self.block else ""
        scale = f", {self.scale} scale" if self.scale != "FP32" else ""
        return f"{self.name}{block}{scale}{', stochastic' if self.stochastic else ''}"

    @property
    def roundoff(self) -> float | None:
        """Largest relative error of one number in FP32, FP16 or BF16, except subnormal numbers. None for INT8.

        INT8 has a bound on the absolute error instead: with rounding to the nearest code, the error is at most half a scale.
        """
        return ROUNDOFF.get(self.name)

    def payload_bytes(self, size: int) -> int:
        """Return the bytes of the codes of ``size`` numbers."""
        return whole_number(size, "size", at_least=0, at_most=2**62) * int(np.dtype(CODES[self.name]).itemsize)

    def scale_bytes(self, size: int) -> int:
        """Return the bytes of the scales of ``size`` numbers: 0 for an empty message and for formats other than INT8."""
        size = whole_number(size, "size", at_least=0, at_most=2**62)
        if self.name != "INT8" or not size:
            return 0
        return -(-size // (self.block or size)) * int(np.dtype(SCALES[self.scale]).itemsize)

    def nbytes(self, size: int) -> int:
        """Return the bytes of a message of ``size`` numbers, including scales.

        >>> WireFormat("INT8", block=256, scale="FP16").nbytes(1024) / 1024  # bytes a number
        1.0078125
        """
        return self.payload_bytes(size) + self.scale_bytes(size)

    def random_source(self, rng: Any) -> Rng:
        """Return ``rng`` if it is a ``numpy.random.Generator`` (or None without stochastic rounding). Otherwise raise an error."""
        source: Rng = random_source(rng, "stochastic rounding" if self.stochastic else "")
        return source

    def encode(self, values: npt.ArrayLike, rng: Rng = None) -> Packet:
        """Return an encoded message with ``values``, shape (n,). ``rng`` gives the random numbers for stochastic rounding."""
        numbers, rng = _row_of_numbers(values), self.random_source(rng)
        if self.name == "INT8":
            return self._encode_int8(numbers, rng if self.stochastic else None)
        with np.errstate(over="ignore"):  # the check below refuses infinite codes
            codes = _to_bfloat16(numbers) if self.name == "BF16" else numbers.astype(CODES[self.name])
            # in BF16, infinity and NaN have only 1 bits in the exponent
            infinite = codes & 0x7F80 == 0x7F80 if self.name == "BF16" else ~np.isfinite(codes)
        if infinite.any():
            raise _cannot_carry(numbers, self, LARGEST_NUMBER[self.name])
        return Packet(self, readonly(codes), _NO_SCALES)

    def decode(self, packet: Packet) -> Single:
        """Return the numbers of a message in this format as float32, shape (n,). Equal messages give bitwise equal numbers.

        >>> BF16.decode(BF16.encode([1.0, 3.14159]))
        array([1.      , 3.140625], dtype=float32)
        """
        if not isinstance(packet, Packet):
            raise HybridLabError(f"decode takes the Packet that encode returned, not {short_repr(packet)}", "wrong-type")
        if packet.wire != self:
            raise HybridLabError(f"this message was encoded as {packet.wire}; {self} cannot decode it", "does-not-fit")
        if self.name == "BF16":
            return (packet.codes.astype(np.uint32) << 16).view(np.float32)  # BF16 is the upper half of a float32
        if self.name == "INT8":
            return numbers_of(packet.codes, packet.scales, self.block)
        return packet.codes.astype(np.float32)

    def _encode_int8(self, numbers: Real, rng: Rng) -> Packet:
        """Return a message in INT8. ``rng`` is None for rounding to the nearest code."""
        scales = scales_of(numbers, self.block, SCALES[self.scale])
        if not np.isfinite(scales).all():
            raise _cannot_carry(numbers, self, min(LEVELS * LARGEST_NUMBER[self.scale], LARGEST_NUMBER["INT8"]))
        return Packet(self, readonly(codes_of(numbers, scales, self.block, rng)), readonly(scales))


_NO_SCALES = readonly(np.empty(0, dtype=np.float32))
FP32, FP16, BF16, INT8 = (WireFormat(name) for name in CODES)


def _row_of_numbers(values: npt.ArrayLike) -> Real:
    """Return ``values`` as a float32 or float64 array with one axis, without a copy if possible. Raise an error for other values."""
    refuse_masked(values, "a message")
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty((0, 0))
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise HybridLabError(f"a message must be a list of numbers, such as [0.5, -1.25], not {short_repr(values)}", "not-a-list")
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


def _to_bfloat16(numbers: Real) -> npt.NDArray[np.uint16]:
    """Return the upper 16 bits of each number in float32, rounded to the nearest value with ties to even."""
    bits = numbers.astype(np.float32).view(np.uint32)
    # 0x7FFF is just below half of the last remaining bit. Adding this bit as well rounds ties to even.
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1)).astype(np.uint32)) >> 16
    return np.where(bits & 0x7FFFFFFF > 0x7F800000, 0x7FC0, rounded).astype(np.uint16)  # 0x7FC0 is NaN


def _cannot_carry(numbers: Real, wire: WireFormat, largest: float) -> HybridLabError:
    """Return the error for the first number that is not finite, or for the largest number if all numbers are finite."""
    broken = np.flatnonzero(~np.isfinite(numbers))
    if broken.size:
        return HybridLabError(f"a message must hold finite numbers, but value {broken[0]} is {numbers[broken[0]]}", "not-finite")
    place = int(np.argmax(np.abs(numbers)))
    message = f"{wire} carries numbers up to {largest:.8g}, but value {place} is {numbers[place]:.8g}"
    wider = ", or send BF16, which has the range of FP32" if largest < LARGEST_NUMBER["BF16"] else ""
    return HybridLabError(f"{message}: scale the numbers down{wider}", "too-large")


def scales_of(numbers: Real, block: int | None, form: Any) -> npt.NDArray[Any]:
    """Return the scale of each block: the smallest number s of the format ``form`` with 127 s >= max|x| in the block.

    Parameters
    ----------
    numbers : array of float32 or float64, shape (n,)
        The numbers of the message.
    block : int or None
        The number of numbers that share a scale. None means one scale for all numbers.
    form : type
        ``np.float32`` or ``np.float16``.

    Returns
    -------
    array of ``form``, shape (blocks,)
        A block of zeros has the scale 0. The scale is infinite if the block contains NaN or infinity, or if its numbers are too large for
        ``form`` or for float32.

    Examples
    --------
    >>> scales_of(np.array([254.0, -1.0, 0.0, 0.0]), block=2, form=np.float16)
    array([2., 0.], dtype=float16)
    """
    if not numbers.size:
        return np.empty(0, dtype=form)
    if block is None:
        peak = np.array([max(numbers.max(), -numbers.min())], dtype=np.float64)
    else:
        starts = np.arange(0, numbers.size, block)
        peak = np.maximum(np.maximum.reduceat(numbers, starts), -np.minimum.reduceat(numbers, starts)).astype(np.float64)
    with np.errstate(over="ignore"):
        scales: npt.NDArray[Any] = np.abs(peak / LEVELS).astype(form)
        # a scale that was rounded down would give codes above 127, so take the next larger number
        short = scales.astype(np.float64) * LEVELS < peak
        if short.any():
            scales[short] = np.nextafter(scales[short], form(np.inf))
        reach = scales.astype(np.float32) * np.float32(LEVELS)  # the largest possible decoded number
    if not np.isfinite(reach).all():
        scales[~np.isfinite(reach)] = np.inf
    return scales


def codes_of(numbers: Real, scales: npt.NDArray[Any], block: int | None, rng: Rng) -> npt.NDArray[np.int8]:
    """Return the INT8 code of each number: number / scale, rounded.

    Without ``rng``, the quotient is rounded to the nearest code. With ``rng``, the quotient is rounded up with a probability equal to its
    fractional part, and otherwise down.

    >>> codes_of(np.array([254.0, -3.2, 0.0, 0.0]), np.array([2.0, 0.0]), block=2, rng=None)
    array([127,  -2,   0,   0], dtype=int8)
    """
    divisor = np.where(scales > 0, scales, 1).astype(numbers.dtype)  # a block of zeros has the scale 0, so divide by 1 instead
    steps = numbers / _scale_of_each(divisor, block, numbers.size)
    if rng is None:
        np.rint(steps, out=steps)
    else:
        steps += rng.random(steps.size, dtype=steps.dtype.type)  # floor(x + u) rounds x up with a probability equal to the fraction of x
        np.floor(steps, out=steps)
        np.clip(steps, -LEVELS, LEVELS, out=steps)  # clip, because floating-point rounding can give 128
    codes: npt.NDArray[np.int8] = steps.astype(np.int8)
    return codes


def numbers_of(codes: npt.NDArray[np.int8], scales: npt.NDArray[Any], block: int | None) -> Single:
    """Return code x scale for each number, as float32.

    >>> numbers_of(np.array([127, -2], dtype=np.int8), np.array([0.5]), block=None)
    array([63.5, -1. ], dtype=float32)
    """
    numbers: Single = codes.astype(np.float32)
    numbers *= _scale_of_each(scales.astype(np.float32), block, codes.size)
    return numbers


def _scale_of_each(scales: npt.NDArray[Any], block: int | None, size: int) -> npt.NDArray[Any]:
    """Return the scale for each number, or the single scale if all numbers share one."""
    return scales if block is None else np.repeat(scales, block)[:size]
