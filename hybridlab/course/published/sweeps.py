"""Eight published sweeps of pipeline schedules: the settings that the program runs, and how the text of the program differs from them.

Most figures have six curves: GPipe, 1F1B, interleaved 1F1B with 2 chunks, Hanayo with 1 wave (2 chunks), Hanayo with 2 waves (4 chunks),
and ZB-H1. In most sweeps there are K devices and M = 2K microbatches. On each device, one microbatch takes 400/K for the forward and
800/K for the backward, and the weight gradient is half of the backward. The published program simulates the points one by one. Here
:func:`hybridlab.sweep` computes them together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from hybridlab.checks import short_repr, whole_number
from hybridlab.errors import HybridLabError
from hybridlab.progress import Progress
from hybridlab.sweep import Sweep, sweep
from hybridlab.sweep.grid import SIZES
from hybridlab.sweep.running import Workers

# The schedules of the six curves. A pair is a name and a number of chunks. A name alone has the fewest chunks that the schedule supports.
SIX_LINES = ("gpipe", "1f1b", ("interleaved", 2), ("hanayo", 2), ("hanayo", 4), "zb-h1")
DEVICES, LATENCIES = (2, 4, 8, 16, 32), (0, 4, 16)
# The work of the whole model is the same for every K, so each of K devices has 1/K of this work.
WORK = {"forward": lambda devices: 400 / devices, "backward": lambda devices: 800 / devices}
# The microbatches are a multiple of the devices, because interleaved 1F1B needs this.
TWO_GROUPS = {"microbatches": lambda devices: 2 * devices}
GROUPS = {"microbatches": lambda devices, microbatches_per_device: microbatches_per_device * devices}
LATENCY = "The text gives latencies of 0, 5 and 10, the program runs 0, 4 and 16."
SPLIT = "The text says that both parts of a split backward take the same time."
# The program imports these classes from a module that the document lacks. No class is defined in the document.
IMPORTED = (
    "SystemConfig",
    "Pipeline",
    "GpipePipeline",
    "OneFOneBPipeline",
    "Interleaved1F1BPipeline",
    "Hanayo1F1BPipeline",
    "ZBH1Pipeline",
)


@dataclass(frozen=True)
class PublishedSweep:
    """The settings of one sweep, and the axes, curves and panels of its figure.

    Parameters
    ----------
    name, title : str
    grid : mapping
        The values of each setting, by the name of its column, as :func:`hybridlab.sweep` takes them.
    x : str
        Column on the horizontal axis.
    panels : tuple of str
        Names of columns. The figure has one panel for each combination of the values of these columns and for each quantity in ``y``.
    differences : tuple of str
        Sentences about settings that the text of the program describes in another way than the program runs them.
    schedules : tuple
        Names of schedules, or pairs (name, chunks).
    y : tuple of str
        Quantities on vertical axes.
    log_y : tuple of str
        The quantities in ``y`` that have a logarithmic axis.
    lines : tuple of str
        Names of columns. A panel has one curve for each combination of the values of these columns.

    Raises
    ------
    HybridLabError
        ``grid`` is not a mapping.
    """

    name: str
    title: str
    grid: Mapping[str, Any] = field(repr=False)
    x: str
    panels: tuple[str, ...]
    differences: tuple[str, ...] = field(default=(), repr=False)
    schedules: tuple[Any, ...] = SIX_LINES
    y: tuple[str, ...] = ("bubble_ratio",)
    log_y: tuple[str, ...] = ()
    lines: tuple[str, ...] = ("schedule", "chunks")

    def __post_init__(self) -> None:
        grid: Any = self.grid
        if not isinstance(grid, Mapping):
            wanted = "grid must map columns to their values, such as {'devices': [2, 4]}"
            raise HybridLabError(f"{wanted}, not {short_repr(grid)}", "wrong-type")
        object.__setattr__(self, "grid", MappingProxyType(dict(grid)))  # plain assignment fails in a frozen dataclass

    def run(self, *, executor: Workers | None = None, progress: Progress = None) -> Sweep:
        """Return the results for all settings.

        Parameters
        ----------
        executor, progress : optional
            As in :func:`hybridlab.sweep`.

        Examples
        --------
        >>> best = min(SWEEPS["chunks"].run().where(devices=8, p2p=0), key=lambda row: row["bubble_ratio"])
        >>> best["schedule"], best["chunks"], round(best["bubble_ratio"], 4)
        ('interleaved', 8, 0.0519)
        """
        return sweep(self.schedules, self.grid, executor=executor, progress=progress)


def not_drawn(row: Mapping[str, Any]) -> bool:
    """Return whether the published figures lack this row of a sweep: interleaved 1F1B whose warm-up has more forwards than there are.

    The program runs into an assertion, 2(K-1) + (v-1)K <= vM, and hides the error. With 2 chunks and M = K this happens for more than 2
    devices. The document does not contain the module with the assertion; two public versions of this module have it. The schedule exists,
    and :func:`hybridlab.sweep` computes its results.

    Parameters
    ----------
    row : mapping
        A row of a sweep, with the columns schedule, chunks, microbatches and devices.

    Raises
    ------
    HybridLabError
        The row lacks one of these columns, or a size is not a whole number of at least 1.

    Examples
    --------
    >>> [row["devices"] for row in SWEEPS["microbatches"].run().where(p2p=0) if not_drawn(row)]
    [4, 8, 16]
    """
    if not isinstance(row, Mapping) or not {"schedule", *SIZES} <= set(row):
        wanted = f"a row of a sweep has the columns schedule, {', '.join(SIZES)}"
        raise HybridLabError(f"{wanted}, not {short_repr(row)}", "wrong-type")
    devices, microbatches, chunks = (whole_number(row[size], size) for size in SIZES)
    return bool(row["schedule"] == "interleaved" and 2 * (devices - 1) + (chunks - 1) * devices > chunks * microbatches)


_ALL = (
    PublishedSweep(
        name="weak_scaling",
        title="Weak scaling: microbatches grow with the devices",
        grid={"p2p": LATENCIES, "devices": DEVICES, **TWO_GROUPS, **WORK},
        x="devices",
        y=("makespan", "bubble_ratio"),
        panels=("p2p",),
        differences=(LATENCY,),
    ),
    PublishedSweep(
        name="strong_scaling",
        title="Strong scaling: 32 microbatches on more and more devices",
        grid={"p2p": LATENCIES, "devices": DEVICES, "microbatches": 32, **WORK},
        x="devices",
        y=("makespan", "bubble_ratio"),
        log_y=("makespan",),
        panels=("p2p",),
        differences=(LATENCY,),
    ),
    PublishedSweep(
        name="recompute",
        title="Recomputing a part of the forward within the backward",
        grid={
            "devices": DEVICES,
            "p2p": LATENCIES,
            "recompute": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
            **TWO_GROUPS,
            "forward": WORK["forward"],
            # The backward computes the share r of the forward again: 2F + rF.
            "backward": lambda forward, recompute: 2 * forward + recompute * forward,
            "weight_share": lambda recompute: 1 / (2 + recompute),  # the weight gradient takes a forward's time
        },
        x="recompute",
        panels=("devices", "p2p"),
        differences=(
            LATENCY,
            "The text lists a backward of 800/K, the program runs (2 + r) 400/K, which is how the text defines r.",
            f"{SPLIT} Here the input gradient takes (1 + r) 400/K and the weight gradient 400/K.",
        ),
    ),
    PublishedSweep(
        name="microbatches",
        title="More microbatches for each device",
        grid={"devices": (2, 4, 8, 16), "p2p": LATENCIES, "microbatches_per_device": (1, 2, 4, 8), **GROUPS, **WORK},
        x="microbatches_per_device",
        panels=("devices", "p2p"),
        differences=(LATENCY, "The text lists 32 devices too, the program runs up to 16."),
    ),
    PublishedSweep(
        name="chunks",
        title="More chunks a device, more waves",
        schedules=("interleaved", "hanayo"),
        grid={"devices": DEVICES, "p2p": LATENCIES, "chunks": (2, 4, 6, 8), **TWO_GROUPS, **WORK},
        x="chunks",
        panels=("devices", "p2p"),
        lines=("schedule",),
        differences=(LATENCY,),
    ),
    PublishedSweep(
        name="tb_tw",
        title="ZB-H1: the input gradient's share of the backward",
        schedules=("zb-h1",),
        grid={
            "microbatches_per_device": (1, 2, 4, 8),
            "p2p": LATENCIES,
            "devices": DEVICES,
            "input_share": (0.2, 0.4, 0.5, 0.6, 0.8),
            **GROUPS,
            **WORK,
            "weight_share": lambda input_share: round(1 - input_share, 1),  # round removes rounding errors such as that of 1 - 0.8
        },
        x="input_share",
        panels=("microbatches_per_device", "p2p"),
        lines=("devices",),
        differences=(
            LATENCY,
            "The text lists 1, 2 and 4 microbatches a device, the program runs 8 too.",
            f"{SPLIT} Here the input gradient takes 0.2 to 0.8 of the backward.",
        ),
    ),
    PublishedSweep(
        name="latency",
        title="Sensitivity to the latency between devices",
        grid={
            "devices": DEVICES,
            "microbatches_per_device": (1, 2, 4),
            "p2p": (0, 2, 4, 8, 16, 32),
            **GROUPS,
            **WORK,
        },
        x="p2p",
        panels=("devices", "microbatches_per_device"),
    ),
    PublishedSweep(
        name="imbalance",
        title="First and last device slower than the others",
        grid={
            "devices": DEVICES,
            "p2p": LATENCIES,
            "extra": (0.0, 0.1, 0.2, 0.3, 0.4),
            **TWO_GROUPS,
            "forward": lambda devices, extra: _with_slow_ends(devices, 400 + 400 * extra, 400),
            "backward": lambda devices, extra: _with_slow_ends(devices, 800 + 800 * extra, 800),
            "weight_share": lambda devices, extra: _with_slow_ends(devices, 0.5 / (1 + extra), 0.5),  # the weight gradient stays 400
        },
        x="extra",
        panels=("devices", "p2p"),
        differences=(
            LATENCY,
            "The text lists a forward of 400/K and a backward of 800/K, the program runs 400 and 800 for any number of devices.",
            "The text lists extra times up to 0.5 of a forward, the program runs up to 0.4.",
            f"{SPLIT} Here the extra time of a slow device's backward is all in the input gradient.",
        ),
    ),
)
SWEEPS: Mapping[str, PublishedSweep] = MappingProxyType({each.name: each for each in _ALL})


def _with_slow_ends(devices: int, end: float, middle: float) -> list[float]:
    """Return one value for each device: ``end`` for the first and the last device, ``middle`` for the others."""
    return [end if device in (0, devices - 1) else middle for device in range(devices)]
