"""The twists of lab 4's build: rings that turn the other way, and rings that begin with other chunks."""

from functools import partial

from hybridlab.course.tasks.ring_messages import judge_ring, slips
from hybridlab.course.tasks.rings import Way
from hybridlab.course.tasks.twists import Twist


def _twist_of(name: str, way: Way) -> Twist:
    """Return the twist with this way. Its judge knows the way, because chunks of different lengths cannot be renamed."""
    backwards = "rank r sends to rank r - 1, and rank 0 sends to rank D - 1" if way.to < 0 else ""
    begins = f"in step 0 rank r sends {way.start} (modulo D)" if way.first else ""
    sentence = "; ".join(clause for clause in (backwards, begins) if clause)
    return Twist(name, sentence, changes={"judge": partial(judge_ring, way=way), "slips": slips(way)})


TWISTS = (
    _twist_of("backwards", Way(to=-1)),
    _twist_of("one-ahead", Way(first=1)),
    _twist_of("backwards-two-ahead", Way(to=-1, first=2)),
    _twist_of("one-behind", Way(first=-1)),
    _twist_of("backwards-one-ahead", Way(to=-1, first=1)),
    _twist_of("two-ahead", Way(first=2)),
    _twist_of("backwards-one-behind", Way(to=-1, first=-1)),
)
