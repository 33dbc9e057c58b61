"""Define one judge for each kind of view on the built pages of the labs, and what all kinds share.

Timeline explorers are left out.
"""

from typing import Any

import pytest

from lab_views import cluster, editor, errors, mesh, ring, step, sweep, training
from lab_views.kind import Kind

KINDS: tuple[Kind, ...] = (mesh.KIND, ring.KIND, errors.KIND, step.KIND, training.KIND, sweep.KIND, cluster.KIND, editor.KIND)


def each_of(name: str) -> list[Any]:
    """Return the parameters (kind, change) of a test that tries all "damages" or all "faults" of every kind of view."""
    return [pytest.param(kind, each, id=f"{kind.name}-{each.__name__}") for kind in KINDS for each in getattr(kind, name)]
