"""Names and modules of the previous version: an old name raises an error with the new name; importing a moved module still works."""

from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import MappingProxyType, ModuleType
from typing import Any
from warnings import warn

from hybridlab.errors import HybridLabError

MOVED_MODULES = MappingProxyType({  # submodules move with their package; the longer of two names comes first
    "hybridlab.clock": "hybridlab.simulation",
    "hybridlab.published.claims": "hybridlab.course.claims",
    "hybridlab.published.korthikanti": "hybridlab.course.published.large_runs",
    "hybridlab.published.megatron": "hybridlab.course.published.large_runs",
    "hybridlab.published": "hybridlab.course.published",
    "hybridlab.replicas": "hybridlab.step.replicas",
    "hybridlab.spans": "hybridlab.timeline.spans",
    "hybridlab.tasks": "hybridlab.course.tasks",
    "hybridlab.trust": "hybridlab.course.comparisons",
    "hybridlab.validation": "hybridlab.schedule.validation",
})  # fmt: skip


class MovedModules:
    """An import hook (PEP 451): importing a module by its old name warns and returns the module at its new place."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return a spec for a moved module, None for any other."""
        old = next((old for old in MOVED_MODULES if f"{name}.".startswith(f"{old}.")), None) if name.startswith("hybridlab.") else None
        return ModuleSpec(name, self, origin=MOVED_MODULES[old] + name[len(old) :]) if old else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module at its new place, which is loaded now if it was not."""
        warn(f"{spec.name} is now {spec.origin}: import it from there", DeprecationWarning, stacklevel=2)
        module = import_module(str(spec.origin))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the spec of the module, which the import system has replaced by the spec of the old name."""
        module.__spec__ = module.__spec__ and module.__spec__.loader_state


class RemovedAttribute(HybridLabError, AttributeError):
    """The error of a renamed attribute. As an AttributeError, it lets ``hasattr`` and ``inspect.getmembers`` skip the old name."""


class RenamedAttribute:
    """An attribute of a class that was renamed: reading it from an instance raises an error that gives the new name.

    >>> class Step:
    ...     single_device = RenamedAttribute("single_device_time")
    >>> Step().single_device
    Traceback (most recent call last):
    hybridlab.renamed.RemovedAttribute: Step.single_device is now Step.single_device_time
    """

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.sentence = f"{owner.__name__}.{name} is now {owner.__name__}.{self.new}"

    def __get__(self, instance: object, owner: type) -> "RenamedAttribute":
        if instance is None:
            return self  # read from the class, as documentation tools do
        raise RemovedAttribute(self.sentence, "removed-name")


def renamed(module: str, **names: str) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for ``module`` (PEP 562) that raises, for each of its old ``names``, an error with the new name.

    A submodule that left the module when both moved is found by its old name: ``from hybridlab.published import claims``.

    >>> renamed("hybridlab.bound", distance="optimality_gap")("distance")
    Traceback (most recent call last):
    hybridlab.errors.HybridLabError: hybridlab.bound.distance is now hybridlab.bound.optimality_gap
    """

    def lookup(name: str) -> Any:
        if name in names:
            raise HybridLabError(f"{module}.{name} is now {module}.{names[name]}", "removed-name")
        for old, new in MOVED_MODULES.items():
            if new == module and f"{old}.{name}" in MOVED_MODULES:
                return import_module(f"{old}.{name}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return lookup
