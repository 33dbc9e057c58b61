"""The ring stepper: it shows one or several rings after each hop. For each sum, it shows which ranks have contributed."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import traitlets

from hybridlab.arrays import Floats
from hybridlab.checks import counted, each_of, short_repr, whole_number
from hybridlab.collectives import ring_all_reduce
from hybridlab.errors import HybridLabError
from hybridlab.widgets.choices import whole_numbers
from hybridlab.widgets.page_data import Data, digest
from hybridlab.widgets.ring_messages import MOST_HOPS, NEAR, ProgramHop, with_hops
from hybridlab.widgets.scripts import FromFiles, script_of, style_sheet
from hybridlab.widgets.view import Checked, View, as_trait_error, shown_first

Ring = Callable[[Floats], Any]  # values, shape (ranks, n) -> hops or (averages, messages); ``held`` of a hop has sums, not means
Counts = npt.NDArray[np.int64]  # entry [r, c, s] counts how many times the number of rank s is in chunk c on rank r

MOST_RANKS = 8
MOST_RINGS = 4
MOST_TIMES = 99  # largest accepted count of one rank's number in a sum
LONGEST_NAME = 40  # characters
TIMES = {1: "", 2: " twice"}


class RingStepper(View):
    """A view of a ring all-reduce, hop by hop. Ranks are columns, chunks are rows, and a cell shows the ranks whose numbers are in the sum.

    The constructor runs the rings. The trait ``data`` has the state after every hop, so the view works without a running kernel. Rank r
    begins with the number 2**r in every chunk. The traits ``ranks`` and ``step`` change with the controls. Python can observe and set them.
    If ``step`` is too large for a new number of ranks, it becomes the last step.

    Parameters
    ----------
    rings : mapping of str to function, or None
        Name -> ring, at most 4 rings, shown side by side. A ring is a function of values of shape (ranks, n). The chunks are the pieces
        into which ``numpy.array_split`` cuts the n numbers. The function returns one of these:

        - its hops. Each hop has the sums (not means) that the ranks hold after this hop.
        - ``(averages, messages)``, as the program of lab 4. ``averages`` has the shape (ranks, n), and ``messages[s][r]`` is the chunk that
          rank r sends in step s, as sums or divided by the number of ranks. An empty list stands for no message. The view finds the
          chunks, the receivers and what they do from the numbers in the messages, so it shows a wrong ring, too. After the last step,
          the ranks hold ``averages``; before, they hold what follows from the messages. Sentences say where these do not agree.

        None shows only :func:`~hybridlab.collectives.ring_all_reduce`.
    ranks : int or iterable of int
        The numbers of ranks from which the reader chooses, 2 to 8.
    show : mapping or None
        The first setting, such as ``{"ranks": 4, "step": 3}``. By default, the first number of ranks and step 0, before the first hop.

    Raises
    ------
    HybridLabError
        A function is not a ring, a function raises an error, or a step does not exist.

    Examples
    --------
    >>> stepper = RingStepper(ranks=(2, 4), show={"ranks": 4})
    >>> stepper  # doctest: +ELLIPSIS
    <RingStepper: correct; 2 or 4 ranks, data ...; 4 ranks, step 0 of 6>
    >>> stepper.step = 3
    >>> stepper.states["correct"]["whole"], stepper.states["correct"]["error"]
    (4, 3.5)
    """

    SETTING = ("ranks", "step")
    _esm = FromFiles(script_of, "ring_stepper.js")
    _css = FromFiles(style_sheet, "ring", files=("player.css", "ring_stepper.css"))

    data = traitlets.Dict(read_only=True).tag(sync=True)
    ranks = Checked().tag(sync=True)
    step = Checked(0).tag(sync=True)

    def __init__(
        self,
        rings: Mapping[str, Ring] | None = None,
        ranks: Any = (2, 3, 4, 5, 6),
        *,
        show: Mapping[str, Any] | None = None,
    ) -> None:
        sizes = whole_numbers(ranks, "ranks", at_least=2, at_most=MOST_RANKS)
        data = ring_data({"correct": _correct_ring} if rings is None else _checked_rings(rings), sizes)
        asked = shown_first(show, self.SETTING, '{"ranks": 4, "step": 3}')
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**({"ranks": data["ranks"][0], "step": 0} | asked))

    @property
    def last(self) -> int:
        """The number of the last step."""
        return len(self.data["runs"][str(self.ranks)]["phases"]) - 1

    @property
    def states(self) -> dict[str, Any]:
        """The state of every ring after the current step, by name: see :func:`ring_data`."""
        rings = self.data["runs"][str(self.ranks)]["rings"]
        return {name: states[self.step] for name, states in zip(self.data["names"], rings, strict=True)}

    def checked(self, name: str, value: Any) -> int:
        """Return a number of ranks or a step. Raise an error for a number of ranks that the view does not offer, or for no whole number."""
        number = whole_number(value, name, at_least=0)
        if name == "ranks" and number not in self.data["ranks"]:
            known = ", ".join(map(str, self.data["ranks"]))
            raise HybridLabError(f"this view has no ring of {number} ranks: choose from {known}", "out-of-range")
        return number

    @traitlets.validate("step")
    def _check_step(self, proposal: Any) -> int:
        """Return the step, or raise an error if the ring has fewer steps."""
        step: int = proposal["value"]
        with as_trait_error():
            if step > self.last:
                last = f"the last one of {self.ranks} ranks is {self.last}"
                raise HybridLabError(f"there is no step {step}: {last}", "out-of-range")
        return step

    @traitlets.observe("ranks")
    def _follow(self, _: Any) -> None:
        """Go to the last step if the chosen step does not exist for the new number of ranks."""
        self.step = min(self.step, self.last)  # fewer ranks have fewer steps

    def still(self) -> Any:
        """Return what each rank holds after the current step as a figure."""
        from hybridlab.plot.stills import ring_matrix

        phase = self.data["runs"][str(self.ranks)]["phases"][self.step]
        return ring_matrix(self.states, f"{self.step} of {self.last}, {phase}")

    def __repr__(self) -> str:
        """Return the names of the rings, the digest of the data and the setting.

        The text is the same in every run, because outputs that are stored in notebooks contain it.
        """
        names = " and ".join(self.data["names"])
        *fewer, most = map(str, self.data["ranks"])
        sizes = f"{', '.join(fewer)} or {most}" if fewer else most
        return f"<RingStepper: {names}; {sizes} ranks, data {self._digest}; {counted(self.ranks, 'rank')}, step {self.step} of {self.last}>"


def ring_data(rings: Mapping[str, Ring], ranks: Iterable[int]) -> Data:
    """Return the states of every ring for every number of ranks, from the start to the last hop.

    A ring runs twice. In the first run, each number is 1 on one rank and 0 on the other ranks, so each sum shows which ranks have
    contributed. In the second run, each chunk has one number, with the value 2**r on rank r.

    Parameters
    ----------
    rings : mapping of str to function
        Name -> ring.
    ranks : iterable of int
        The numbers of ranks.

    Returns
    -------
    dict
        ``runs`` has an entry for each number of ranks: ``phases`` (one for each step), ``mean`` (the correct result), and ``rings``. A
        ring has these keys at each step:

        - ``messages``: [sender, receiver, chunk] for each message of the hop; ``sent`` says the same in a sentence
        - ``told``: sentences that say what the receivers did, which sums have become whole and which whole sums are lost, and for a
          program what does not follow from its messages
        - ``parts``: shape (ranks, chunks, ranks), where entry [r, c, s] counts how many times the number of rank s is in chunk c on rank r
        - ``values``: shape (ranks, chunks), the sums of the second run
        - ``marks``: shape (ranks, chunks), "whole", "lost" (a whole sum that was overwritten) or ""
        - ``whole``: the number of whole sums
        - ``error``: the largest difference from the mean

    Raises
    ------
    HybridLabError
        A function is not a ring, or a ring holds means instead of sums.

    Examples
    --------
    >>> data = ring_data({"correct": lambda values: ring_all_reduce(values, average=False, record=True).hops}, [2])
    >>> [state["whole"] for state in data["runs"]["2"]["rings"][0]]
    [0, 2, 4]
    >>> data["runs"]["2"]["rings"][0][1]["sent"]
    'Rank 0 sends chunk 0 to rank 1, rank 1 sends chunk 1 to rank 0.'
    >>> data["runs"]["2"]["rings"][0][1]["told"]
    'The receiver adds. Whole from now on: chunk 1 on rank 0, chunk 0 on rank 1.'
    """
    runs = {str(count): _ring_runs(rings, count) for count in ranks}
    return {"names": list(rings), "ranks": [int(count) for count in runs], "runs": runs}


def ranks_in_sum(counts: Counts) -> str:
    """Return the ranks whose numbers are in a sum, in words.

    Parameters
    ----------
    counts : array of int, shape (ranks,)
        For each rank, how many times its number is in the sum.

    Examples
    --------
    >>> ranks_in_sum(np.array([1, 0, 2])), ranks_in_sum(np.array([0, 1, 0]))
    ('ranks 0 and 2 twice', 'rank 1 alone')
    """
    parts = [f"{rank}{TIMES.get(count, f' {count} times')}" for rank, count in enumerate(counts.tolist()) if count]
    if len(parts) < 2:
        return f"rank {parts[0]} alone" if parts else "nothing"
    return f"ranks {', '.join(parts[:-1])} and {parts[-1]}"


def _correct_ring(values: Floats) -> Any:
    return ring_all_reduce(values, average=False, record=True).hops


def _checked_rings(rings: Any) -> dict[str, Ring]:
    """Return the rings by name, or raise an error if ``rings`` is not a mapping with 1 to 4 rings."""
    if not isinstance(rings, Mapping) or not 0 < len(rings) <= MOST_RINGS:
        wanted = f'1 to {MOST_RINGS} functions by name, such as {{"correct": ring}}'
        raise HybridLabError(f"rings must be {wanted}, not {short_repr(rings)}", "wrong-type")
    for name in islice(rings, MOST_RINGS):
        if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
            wanted = f"a few words of at most {LONGEST_NAME} characters"
            raise HybridLabError(f"the name of a ring must be {wanted}, not {short_repr(name)}", "malformed-name")
        if not callable(rings[name]):
            wanted = "a function of values, shape (ranks, n), that returns hops or (averages, messages)"
            raise HybridLabError(f"the ring {name!r} must be {wanted}, not {short_repr(rings[name])}", "wrong-type")
    return dict(rings)


def _ring_runs(rings: Mapping[str, Ring], ranks: int) -> Data:
    """Return the states of all rings for one number of ranks. A ring with fewer hops than another ring repeats its last state."""
    runs = [_states(name, ring, ranks) for name, ring in rings.items()]
    steps = max(len(states) for states in runs)
    phases = next([state["phase"] for state in states] for states in runs if len(states) == steps)
    for states in runs:
        # The view has one slider for all rings, so all rings need the same number of states.
        ended = {**states[-1], "messages": [], "sent": "This ring has ended.", "told": ""}
        states += [ended] * (steps - len(states))
    return {"phases": phases, "mean": float(np.mean(2.0 ** np.arange(ranks))), "rings": runs}


def _states(name: str, ring: Ring, ranks: int) -> list[Data]:
    """Return the state of one ring after each hop: see :func:`ring_data`."""
    eye: Floats = np.eye(ranks)
    powers: Floats = np.exp2(np.arange(ranks, dtype=np.float64))
    ring = with_hops(name, ring, ranks)
    # Each chunk of rank s is unit vector number s, so entry s of a sum counts how many times rank s is in the sum.
    hops = _run_ring(name, ring, np.tile(eye, ranks), ranks)
    parts = [eye[:, None, :].repeat(ranks, axis=1).astype(np.int64), *(_part_counts(name, hop, ranks) for hop in hops)]
    # Sums of different powers of two are different, so a reader can see from a sum which ranks are in it.
    start = powers[:, None].repeat(ranks, axis=1)
    numbered = _run_ring(name, ring, start, ranks)
    if len(numbered) != len(hops):
        counts = f"{len(hops)} hops with some numbers and {len(numbered)} with others"
        raise HybridLabError(f"the ring {name!r} has {counts}", "not-a-ring")
    values = [start, *(_held_values(name, hop, ranks, ranks) for hop in numbered)]
    whole = np.array([(each == 1).all(axis=2) for each in parts])
    # A sum is lost if it was whole after an earlier hop but is not whole now.
    lost = np.logical_or.accumulate(whole) & ~whole
    marks = np.where(whole, "whole", np.where(lost, "lost", ""))
    phases = ["start", *(str(hop.phase) for hop in hops)]
    messages = [[], *(_messages(name, hop, ranks) for hop in hops)]
    effects = map(_effects_text, pairwise(parts), pairwise(marks), messages[1:])
    notes = [hop.notes if isinstance(hop, ProgramHop) else [] for hop in hops]
    told = [
        "Every rank holds its own numbers alone.",
        *(" ".join(filter(None, [effect, *more])) for effect, more in zip(effects, notes, strict=True)),
    ]
    return [
        {
            "phase": phases[place],
            "messages": messages[place],
            "parts": parts[place].tolist(),
            "values": np.round(values[place], 6).tolist(),  # rounded, because the last digits differ between machines
            "marks": marks[place].tolist(),
            "whole": int(whole[place].sum()),
            "error": float(np.round(np.abs(values[place] / ranks - powers.mean()).max(), 6)),
            "sent": _messages_text(messages[place]) if place else "Nothing is sent yet.",
            "told": told[place],
        }
        for place in range(len(parts))
    ]


def _run_ring(name: str, ring: Ring, values: Floats, ranks: int) -> list[Any]:
    """Return the hops of a ring, or raise an error if the function is not a ring."""
    hops = list(each_of(ring(values), f"the ring {name!r} must return hops or (averages, messages)"))
    # At least D - 1 hops, because with fewer hops a number cannot reach all D ranks.
    if not ranks <= len(hops) + 1 <= MOST_HOPS:
        wanted = f"{ranks - 1} to {MOST_HOPS - 1} hops for {ranks} ranks"
        raise HybridLabError(f"the ring {name!r} must make {wanted}, not {len(hops)}", "wrong-length")
    for hop in hops:
        missing = [part for part in ("phase", "sender", "receiver", "chunk", "held") if getattr(hop, part, None) is None]
        if missing:
            advice = "pass the hops of a run with record=True, or return (averages, messages)"
            raise HybridLabError(f"a hop of the ring {name!r} has no {missing[0]}: {advice}", "not-a-hop")
    return hops


def _held_values(name: str, hop: Any, ranks: int, size: int) -> Floats:
    """Return the values that the ranks hold after a hop, shape (ranks, size)."""
    held = np.asarray(hop.held, dtype=np.float64)
    wanted = f"what the ring {name!r} holds after a hop must be finite numbers of shape ({ranks}, {size})"
    if held.shape != (ranks, size):
        raise HybridLabError(wanted, "wrong-shape")
    if not np.isfinite(held).all():
        raise HybridLabError(wanted, "not-finite")
    return held


def _part_counts(name: str, hop: Any, ranks: int) -> Counts:
    """Return ``parts`` after a hop, as in :func:`ring_data`, or raise an error if the values are not sums."""
    # Shape (ranks, chunks, ranks): each chunk has one sum of unit vectors, so its values are the counts.
    held = _held_values(name, hop, ranks, ranks * ranks).reshape(ranks, ranks, ranks)
    counts = np.rint(held)
    if (np.abs(held - counts) > NEAR).any() or (np.abs(counts) > MOST_TIMES).any():
        worst = held.flat[np.abs(held - counts).argmax()]
        found = f"in one of them a number counts {worst:g} times; return sums, not means"
        raise HybridLabError(f"the ring {name!r} must hold sums of the ranks' numbers, but {found}", "not-a-sum")
    return counts.astype(np.int64)


def _messages(name: str, hop: Any, ranks: int) -> list[list[int]]:
    """Return [sender, receiver, chunk] of every message of a hop."""
    columns = [np.asarray(each).reshape(-1).tolist() for each in (hop.sender, hop.receiver, hop.chunk)]
    complete = len({len(column) for column in columns}) == 1
    if not complete or not all(isinstance(value, int) and 0 <= value < ranks for column in columns for value in column):
        wanted = f"a sender, a receiver and a chunk, each from 0 to {ranks - 1}"
        raise HybridLabError(f"each message of the ring {name!r} needs {wanted}", "out-of-range" if complete else "wrong-length")
    return [list(message) for message in zip(*columns, strict=True)]


def _messages_text(messages: list[list[int]]) -> str:
    """Return the messages of a hop as a sentence."""
    clauses = ", ".join(f"rank {sender} sends chunk {chunk} to rank {receiver}" for sender, receiver, chunk in messages)
    return f"{clauses[:1].upper()}{clauses[1:]}." if clauses else "Nobody sends anything."


def _effects_text(parts: tuple[Counts, Counts], marks: tuple[Any, Any], messages: list[list[int]]) -> str:
    """Return sentences about a hop: what the receivers did, and which sums became whole or were overwritten."""
    before, after = parts
    # Compare with the counts before the hop, because all ranks send at the same time.
    added = [(after[to, chunk] == before[to, chunk] + before[rank, chunk]).all() for rank, to, chunk in messages]
    copied = [(after[to, chunk] == before[rank, chunk]).all() for rank, to, chunk in messages]
    sentences = ["The receiver adds."] if all(added) else ["The receiver keeps what it gets."] if all(copied) else []
    partial = [(rank, chunk) for rank, _, chunk in messages if all(copied) and not all(added) and marks[0][rank, chunk] != "whole"]
    if partial:
        rank, chunk = partial[0]
        content = f"chunk {chunk} of rank {rank} holds {ranks_in_sum(before[rank, chunk])}"
        sentences.append(f"But {len(partial)} of the {len(messages)} chunks sent are no whole sums: {content}.")
    for mark, words in (("whole", "Whole from now on"), ("lost", "Whole sums that are overwritten")):
        places = np.argwhere((marks[1] == mark) & (marks[0] != mark)).tolist()
        if places:
            sentences.append(f"{words}: {', '.join(f'chunk {chunk} on rank {rank}' for rank, chunk in places)}.")
    return " ".join(sentences)
