"""Data of GPUs, their nodes and their networks: all values in SI units, with their sources.

Three kinds of values in data sheets need a conversion:

- Network rates are in bits per second. A byte has eight bits (:func:`gigabits`).
- NVLink rates are the sum of both directions (:func:`each_way`). InfiniBand rates are for one direction.
- Tensor-core rates often assume 2:4 sparsity, which training does not use. The dense rate is half of this rate.

In this module, rates of links are in bytes per second in one direction, and rates of arithmetic are in dense FLOP per second. A GB is 1e9
bytes.

>>> from dataclasses import replace
>>> A100_80GB.nvlink / A100_80GB.network  # NVLink is 12 times as fast as the GPU's own network port
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
POSITIVE_OR_NONE = ("fp32_flops", "fp8_flops", "nccl_nvlink")


def gigabits(number: float) -> float:
    """Return a rate in bytes per second. The argument is in gigabits per second, the usual unit of network products.

    Raises
    ------
    HybridLabError
        The rate is negative, not finite or not one number.

    Examples
    --------
    >>> gigabits(200)  # InfiniBand HDR: 200 Gb/s, not 200 GB/s
    25000000000.0
    """
    return one_time(number, "gigabits") * 1e9 / 8


def each_way(total: float) -> float:
    """Return the rate of one direction. The argument is the sum of both directions, the value in data sheets of NVLink.

    Raises
    ------
    HybridLabError
        The rate is negative, not finite or not one number.

    Examples
    --------
    >>> each_way(600e9)  # NVLink of an A100: 600 GB/s on the data sheet
    300000000000.0
    """
    return one_time(total, "total") / 2


INFINIBAND_EDR, INFINIBAND_HDR = gigabits(100), gigabits(200)  # rate of one port, bytes/s in one direction
INFINIBAND_NDR, INFINIBAND_XDR = gigabits(400), gigabits(800)
PCIE_GEN3, PCIE_GEN4, PCIE_GEN5 = 16e9, 32e9, 64e9  # 16 lanes, bytes/s in one direction, before line encoding


@dataclass(frozen=True)
class Profile:
    """Peak rates and sizes of one GPU, its node and its network. Real programs are slower than these peak rates.

    To change a value, use ``dataclasses.replace``.

    Parameters
    ----------
    name : str
        The name of the GPU.
    matmul_flops : float
        Dense 16-bit peak of the tensor cores, FLOP/s.
    memory : float
        Memory of the GPU, bytes.
    memory_bandwidth : float
        Peak rate of the memory, bytes/s.
    nvlink : float
        Rate to the other GPUs of the node, bytes/s in one direction.
    network : float
        The GPU's share of the node's network ports, bytes/s in one direction.
    gpus_per_node : int
        GPUs in a node.
    fp32_flops, fp8_flops : float or None
        Peak rates of FP32 (without tensor cores) and of dense FP8, FLOP/s; None without a source.
    nccl_nvlink : float or None
        The NVLink rate that the NCCL library assumes, bytes/s in one direction; None without a source.
    efficiency : float or None
        The share of the tensor cores' peak that products of large matrices reach, fitted to measured runs; None where none was fitted.
    source : str
        The documents with these values, and the values that are not confirmed.

    Raises
    ------
    HybridLabError
        A value is not a finite number of at least 1, ``efficiency`` is not above 0 and at most 1, or a text is not a string.
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
    efficiency: float | None = None
    source: str = "the caller's own figures"

    def __post_init__(self) -> None:
        checked_text(self.name, "name")
        checked_text(self.source, "source")
        object.__setattr__(self, "gpus_per_node", whole_number(self.gpus_per_node, "gpus_per_node"))
        # a caller may pass whole numbers, so convert to float; object.__setattr__, because the dataclass is frozen
        for field in POSITIVE + POSITIVE_OR_NONE:
            value = getattr(self, field)
            if value is None and field in POSITIVE_OR_NONE:
                continue
            object.__setattr__(self, field, one_time(value, field))
            if getattr(self, field) < 1:  # 0, or a value in a wrong unit such as TB/s
                raise HybridLabError(
                    f"{field} must be at least 1, in SI units such as 25e9 bytes a second, not {short_repr(value)}", "too-small"
                )
        if self.efficiency is not None:
            object.__setattr__(self, "efficiency", one_time(self.efficiency, "efficiency"))
            if not 0 < self.efficiency <= 1:
                raise HybridLabError(f"efficiency must be above 0 and at most 1, such as 0.75, not {self.efficiency:g}", "out-of-range")

    @property
    def nvlink_total(self) -> float:
        """NVLink rate in data sheets, the sum of both directions, in bytes/s."""
        return 2 * self.nvlink

    @property
    def node_network(self) -> float:
        """Rate from a whole node to other nodes, in bytes/s in one direction."""
        return self.gpus_per_node * self.network

    @property
    def ridge(self) -> float:
        """The ridge point of the roofline model: with more FLOP per byte of memory traffic, arithmetic takes longer than memory traffic.

        >>> A100_80GB.ridge
        153.01618440411966
        """
        return self.matmul_flops / self.memory_bandwidth

    def roofline(self, flops: Any, nbytes: Any) -> Any:
        """Return the least time of a program in seconds by the roofline model: the larger of its arithmetic time and its memory time.

        Parameters
        ----------
        flops : array_like
            16-bit operations of the program.
        nbytes : array_like
            Bytes that the program reads from and writes to memory. The shapes of ``nbytes`` and ``flops`` must broadcast.

        Returns
        -------
        float or array
            Seconds.

        Raises
        ------
        HybridLabError
            A number is negative or not finite, or the shapes do not broadcast.

        References
        ----------
        Williams, Waterman and Patterson, Communications of the ACM, 2009.

        Examples
        --------
        >>> A100_80GB.roofline(flops=[312e9, 312e6], nbytes=2.039e9)
        array([0.001, 0.001])
        """
        # ``times`` checks numbers of any unit: they must be finite and not negative
        compute, move = times(flops, "flops") / self.matmul_flops, times(nbytes, "nbytes") / self.memory_bandwidth
        try:
            seconds = np.maximum(compute, move)
        except ValueError:
            shapes = f"{compute.shape} and {move.shape}"
            raise HybridLabError(f"flops and nbytes must fit together, but have shapes {shapes}", "does-not-fit") from None
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
    efficiency=0.7514,
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
    efficiency=0.7514,
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
    efficiency=0.6298,
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
    efficiency=0.6298,
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
    efficiency=0.4198,
    source="NCCL topo.h: 18 links of 40.1 GB/s; all other figures not confirmed against the data sheet",
)
GB200 = Profile(
    "GB200-NVL72",
    matmul_flops=2500e12,
    memory=186e9,
    memory_bandwidth=8000e9,
    nvlink=each_way(1800e9),
    network=INFINIBAND_NDR,
    gpus_per_node=72,  # all GPUs of a rack are on one NVLink switch
    fp32_flops=80e12,
    fp8_flops=5000e12,
    nccl_nvlink=721.8e9,
    efficiency=0.4983,
    source="NVIDIA Blackwell data sheet, column GB200, as others quote it: tensor-core figures are with sparsity, twice the dense; "
    "NCCL topo.h: 18 links of 40.1 GB/s; one NDR port a GPU, not confirmed against the data sheet",
)
GB300 = Profile(
    "GB300-NVL72",
    matmul_flops=2500e12,
    memory=279e9,
    memory_bandwidth=8000e9,
    nvlink=each_way(1800e9),
    network=INFINIBAND_XDR,
    gpus_per_node=72,
    fp32_flops=80e12,
    fp8_flops=5000e12,
    nccl_nvlink=721.8e9,
    efficiency=0.6511,
    source="NVIDIA Blackwell Ultra data sheet, column GB300, as others quote it: tensor-core figures are with sparsity, twice the dense; "
    "NCCL topo.h: 18 links of 40.1 GB/s; one XDR port a GPU, not confirmed against the data sheet",
)
B300 = Profile(
    "B300-HGX",
    matmul_flops=2250e12,
    memory=270e9,
    memory_bandwidth=7700e9,
    nvlink=each_way(1800e9),
    network=INFINIBAND_XDR,
    fp32_flops=75e12,
    fp8_flops=4500e12,
    nccl_nvlink=721.8e9,
    efficiency=0.6511,
    source="NVIDIA Blackwell Ultra data sheet, column HGX, as others quote it: tensor-core figures are with sparsity, twice the dense; "
    "NCCL topo.h: 18 links of 40.1 GB/s; one XDR port a GPU, not confirmed against the data sheet",
)
GPUS: Mapping[str, Profile] = MappingProxyType(
    {each.name: each for each in (V100, A100_40GB, A100_80GB, H100, H200, B200, GB200, GB300, B300)}
)


def gpu(name: str) -> Profile:
    """Return the profile of a GPU by its name. The error for an unknown name suggests the most similar name.

    Raises
    ------
    HybridLabError
        No GPU has this name.

    Examples
    --------
    >>> gpu("H200-SXM-141GB").memory_bandwidth
    4800000000000.0
    """
    return GPUS[known_name(name, GPUS, "GPU")]
