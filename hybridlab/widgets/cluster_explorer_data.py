"""Iteration times and memory for every plan in a grid, as plain data, with the reasons why plans are refused."""

import re
from collections.abc import Hashable, Sequence

from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.hardware import Profile
from hybridlab.palette import PART_COLOURS, ink_on, line_style
from hybridlab.planner.memory import MORE_MEMORY, MORE_STAGES, refuse_overflow
from hybridlab.widgets.cluster_explorer_tables import (
    SUMS,
    At,
    ClusterCase,
    Load,
    Tables,
    Values,
    case_of,
    index_tables,
    misfit,
    quantity_tables,
)
from hybridlab.widgets.page_data import Data, compact_json, refuse_too_large

LABELS = {
    "model": "Model",
    "gpu": "GPU",
    "link": "Network port",
    "tensor": "Tensor GPUs",
    "stages": "Stages K",
    "replicas": "Replicas D",
    "wire": "Gradients sent as",
    "recompute": "Recomputation",
    "sequence_parallel": "Sequence parallel",
    "chunks": "Chunks v",
    "microbatches": "Microbatches M",
    "microbatch": "Microbatch size",
}
AXES = tuple(LABELS)
PARTS = {
    "matmul": "matmul",
    "memory_traffic": "memory traffic",
    "tensor_parallel": "tensor-parallel all-reduce",
    "point_to_point": "point-to-point",
    "bubble": "bubble",
    "data_parallel": "data-parallel all-reduce",
    "optimiser": "optimiser",
}


def cluster_data(values: Values) -> Data:
    """Return what a page needs to show every setting of a grid.

    Parameters
    ----------
    values : mapping of str to mapping
        For each axis, the values by name.

    Returns
    -------
    dict
        - ``tables`` by name. A table has ``axes``, their ``sizes``, and ``values`` with one value for each combination. The last axis
          changes fastest
        - ``quantities`` are sums of products of tables, as lists of lists of names (see ``SUMS``). They are the seconds of each part,
          ``gpus``, and ``work`` (1e12 operations per GPU and iteration). In gigabytes, they are the ``capacity`` of a GPU, the ``states``,
          and activations and working memory on a GPU of the first stage and of the last stage
        - ``derived`` has a table of indices for each axis that other axes determine
        - ``refused`` has tables of indices into ``sentences``; index 0 means that nothing is refused. The tables ``chunks`` and ``layers``
          say which plans exist, and the table ``memory`` says which do not fit
        - ``depths`` has the colours of the numbers of stages, on a light and on a dark background

    Raises
    ------
    HybridLabError
        For a grid in which no plan divides the model, and for more than 2 MB of data.
    """
    tables, sentences = Tables(values), _Sentences()
    _refuse_no_plan(tables)
    refused = {**_misfit_tables(tables, sentences), "memory": _overflow_table(tables, sentences)}
    data: Data = {
        "axes": [{"name": name, "label": LABELS[name], "values": list(values[name])} for name in AXES],
        "parts": [
            {"name": name, "words": words, "colour": colour, "ink": ink_on(colour)}
            for (name, words), colour in zip(PARTS.items(), PART_COLOURS, strict=True)
        ],
        "depths": [[style.colour, style.on_dark] for style in map(line_style, range(len(values["stages"])))],
        "derived": index_tables(tables),
        "tables": quantity_tables(tables),
        "quantities": {name: [term.split() for term in terms.split(" + ")] for name, terms in SUMS.items()},
        "refused": refused,
        "sentences": list(sentences),
    }
    refuse_too_large(len(compact_json(data)))
    return data


class _Sentences(dict[str, int]):
    """Texts with their numbers; the empty text has number 0, and a new text gets the next number."""

    def __init__(self) -> None:
        super().__init__({"": 0})

    def number(self, text: str) -> int:
        return self.setdefault(text, len(self))


def _misfit_tables(tables: Tables, sentences: _Sentences) -> Data:
    """Return the tables that say why there is no such plan."""

    def of_layers(at: At) -> int:
        return sentences.number(misfit(tables.full({**at, "microbatches": at["stages"]})))

    def of_chunks(at: At) -> int:
        return sentences.number(misfit(tables.full(at), divides=False))

    return {
        "layers": tables.table("model tensor stages chunks", of_layers),
        "chunks": tables.table("stages chunks microbatches", of_chunks),
    }


def _refuse_no_plan(tables: Tables) -> None:
    """Raise if no plan of the grid divides the model; the message says why the first one does not."""
    settings = tables.combinations(["model", "tensor", "stages", "chunks", "microbatches"])
    reasons = (misfit(tables.full(at)) for at in settings)
    first = next(reasons)
    if first and all(reasons):
        raise HybridLabError(f"no plan of this grid divides the model: {first}", "not-divisible")


def _overflow_table(tables: Tables, sentences: _Sentences) -> Data:
    """Return the table that says why a plan does not fit; an entry is 0 if there is no such plan, because that is said first."""
    gpus = list(tables.axes["gpu"].values())
    known: dict[Hashable, str] = {}

    def numbers(at: At) -> list[int]:
        found = tables.full(at)
        load = at["load"]
        if Load.of(at["stages"], load.chunks, found["microbatches"]) != load or misfit(found):
            return [0] * len(gpus)
        return [sentences.number(sentence) for sentence in _overflow_sentences(case_of(found), gpus, known)]

    return tables.rows("model tensor stages recompute microbatch sequence_parallel load", "gpu", numbers)


def _overflow_sentences(case: ClusterCase, gpus: Sequence[Profile], known: dict[Hashable, str]) -> list[str]:
    """Return one text for each GPU that says why the plan does not fit in its memory, or is empty if the plan fits.

    If smaller microbatches and recomputation are not enough on one GPU, they are not enough on a GPU with less memory. Then the text does
    not depend on the numbers of tensor GPUs, stages and chunks, and ``known`` keeps it.
    """
    found, sentence, total, plan = {}, "", case.memory.total, case.plan
    for capacity, gpu in sorted({gpu.memory: gpu for gpu in gpus}.items(), reverse=True):
        if total > capacity and MORE_MEMORY not in sentence:  # if a larger GPU already needs this advice, all smaller ones do
            key = (case.model, capacity, plan.microbatch, plan.global_batch, plan.recompute, plan.sequence_parallel)
            sentence = known[key] if MORE_STAGES in sentence and key in known else _overflow_template(case, gpu)
            if MORE_STAGES in sentence or MORE_MEMORY in sentence:
                known[key] = sentence
        found[capacity] = sentence
    return [found[gpu.memory] for gpu in gpus]


def _overflow_template(case: ClusterCase, gpu: Profile) -> str:
    """Return a text that says why a plan does not fit, or an empty text if it fits.

    The text has names in braces instead of numbers, so that many cases share one text.
    """
    try:
        refuse_overflow(case.model, case.plan, gpu)
    except UnsupportedSize as why:
        before, _, after = str(why).partition(f"{gpu.memory / 1e9:g} GB of {gpu.name}")
        names = iter(("total", "states", "activations", "working", "over"))
        return re.sub(r"\d+\.\d", lambda _: f"{{{next(names)}}}", before) + "{capacity} GB of {gpu}" + after
    return ""
