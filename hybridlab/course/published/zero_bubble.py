"""What Qi et al. measured on A100 GPUs, and the bubble rates and throughput they published.

Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, arXiv 2401.10241: op times from Table 9, bubble rates from
Table 5 (computed by the authors from those times), measured throughput from Table 4. Two of its four models, on 8
GPUs. Schedules carry the paper's names.
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
SAMPLES = {"1.5B": 6, "6.2B": 3}  # a microbatch

# Table 9: model, microbatches, then T_F, T_B, T_W and T_comm in ms.
TABLE_9 = (
    ("1.5B", 24, 18.522, 18.086, 9.337, 0.601),
    ("1.5B", 32, 18.513, 18.086, 9.331, 0.626),
    ("1.5B", 64, 18.546, 18.097, 9.321, 0.762),
    ("6.2B", 24, 29.718, 29.444, 19.927, 0.527),
    ("6.2B", 32, 29.802, 29.428, 19.530, 0.577),
    ("6.2B", 64, 29.935, 29.621, 19.388, 0.535),
)
# Table 5: bubble rates, a row for each of Table 9's.
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
class Run:
    """One measured run: a model on ``devices`` A100s, one stage each, ``microbatches`` of ``samples`` samples.

    ``forward``, ``input_gradient``, ``weight_gradient`` and ``latency`` are times in ms of one microbatch on one
    device (Table 9: T_F, T_B, T_W, T_comm). ``bubble_rate`` (Table 5) and ``throughput``, samples per GPU and
    second (Table 4), go by schedule.
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
        """Return the run's times in ms, without the latency if ``latency`` is False.

        >>> RUNS[0].costs().duration("B", device=0)
        27.423
        """
        backward = self.input_gradient + self.weight_gradient
        share = self.weight_gradient / backward
        return Costs(forward=self.forward, backward=backward, weight_share=share, p2p=self.latency if latency else 0.0)


def bubble_rate(timeline: Timeline) -> float:
    """Return the bubble rate as Qi et al. define it for Table 5: (span - m(T_F + T_B + T_W)) / span.

    The span is the longest first-start-to-last-end of one device, where ``Timeline.bubble_ratio`` takes the
    makespan. The stages are uniform: every device has m(T_F + T_B + T_W) of work. Raises :class:`HybridLabError`
    for others, and for batches.

    >>> from hybridlab import build, simulate
    >>> run = RUNS[0]
    >>> timeline = simulate(build("1f1b", run.devices, run.microbatches), run.costs())
    >>> round(bubble_rate(timeline), 4), run.bubble_rate["1F1B"]
    (0.2431, 0.2431)
    """
    if not isinstance(timeline, Timeline) or timeline.start.ndim != 1:
        raise HybridLabError(f"bubble_rate takes the timeline of one setting, not {short_repr(timeline)}: pick one of a batch with at()")
    work: Floats = timeline.busy
    if not np.allclose(work, work[0], rtol=1e-9):
        raise HybridLabError(f"this bubble rate is defined for equal stages, but the devices work {short_repr(work.tolist())}")
    span = timeline.device_span
    return float((span - work[0]) / span) if span else 0.0


def _named(columns: tuple[str, ...], row: tuple[float, ...]) -> Mapping[str, float]:
    return MappingProxyType(dict(zip(columns, row, strict=True)))


RUNS = tuple(
    Run(model, DEVICES, m, SAMPLES[model], f, b, w, comm, _named(RATE_COLUMNS, rate), _named(THROUGHPUT_COLUMNS, speed))
    for (model, m, f, b, w, comm), rate, speed in zip(TABLE_9, TABLE_5, TABLE_4, strict=True)
)
