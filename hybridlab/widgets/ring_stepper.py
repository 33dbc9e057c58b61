"""The ring stepper: who is in which chunk on which rank after every hop of a ring, two or more rings side by side."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import traitlets

from hybridlab.arrays import Floats
from hybridlab.checks import counted, short_repr, whole_number
from hybridlab.collectives import ring_all_reduce
from hybridlab.errors import HybridLabError
from hybridlab.widgets.choices import whole_numbers
from hybridlab.widgets.grid import digest
from hybridlab.widgets.ring_stepper_data import Ring, ring_data
from hybridlab.widgets.scripts import script_of
from hybridlab.widgets.view import Checked, View, asked_for, refusing, style_of

MOST_RANKS = 8
MOST_RINGS = 4
LONGEST_NAME = 40  # characters


class RingStepper(View):
    """A picture of a ring all-reduce, hop by hop: the ranks as columns, the chunks as rows, and who is in each sum.

    ``rings`` are the rings to show side by side, by name: functions that take values of shape (ranks, n), chunk after chunk
    as numpy.array_split cuts, and return their hops with what is held after each: sums, not means. None is
    :func:`~hybridlab.collectives.ring_all_reduce` alone. ``ranks`` are the numbers of ranks to choose from, 2 to 8.
    ``show`` is what to begin with, such as
    ``{"ranks": 4, "step": 3}``; what it leaves out begins at the first number of ranks, before the first hop.

    Every state is in ``data``, as the rings computed it, so that the picture answers without a kernel. Rank r begins with
    2**r in every chunk. The traits ``ranks`` and ``step`` follow the controls, and can be observed and set; a step that
    fewer ranks lack becomes their last. Raises :class:`HybridLabError` for what is no ring and for steps that there are not.

    >>> stepper = RingStepper(ranks=(2, 4), show={"ranks": 4})
    >>> stepper  # doctest: +ELLIPSIS
    <RingStepper: correct; 2 or 4 ranks, data ...; 4 ranks, step 0 of 6>
    >>> stepper.step = 3
    >>> stepper.states["correct"]["whole"], stepper.states["correct"]["error"]
    (4, 3.5)
    """

    SETTING = ("ranks", "step")
    _esm = script_of("ring_stepper.js")
    _css = style_of("ring", sheets=("ring_stepper.css",))

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
        data = ring_data({"correct": _correct} if rings is None else _named(rings), sizes)
        asked = asked_for(show, self.SETTING, '{"ranks": 4, "step": 3}')
        self._digest = digest(data)
        self.set_trait("data", data)
        super().__init__(**({"ranks": data["ranks"][0], "step": 0} | asked))

    @property
    def last(self) -> int:
        """The number of the last step."""
        return len(self.data["runs"][str(self.ranks)]["phases"]) - 1

    @property
    def states(self) -> dict[str, Any]:
        """What every ring holds after the chosen step, by name: see ``data``."""
        rings = self.data["runs"][str(self.ranks)]["rings"]
        return {name: states[self.step] for name, states in zip(self.data["names"], rings, strict=True)}

    def checked(self, name: str, value: Any) -> int:
        """Return ``value`` if it is a number of ranks that the view was made with, or one that a step can have; or refuse it."""
        number = whole_number(value, name, at_least=0)
        if name == "ranks" and number not in self.data["ranks"]:
            raise HybridLabError(f"this view has no ring of {number} ranks: choose from {', '.join(map(str, self.data['ranks']))}")
        return number

    @traitlets.validate("step")
    def _within(self, proposal: Any) -> int:
        step: int = proposal["value"]
        with refusing():
            if step > self.last:
                raise HybridLabError(f"there is no step {step}: the last one of {self.ranks} ranks is {self.last}")
        return step

    @traitlets.observe("ranks")
    def _follow(self, _: Any) -> None:
        self.step = min(self.step, self.last)

    def __repr__(self) -> str:
        """Return the same text for the same rings and setting, whatever the run: stored outputs are compared by it."""
        names = " and ".join(self.data["names"])
        *fewer, most = map(str, self.data["ranks"])
        sizes = f"{', '.join(fewer)} or {most}" if fewer else most
        return f"<RingStepper: {names}; {sizes} ranks, data {self._digest}; {counted(self.ranks, 'rank')}, step {self.step} of {self.last}>"


def _correct(values: Floats) -> Any:
    return ring_all_reduce(values, average=False, record=True).hops


def _named(rings: Any) -> dict[str, Ring]:
    if not isinstance(rings, Mapping) or not 0 < len(rings) <= MOST_RINGS:
        raise HybridLabError(f'rings are 1 to {MOST_RINGS} functions by name, such as {{"correct": ring}}, not {short_repr(rings)}')
    for name in islice(rings, MOST_RINGS):
        if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
            raise HybridLabError(f"the name of a ring is a few words, {LONGEST_NAME} characters at most, not {short_repr(name)}")
    return dict(rings)
