"""Where projects cut a model into stages: their layouts and options, read and written by the rules of their own code.

The rules are those of NVIDIA/Megatron-LM d98e8a64 (core 0.20.0), NVIDIA/NeMo 8cfedd72, NVIDIA-NeMo/Megatron-Bridge 067f987d,
pytorch/torchtitan b5bcd76c and deepspeedai/DeepSpeed edaa7221.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from types import MappingProxyType
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from hybridlab.arrays import Floats, one_object
from hybridlab.checks import checked_text, counted, each_of, item_of, known_name, short_repr, times, true_or_false, whole_number
from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.planner.plan import divisors

MOST = 100_000  # the largest number of layers, of devices, and of letters in a layout without repeats
LONGEST_LAYOUT = 5_000  # characters; the time to find groups grows with the square
MOST_ITEMS = 2_000  # the largest number of items that are balanced; the time grows with its square
# What an option says, and its name in each project.
_CONFIG = {
    "layout": "pipeline_model_parallel_layout",
    "first": "num_layers_in_first_pipeline_stage",
    "last": "num_layers_in_last_pipeline_stage",
    "embedding": "account_for_embedding_in_pipeline_split",
    "loss": "account_for_loss_in_pipeline_split",
    "devices": "pipeline_model_parallel_size",
    "chunks": "virtual_pipeline_model_parallel_size",
}
_SIZES = {"layers": "num_layers", "mtp": "mtp_num_layers"}
OPTIONS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "Megatron-LM": {
            "layers": "num-layers",
            "mtp": "mtp-num-layers",
            "layout": "pipeline-model-parallel-layout",
            "first": "decoder-first-pipeline-num-layers",
            "last": "decoder-last-pipeline-num-layers",
            "embedding": "account-for-embedding-in-pipeline-split",
            "loss": "account-for-loss-in-pipeline-split",
            "devices": "pipeline-model-parallel-size",
            "chunks": "num-virtual-stages-per-pipeline-rank",
            "layers a chunk": "num-layers-per-virtual-pipeline-stage",
            "no overlap": "no-overlap-p2p-communication",
        },
        "Megatron-Bridge": {what: f"model.{name}" for what, name in (_SIZES | _CONFIG).items()},
        "NeMo": {what: f"model.config.{name}" for what, name in _SIZES.items()}
        | {what: f"MegatronStrategy.{name}" for what, name in _CONFIG.items()},
        "torchtitan": {
            "layers": "layers",
            "devices": "parallelism.pipeline_parallel_degree",
            "schedule": "parallelism.pipeline_parallel_schedule",
            "layers a stage": "parallelism.pipeline_parallel_layers_per_stage",
            "first": "parallelism.pipeline_parallel_first_stage_less_layers",
            "last": "parallelism.pipeline_parallel_last_stage_less_layers",
            "modules": "parallelism.module_fqns_per_model_part",
        },
        "DeepSpeed": {"method": "partition_method", "items": "items", "parameters": "parameters", "stages": "stages"},
    }
)
SWITCHES = {"embedding", "loss", "no overlap"}  # options that are True or False
# A layout of Megatron: the words of a list and the letters of a text.
WORDS = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}
GROUP, REPEAT = re.compile(r"\(([^)]+)\)\*(\d+)"), re.compile(r"(.)\*(\d+)")  # Megatron-LM reads with these two, each once
READABLE = re.compile(r"(?:\((?:[EtmL|,](?:\*\d+)?)+\)\*\d+|[EtmL|,](?:\*\d+)?)*")  # ends where reading a layout must stop
DOUBLED = re.compile(r"(([tm])\2+),*\*(\d+)")  # where one might think that * repeats all the letters before it
GRAMMAR = (
    "a stage is letters E, t, m, L (embedding, layer, multi-token prediction, loss), a bar | ends it, t*3 repeats a letter, (tt|)*3 repeats"
    " a group, and groups do not nest"
)
SCHEDULES = {  # a schedule of torchtitan, and where the stages are: one on a device, several in a loop, or two in a V
    "1F1B": "single",
    "GPipe": "single",
    "Interleaved1F1B": "loop",
    "LoopedBFS": "loop",
    "InterleavedZeroBubble": "loop",
    "ZBVZeroBubble": "v",
    "DualPipeV": "v",
}
ENDS = ("tok_embeddings", "norm", "lm_head")  # the modules of torchtitan that are no layers


class Chunk(NamedTuple):
    """What one chunk of a device holds.

    Attributes
    ----------
    first_layer : int or None
        The first layer, counted from 0, or None if there is no layer.
    layers : int
        Number of layers.
    embedding, loss : bool
        Whether the chunk holds the embedding, or the output layer with the loss.
    mtp : int
        Number of layers of multi-token prediction.
    """

    first_layer: int | None
    layers: int
    embedding: bool = False
    loss: bool = False
    mtp: int = 0

    def __str__(self) -> str:
        last = (self.first_layer or 0) + self.layers - 1
        named = f"layer {last}" if self.layers == 1 else f"layers {self.first_layer} to {last}"
        told = ["embedding"] * self.embedding + [named] * bool(self.layers) + [f"{self.mtp} MTP"] * bool(self.mtp) + ["loss"] * self.loss
        return " + ".join(told) or "empty"


@dataclass(frozen=True)
class Cut(Sequence[tuple[Chunk, ...]]):
    """A model cut into stages: for each device its chunks. ``len``, indexing and iteration work as on ``devices``.

    Parameters
    ----------
    devices : sequence of sequences of Chunk or dict
        The chunks of each device, in the order in which a microbatch reaches them. All devices have the same number of chunks.
    warnings : tuple of str
        What the project accepts and few expect, such as an empty stage. Cuts are equal whatever their warnings are.

    Raises
    ------
    HybridLabError
        ``devices`` is no list of lists of chunks, or a device has another number of chunks.

    Examples
    --------
    >>> cut = Cut([[{"first_layer": 0, "layers": 2, "embedding": True}], [{"first_layer": 2, "layers": 1, "loss": True}]])
    >>> cut[1][0].first_layer, len(cut)
    (2, 2)
    >>> print(cut)
    device 0: embedding + layers 0 to 1
    device 1: layer 2 + loss
    """

    devices: tuple[tuple[Chunk, ...], ...]
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        wanted = "devices must be a list with the chunks of each device"
        each = [list(each_of(device, wanted)) for device in each_of(self.devices, wanted)]
        sizes = sorted({len(chunks) for chunks in each})
        if len(sizes) != 1 or not sizes[0]:
            told = "there is no chunk" if sizes in ([], [0]) else f"devices have {sizes[0]} to {sizes[-1]}"
            raise HybridLabError(f"each device must have the same number of chunks, at least one, and {told}", "wrong-length")
        devices = tuple(
            tuple(_checked_chunk(chunk, f"chunk {c} of device {d}") for c, chunk in enumerate(row)) for d, row in enumerate(each)
        )
        object.__setattr__(self, "devices", devices)

    def __len__(self) -> int:
        return len(self.devices)

    def __iter__(self) -> Iterator[tuple[Chunk, ...]]:
        return iter(self.devices)

    @overload
    def __getitem__(self, place: int) -> tuple[Chunk, ...]: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[tuple[Chunk, ...], ...]: ...
    def __getitem__(self, place: int | slice) -> Any:
        return item_of(self.devices, place, "the cut", "device")

    def __array__(self, dtype: Any = None, copy: Any = None) -> npt.NDArray[Any]:
        return one_object(self)

    def __str__(self) -> str:
        return "\n".join(f"device {place}: {' | '.join(map(str, chunks))}" for place, chunks in enumerate(self.devices))

    def to_lists(self) -> list[list[dict[str, Any]]]:
        """Return the chunks of each device as dicts for JSON. A dict has ``embedding``, ``loss`` and ``mtp`` only where they are there.

        Examples
        --------
        >>> read_cut("Megatron-LM", {"pipeline-model-parallel-size": 1, "num-layers": 4}).to_lists()
        [[{'first_layer': 0, 'layers': 4, 'embedding': True, 'loss': True}]]
        """
        always = ("first_layer", "layers")
        return [
            [{name: value for name, value in chunk._asdict().items() if value or name in always} for chunk in row] for row in self.devices
        ]


def read_cut(project: str, options: Mapping[str, Any]) -> Cut:
    """Return the cut that a project makes of a model with these options.

    Parameters
    ----------
    project : str
        "Megatron-LM", "Megatron-Bridge", "NeMo", "torchtitan" or "DeepSpeed".
    options : dict
        The options that say where to cut, by their names in the project, with or without leading dashes and the part before the last dot;
        an option that is None counts as left out. The number of layers is needed:

        - Megatron-LM: ``num-layers``, ``pipeline-model-parallel-size``, ``pipeline-model-parallel-layout``,
          ``decoder-first-pipeline-num-layers``, ``num-virtual-stages-per-pipeline-rank`` and others. NeMo and Megatron-Bridge have the
          names of Megatron's configuration, such as ``num_layers_in_first_pipeline_stage``, and a layout can be a list of lists of words.
        - torchtitan: ``layers`` for the model, and ``parallelism.pipeline_parallel_degree``, ``parallelism.pipeline_parallel_schedule``,
          ``parallelism.module_fqns_per_model_part`` and others.
        - DeepSpeed: ``items`` for the names of the classes in the list of layers, ``parameters`` for their numbers of parameters,
          ``stages`` and ``partition_method``. Every item counts as a layer, the embedding and the head too.

    Returns
    -------
    Cut
        The chunks of each device, and warnings about what is accepted and few expect.

    Raises
    ------
    HybridLabError
        The project refuses the options, or an option is unknown. The sentence names the place and what would work.

    Examples
    --------
    >>> layout = {"pipeline-model-parallel-size": 2, "num-layers": 5, "pipeline-model-parallel-layout": "Et|tt*2|tL|"}
    >>> cut = read_cut("Megatron-LM", layout)
    >>> print(cut)
    device 0: embedding + layer 0 | layer 4 + loss
    device 1: layers 1 to 3 | empty
    >>> for warning in cut.warnings:
    ...     print(warning)
    'tt*2' is 3 layers, because * repeats only the letter before it; (tt)*2 is 4
    stage 3 is empty: it only passes on what it gets
    the loss is on stage 2, and stage 3 is the last
    >>> read_cut("Megatron-LM", layout | {"num-layers": 6})
    Traceback (most recent call last):
    hybridlab.errors.UnsupportedSize: pipeline-model-parallel-layout has 5 layers t, and num-layers is 6: add 1 t
    """
    project = known_name(project, OPTIONS, "project", any_case=True)
    given = _given(project, options)
    if project == "torchtitan":
        return _torchtitan(given)
    if project == "DeepSpeed":
        return _deepspeed(given)
    return _layout(given) if "layout" in given.values else _numbers(given)


def write_cut(cut: Cut, project: str) -> dict[str, Any]:
    """Return the options with which a project makes this cut.

    Megatron-LM, Megatron-Bridge and NeMo get a layout, torchtitan the modules of each stage. DeepSpeed takes no list: where its method
    "uniform" makes another cut, the first item of each stage gets a class of its own, whose name begins with ``First``, and "type:^first"
    balances the numbers of these.

    Parameters
    ----------
    cut : Cut
        The cut, or what :class:`Cut` takes.
    project : str
        As for :func:`read_cut`, which reads the options back.

    Raises
    ------
    HybridLabError
        The project cannot make this cut: the layers do not follow one another along the stages, the embedding or the loss is missing or in
        a place where the project does not take it, or the project has no multi-token prediction, no second chunk or no empty stage.

    Examples
    --------
    >>> cut = read_cut("torchtitan", {"layers": 30, "parallelism.pipeline_parallel_degree": 4})
    >>> options = write_cut(cut, "Megatron-LM")
    >>> options["pipeline-model-parallel-layout"]
    'Et*7|(t*8|)*2t*7L'
    >>> read_cut("Megatron-LM", options) == cut
    True
    """
    project = known_name(project, OPTIONS, "project", any_case=True)
    made = cut if isinstance(cut, Cut) else Cut(cut)
    ways = (False, True) if project == "torchtitan" and len(made[0]) == 2 else (False,)
    orders = {folded: stages for folded in ways if _follow(stages := _in_order(made, folded=folded))}
    if not orders:
        raise HybridLabError(f"{project} cannot make this cut: the layers do not follow one another from stage to stage", "does-not-fit")
    folded, stages = max(orders.items(), key=lambda order: order[1][-1].loss)  # the loss is on the last stage if it can be
    for what in ("embedding", "loss") if project != "DeepSpeed" else ():
        if (count := sum(getattr(chunk, what) for chunk in stages)) != 1:
            raise HybridLabError(f"the cut must have the {what} on one stage, not on {count}: give it to one chunk", "does-not-fit")
    if project == "DeepSpeed":
        options = _items_for(stages, made)
    elif project == "torchtitan":
        options = _modules_for(stages, made, folded=folded)
    else:
        options = _layout_for(stages, made, OPTIONS[project])
    read_cut(project, options)  # raises an error with the place if the project refuses the cut
    return options


class _Given(NamedTuple):
    """The options that were given: what they say, and their values."""

    names: Mapping[str, str]
    values: Mapping[str, Any]

    def needed(self, what: str) -> Any:
        """Return the value of an option that must be given."""
        if what not in self.values:
            raise HybridLabError(f"options must have {self.names[what]!r}", "empty")
        return self.values[what]

    def number(self, what: str, default: int | None = None, at_least: int = 1) -> int:
        """Return an option as a whole number. An option without a default must be given."""
        value = self.needed(what) if default is None else self.values.get(what, default)
        return whole_number(value, self.names[what], at_least, MOST)

    def named(self, *each: str) -> list[str]:
        """Return the names of those options that are given."""
        return [self.names[what] for what in each if what in self.values]


def _given(project: str, options: Mapping[str, Any]) -> _Given:
    """Return the options by what they say, without switches that are off. Raise an error for one that is unknown or given twice."""
    names = OPTIONS[project]
    if not isinstance(options, Mapping):
        raise HybridLabError(f"options must be a dict with {', '.join(names.values())}, not {short_repr(options)}", "wrong-type")
    known = {_plain(name): what for what, name in names.items()} | ({"num_stages": "stages"} if project == "DeepSpeed" else {})
    values: dict[str, Any] = {}
    for name, value in options.items():
        what = known.get(_plain(name)) if isinstance(name, str) else None
        if what is None:
            known_name(name, names.values(), f"option of {project} for the cut")
        elif what in values:
            raise HybridLabError(f"options have {names[what]} twice: leave {name!r} out", "repeated")
        elif value is not None and (what not in SWITCHES or true_or_false(value, names[what])):
            values[what] = value
    return _Given(names, values)


def _plain(name: str) -> str:
    """Return the name of an option without dashes in front and without what stands before its last dot."""
    return name.lstrip("-").rpartition(".")[2].replace("-", "_")


# Megatron-LM, Megatron-Bridge and NeMo


def _layout(given: _Given) -> Cut:
    """Return the cut of a layout of Megatron."""
    name, devices = given.names["layout"], given.number("devices", 1)
    if others := given.named("layers a chunk", "chunks") if "layers a chunk" in given.names else []:
        raise HybridLabError(f"{name} also says the number of chunks: leave {' and '.join(others)} out", "does-not-fit")
    stages, warnings = _letters(given.values["layout"], name)
    chunks, left = divmod(len(stages), devices)
    if left:
        wanted = " or ".join(str(count * devices) for count in (chunks, chunks + 1) if count)
        message = f"{name} has {counted(len(stages), 'stage')}, and {devices} devices need a multiple of {devices}, such as {wanted}"
        raise UnsupportedSize(f"{message}: each bar | begins another stage", "not-divisible")
    if (said := given.number("chunks", chunks)) != chunks:
        message = f"{name} has {counted(chunks, 'chunk')} for each of {devices} devices, and {given.names['chunks']} is {said}"
        raise UnsupportedSize(f"{message}: take {chunks}, or leave it out", "does-not-fit")
    _refuse_interleaving(given, devices, chunks)
    if others := given.named("first", "last", "embedding", "loss"):
        raise HybridLabError(f"{name} says the whole cut: leave {' and '.join(others)} out", "does-not-fit")
    _refuse_wrong_letters(given, stages, devices)
    made = _chunks(stages)
    return _placed(made, devices, [*warnings, *_surprises(made)])


def _letters(layout: object, name: str) -> tuple[list[str], list[str]]:
    """Return the letters of each stage of a layout, and warnings about its text."""
    if isinstance(layout, str):
        if len(layout) > LONGEST_LAYOUT:
            raise HybridLabError(f"{name} must have at most {LONGEST_LAYOUT:,} characters, not {len(layout):,}", "too-large")
        text = _unrolled(layout.replace(",", ""), layout, name)
        doubled = (
            f"{piece!r} is {len(run) - 1 + int(times)} layers, because * repeats only the letter before it; ({run})*{times} is"
            f" {len(run) * int(times)}"
            for piece, run, times in ((found[0], found[1], found[3]) for found in DOUBLED.finditer(layout))
            if int(times) != 1
        )
        return text.split("|"), list(dict.fromkeys(doubled))
    if not isinstance(layout, list) or not all(isinstance(stage, list) for stage in layout):
        message = f"{name} must be a text such as 'Ett|ttL', or a list with a list of words for each stage"
        raise HybridLabError(f"{message}, not {short_repr(layout)}", "wrong-type")
    if sum(map(len, layout)) + len(layout) > MOST:
        raise HybridLabError(f"{name} must have at most {MOST:,} stages and layers", "too-large")
    stages = [[word.strip().lower() if isinstance(word, str) else word for word in stage] for stage in layout]
    return ["".join(WORDS[known_name(word, WORDS, f"word on stage {i} of {name}")] for word in stage) for i, stage in enumerate(stages)], []


def _unrolled(text: str, layout: str, name: str) -> str:
    """Return a layout without repeats. Raise an error with the place where it cannot be read."""
    for pattern in (GROUP, REPEAT):
        sizes = [len(found[1]) * int(found[2]) if len(found[2]) < 8 else MOST for found in pattern.finditer(text)]
        if len(text) + sum(sizes) > 2 * MOST:
            raise HybridLabError(f"{name} must have at most {MOST:,} stages and layers", "too-large")
        text = pattern.sub(lambda found: found[1] * int(found[2]), text)
    if not set(text) <= set("EtmL|"):
        place = READABLE.match(layout).end()  # type: ignore[union-attr]  # it matches the empty text, too
        told = f"at character {place + 1}, {layout[place : place + 12]!r}" if place < len(layout) else "at its end"
        raise HybridLabError(f"{name} cannot be read {told}: {GRAMMAR}", "not-a-layout")
    return text


def _refuse_interleaving(given: _Given, devices: int, chunks: int) -> None:
    """Raise an error if Megatron cannot interleave chunks on so few devices."""
    slow = "no overlap" in given.values
    fewest = 1 if chunks == 1 else 3 if slow else 2
    if devices < fewest:
        why = f" with {given.names['no overlap']}" if slow else ""
        message = f"{counted(chunks, 'chunk')} a device{why} need at least {fewest} devices, and {given.names['devices']} is {devices}"
        raise UnsupportedSize(f"{message}: take 1 chunk, or {fewest} devices", "unsupported-size")


def _refuse_wrong_letters(given: _Given, stages: list[str], devices: int) -> None:
    """Raise an error if a layout has other layers than the model, or in a place where Megatron does not take them."""
    name, layers, mtp = given.names["layout"], given.number("layers"), given.number("mtp", 0, at_least=0)
    places = [(letter, place) for place, stage in enumerate(stages) for letter in stage]
    text = "".join(stages)
    where = {letter: [place for each, place in places if each == letter] for letter in "EtmL"}
    if not text.startswith("E"):
        begins = f"begins with {text[0]} on stage {places[0][1]}" if text else "has no letter"
        raise HybridLabError(f"{name} {begins}, and the embedding E comes first: begin with E", "not-a-layout")
    if not text.endswith("L"):
        raise HybridLabError(f"{name} ends with {text[-1]} on stage {places[-1][1]}, and the loss L comes last: end with L", "not-a-layout")
    for letter in "EL":
        if len(where[letter]) > 1:
            told = f"{name} has {letter} {len(where[letter])} times, on {_list(sorted(set(where[letter])), 'stage')}"
            raise HybridLabError(f"{told}: it stands there once", "not-a-layout")
    for letter, wanted, option in (("t", layers, "layers"), ("m", mtp, "mtp")):
        if more := len(where[letter]) - wanted:
            message = f"{name} has {counted(len(where[letter]), 'layer')} {letter}, and {given.names[option]} is {wanted}"
            raise UnsupportedSize(f"{message}: {'remove' if more > 0 else 'add'} {abs(more)} {letter}", "does-not-fit")
    if "t" in text.partition("m")[2] and mtp:
        message = f"{name} has a layer t on stage {where['t'][-1]} after m on stage {where['m'][0]}"
        raise HybridLabError(f"{message}: move m behind all t", "not-a-layout")
    last = len(stages) - devices  # the first of the stages that are the last chunks of their devices
    if mtp and where["m"][0] < last:
        message = f"{name} has m on stage {where['m'][0]}, and it must be in the last chunk of its device"
        raise HybridLabError(f"{message}: move it to one of stages {last} to {len(stages) - 1}", "not-a-layout")
    if mtp and where["m"][0] != where["m"][-1]:
        message = f"{name} has m on {_list(sorted(set(where['m'])), 'stage')}"
        raise HybridLabError(f"{message}: move all m to one stage", "not-a-layout")


def _numbers(given: _Given) -> Cut:
    """Return the cut of the options of Megatron without a layout: even, or with own numbers of layers for the first and last device."""
    devices, mtp = given.number("devices", 1), given.number("mtp", 0, at_least=0)
    counts = _layers_of_devices(given, devices)
    chunks = _chunks_of_devices(given, counts)
    _refuse_interleaving(given, devices, chunks)
    for place, count in enumerate(counts):
        if count % chunks:
            fit = ", ".join(map(str, divisors(count)))
            message = f"device {place} has {counted(count, 'layer')}, and {chunks} chunks cannot share them equally"
            raise UnsupportedSize(f"{message}: take {fit} chunks, or {given.names['layout']}", "not-divisible")
    if chunks > 1 and devices == len(given.named("first", "last")):  # Megatron divides by the number of devices in the middle
        message = f"{chunks} chunks with {' and '.join(given.named('first', 'last'))} need a device in the middle, and there is none"
        raise UnsupportedSize(f"{message}: take {given.names['layout']}", "unsupported-size")
    layers = [count // chunks for _ in range(chunks) for count in counts]
    layers[0] -= "embedding" in given.values
    layers[-1] -= "loss" in given.values
    stages = ["t" * count for count in layers]
    stages[0] = "E" + stages[0]
    stages[-1] += "m" * mtp + "L"
    made = _chunks(stages)
    return _placed(made, devices, _surprises(made, without_layers=True))


def _layers_of_devices(given: _Given, devices: int) -> list[int]:
    """Return the numbers of layers of devices; an embedding or a loss that is counted is one of them."""
    layers = given.number("layers")
    ends, extra = given.named("first", "last"), [what for what in ("embedding", "loss") if what in given.values]
    if ends and extra:
        told = f"{' and '.join(ends)} cannot be given with {' and '.join(given.named(*extra))}"
        raise HybridLabError(f"{told}: give one or the other", "does-not-fit")
    if not ends:
        total = layers + len(extra)
        if total % devices:
            told = f", {' and '.join(extra)} counted," if extra else ""
            fit = ", ".join(map(str, divisors(total)))
            others = f"{given.names['first']}, {given.names['last']} or {given.names['layout']}"
            message = f"{total} layers{told} cannot be shared equally by {devices} devices: {given.names['devices']} must be one of {fit}"
            raise UnsupportedSize(f"{message}, or give {others}", "not-divisible")
        return [total // devices] * devices
    first, last = ([given.number(end, 1)] if end in given.values else [] for end in ("first", "last"))
    left, middle = layers - sum(first + last), devices - len(ends)
    given_ends = f"{' and '.join(ends)} {'leave' if len(ends) > 1 else 'leaves'}"
    told = f"{given_ends} {left} of {layers} layers to {counted(middle, 'device')} in the middle"
    if middle < 0 or left < 0 or bool(left) != bool(middle):
        wanted = f"at most {layers - middle}" if middle > 0 else f"{layers}"
        advice = f"give them {wanted} layers together" if middle >= 0 and layers > middle else "take another number of devices"
        raise UnsupportedSize(f"{told}: {advice}", "does-not-fit")
    if middle and left % middle:
        wanted = " or ".join(str(count * middle) for count in (left // middle, left // middle + 1) if count)
        raise UnsupportedSize(f"{told}, which need a multiple of {middle}: leave {wanted} to them", "not-divisible")
    return first + [left // max(middle, 1)] * middle + last


def _chunks_of_devices(given: _Given, counts: list[int]) -> int:
    """Return the number of chunks a device, from itself or from the number of layers a chunk."""
    if "layers a chunk" not in given.values:
        return given.number("chunks", 1)
    name = given.names["layers a chunk"]
    if "chunks" in given.values:
        raise HybridLabError(f"{name} also says the number of chunks: leave {given.names['chunks']} out", "does-not-fit")
    if ends := given.named("first", "last"):
        raise HybridLabError(f"{name} does not go with {' and '.join(ends)}: give {given.names['chunks']} in its place", "does-not-fit")
    size = given.number("layers a chunk", 1)
    if counts[0] % size:
        fit = ", ".join(map(str, divisors(counts[0])))
        raise UnsupportedSize(f"{name} is {size}, and each device has {counts[0]} layers: take one of {fit}", "not-divisible")
    return counts[0] // size


def _layout_for(stages: Sequence[Chunk], cut: Cut, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the layout of Megatron for these stages, and the sizes. Equal stages that follow one another become a group."""
    texts = ["E" * each.embedding + _repeated("t", each.layers) + _repeated("m", each.mtp) + "L" * each.loss for each in stages]
    groups = ((text, len(list(equal))) for text, equal in groupby(texts[:-1]))
    layout = "".join(f"({text}|)*{count}" if count > 1 else f"{text}|" for text, count in groups) + texts[-1]
    layers, mtp = (sum(getattr(each, what) for each in stages) for what in ("layers", "mtp"))
    return {names["layers"]: layers, names["devices"]: len(cut)} | ({names["mtp"]: mtp} if mtp else {}) | {names["layout"]: layout}


