"""Wire formats: the encoding of numbers in messages between devices, with the size of messages and the rounding error."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Frozen, Rng, readonly
from hybridlab.checks import known_name, random_source, refuse_masked, short_repr, true_or_false, whole_number
from hybridlab.errors import HybridLabError

Real = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Single = npt.NDArray[np.float32]
Codes = npt.NDArray[Any]

SCALES: dict[str, Any] = {"FP32": np.float32, "FP16": np.float16}


@dataclass(frozen=True, eq=False)
class Packet(Frozen):
    """An encoded message: one code for each number and, in a format with a scale, one scale for each block of numbers.

    The byte counts are the sizes of the arrays ``codes`` and ``scales``. :meth:`WireFormat.encode` returns a packet.

    Parameters
    ----------
    wire : WireFormat
        The format.
    codes : array, shape (n,)
        The codes: float32 in FP32, float16 in FP16, uint16 in BF16, int8 in INT8, uint8 in FP8. In INT4, shape (n / 2, rounded up) of
        uint8: a byte has two codes, the first in its lower half.
    scales : array, shape (blocks,)
        The scales, float32 or float16 as ``wire.scale`` says. Empty for formats without a scale.
    """

    wire: "WireFormat"
    codes: Codes
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
    """The encoding of numbers in a message: FP32, FP16, BF16, or a format with one scale for each message or each block.

    FP32, FP16 and BF16 round each number to the nearest value of the format, with ties to even. BF16 first converts the number to float32.

    INT8, INT4, E4M3 and E5M2 have scales. The numbers of a block are divided by the scale of the block, which is at least max|x| divided by
    the largest code. Each quotient is rounded to the nearest code, with ties to even. The codes of INT8 are whole numbers from -127 to 127,
    those of INT4 from -7 to 7. The codes of E4M3 and E5M2 are floating-point numbers of one byte (FP8). E4M3 has 4 bits of exponent and 3
    bits of mantissa, and its largest number is 448. E5M2 has 5 and 2 bits, and its largest number is 57,344. Both first convert the
    quotient to float32, as BF16 converts the number.

    No format clips numbers or turns numbers into infinity. Numbers that are too small for a format become 0.

    Parameters
    ----------
    name : str
        "FP32", "FP16", "BF16", "INT8", "INT4", "E4M3" or "E5M2".
    block : int or None
        The number of numbers that share a scale. None means one scale for the whole message. Only for formats with a scale.
    stochastic : bool
        False rounds to the nearest code. True rounds up with a probability equal to the fractional part, and otherwise down. So with True
        the expected value of the rounded number is the number itself. Only for INT8 and INT4.
    scale : str
        The format of the scales, "FP32" (4 bytes) or "FP16" (2 bytes). Only for formats with a scale.

    Raises
    ------
    HybridLabError
        The name is unknown, or a format gets an argument that it does not use. :meth:`encode` raises an error for NaN and infinity
        (``not-finite``) and for numbers above the largest number of the format (``too-large``).

    References
    ----------
    Stochastic rounding: QSGD, Alistarh et al., NIPS 2017. FP8: Micikevicius et al., arXiv 2209.05433.

    Examples
    --------
    >>> INT8.nbytes(30), WireFormat("INT8", block=16, scale="FP16").nbytes(30), FP16.nbytes(30), INT4.nbytes(30)
    (34, 34, 60, 19)
    >>> INT8.decode(INT8.encode([0.0, 127.0, -50.4]))
    array([  0., 127., -50.], dtype=float32)
    >>> E4M3.decode(E4M3.encode([0.0, 448.0, -50.4]))
    array([  0., 448., -52.], dtype=float32)
    """

    name: str
    block: int | None = None
    stochastic: bool = False
    scale: str = "FP32"

    def __post_init__(self) -> None:
        if isinstance(self.name, str) and self.name.lower() in ("fp8", "float8"):  # the name of a family: known_name would advise FP32
            raise HybridLabError(f"unknown wire format {self.name!r}: FP8 is E4M3 or E5M2", "unknown-name")
        known_name(self.name, CODINGS, "wire format")
        known_name(self.scale, SCALES, "form of the scale")
        object.__setattr__(self, "stochastic", true_or_false(self.stochastic, "stochastic"))
        if self.block is not None:
            object.__setattr__(self, "block", whole_number(self.block, "block"))
        if not self.coding.scaled and (self.block, self.scale) != (None, "FP32"):
            raise HybridLabError(f"{self.name} has no scale: block and scale are for {_names('scaled')}", "conflicting-arguments")
        if self.stochastic and not self.coding.whole:
            raise HybridLabError(f"{self.name} rounds to the nearest: stochastic is for {_names('whole')}", "conflicting-arguments")

    def __str__(self) -> str:
        block = f", block {self.block}" if self.block else ""
        scale = f", {self.scale} scale" if self.scale != "FP32" else ""
        return f"{self.name}{block}{scale}{', stochastic' if self.stochastic else ''}"

    @property
    def coding(self) -> "Coding":
        """What the format does with a number: its row of ``CODINGS``."""
        return CODINGS[self.name]

    @property
    def roundoff(self) -> float | None:
        """Largest relative error of one number in a floating-point format, except subnormal numbers. None for INT8 and INT4.

        INT8 and INT4 have a bound on the absolute error instead: with rounding to the nearest code, the error is at most half a scale. In
        E4M3 and E5M2 the roundings of float32, in the scale and the quotient, can add a millionth of the bound.
        """
        return self.coding.roundoff

    def payload_bytes(self, size: int) -> int:
        """Return the bytes of the codes of ``size`` numbers. In INT4 two codes take one byte.

        Raises
        ------
        HybridLabError
            ``size`` is not a whole number of at least 0.
        """
        return -(-whole_number(size, "size", at_least=0, at_most=2**62) * self.coding.bits // 8)

    def scale_bytes(self, size: int) -> int:
        """Return the bytes of the scales of ``size`` numbers: 0 for an empty message and for formats without a scale.

        Raises
        ------
        HybridLabError
            ``size`` is not a whole number of at least 0.
        """
        size = whole_number(size, "size", at_least=0, at_most=2**62)
        if not self.coding.scaled or not size:
            return 0
        return -(-size // (self.block or size)) * int(np.dtype(SCALES[self.scale]).itemsize)

    def nbytes(self, size: int) -> int:
        """Return the bytes of a message of ``size`` numbers, including scales.

        Raises
        ------
        HybridLabError
            ``size`` is not a whole number of at least 0.

        Examples
        --------
        >>> WireFormat("INT8", block=256, scale="FP16").nbytes(1024) / 1024  # bytes a number
        1.0078125
        """
        return self.payload_bytes(size) + self.scale_bytes(size)

    def random_source(self, rng: Any) -> Rng:
        """Return ``rng`` if it is a ``numpy.random.Generator`` (or None without stochastic rounding). Otherwise raise an error.

        Raises
        ------
        HybridLabError
            ``rng`` is neither a generator nor None, or it is None although rounding is stochastic.
        """
        source: Rng = random_source(rng, "stochastic rounding" if self.stochastic else "")
        return source

    def encode(self, values: npt.ArrayLike, rng: Rng = None) -> Packet:
        """Return an encoded message with ``values``, shape (n,). ``rng`` gives the random numbers for stochastic rounding.

        Raises
        ------
        HybridLabError
            ``values`` is not a list of numbers, the format cannot carry one of them, or stochastic rounding has no ``rng``.
        """
        numbers, rng = _row_of_numbers(values), self.random_source(rng)
        scales = _NO_SCALES
        if self.coding.scaled:
            scales = readonly(scales_of(numbers, self.block, SCALES[self.scale], self.coding.largest))
            if not np.isfinite(scales).all():
                raise _cannot_carry(numbers, self)
            numbers = quotients_of(numbers, scales, self.block)
            if self.stochastic and rng is not None:
                _round_at_random(numbers, rng, self.coding.largest)
        elif not self._fit(numbers):
            raise _cannot_carry(numbers, self)
        return Packet(self, readonly(self.coding.encode(numbers)), scales)

    def _fit(self, numbers: Real) -> bool:
        """Return whether a format without a scale can carry all numbers: whether the smallest and the largest stay finite."""
        ends = np.array([numbers.min(initial=0), numbers.max(initial=0)])
        with np.errstate(over="ignore"):
            return bool(np.isfinite(self.coding.decode(self.coding.encode(ends))).all())

    def decode(self, packet: Packet) -> Single:
        """Return the numbers of a message in this format as float32, shape (n,). Equal messages give bitwise equal numbers.

        Raises
        ------
        HybridLabError
            ``packet`` is not what :meth:`encode` returned, or it has another format.

        Examples
        --------
        >>> BF16.decode(BF16.encode([1.0, 3.14159]))
        array([1.      , 3.140625], dtype=float32)
        """
        if not isinstance(packet, Packet):
            raise HybridLabError(f"decode takes the Packet that encode returned, not {short_repr(packet)}", "wrong-type")
        if packet.wire != self:
            raise HybridLabError(f"this message was encoded as {packet.wire}; {self} cannot decode it", "does-not-fit")
        numbers = self.coding.decode(packet.codes)
        if self.coding.scaled:
            numbers *= _scale_of_each(packet.scales.astype(np.float32), self.block, numbers.size)
        return numbers


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


def _cannot_carry(numbers: Real, wire: WireFormat) -> HybridLabError:
    """Return the error for the first number that is not finite, or for the largest number if all numbers are finite."""
    broken = np.flatnonzero(~np.isfinite(numbers))
    if broken.size:
        return HybridLabError(f"a message must hold finite numbers, but value {broken[0]} is {numbers[broken[0]]}", "not-finite")
    largest, place = _largest_number(wire), int(np.argmax(np.abs(numbers)))
    message = f"{wire} carries numbers up to {largest:.8g}, but value {place} is {numbers[place]:.8g}"
    wider = ", or send BF16, which has the range of FP32" if largest < CODINGS["BF16"].largest else ""
    return HybridLabError(f"{message}: scale the numbers down{wider}", "too-large")


def _largest_number(wire: WireFormat) -> float:
    """Return the largest number that a format can carry. With a scale, it is the largest code times the largest scale."""
    largest = wire.coding.largest
    if not wire.coding.scaled:
        return largest
    scale = np.float32(float(np.finfo(np.float32).max) / largest)
    if float(scale) * largest > float(np.finfo(np.float32).max):  # the scale was rounded up, and the number would be infinite
        scale = np.nextafter(scale, np.float32(0))
    return largest * min(float(scale), float(np.finfo(SCALES[wire.scale]).max))


def _names(quality: str) -> str:
    """Return the names of the formats with a quality of :class:`Coding`, "scaled" or "whole", as text."""
    *others, last = (name for name, coding in CODINGS.items() if getattr(coding, quality))
    return f"{', '.join(others)} and {last}"


def scales_of(numbers: Real, block: int | None, form: Any, largest: float) -> npt.NDArray[Any]:
    """Return the scale of each block: the smallest number s of the type ``form`` with largest x s >= max|x| in the block.

    Parameters
    ----------
    numbers : array of float32 or float64, shape (n,)
        The numbers of the message.
    block : int or None
        The number of numbers that share a scale. None means one scale for all numbers.
    form : type
        ``np.float32`` or ``np.float16``.
    largest : float
        The largest code.

    Returns
    -------
    array of ``form``, shape (blocks,)
        A block of zeros has the scale 0. The scale is infinite if the block contains NaN or infinity, or if its numbers are too large for
        ``form`` or for float32.

    Examples
    --------
    >>> scales_of(np.array([254.0, -1.0, 0.0, 0.0]), block=2, form=np.float16, largest=127)
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
        scales: npt.NDArray[Any] = np.abs(peak / largest).astype(form)
        # a scale that was rounded down would give codes above the largest, so take the next larger number
        short = scales.astype(np.float64) * largest < peak
        if short.any():
            scales[short] = np.nextafter(scales[short], form(np.inf))
        reach = scales.astype(np.float32) * np.float32(largest)  # the largest possible decoded number
    if not np.isfinite(reach).all():
        scales[~np.isfinite(reach)] = np.inf
    return scales


