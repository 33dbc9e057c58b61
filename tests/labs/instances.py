"""The instances of a number task, each once, although many seeds draw the same one."""

from functools import cache

from profiles import seeds

from hybridlab.course.checking.checking import Instance
from hybridlab.course.tasks import TASKS

SEEDS = seeds(200)


@cache
def instances_of(key: str) -> dict[int, Instance]:
    """Return each instance of a task that any of ``SEEDS`` draws, by the first seed that draws it."""
    first: dict[int, tuple[int, Instance]] = {}
    for seed in SEEDS:
        instance = TASKS[key].instance(seed)
        first.setdefault(id(instance.data), (seed, instance))  # the same numbers give the same question
    return dict(first.values())