def _repeated(letter: str, count: int) -> str:
    """Return a letter so many times, as Megatron writes it."""
    return f"{letter}*{count}" if count > 2 else letter * count


# torchtitan


def _torchtitan(given: _Given) -> Cut:
    """Return the cut of torchtitan: the given modules of each stage, or layers spread evenly, where embedding and head count as layers."""
    layers, devices = given.number("layers"), given.number("devices", 1)
    first, last = (given.number(end, 1, at_least=0) for end in ("first", "last"))
    schedule = known_name(given.values.get("schedule", "1F1B"), SCHEDULES, "schedule of torchtitan", any_case=True)
    count, total = _stages_of_torchtitan(given, schedule, layers + first + last), layers + first + last
    if "modules" in given.values:
        made, warnings = _modules(given.values["modules"], given.names["modules"], layers)
        # a loop runs one stage on each device, too
        if not _suits(len(made), devices, schedule) and not (SCHEDULES[schedule] == "loop" and len(made) == devices):
            wanted = {"single": f"{devices}", "loop": f"a multiple of {devices}", "v": f"{2 * devices}"}[SCHEDULES[schedule]]
            message = f"{given.names['modules']} has {counted(len(made), 'stage')}, and {schedule} on {devices} devices needs {wanted}"
            raise UnsupportedSize(f"{message}: take so many stages, or another schedule", "not-divisible")
        return _placed(made, devices, warnings, folded=SCHEDULES[schedule] == "v")
    if count > total:
        raise UnsupportedSize(f"{layers} layers count as {total}, too few for {count} stages: take at most {total} stages", "too-large")
    each, more = divmod(total, count)
    for end, weight in (("first", first), ("last", last)):
        if count > 1 and weight > each:
            message = f"{given.names[end]} is {weight}, and a stage has {counted(each, 'layer')}"
            raise UnsupportedSize(f"{message}: take at most {each}", "too-large")
    sizes = [each + (place < more) for place in range(count)]
    sizes[0] -= first
    sizes[-1] -= last
    stages = ["t" * size for size in sizes]
    stages[0] = "E" + stages[0]
    stages[-1] += "L"
    made = _chunks(stages)
    return _placed(made, devices, _surprises(made, without_layers=True), folded=SCHEDULES[schedule] == "v")


