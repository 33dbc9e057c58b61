"""Costs: the time of each operation and each message. This is the only definition of these times in the library."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hybridlab.arrays import Floats, Frozen, Ints, readonly
from hybridlab.checks import (
    LONGEST,
    MOST_CELLS,
    counted,
    each_of,
    one_time,
    short_repr,
    times,
    unit_of_time,
    whole_number,
)
from hybridlab.costs import checking
from hybridlab.costs.checking import PER_PLACE
from hybridlab.costs.observed import Timed, observe_costs
from hybridlab.errors import HybridLabError
from hybridlab.schedule import CODE, Kind

Per = str | tuple[str, str]


@dataclass(frozen=True, eq=False, init=False)
class Costs(Frozen):
    """The times of one microbatch on one device or stage, and the latency of messages.

    By default, a time is for a whole device: for all its chunks together. Each chunk takes an equal share of it. With ``per="stage"``, a
    time is for one stage, so the chunks of a device can take different times. With ``per="microbatch"``, there is a time for each
    microbatch, and all devices are alike. If both differ, ``per`` has two words: with ``per=("device", "microbatch")`` or
    ``per=("stage", "microbatch")``, the last two axes of a time are for devices (or stages) and for microbatches. For sequences of
    different lengths, a time is the product of the time of a token on each device and the tokens of each microbatch.

    The last axis of each value has one entry for each device (or stage, or microbatch), or only one entry if all have the same value. The
    axes before it are for settings: several sets of costs that are simulated together. The settings of all arguments are broadcast against
    each other by numpy's rules.

    Two objects are equal if they give the same times, for the same devices and microbatches, in the same unit. So ``backward=[2, 2]``
    equals ``backward=2`` if another value is for two devices, too. Without such a value they differ, because ``backward=2`` is for any
    number of devices.

    Parameters
    ----------
    forward : array_like, shape (..., devices) or (..., 1) or ()
        Time of the forward. The shape is that for ``per="device"``. For the other values of ``per``, it is (..., stages),
        (..., microbatches), (..., devices, microbatches) or (..., stages, microbatches).
    backward : array_like, shape as ``forward``
        Time of the full backward: input gradient plus weight gradient.
    weight_share : array_like, shape as ``forward``
        The weight gradient's share of the backward, from 0 to 1.
    p2p : array_like, shape (..., 1) or ()
        Latency of a message between any two devices.
    overlap : array_like, shape (..., 1) or ()
        How much time an overlapped pair saves, from 0 to 1. An overlapped pair is a forward and a full backward that a device runs
        at the same time. The pair takes F + B - overlap x min(F, B), where F and B are the times of its operations alone. Schedules
        without overlapped pairs do not use this value.
    p2p_between : array_like, shape (devices - 1,) or (devices, devices), optional
        Latencies that differ from link to link. Give this or ``p2p``. A list has one latency for each pair of neighbours: value d is the
        latency between devices d and d + 1, in both directions. A matrix has the latency from device i to device j at [i, j], and zeros
        on its diagonal. In costs for all ranks of a mesh, each rank counts as a device. There is no axis for settings.
    unit : str or None
        The unit of all times: "s", "ms", "us", or None for time slots without a length.
    per : str or tuple of str
        What ``forward``, ``backward`` and ``weight_share`` have one value for: "device", "stage", "microbatch", ("device", "microbatch") or
        ("stage", "microbatch"). The latency of a message is the same for all microbatches.

    Raises
    ------
    HybridLabError
        A time is not a finite number of zero or more, a share is above 1, shapes do not fit together, or the unit is unknown. The
        code is ``ambiguous`` if ``p2p`` has several values on its last axis, because they could be settings or links.

    Examples
    --------
    >>> costs = Costs(forward=10, backward=[20, 30], p2p=1)
    >>> costs.duration("W", device=1), costs.unit
    (15.0, 'ms')
    >>> Costs(forward=[[1], [2]], backward=4).batch  # two settings
    (2,)
    >>> Costs(forward=[1, 4, 4, 11], backward=[2, 8, 8, 22], per="stage").stages  # for 2 devices with 2 chunks, or for 4 devices
    4
    >>> Costs(forward=[1, 2, 4], backward=[2, 4, 8], per="microbatch").duration("B", device=0, microbatch=2)
    8.0
    >>> token, tokens = [0.01, 0.02], [100, 300, 200]  # ms for a token on each device, and the tokens of each microbatch
    >>> times = np.multiply.outer(token, tokens)
    >>> costs = Costs(forward=times, backward=2 * times, per=("device", "microbatch"))
    >>> costs.devices, costs.microbatches, costs.duration("F", device=1, microbatch=1)
    (2, 3, 6.0)
    """

    forward: Floats
    backward: Floats
    weight_share: Floats
    p2p: Floats
    overlap: Floats
    p2p_between: Floats | None
    unit: str | None
    per: Per

    # computed from the fields in __init__
    _batch: ClassVar[tuple[int, ...]]  # shape of the settings
    _places: ClassVar[int | None]  # number of devices or stages; None if all have the same times
    _microbatches: ClassVar[int | None]  # number of microbatches; None if all have the same times

    def __init__(
        self,
        *,
        forward: Any,
        backward: Any,
        weight_share: Any = 0.5,
        p2p: Any = 0.0,
        overlap: Any = 0.0,
        p2p_between: Any = None,
        unit: str | None = "ms",
        per: Per = "device",
    ) -> None:
        given = {"forward": forward, "backward": backward, "weight_share": weight_share, "p2p": p2p, "overlap": overlap}
        values = checking.checked_times(given)
        between = None if p2p_between is None else readonly(checking.latencies_between(p2p_between))
        unit, per = unit_of_time(unit), checking.checked_per(per)
        if type(per) is tuple:  # a single row is for all devices or stages
            values |= {name: np.atleast_2d(values[name]) for name in PER_PLACE}
        if between is not None and (values["p2p"].size > 1 or values["p2p"].any()):
            raise HybridLabError("give p2p or p2p_between, not both: each is the latency of messages", "conflicting-arguments")
        batch, places, microbatches = checking.settings_and_sizes({name: array.shape for name, array in values.items()}, between, per)
        own = self.__dict__
        own.update(values, p2p_between=between, unit=unit, per=per, _batch=batch, _places=places, _microbatches=microbatches)

    @classmethod
    def from_csv(cls, path: Any, *, per: str | None = None, unit: str | None = None) -> "Costs":
        r"""Return the measured times in a CSV file. The file has one column of times for each device, stage or microbatch.

        The first line has the names of the columns. Its first cell names the unit of the times, such as ``time in ms``. The other cells say
        what has the times: ``device 0``, ``device 1`` and so on (or ``GPU 0``, ``rank 0``, ``d0``), or ``stage 0`` (``s0``), or
        ``microbatch 0`` (``mb 0``). If their names do not say it, the first cell can: ``time in ms per stage``. One column for all needs no
        such word. Each other line begins with the name of a kind of time:

        - ``forward``, or ``F``
        - ``backward``, or ``input_gradient`` and ``weight_gradient``, or ``backward`` and ``weight_gradient`` (also ``B``, ``I``, ``W``)
        - ``weight_share``, if ``backward`` was measured only as a whole
        - ``p2p``, the latency of messages. One value in the first column holds for all links. Otherwise there is one value for each link:
          column d has the link from device d to device d + 1, and the last column is empty. The line ``p2p_between`` always has one value
          for each link
        - ``p2p from device 0``, ``p2p from device 1`` and so on, a line for each device: the latencies of its messages to each device
        - ``overlap``, one value in the first column

        A line that ends its first cell with ``for all`` has one value for all columns. A line can name its own unit, such as ``p2p in us``.
        Lines that begin with ``#`` are comments. Spreadsheets of every country can write the file: commas, semicolons or tabs stand between
        cells, and numbers have points or commas. The file can also be a Markdown table. A table with a line for each device or stage and a
        column for each kind of time is read, too. What can be read in two ways is refused, and the error says what to write.

        Parameters
        ----------
        path : str, path or open file
            The file. ``io.StringIO(text)`` is a file, too.
        per : str, optional
            "device" if a column has the times of a device with all its chunks, "stage" if a column has the times of one stage,
            "microbatch" if it has those of one microbatch. Give it if the file does not say this.
        unit : str, optional
            The unit of the times if the file does not say it: "s", "ms", "us", or "slots" for times without a length.

        Raises
        ------
        HybridLabError
            The file cannot be read, or a time is missing, is not a number, can be read in two ways, or looks as if it were in another unit
            than the others. The message names the line and the column. The code is ``no-unit`` if neither the file nor ``unit`` says the
            unit, ``no-per`` if neither the file nor ``per`` says what has the times, and ``conflicting-arguments`` if ``unit`` or ``per``
            contradicts the file.

        Examples
        --------
        >>> import io
        >>> costs = Costs.from_csv(io.StringIO("time in us,device 0,device 1\nforward,10,12\nbackward,20,24\np2p,0.5,\n"))
        >>> costs.forward, costs.backward, costs.p2p, costs.unit
        (array([10., 12.]), array([20., 24.]), array([0.5]), 'us')
        >>> Costs.from_csv(io.StringIO("Zeit in ms;stage 0;stage 1\nF;10,5;12\nB;20;24,25\n")).backward
        array([20.  , 24.25])
        >>> Costs.from_csv(io.StringIO("stage,forward (ms),backward (ms)\n0,10,20\n1,12,24\n")).per
        'stage'
        """
        from hybridlab.costs.measured import times_in_file  # imported here, because most programs read no file

        return cls(**times_in_file(path, per, unit))

    @classmethod
    def from_timeline(cls, timeline: Timed, *, per: Per = "device", links: bool = False, weight_share: float = 0.5) -> "Costs":
        """Return the costs that a timeline shows. The timeline can be measured, as from :meth:`hybridlab.Timeline.from_chrome_trace`.

        The time of an operation is the median of all operations of its kind on a device or stage. The latency is the shortest time from the
        end of an operation to the start of an operation on another device that needs its output. The shortest time is taken, because a
        message can take longer than its latency (if it waits for the link or for the engine), but not less. The latency is 0 if no device
        was idle before it received a message.

        Parameters
        ----------
        timeline : Timeline
            A simulated or measured timeline with one setting.
        per : str or tuple of str
            What has a time of its own, as in :class:`Costs`: "device" for the times of a device with all its chunks, "stage" for the times
            of each stage. With "microbatch", ("device", "microbatch") or ("stage", "microbatch"), each microbatch has its own times, for
            sequences of different lengths.
        links : bool
            True for one latency for each link (``p2p_between``), False for one latency for all links (``p2p``). Links that carried no
            message get the median of the other links.
        weight_share : float
            The weight gradient's share of the backward, for devices or stages on which the timeline has only full backwards.

        Raises
        ------
        HybridLabError
            ``timeline`` is not a Timeline or has several settings, ``weight_share`` is above 1, the times are per device and the first
            stages of the timeline are not on devices 0, 1, 2, ... (take per="stage" then), or the times are per microbatch and the schedule
            has overlapped pairs.

        Examples
        --------
        >>> from hybridlab import build, simulate
        >>> costs = Costs(forward=[10, 12], backward=[20, 26], p2p=1)
        >>> Costs.from_timeline(simulate(build("1f1b", devices=2, microbatches=4), costs)).backward
        array([20., 26.])
        """
        return cls(**observe_costs(timeline, per, links, weight_share))

    def to_csv(self) -> str:
        r"""Return the times as a CSV text with their unit. :meth:`from_csv` reads equal costs from a file with this text.

        Raises
        ------
        HybridLabError
            The costs have several settings, or more times than a line for each kind of time can hold.

        Examples
        --------
        >>> print(Costs(forward=[1, 2], backward=4, p2p=0.5, unit="s").to_csv(), end="")
        time in s,device 0,device 1
        forward,1.0,2.0
        backward for all,4.0,
        weight_share for all,0.5,
        p2p,0.5,
        """
        if not isinstance(self.per, str):
            message = "a file of times has one column for each device, stage or microbatch"
            message += f", but these times are per {' and '.join(self.per)}"
            raise HybridLabError(f"{message}: write one file for each device or stage", "does-not-fit")
        from hybridlab.costs.measured import times_as_csv

        return times_as_csv(self)

    @property
    def weight_gradient(self) -> Floats:
        """Time of the weight gradient, shape (..., devices) or (..., 1)."""
        weight: Floats = self.backward * self.weight_share
        return readonly(weight)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the settings. () for costs with one setting."""
        return self._batch

    @property
    def by_stage(self) -> bool:
        """Whether the times are those of stages, not of devices with all their chunks."""
        return self.per in ("stage", ("stage", "microbatch"))

    @property
    def devices(self) -> int | None:
        """Number of devices for which there are costs. None if all devices and links have the same costs."""
        if self.p2p_between is not None:
            return checking.devices_joined(self.p2p_between)
        return None if self.by_stage else self._places

    @property
    def stages(self) -> int | None:
        """Number of stages for which there are times. None if the times are per device, or if all stages have the same times."""
        return self._places if self.by_stage else None

    @property
    def microbatches(self) -> int | None:
        """Number of microbatches for which there are times. None if all microbatches have the same times."""
        return self._microbatches

    @property
    def same_everywhere(self) -> bool:
        """Whether operations take the same times on all devices and stages, and for all microbatches."""
        return self._places is None and self._microbatches is None

    def table(self, devices: int, chunks: int = 1) -> Floats:
        """Return the times of F, B, I and W on one chunk of each device, shape (4, devices, settings...).

        For times per stage, ``devices`` is the number of stages. If the times differ from microbatch to microbatch, the shape is
        (4, devices, microbatches, settings...).

        Raises
        ------
        HybridLabError
            The costs are for another number of devices or stages, ``chunks`` is given for times per stage, or the table does not fit in
            memory.

        Examples
        --------
        >>> Costs(forward=[[1], [2]], backward=4).table(devices=1)[:, 0].tolist()
        [[1.0, 2.0], [4.0, 4.0], [2.0, 2.0], [2.0, 2.0]]
        """
        place = "stage" if self.by_stage else "device"
        devices, chunks = whole_number(devices, f"{place}s"), whole_number(chunks, "chunks")
        if self.by_stage and chunks > 1:
            raise HybridLabError("times per stage are times of one chunk: leave out the argument chunks", "conflicting-arguments")
        count = self.stages if self.by_stage else self.devices
        if count not in (None, devices):  # None: any number of devices has these times
            checking.refuse_size(count, devices, place, links=self.p2p_between is not None)
        sizes = (devices,) if self.microbatches is None else (devices, self.microbatches)
        shape = (*self.batch, *sizes)
        if math.prod(shape) > MOST_CELLS:
            message = f"{math.prod(self.batch):,} settings of {counted(devices, place)} are more than {MOST_CELLS:,} values"
            raise HybridLabError(f"{message} and do not fit in memory; take fewer settings at a time", "too-large")
        kinds: Iterable[Floats] = checking.of_four_kinds(self.forward, self.backward, self.weight_share, chunks)
        last: Any = -1
        first: Any = 0
        if self.microbatches is not None:
            last, first = (-2, -1), (0, 1)
            kinds = (kind[..., None, :] for kind in kinds) if self.per == "microbatch" else kinds  # one row for all devices
        elif not isinstance(self.per, str):
            kinds = (kind[..., 0] for kind in kinds)  # all microbatches have the same times
        # devices are an axis before settings, so that all settings of a device are side by side in memory
        return np.stack([np.moveaxis(np.broadcast_to(kind, shape), last, first) for kind in kinds])

    def numbers(self, chunks: int) -> tuple[float, float, float, float, float] | None:
        """Return five numbers: the times of F, B, I and W on one chunk, and the latency. Return None if these times need arrays.

        Raises
        ------
        HybridLabError
            ``chunks`` is not a whole number of at least 1.

        Examples
        --------
        >>> Costs(forward=1, backward=4, p2p=0.5).numbers(chunks=2)
        (0.5, 2.0, 1.0, 1.0, 0.5)
        """
        chunks = whole_number(chunks, "chunks")
        if self.batch or not self.same_everywhere or self.p2p_between is not None:
            return None
        times = (self.forward.item(), self.backward.item(), self.weight_share.item())
        return *checking.of_four_kinds(*times, chunks if self.per == "device" or not self.by_stage else 1), self.p2p.item()

    def pairs(self, devices: int, chunks: int = 1) -> Floats:
        """Return the time of an overlapped pair on each device, shape (devices, settings...). Each operation of the pair is on one chunk.

        Raises
        ------
        HybridLabError
            The costs are for another number of devices or stages, a size is not a whole number of at least 1, or the times differ from
            microbatch to microbatch (``per-microbatch``).

        Examples
        --------
        >>> Costs(forward=1, backward=2, overlap=[[0], [0.5], [1]]).pairs(devices=1).tolist()
        [[3.0, 2.5, 2.0]]
        """
        if self.microbatches is not None:
            message = "these times differ from microbatch to microbatch, and a pair has two microbatches"
            raise HybridLabError(f"{message}: take together() with the times of both operations", "per-microbatch")
        return self.together(*self.table(devices, chunks)[:2])

    def together(self, forward: Floats, backward: Floats) -> Floats:
        """Return the times of overlapped pairs. The arguments are the times of their operations alone, shape (pairs, settings...).

        Raises
        ------
        HybridLabError
            A time is not a number of zero or more, or the shapes do not fit the settings of the costs.

        Examples
        --------
        >>> Costs(forward=1, backward=2, overlap=0.5).together(np.array([1.0]), np.array([4.0]))
        array([4.5])
        """
        forward, backward = checking.array_of_times(forward, "forward"), checking.array_of_times(backward, "backward")
        try:
            both, shorter = forward + backward, np.minimum(forward, backward)
            together: Floats = both - self.overlap[..., 0] * shorter
        except ValueError:
            shapes = f"{forward.shape} and {backward.shape}"
            message = f"forward and backward must have one time for each pair and the settings {self.batch} of the costs, not {shapes}"
            raise HybridLabError(message, "does-not-fit") from None
        if not ((shorter >= 0) & (both <= 2 * LONGEST)).all():  # false for NaN too
            times(forward, "forward"), times(backward, "backward")  # one of the two raises
        return together

    def latency(self, sender: Ints, receiver: Ints) -> Floats:
        """Return the latency of each message.

        Parameters
        ----------
        sender, receiver : array of int, shape (messages,)
            For each message, the device that sends it and the device that receives it.

        Returns
        -------
        array of float, shape (messages, settings...)

        Raises
        ------
        HybridLabError
            ``p2p_between`` has no latency for a message. Its two devices are not neighbours (``no-link``), or one does not exist
            (``out-of-range``).

        Examples
        --------
        >>> Costs(forward=1, backward=2, p2p_between=[1, 5]).latency([0, 2], [1, 1]).tolist()
        [1.0, 5.0]
        """
        sender, receiver = checking.device_numbers(sender, "sender"), checking.device_numbers(receiver, "receiver")
        if sender.shape != receiver.shape:
            raise HybridLabError(f"sender and receiver must have the same length, not {sender.size} and {receiver.size}", "wrong-length")
        if self.p2p_between is None:
            return np.broadcast_to(self.p2p[..., 0], (sender.size, *self.batch))
        late = checking.latencies_of(self.p2p_between, sender, receiver)  # all settings have the same p2p_between
        return np.broadcast_to(late.reshape(-1, *(1 for _ in self.batch)), (sender.size, *self.batch))

    def duration(self, kind: Kind | str, device: int, chunks: int = 1, microbatch: int | None = None) -> Any:
        """Return the time of one operation: a float, or an array of shape (settings...).

        Parameters
        ----------
        kind : Kind or str
            F, B, I or W.
        device : int
            The device that runs the operation. For times per stage, the stage.
        chunks : int
            Number of chunks on a device. With v chunks, an operation on one chunk takes 1/v of the time on the whole device. For times
            per stage it must be 1, because a stage is one chunk.
        microbatch : int, optional
            The microbatch. It is needed if the times differ from microbatch to microbatch.

        Raises
        ------
        HybridLabError
            The kind is unknown, the costs are for fewer devices, stages or microbatches, or ``microbatch`` is missing.

        Examples
        --------
        >>> Costs(forward=10, backward=20, weight_share=0.25).duration("W", device=0, chunks=2)
        2.5
        """
        place = "stage" if self.by_stage else "device"
        device = whole_number(device, place, at_least=0)
        if not (isinstance(kind, str) and kind in CODE):
            raise HybridLabError(f"{short_repr(kind)} is not a kind of operation: use F, B, I or W", "unknown-operation")
        count = self.stages if self.by_stage else self.devices
        checking.require_below(device, count, place)
        if microbatch is not None:
            checking.require_below(whole_number(microbatch, "microbatch", at_least=0), self.microbatches, "microbatch")
        elif self.microbatches is not None:
            message = "these times differ from microbatch to microbatch: give the microbatch, as in duration('F', device=0, microbatch=3)"
            raise HybridLabError(message, "missing-argument")
        value = self.table(count or 1, chunks)[CODE[Kind(kind)], device if count else 0]
        if self.microbatches is not None:
            value = value[microbatch]
        return value if self.batch else float(value)

    def slower(self, devices: Iterable[int], factor: float, of: int | None = None) -> "Costs":
        """Return costs in which the operations of some devices take ``factor`` times as long.

        The result of times per microbatch has times per device and microbatch.

        Parameters
        ----------
        devices : Iterable[int]
            The slower devices. A device that is named twice counts once.
        factor : float
            The operations of these devices take ``factor`` times as long. With a factor below 1, the devices are faster.
        of : int, optional
            The total number of devices. It is needed if the costs are the same for all devices.

        Raises
        ------
        HybridLabError
            A device is out of range, the factor is not a finite number of zero or more, ``of`` is missing or contradicts the costs, or
            the times are per stage.

        Examples
        --------
        >>> Costs(forward=[10, 10], backward=20).slower([1], 1.5).forward
        array([10., 15.])
        """
        if self.by_stage:
            raise HybridLabError("these times are per stage, not per device: multiply the times of the device's stages", "per-stage")
        number = checking.number_of_devices(self.devices, of)
        by = times(factor, "factor")
        if by.ndim:
            raise HybridLabError(f"factor must be one number for all the given devices, not {short_repr(factor)}", "wrong-shape")
        scale = np.ones(number)
        for device in each_of(devices, "devices must be a list of devices, such as [0]"):
            scale[whole_number(device, "device", at_least=0, at_most=number - 1)] = (
                by  # not *=, because a device that is named twice counts once
            )
        forward, backward, share = self.forward, self.backward, self.weight_share
        per = self.per
        if per not in ("device", "stage"):
            scale = scale[:, None]
        if per == "microbatch":  # a row for all devices
            forward, backward, share, per = forward[..., None, :], backward[..., None, :], share[..., None, :], ("device", "microbatch")
        with np.errstate(over="ignore"):  # replace() refuses times that became infinite
            return replace(self, forward=forward * scale, backward=backward * scale, weight_share=share, per=per)

    def longer(self, factor: float) -> "Costs":
        """Return costs in which all operations and all messages take ``factor`` times as long.

        Raises
        ------
        HybridLabError
            ``factor`` is not one finite number of zero or more, or a time becomes too large.

        Examples
        --------
        >>> Costs(forward=10, backward=20, p2p=1).longer(0.5).duration("B", device=0)
        10.0
        """
        by = one_time(factor, "factor")
        between = None if self.p2p_between is None else by * self.p2p_between
        with np.errstate(over="ignore"):  # replace() refuses times that became infinite
            return replace(self, forward=by * self.forward, backward=by * self.backward, p2p=by * self.p2p, p2p_between=between)

    def repeated(self, pipelines: int) -> "Costs":
        """Return the costs of several equal ``pipelines``. Device d of pipeline p gets the number p x devices + d.

        Raises
        ------
        HybridLabError
            ``pipelines`` is not a whole number of at least 1.

        Examples
        --------
        >>> Costs(forward=[1, 2], backward=3).repeated(2).forward
        array([1., 2., 1., 2.])
        """
        count = whole_number(pipelines, "pipelines")
        if self.devices is None:
            return self
        rows = {}
        if self.per in ("device", ("device", "microbatch")):  # all pipelines have the same stages and microbatches
            axis = -1 if self.per == "device" else -2
            rows = {name: getattr(self, name) for name in PER_PLACE}
            rows = {name: np.concatenate([row] * count, axis=axis) for name, row in rows.items() if row.shape[axis] > 1}
        return replace(self, **rows, p2p_between=None if self.p2p_between is None else checking.repeated_latencies(self.p2p_between, count))

    def _key(self) -> tuple[Any, ...]:
        between = None if self.p2p_between is None else checking.key_of(self.p2p_between)
        times = (checking.key_of(checking.without_repeats(getattr(self, name))) for name in (*PER_PLACE, *checking.SHARED))
        return (self.per, self.unit, self._batch, self._places, self._microbatches, between, *times)

    def __eq__(self, other: object) -> bool:
        """Return whether both objects give the same times, for the same devices, stages and microbatches, in the same unit."""
        return self._key() == other._key() if isinstance(other, Costs) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())
