"""Wire formats: what numbers become on their way from one device to another, and how many bytes that takes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridlab.errors import HybridLabError
from hybridlab.fixed import fixed
from hybridlab.inputs import known_name, random_source, refuse_masked, shown, true_or_false, whole_number
from hybridlab.int8 import LEVELS, Real, Single, codes_of, numbers_of, scales_of

CODES: dict[str, Any] = {"FP32": np.float32, "FP16": np.float16, "BF16": np.uint16, "INT8": np.int8}
SCALES: dict[str, Any] = {"FP32": np.float32, "FP16": np.float16}
LARGEST = {"FP32": 3.4028235e38, "FP16": 65504.0, "BF16": 3.3895314e38, "INT8": 3.4028232e38}  # 127 float32 scales' reach
ROUNDOFF = {"FP32": 2.0**-24, "FP16": 2.0**-11, "BF16": 2.0**-8}


@dataclass(frozen=True, eq=False)
class Packet:
    """A message as it travels: a code for every number and, for INT8, a scale for every block. Bytes are exact."""

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
    """A form that numbers take on the wire: FP32, FP16, BF16, or INT8 with a scale for each message or each block.

    FP32, FP16 and BF16 round every number to the nearest, ties to even (BF16 by way of float32). INT8 divides the
    numbers of a block by their scale, at least max|x| / 127, and sends whole numbers from -127 to 127: rounded to the
    nearest, or if ``stochastic`` up with a probability equal to the fraction, so that the mean is right (QSGD,
    Alistarh et al., NIPS 2017). ``block`` is the count of numbers that share a scale, None for the whole message;
    ``scale`` is the form of the scale, FP32 (4 bytes) or FP16 (2 bytes).

    NaN, infinity and numbers that a format cannot carry are refused with :class:`HybridLabError`, alike for every
    format: nothing is clipped, nothing becomes infinite on the way. Numbers too small for a format are rounded like others, to 0.

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
            raise HybridLabError(f"{self.name} has no scale and rounds to the nearest: block, stochastic and scale are for INT8")

    def __str__(self) -> str:
        block = f", block {self.block}" if self.block else ""
        scale = f", {self.scale} scale" if self.scale != "FP32" else ""
        return f"{self.name}{block}{scale}{', stochastic' if self.stochastic else ''}"

    @property
    def roundoff(self) -> float | None:
        """Largest relative error of one number in FP32, FP16 and BF16 (subnormals apart); None for INT8.

        The error of INT8 is measured against the largest number of the block: at most half a scale.
        """
        return ROUNDOFF.get(self.name)

    def payload_bytes(self, size: int) -> int:
        """Return the bytes of the codes of ``size`` numbers."""
        return whole_number(size, "size", at_least=0, at_most=2**62) * int(np.dtype(CODES[self.name]).itemsize)

    def scale_bytes(self, size: int) -> int:
        """Return the bytes of the scales of ``size`` numbers: none in an empty message, none but in INT8."""
        size = whole_number(size, "size", at_least=0, at_most=2**62)
        if self.name != "INT8" or not size:
            return 0
        return -(-size // (self.block or size)) * int(np.dtype(SCALES[self.scale]).itemsize)

    def nbytes(self, size: int) -> int:
        """Return the bytes of a message of ``size`` numbers, scales included.

        >>> WireFormat("INT8", block=256, scale="FP16").nbytes(1024) / 1024  # bytes a number
        1.0078125
        """
        return self.payload_bytes(size) + self.scale_bytes(size)

    def random_source(self, rng: Any) -> np.random.Generator | None:
        """Return ``rng``, or refuse what is no generator; None is one only where nothing is rounded at random."""
        source: np.random.Generator | None = random_source(rng, "stochastic rounding" if self.stochastic else "")
        return source

    def encode(self, values: npt.ArrayLike, rng: np.random.Generator | None = None) -> Packet:
        """Return the message that carries ``values``, shape (n,). Stochastic rounding draws from ``rng``."""
        numbers, rng = _numbers(values), self.random_source(rng)
        if self.name == "INT8":
            return self._quantised(numbers, rng if self.stochastic else None)
        with np.errstate(over="ignore"):  # what became infinite is refused below
            codes = _to_bfloat16(numbers) if self.name == "BF16" else numbers.astype(CODES[self.name])
            infinite = codes & 0x7F80 == 0x7F80 if self.name == "BF16" else ~np.isfinite(codes)
        if infinite.any():
            raise _refusal(numbers, self, LARGEST[self.name])
        return Packet(self, fixed(codes), _NONE)

    def decode(self, packet: Packet) -> Single:
        """Return the numbers that a message of this format carries, shape (n,): every receiver finds the same bits.

        >>> BF16.decode(BF16.encode([1.0, 3.14159]))
        array([1.      , 3.140625], dtype=float32)
        """
        if not isinstance(packet, Packet):
            raise HybridLabError(f"decode takes the Packet that encode returned, not {shown(packet)}")
        if packet.wire != self:
            raise HybridLabError(f"this message was encoded as {packet.wire}; {self} cannot decode it")
        if self.name == "BF16":
            return (packet.codes.astype(np.uint32) << 16).view(np.float32)
        if self.name == "INT8":
            return numbers_of(packet.codes, packet.scales, self.block)
        return packet.codes.astype(np.float32)

    def _quantised(self, numbers: Real, rng: np.random.Generator | None) -> Packet:
        scales = scales_of(numbers, self.block, SCALES[self.scale])
        if not np.isfinite(scales).all():
            raise _refusal(numbers, self, min(LEVELS * LARGEST[self.scale], LARGEST["INT8"]))
        return Packet(self, fixed(codes_of(numbers, scales, self.block, rng)), fixed(scales))


_NONE = fixed(np.empty(0, dtype=np.float32))
FP32, FP16, BF16, INT8 = (WireFormat(name) for name in CODES)


def _numbers(values: npt.ArrayLike) -> Real:
    """Return ``values`` as float32 or float64, as they are where they are either, or refuse them."""
    refuse_masked(values, "a message")
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty((0, 0))
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise HybridLabError(f"a message is a row of numbers, such as [0.5, -1.25], not {shown(values)}")
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


def _to_bfloat16(numbers: Real) -> npt.NDArray[np.uint16]:
    """Return the upper halves of the float32 numbers, rounded to the nearest, ties to even."""
    bits = numbers.astype(np.float32).view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1)).astype(np.uint32)) >> 16
    return np.where(bits & 0x7FFFFFFF > 0x7F800000, 0x7FC0, rounded).astype(np.uint16)  # a NaN stays one


def _refusal(numbers: Real, wire: WireFormat, largest: float) -> HybridLabError:
    """Return the error that names the first number that cannot be sent."""
    broken = np.flatnonzero(~np.isfinite(numbers))
    if broken.size:
        return HybridLabError(f"a message must hold finite numbers, but value {broken[0]} is {numbers[broken[0]]}")
    place = int(np.argmax(np.abs(numbers)))
    told = f"{wire} carries numbers up to {largest:.8g}, but value {place} is {numbers[place]:.8g}"
    wider = ", or send BF16, which has the range of FP32" if largest < LARGEST["BF16"] else ""
    return HybridLabError(f"{told}: scale the numbers down{wider}")