def quotients_of(numbers: Real, scales: npt.NDArray[Any], block: int | None) -> Real:
    """Return number / scale for each number, as a new array with the type of ``numbers``.

    >>> quotients_of(np.array([254.0, -3.2, 0.0, 0.0]), np.array([2.0, 0.0]), block=2)
    array([127. ,  -1.6,   0. ,   0. ])
    """
    divisor = np.where(scales > 0, scales, 1).astype(numbers.dtype)  # a block of zeros has the scale 0, so divide by 1 instead
    quotients: Real = numbers / _scale_of_each(divisor, block, numbers.size)
    return quotients


def _round_at_random(quotients: Real, rng: np.random.Generator, largest: float) -> None:
    """Round in place: up with a probability equal to the fractional part, and otherwise down."""
    quotients += rng.random(quotients.size, dtype=quotients.dtype.type)  # floor(x + u) rounds x up with this probability
    np.floor(quotients, out=quotients)
    np.clip(quotients, -largest, largest, out=quotients)  # clip, because floating-point rounding can give one code more


def _scale_of_each(scales: npt.NDArray[Any], block: int | None, size: int) -> npt.NDArray[Any]:
    """Return the scale for each number, or the single scale if all numbers share one."""
    return scales if block is None else np.repeat(scales, block)[:size]


