"""Define one judge for each kind of view on the built pages of the labs, and what all kinds share.

Timeline explorers are left out.
"""

from lab_views import cluster, editor, errors, mesh, ring, step, sweep, training
from lab_views.kind import Kind

KINDS: tuple[Kind, ...] = (mesh.KIND, ring.KIND, errors.KIND, step.KIND, training.KIND, sweep.KIND, cluster.KIND, editor.KIND)
