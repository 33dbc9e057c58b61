"""Attacks on the grader, as submissions. Each has failed if the marks are exactly those of its honest part."""

from collections.abc import Mapping
from types import MappingProxyType

from hybridlab.course.grading.attack import Attack
from hybridlab.course.grading.attacks_on_judges import ATTACKS_ON_JUDGES
from hybridlab.course.grading.attacks_on_kernels import ATTACKS_ON_KERNELS
from hybridlab.course.grading.attacks_on_machines import ATTACKS_ON_MACHINES
from hybridlab.course.grading.attacks_on_workers import ATTACKS_ON_WORKERS
from hybridlab.course.grading.attacks_with_values import ATTACKS_WITH_VALUES

_ALL = (*ATTACKS_ON_JUDGES, *ATTACKS_ON_WORKERS, *ATTACKS_WITH_VALUES, *ATTACKS_ON_MACHINES, *ATTACKS_ON_KERNELS)
ATTACKS: Mapping[str, Attack] = MappingProxyType({attack.name: attack for attack in _ALL})