@dataclass(frozen=True, eq=False)
class Coding:
    """How a format writes a number: its row of :data:`CODINGS`.

    Parameters
    ----------
    bits : int
        The bits of a code.
    largest : float
        The largest number without a scale.
    encode : callable
        It takes numbers that are not larger than ``largest``, rounds them to the nearest codes, and returns the codes. With a scale, the
        numbers are quotients, which it may overwrite.
    decode : callable
        It takes codes and returns the numbers as a new array.
    roundoff : float or None
        The largest relative error of one number that is not subnormal. None for whole numbers.
    scaled : bool
        Whether the numbers are divided by a scale before they are encoded.
    """

    bits: int
    largest: float
    encode: Callable[[Real], Codes]
    decode: Callable[[Codes], Single]
    roundoff: float | None = None
    scaled: bool = False

    @property
    def whole(self) -> bool:
        """Whether the codes are whole numbers."""
        return self.roundoff is None


def _to_single(codes: Codes) -> Single:
    return codes.astype(np.float32)


def _to_bfloat16(numbers: Real) -> npt.NDArray[np.uint16]:
    """Return the upper 16 bits of each number in float32, rounded to the nearest value with ties to even."""
    bits = numbers.astype(np.float32).view(np.uint32)
    # 0x7FFF is just below half of the last remaining bit. Adding this bit as well rounds ties to even.
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1)).astype(np.uint32)) >> 16
    return np.where(bits & 0x7FFFFFFF > 0x7F800000, 0x7FC0, rounded).astype(np.uint16)  # 0x7FC0 is NaN


