"""Times of operations and throughput that Qi et al. measured on A100 GPUs, and the bubble rates that the authors computed.

The tables below contain two of the paper's four models, on 8 GPUs. The schedules have the names of the paper.

References
----------
Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, arXiv 2401.10241: times of the operations in Table 9, bubble rates in Table 5
(computed by the authors from those times), measured throughput in Table 4.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from hybridlab.arrays import Floats
from hybridlab.checks import short_repr
from hybridlab.costs import Costs
from hybridlab.errors import HybridLabError
from hybridlab.timeline import Timeline

DEVICES = 8
SAMPLES = {"1.5B": 6, "6.2B": 3}  # the number of samples in a microbatch of each model

# Table 9: model, microbatches, then T_F, T_B, T_W and T_comm in ms.
TABLE_9 = (
    ("1.5B", 24, 18.522, 18.086, 9.337, 0.601),
    ("1.5B", 32, 18.513, 18.086, 9.331, 0.626),
    ("1.5B", 64, 18.546, 18.097, 9.321, 0.762),
    ("6.2B", 24, 29.718, 29.444, 19.927, 0.527),
    ("6.2B", 32, 29.802, 29.428, 19.530, 0.577),
    ("6.2B", 64, 29.935, 29.621, 19.388, 0.535),
)
# Table 5: bubble rates, one row for each row of Table 9.
RATE_COLUMNS = ("1F1B", "1F1B-I", "ZB-H1", "ZB-H2", "ZB-1p", "ZB-2p")
TABLE_5 = (
    (0.2431, 0.1055, 0.1585, 0.1083, 0.1585, 0.0433),
    (0.1985, 0.0818, 0.1242, 0.0837, 0.1242, 0.0039),
    (0.1240, 0.0443, 0.0674, 0.0444, 0.0674, 0.0026),
    (0.2347, 0.0808, 0.1323, 0.0698, 0.1323, 0.0029),
    (0.1898, 0.0628, 0.1045, 0.0559, 0.1045, 0.0022),
    (0.1091, 0.0320, 0.0554, 0.0294, 0.0554, 0.0010),
)
# Table 4: measured samples per GPU and second.
THROUGHPUT_COLUMNS = ("ZB-2p", "ZB-1p", "1F1B", "1F1B-I")
TABLE_4 = (
    (14.5, 12.9, 11.8, 13.1),
    (14.8, 13.4, 12.5, 13.4),
    (14.9, 14.2, 13.6, 13.9),
    (4.32, 3.88, 3.50, 4.01),
    (4.35, 4.00, 3.70, 4.08),
    (4.39, 4.20, 4.03, 4.19),
)


@dataclass(frozen=True)
class ZeroBubbleRun:
    """One measured run: a model on A100s, with one stage on each GPU.

    Parameters
    ----------
    model : str
        Size of the model: "1.5B" or "6.2B" parameters.
    devices, microbatches : int
    samples : int
        Samples of a microbatch.
    forward, input_gradient, weight_gradient, latency : float
        Times of one microbatch on one device, ms (Table 9: T_F, T_B, T_W, T_comm).
    bubble_rate : mapping of str to float
        Bubble rate of each schedule (Table 5).
    throughput : mapping of str to float
        Samples per GPU and second with each schedule (Table 4).
    """

    model: str
    devices: int
    microbatches: int
    samples: int
    forward: float
    input_gradient: float
    weight_gradient: float
    latency: float
    bubble_rate: Mapping[str, float]
    throughput: Mapping[str, float]

    def costs(self, latency: bool = True) -> Costs:
        """Return the run's times in ms. With ``latency`` False, messages take no time.

        >>> RUNS[0].costs().duration("B", device=0)
        27.423
        """
        # The paper's T_B is the time of the input gradient alone. The library's backward includes both gradients.
        backward = self.input_gradient + self.weight_gradient
        share = self.weight_gradient / backward
        return Costs(forward=self.forward, backward=backward, weight_share=share, p2p=self.latency if latency else 0.0)


def bubble_rate(timeline: Timeline) -> float:
    """Return the bubble rate as Qi et al. define it for Table 5: (span - m(T_F + T_B + T_W)) / span.

    The span is the longest time from the first start to the last end of one device. ``Timeline.bubble_ratio`` takes the makespan of all
    devices instead. The definition holds only for equal stages, where each device has m(T_F + T_B + T_W) of work.

    Parameters
    ----------
    timeline : Timeline
        One setting, with equal stages.

    Raises
    ------
    HybridLabError
        ``timeline`` is not a timeline of one setting, or its stages are unequal.

    Examples
    --------
    >>> from hybridlab import build, simulate
    >>> run = RUNS[0]
    >>> timeline = simulate(build("1f1b", run.devices, run.microbatches), run.costs())
    >>> round(bubble_rate(timeline), 4), run.bubble_rate["1F1B"]
    (0.2431, 0.2431)
    """
    if not isinstance(timeline, Timeline) or timeline.start.ndim != 1:
        raise HybridLabError(
            f"bubble_rate takes the timeline of one setting, not {short_repr(timeline)}: pick one of a batch with at()",
            "several-settings" if isinstance(timeline, Timeline) else "not-a-timeline",
        )
    work: Floats = timeline.busy
    if not np.allclose(work, work[0], rtol=1e-9):  # sums of the same times can differ by rounding
        raise HybridLabError(
            f"this bubble rate is defined for equal stages, but the devices work {short_repr(work.tolist())}", "outside-the-formula"
        )
    span = timeline.device_span
    return float((span - work[0]) / span) if span else 0.0


def _by_schedule(columns: tuple[str, ...], row: tuple[float, ...]) -> Mapping[str, float]:
    """Return a row of a table as a read-only mapping from the name of each schedule to its number."""
    return MappingProxyType(dict(zip(columns, row, strict=True)))


RUNS = tuple(
    ZeroBubbleRun(
        model, DEVICES, m, SAMPLES[model], f, b, w, comm, _by_schedule(RATE_COLUMNS, rate), _by_schedule(THROUGHPUT_COLUMNS, speed)
    )
    for (model, m, f, b, w, comm), rate, speed in zip(TABLE_9, TABLE_5, TABLE_4, strict=True)
)
