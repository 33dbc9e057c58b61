"""Models: their shapes, and their parameters, operations, memory traffic and activations, as sums over one table of operations.

The letters are as in the papers: l layers, h hidden size, a attention heads, s sequence length, V vocabulary size, b samples in a
microbatch, t GPUs that share each layer (tensor parallelism), p pipeline stages, v chunks of a stage. Weights and activations are 16-bit
numbers, as in mixed-precision training.
"""

from hybridlab.model.operations import Work
from hybridlab.model.structure import Experts, Latent, Structure
from hybridlab.model.transformer import OPERATIONS, RECOMPUTE, Transformer

__all__ = ["OPERATIONS", "RECOMPUTE", "Experts", "Latent", "Structure", "Transformer", "Work"]