def _from_bfloat16(codes: Codes) -> Single:
    return (codes.astype(np.uint32) << 16).view(np.float32)  # BF16 is the upper half of a float32


def _to_int8(numbers: Real) -> npt.NDArray[np.int8]:
    return np.rint(numbers, out=numbers).astype(np.int8)


NO_NUMBER = -8  # the code that INT4 does not use; it fills the last byte of a message with an odd count of numbers


def _to_int4(numbers: Real) -> npt.NDArray[np.uint8]:
    """Return two whole numbers from -7 to 7 in each byte: the first in its lower half."""
    codes = np.full(numbers.size + numbers.size % 2, NO_NUMBER, dtype=np.int8)
    codes[: numbers.size] = np.rint(numbers)
    halves = codes.view(np.uint8)
    return halves[::2] & np.uint8(0x0F) | halves[1::2] << np.uint8(4)


def _from_int4(codes: Codes) -> Single:
    numbers = _PAIRS.take(codes, mode="wrap").view(np.float32)  # every byte is in the table: "wrap" is the fastest mode
    return numbers[:-1] if numbers.size and numbers[-1] == NO_NUMBER else numbers


_NIBBLES = (np.arange(16, dtype=np.float32) + 8) % 16 - 8  # the whole number of each half of a byte, in two's complement
# for each byte, the bits of its two numbers in float32: one entry of 8 bytes is faster to take than two of 4
_PAIRS = np.stack([np.tile(_NIBBLES, 16), np.repeat(_NIBBLES, 16)], axis=1).view(np.uint64)[:, 0]


