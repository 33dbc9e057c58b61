"""One step of hybrid training: the pipelines of all replicas, one ring all-reduce for each stage, and the optimiser."""

from hybridlab.step.recomputation import recomputed_peak
from hybridlab.step.replicas import Replicated, replicate
from hybridlab.step.rings import with_rings
from hybridlab.step.step import HybridStep, hybrid_step

__all__ = ["HybridStep", "Replicated", "hybrid_step", "recomputed_peak", "replicate", "with_rings"]
