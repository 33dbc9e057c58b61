"""The groups of the gallery: schedules that place stages on devices in the same way."""

from typing import NamedTuple

from hybridlab import Kind, Schedule


class Group(NamedTuple):
    """A group's title, and a few words on what its schedules have in common."""

    title: str
    words: str


WHOLE = Group("One chunk a device", "Every device holds one stage, and each backward is one {term}`operation`.")
SPLIT = Group(
    "One chunk a device, backward split",
    "Every device holds one stage. The {term}`weight gradient` is a separate operation, which can wait and fill idle time.",
)
LOOPED = Group(
    "Several chunks in a loop",
    "A microbatch passes through all devices once for every {term}`chunk <model chunk>`. The pipeline fills sooner, but there are more "
    "{term}`messages <message>`.",
)
FOLDED = Group(
    "Chunks folded into a V",
    "A microbatch goes from the first device to the last and back, so each device holds one stage of the way down and one stage of the "
    "way back.",
)
COPIES = Group(
    "Two copies of the weights",
    "Half of the microbatches go from the first device to the last, half from the last to the first. Every device holds one stage for "
    "each direction: twice the weights and twice their gradients. An {term}`all-reduce` must keep the two copies of a stage equal.",
)
GROUPS = (WHOLE, SPLIT, LOOPED, FOLDED, COPIES)


def group_of(schedule: Schedule) -> Group:
    """Return the group of a schedule, found from its order alone."""
    if schedule.copies > 1:
        return COPIES
    if schedule.chunks > 1:
        return FOLDED if schedule.device_of[schedule.devices] else LOOPED
    return SPLIT if any(op.kind is Kind.W for op in schedule.ops) else WHOLE