def _fp8(exponent: int, mantissa: int, largest: float) -> Coding:
    """Return the floating-point format with a sign, and with these numbers of bits for exponent and mantissa, 8 bits together."""
    lowest = 2 - 2 ** (exponent - 1)  # the exponent of the smallest normal number, and of the subnormal numbers
    drop = 23 - mantissa  # how many bits of the mantissa of a float32 are rounded away

    def encode(numbers: Real) -> npt.NDArray[np.uint8]:
        single = numbers.astype(np.float32, copy=False)
        # Let 2^e be the power of two below a number. The last bit of the float32 sum of the number and 2^(e + drop) is worth
        # 2^(e - mantissa), so the addition rounds the number as the format does. The lowest bits of the sum count how often
        # 2^(e - mantissa) goes into the number, and the exponent of the sum gives e. The code is this count, plus e - lowest
        # before the bits of the mantissa.
        powers = np.maximum(single.view(np.uint32) & np.uint32(0x7F800000), np.uint32(127 + lowest << 23)) + np.uint32(drop << 23)
        sums = (np.abs(single) + powers.view(np.float32)).view(np.uint32)
        codes: npt.NDArray[np.uint8] = (sums + (sums >> drop)).astype(np.uint8)
        codes -= np.uint8(((127 + lowest + drop) << mantissa) % 256)  # modulo 256
        codes |= np.signbit(single).view(np.uint8) << np.uint8(7)
        return codes

    field, count = np.divmod(np.arange(128), 2**mantissa)
    magnitudes = np.ldexp(count + 2**mantissa * (field > 0), np.maximum(field, 1) - 1 + lowest - mantissa).astype(np.float32)
    magnitudes[magnitudes > largest] = np.nan  # codes that no message has
    numbers_of_codes = np.concatenate([magnitudes, -magnitudes])

    def decode(codes: Codes) -> Single:
        return numbers_of_codes.take(codes, mode="wrap")  # every code is in the table: "wrap" is the fastest mode

    return Coding(8, largest, encode, decode, roundoff=2.0 ** -(mantissa + 1), scaled=True)


LEVELS = 127  # the largest INT8 code; codes from -127 to 127 represent 0 exactly and give both signs the same range
CODINGS: dict[str, Coding] = {
    "FP32": Coding(32, 3.4028235e38, lambda numbers: numbers.astype(np.float32), _to_single, 2.0**-24),
    "FP16": Coding(16, 65504.0, lambda numbers: numbers.astype(np.float16), _to_single, 2.0**-11),
    "BF16": Coding(16, 3.3895314e38, _to_bfloat16, _from_bfloat16, 2.0**-8),
    "INT8": Coding(8, LEVELS, _to_int8, _to_single, scaled=True),
    "INT4": Coding(4, 7, _to_int4, _from_int4, scaled=True),
    "E4M3": _fp8(4, 3, 448.0),  # the variant of the paper and of OCP: no infinity, and one NaN for each sign
    "E5M2": _fp8(5, 2, 57344.0),
}
_NO_SCALES = readonly(np.empty(0, dtype=np.float32))
FP32, FP16, BF16, INT8, INT4, E4M3, E5M2 = (WireFormat(name) for name in CODINGS)
