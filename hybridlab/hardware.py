"""GPUs, their nodes and their networks: every figure in SI units, with its source.

Three traps lie in the figures that vendors print. Networks are sold in bits a second, and a byte has eight
(:func:`gigabits`). NVLink is printed with both directions added up, InfiniBand with one, and a collective sends one way while
it receives the other (:func:`each_way`). Tensor cores are printed with 2:4 sparsity, which training does not use: half of it is dense.
Here all is bytes a second in one direction, dense FLOP a second, and bytes of which 1e9 are a GB.

>>> from dataclasses import replace
>>> A100_80GB.nvlink / A100_80GB.network  # NVLink is so many times as fast as the GPU's own port
12.0
>>> replace(A100_80GB, network=gigabits(400)).node_network
400000000000.0
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from hybridlab.checks import checked_text, known_name, one_time, short_repr, times, whole_number
from hybridlab.errors import HybridLabError

POSITIVE = ("matmul_flops", "memory", "memory_bandwidth", "nvlink", "network")
PERHAPS = ("fp32_flops", "fp8_flops", "nccl_nvlink")


def gigabits(number: float) -> float:
    """Return bytes a second of a rate in gigabits a second, in which networks are sold: an eighth, times 1e9.

    >>> gigabits(200)  # InfiniBand HDR: 200 Gb/s, not 200 GB/s
    25000000000.0
    """
    return one_time(number, "gigabits") * 1e9 / 8


def each_way(total: float) -> float:
    """Return one direction of a rate printed as the sum of both, as NVLink's is: half.

    >>> each_way(600e9)  # NVLink of an A100: 600 GB/s on the data sheet
    300000000000.0
    """
    return one_time(total, "total") / 2


INFINIBAND_EDR, INFINIBAND_HDR, INFINIBAND_NDR = gigabits(100), gigabits(200), gigabits(400)  # bytes/s each way of a port
PCIE_GEN3, PCIE_GEN4, PCIE_GEN5 = 16e9, 32e9, 64e9  # bytes/s each way of 16 lanes, before the encoding takes its part


@dataclass(frozen=True)
class Profile:
    """One GPU, its node and its network: peaks that no program exceeds and few reach.

    ``matmul_flops`` is the dense 16-bit peak of the tensor cores, ``fp32_flops`` that of ordinary FP32 and ``fp8_flops`` that of
    dense FP8, in FLOP/s. ``memory`` is in bytes, ``memory_bandwidth`` in bytes/s. ``nvlink`` is what the GPU sends to others of
    its node, ``network`` its share of the node's ports, ``nccl_nvlink`` what the NCCL library reckons NVLink to carry: each
    in bytes/s in one direction. None stands where no source has the figure. ``source`` says where the figures are printed,
    and which are not confirmed. Change one with ``dataclasses.replace``.
    """

    name: str
    matmul_flops: float
    memory: float
    memory_bandwidth: float
    nvlink: float
    network: float
    gpus_per_node: int = 8
    fp32_flops: float | None = None
    fp8_flops: float | None = None
    nccl_nvlink: float | None = None
    source: str = "the caller's own figures"

    def __post_init__(self) -> None:
        checked_text(self.name, "name")
        checked_text(self.source, "source")
        object.__setattr__(self, "gpus_per_node", whole_number(self.gpus_per_node, "gpus_per_node"))
        for field in POSITIVE + PERHAPS:
            value = getattr(self, field)
            if value is None and field in PERHAPS:
                continue
            object.__setattr__(self, field, one_time(value, field))
            if getattr(self, field) < 1:
                raise HybridLabError(f"{field} must be at least 1, in SI units such as 25e9 bytes a second, not {short_repr(value)}")

    @property
    def nvlink_total(self) -> float:
        """NVLink as vendors print it, both directions together, in bytes/s."""
        return 2 * self.nvlink

    @property
    def node_network(self) -> float:
        """What a whole node sends to others, in bytes/s in one direction."""
        return self.gpus_per_node * self.network

    @property
    def ridge(self) -> float:
        """FLOP for each byte of memory from which on the arithmetic takes longer than the memory.

        >>> A100_80GB.ridge
        153.01618440411966
        """
        return self.matmul_flops / self.memory_bandwidth

    def roofline(self, flops: Any, nbytes: Any) -> Any:
        """Return the least seconds for ``flops`` 16-bit operations that move ``nbytes`` to and from memory; numbers or arrays.

        The longer of the two times, for arithmetic and memory work side by side (Williams, Waterman and Patterson 2009).

        >>> A100_80GB.roofline(flops=[312e9, 312e6], nbytes=2.039e9)
        array([0.001, 0.001])
        """
        compute, move = times(flops, "flops") / self.matmul_flops, times(nbytes, "nbytes") / self.memory_bandwidth
        try:
            seconds = np.maximum(compute, move)
        except ValueError:
            raise HybridLabError(f"flops and nbytes must fit together, but have shapes {compute.shape} and {move.shape}") from None
        return seconds if seconds.ndim else float(seconds)


V100 = Profile(
    "V100-SXM2-32GB",
    matmul_flops=125e12,
    memory=32e9,
    memory_bandwidth=900e9,
    nvlink=each_way(300e9),
    network=4 * INFINIBAND_EDR / 8,  # a DGX-1 has four ports for its eight GPUs
    fp32_flops=15.7e12,
    nccl_nvlink=120e9,
    source="NVIDIA V100 data sheet; NVLink not confirmed against the data sheet; NCCL topo.h: 6 links of 20 GB/s; "
    "DGX-1 white paper: 4 EDR ports a node",
)
A100_40GB = Profile(
    "A100-SXM4-40GB",
    matmul_flops=312e12,
    memory=40e9,
    memory_bandwidth=1555e9,
    nvlink=each_way(600e9),
    network=INFINIBAND_HDR,
    fp32_flops=19.5e12,
    nccl_nvlink=240e9,
    source="NVIDIA A100 data sheet; 312 TFLOP/s also in Narayanan et al. 2021, section 5; NCCL topo.h: 12 links of 20 GB/s; "
    "DGX A100: 8 HDR ports a node",
)
A100_80GB = Profile(
    "A100-SXM4-80GB",
    matmul_flops=312e12,
    memory=80e9,
    memory_bandwidth=2039e9,
    nvlink=each_way(600e9),
    network=INFINIBAND_HDR,
    fp32_flops=19.5e12,
    nccl_nvlink=240e9,
    source=f"as {A100_40GB.name}; memory bandwidth: 5120 bits x 1593 MHz x 2 / 8",
)
H100 = Profile(
    "H100-SXM5-80GB",
    matmul_flops=989.4e12,
    memory=80e9,
    memory_bandwidth=3350e9,
    nvlink=each_way(900e9),
    network=INFINIBAND_NDR,
    fp8_flops=1978.9e12,
    nccl_nvlink=370.8e9,
    source="NVIDIA H100 data sheet, whose tensor-core figures are with sparsity, twice the dense; NCCL topo.h: 18 links of 20.6 GB/s; "
    "DGX H100: 8 NDR ports a node, not confirmed against the data sheet",
)
H200 = Profile(
    "H200-SXM-141GB",
    matmul_flops=989.4e12,
    memory=141e9,
    memory_bandwidth=4800e9,
    nvlink=each_way(900e9),
    network=INFINIBAND_NDR,
    source="MLCommons inference v4.1 system description; 8 NDR ports a node, not confirmed against the data sheet",
)
B200 = Profile(
    "B200-HGX",
    matmul_flops=2250e12,
    memory=180e9,
    memory_bandwidth=8000e9,
    nvlink=each_way(1800e9),
    network=INFINIBAND_NDR,
    fp8_flops=4500e12,
    nccl_nvlink=721.8e9,
    source="NCCL topo.h: 18 links of 40.1 GB/s; all other figures not confirmed against the data sheet",
)
GPUS: Mapping[str, Profile] = MappingProxyType({gpu.name: gpu for gpu in (V100, A100_40GB, A100_80GB, H100, H200, B200)})


def gpu(name: str) -> Profile:
    """Return the profile of a GPU by its name, or refuse the name and tell the nearest.

    >>> gpu("H200-SXM-141GB").memory_bandwidth
    4800000000000.0
    """
    return GPUS[known_name(name, GPUS, "GPU")]