def _stages_of_torchtitan(given: _Given, schedule: str, total: int) -> int:
    """Return the number of stages: one or two a device, or as many as the layers a stage need."""
    devices, single = given.number("devices", 1), SCHEDULES[schedule] == "single"
    if "layers a stage" not in given.values:
        return devices if single else 2 * devices
    name, size = given.names["layers a stage"], given.number("layers a stage", 1)
    count = -(-total // size)
    if not _suits(count, devices, schedule):
        good = [each for each in range(1, total + 1) if _suits(-(-total // each), devices, schedule)]
        advice = f"take {min(good, key=lambda each: abs(each - size))}, or leave it out" if good else "leave it out"
        each = {"single": "1", "loop": "2 or more", "v": "2"}[SCHEDULES[schedule]]
        message = f"{name}={size} makes {counted(count, 'stage')} of {total} layers, with embedding and head, on {devices} devices"
        raise UnsupportedSize(f"{message}, and {schedule} needs {each} on each: {advice}", "not-divisible")
    return count


def _suits(stages: int, devices: int, schedule: str) -> bool:
    """Return whether a schedule of torchtitan runs so many stages on so many devices."""
    each, left = divmod(stages, devices)
    return not left and {"single": each == 1, "loop": each >= 2, "v": each == 2}[SCHEDULES[schedule]]


def _modules(parts: Any, name: str, layers: int) -> tuple[list[Chunk], list[str]]:
    """Return the stages of given modules, and warnings, because torchtitan leaves out what is missing or unknown without a word."""
    wanted = f"{name} must be a list with a list of modules, such as 'layers.0', for each stage"
    rows = [
        [checked_text(each, f"a module on stage {i}") for each in each_of(part, wanted)] for i, part in enumerate(each_of(parts, wanted))
    ]
    known = {f"layers.{layer}": layer for layer in range(layers)}
    made, warnings, seen = [], [], Counter[str]()
    for place, row in enumerate(rows):
        own = sorted(known[each] for each in set(row) & set(known))
        if own and own[-1] - own[0] >= len(own):
            gap = next(one + 1 for one, other in pairwise(own) if other != one + 1)
            message = f"stage {place} of {name} has layers {own[0]} to {own[-1]} without layer {gap}"
            raise HybridLabError(f"{message}: give a stage layers that follow one another", "does-not-fit")
        made.append(Chunk(own[0] if own else None, len(own), ENDS[0] in row, ENDS[-1] in row))
        warnings += [
            f"stage {place} names {each!r}, which the model does not have" for each in row if each not in known and each not in ENDS
        ]
        seen.update(set(row))
    missing = [each for each in (*known, *ENDS) if not seen[each]]
    twice = [each for each in (*known, *ENDS) if seen[each] > 1]
    warnings += [f"{_list(missing)} {'is' if len(missing) == 1 else 'are'} on no stage, so the model runs without"] if missing else []
    warnings += [f"{_list(twice)} {'is' if len(twice) == 1 else 'are'} on more than one stage"] if twice else []
    firsts = [each.first_layer for each in made if each.first_layer is not None]
    warnings += ["the layers do not follow one another from stage to stage"] if firsts != sorted(firsts) else []
    return made, [*warnings, *_surprises(made)]


def _modules_for(stages: Sequence[Chunk], cut: Cut, *, folded: bool) -> dict[str, Any]:
    """Return the schedule and the modules of torchtitan for these stages."""
    if any(each.mtp for each in stages):
        raise HybridLabError("torchtitan has no multi-token prediction: take mtp=0 in all chunks", "does-not-fit")
    parts = []
    for each in stages:
        first = each.first_layer or 0
        own = [f"layers.{layer}" for layer in range(first, first + each.layers)]
        parts.append([ENDS[0]] * each.embedding + own + list(ENDS[1:]) * each.loss)
    schedule = "ZBVZeroBubble" if folded else "Interleaved1F1B" if len(cut[0]) > 1 else "1F1B"
    names, layers = OPTIONS["torchtitan"], sum(each.layers for each in stages)
    return {names["layers"]: layers, names["devices"]: len(cut), names["schedule"]: schedule, names["modules"]: parts}


# DeepSpeed


def _deepspeed(given: _Given) -> Cut:
    """Return the cut of DeepSpeed's list of items: equal numbers of items, or balanced parameters or numbers of items of a type."""
    items = [checked_text(each, "a name in items") for each in each_of(given.needed("items"), "items must be a list of names of classes")]
    stages = given.number("stages")
    whole_number(len(items), "the number of items", 1, MOST)
    method = checked_text(given.values.get("method", "parameters"), given.names["method"]).lower()
    warnings: list[str] = []
    if method == "uniform":
        bounds = _uniform(len(items), stages)
    else:
        weights = _weights(given, items, method)
        bounds = _balanced(weights, stages)
        largest = max(weights[one:other].sum() for one, other in pairwise(bounds))
        if largest > (least := _least_largest(weights, stages)) * (1 + 1e-9):
            warnings.append(
                f"the largest stage has {largest:g}, and {least:g} is possible: DeepSpeed balances the largest minus the smallest"
            )
        if method.startswith("type:") and method.count(":") > 1:
            warnings.append(f"{given.names['method']} is read up to its second colon: {method.rpartition(':')[2]!r} is left out")
    made = [Chunk(one if other > one else None, other - one) for one, other in pairwise(bounds)]
    return _placed(made, stages, [*warnings, *_surprises(made)])


def _weights(given: _Given, items: list[str], method: str) -> Floats:
    """Return what a stage of DeepSpeed sums up: parameters, or 1 for each item of a type."""
    whole_number(len(items), "the number of items", 1, MOST_ITEMS)
    if method == "parameters":
        weights = times(given.needed("parameters"), given.names["parameters"])
        if weights.shape != (len(items),):
            message = f"parameters must have one number for each of {counted(len(items), 'item')}"
            raise HybridLabError(f"{message}, not {short_repr(given.values['parameters'])}", "wrong-length")
        return weights
    if not method.startswith("type:"):
        why = "is not implemented in DeepSpeed" if method == "profile" else "is no method of DeepSpeed"
        message = f"{given.names['method']}={short_repr(method)} {why}"
        raise HybridLabError(f"{message}: take 'uniform', 'parameters', or 'type:' and a regular expression for names", "unknown-name")
    try:
        kind = re.compile(method.split(":")[1], re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as why:
        raise HybridLabError(f"{given.names['method']}={short_repr(method)} has no regular expression: {why}", "not-a-pattern") from None
    weights = np.array([float(bool(kind.search(each))) for each in items])
    if not weights.any():
        message = f"{given.names['method']}={short_repr(method)} finds no item"
        raise HybridLabError(f"{message}: the items are {', '.join(dict.fromkeys(items))[:200]}", "empty")
    return weights


def _uniform(items: int, stages: int) -> list[int]:
    """Return where stages begin, and the number of items, for equal numbers of items; the first stages get what is left over."""
    each, more = divmod(items, stages)
    return [0, *accumulate(each + (place < more) for place in range(stages))]


def _balanced(weights: Floats, stages: int) -> list[int]:
    """Return where stages begin, and the number of items, by DeepSpeed's dynamic programming.

    The best cut of the first items into the first stages has the least difference between its largest and its smallest sum; among equally
    good ones its last stage is the shortest. A cut with one stage more begins with such a cut, so the result is not always the best of all.
    """
    count = len(weights)
    if count <= stages:
        return _uniform(count, stages)
    ends = np.concatenate([[0.0], np.cumsum(weights)])
    most, least = np.full((2, count + 1, stages + 1), np.inf)
    begins = np.zeros((count + 1, stages + 1), dtype=int)
    most[0, 0] = 0.0
    for item in range(1, count + 1):
        own = (ends[item] - ends[:item])[:, np.newaxis]  # sums of a last stage, by its first item
        high, low = np.maximum(most[:item, :-1], own), np.minimum(least[:item, :-1], own)
        chosen = item - 1 - np.argmin((high - low)[::-1], axis=0)
        begins[item, 1:] = chosen
        most[item, 1:], least[item, 1:] = high[chosen, range(stages)], low[chosen, range(stages)]
    bounds = [count]
    for stage in range(stages, 0, -1):
        bounds.append(int(begins[bounds[-1], stage]))
    return bounds[::-1]


def _least_largest(weights: Floats, stages: int) -> float:
    """Return the smallest sum that the largest stage of a cut can have, by dynamic programming."""
    ends = np.concatenate([[0.0], np.cumsum(weights)])
    best = np.concatenate([[0.0], np.full(len(weights), np.inf)])
    for _ in range(min(stages, len(weights))):
        best = np.array([0.0, *(np.maximum(best[:item], ends[item] - ends[:item]).min() for item in range(1, len(ends)))])
    return float(best[-1])


def _items_for(stages: Sequence[Chunk], cut: Cut) -> dict[str, Any]:
    """Return the items and the method of DeepSpeed for these stages."""
    if len(cut[0]) > 1:
        raise HybridLabError(f"DeepSpeed has one chunk a device, not {len(cut[0])}: cut into as many stages as devices", "does-not-fit")
    rows = [["Embedding"] * each.embedding + ["Layer"] * each.layers + ["MTP"] * each.mtp + ["Head"] * each.loss for each in stages]
    bounds, method = [0, *accumulate(map(len, rows))], "uniform"
    if bounds != _uniform(bounds[-1], len(rows)):
        if empty := [place for place, row in enumerate(rows) if not row]:
            raise HybridLabError(f"DeepSpeed leaves no stage empty here, and stage {empty[0]} is: give it a layer", "does-not-fit")
        rows, method = [[f"First{row[0]}", *row[1:]] for row in rows], "type:^first"
    names = OPTIONS["DeepSpeed"]
    return {names["method"]: method, names["items"]: [each for row in rows for each in row], names["stages"]: len(rows)}


# Chunks and devices


def _checked_chunk(given: object, name: str) -> Chunk:
    """Return a chunk whose fields are checked. ``name`` is its place, for an error."""
    chunk = given
    if isinstance(given, Mapping):
        for key in given:
            known_name(key, Chunk._fields, f"field of {name}")
        if "layers" not in given:
            raise HybridLabError(f"{name} must have 'layers'", "empty")
        chunk = Chunk(**{"first_layer": None, **given})
    if not isinstance(chunk, Chunk):
        raise HybridLabError(
            f"{name} must be a Chunk, or a dict such as {{'first_layer': 0, 'layers': 2}}, not {short_repr(given)}", "wrong-type"
        )
    layers, mtp = (whole_number(getattr(chunk, what), f"{what} of {name}", 0, MOST) for what in ("layers", "mtp"))
    first = whole_number(chunk.first_layer, f"first_layer of {name}", 0, MOST) if layers else None
    embedding, loss = (true_or_false(getattr(chunk, what), f"{what} of {name}") for what in ("embedding", "loss"))
    return Chunk(first, layers, embedding, loss, mtp)


def _chunks(stages: Iterable[str]) -> list[Chunk]:
    """Return the chunk of each stage from its letters; the layers follow one another along the stages."""
    made, first = [], 0
    for stage in stages:
        layers = stage.count("t")
        made.append(Chunk(first if layers else None, layers, "E" in stage, "L" in stage, stage.count("m")))
        first += layers
    return made


def _placed(stages: Sequence[Chunk], devices: int, warnings: Iterable[str], *, folded: bool = False) -> Cut:
    """Return the cut with stages on devices: in a loop (stage i on device i mod devices), or folded back at the last device."""
    rows = [stages[place : place + devices] for place in range(0, len(stages), devices)]
    rows = [row[::-1] if folded and place % 2 else row for place, row in enumerate(rows)]
    return Cut(tuple(zip(*rows, strict=True)), tuple(warnings))


def _in_order(cut: Cut, *, folded: bool) -> list[Chunk]:
    """Return the chunks in the order of stages: in a loop, or folded back at the last device."""
    rows = list(zip(*cut.devices, strict=True))
    return [chunk for place, row in enumerate(rows) for chunk in (row[::-1] if folded and place % 2 else row)]


def _follow(stages: Sequence[Chunk]) -> bool:
    """Return whether the layers follow one another from stage to stage, from layer 0 on."""
    firsts = accumulate((each.layers for each in stages), initial=0)
    return all(each.first_layer in (None, first) for each, first in zip(stages, firsts, strict=False))


def _surprises(stages: Sequence[Chunk], *, without_layers: bool = False) -> list[str]:
    """Return warnings about stages: empty ones, also those without layers if nobody wrote them, and the loss not on the last stage."""
    last = len(stages) - 1
    empty = [place for place, each in enumerate(stages) if not any(each[1:])]
    told = [f"{_list(empty, 'stage')} is empty: it only passes on what it gets"] if len(empty) == 1 else []
    told += [f"{_list(empty, 'stage')} are empty: they only pass on what they get"] if len(empty) > 1 else []
    if without_layers:
        told += [f"stage {place} has no layer, only: {each}" for place, each in enumerate(stages) if any(each[2:]) and not each.layers]
    told += [
        f"the embedding is on stage {place}, and stage 0 is the first" for place, each in enumerate(stages) if each.embedding and place
    ]
    told += [
        f"the loss is on stage {place}, and stage {last} is the last" for place, each in enumerate(stages) if each.loss and place != last
    ]
    return told


def _list(each: Sequence[object], noun: str = "") -> str:
    """Return things in a sentence, the first six if there are more."""
    shown = [str(one) for one in each[:6]]
    text = f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]
    more = f" and {len(each) - 6} more" if len(each) > 6 else ""
    return (f"{noun}{'s' * (len(each) > 1)} " if noun else "") + (", ".join(shown) if more else text) + more
