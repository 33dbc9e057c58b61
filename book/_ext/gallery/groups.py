"""The groups of the gallery: schedules whose devices hold their stages in the same way."""

from typing import NamedTuple

from hybridlab import Kind, Schedule


class Group(NamedTuple):
    """A group's title, and in a sentence what its schedules have in common."""

    title: str
    words: str


WHOLE = Group("One chunk a device", "Every device holds one stage, and each backward is one {term}`operation`.")
SPLIT = Group(
    "One chunk a device, backward split",
    "Every device holds one stage. The {term}`weight gradient` is an operation of its own, which can wait and fill idle time.",
)
LOOPED = Group(
    "Several chunks in a loop",
    "A microbatch goes round all devices once for every {term}`chunk <model chunk>`. The pipeline fills sooner, at the price of more "
    "{term}`messages <message>`.",
)
FOLDED = Group(
    "Chunks folded into a V",
    "A microbatch goes from the first device to the last and back, so that a device holds a stage of the way there and one of the way "
    "back.",
)
COPIES = Group(
    "Two copies of the weights",
    "Half of the microbatches go from the first device to the last, half from the last to the first. Every device holds a stage of both "
    "ways: twice the weights, with their gradients, and the two copies of a stage have to be kept equal by an {term}`all-reduce`.",
)
GROUPS = (WHOLE, SPLIT, LOOPED, FOLDED, COPIES)


def group_of(schedule: Schedule) -> Group:
    """Return the group of a schedule, by its order alone."""
    if schedule.copies > 1:
        return COPIES
    if schedule.chunks > 1:
        return FOLDED if schedule.device_of[schedule.devices] else LOOPED
    return SPLIT if any(op.kind is Kind.W for op in schedule.ops) else WHOLE
