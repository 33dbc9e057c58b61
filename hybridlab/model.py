"""A transformer's shape, and what follows from it: parameters, operations, bytes moved through memory, activation memory.

Letters of the papers: l layers, h hidden, a heads, s sequence, V vocabulary, b samples of a microbatch, t GPUs that share each
layer (tensor parallelism). Numbers are kept in 16 bits, as in mixed-precision training.
"""

from dataclasses import dataclass
from typing import NamedTuple

from hybridlab.checks import known_name, true_or_false, whole_number
from hybridlab.errors import UnsupportedSize

RECOMPUTE = ("none", "selective", "full")

# Bytes that a layer's element-wise operations read and write, every operation once through memory, 2 bytes a number and 1 a
# dropout mask: (forward, backward). Of a token and a unit of the hidden size: two normalisations, two additions of bias, dropout
# and residual; backward also the sums of residuals' gradients and the gradients of biases and of the normalisations' weights.
WHOLE = (4 + 7 + 4 + 7, 2 * (5 + 6) + 2 * 10 + 4)
# The same of what tensor parallelism shares out: GeLU with its bias, on 4h numbers, and the attention's output brought in order.
SHARED = (16 + 4, 24 + 8 + 6 + 4)
# Of each of the a x s x s scores of a sample: softmax, 2 read and 2 written, and dropout; backward both the other way.
SCORES = (4 + 5, 5 + 6)
# The scores once more, written and read by the products around them, two forward and four backward: beside 8 and 16 bytes of a
# token and a unit of the hidden size, for the other operands of these products (query, key, value, output, and their gradients).
PRODUCTS_OF_SCORES = (4, 8)
HEAD = 52  # bytes a logit, in FP32: maximum, difference, exponential, sum, quotient, and the gradient


class Work(NamedTuple):
    """What one GPU does for one microbatch: ``flops`` of matrix products, bytes through its memory, ``all_reduces``.

    Forward, backward and what is recomputed together. ``operand_bytes`` are those that matrix products read and write,
    ``elementwise_bytes`` those of all other operations. The all-reduces are those of tensor parallelism, of the microbatch's
    activations each.
    """

    flops: float
    operand_bytes: float
    elementwise_bytes: float
    all_reduces: int

    @property
    def nbytes(self) -> float:
        """All bytes through memory."""
        return self.operand_bytes + self.elementwise_bytes


@dataclass(frozen=True)
class Transformer:
    """The shape of a GPT model: ``layers`` of ``hidden`` units and ``heads``, a ``vocabulary``, samples of ``sequence`` tokens.

    >>> Transformer(layers=96, hidden=12288, heads=96).parameters / 1e9
    174.615822336
    """

    layers: int
    hidden: int
    heads: int
    vocabulary: int = 51200
    sequence: int = 2048

    def __post_init__(self) -> None:
        for field in ("layers", "hidden", "heads", "vocabulary", "sequence"):
            object.__setattr__(self, field, whole_number(getattr(self, field), field))
        if self.hidden % self.heads:
            near = max(self.hidden // self.heads, 1) * self.heads
            message = f"{self.hidden} is not a multiple of {self.heads}; try {near} or {near + self.heads}"
            raise UnsupportedSize(f"each head has hidden / heads units: hidden {message}")

    @property
    def layer_parameters(self) -> int:
        """Weights, biases and normalisation of one layer, 12h^2 + 13h."""
        return (12 * self.hidden + 13) * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters, 12lh^2 (1 + 13/(12h) + (V + s)/(12lh)). Narayanan et al., arXiv 2104.04473, eq. (2)."""
        return self.layers * self.layer_parameters + (self.vocabulary + self.sequence) * self.hidden

    def flops(self, batch: int, recompute: str = "none") -> float:
        """Return the operations of the matrix products of one step on ``batch`` samples, what is recomputed included.

        With full recomputation 96Bslh^2 (1 + s/(6h) + V/(16lh)) (Narayanan et al., arXiv 2104.04473, eq. (3)); without, 72 in
        place of 96 and V/(12lh) (Korthikanti et al., arXiv 2205.05198, appendix A).

        >>> gpt = Transformer(layers=96, hidden=12288, heads=96)
        >>> f"{gpt.flops(1536, 'full'):.4g}", f"{gpt.flops(1536):.4g}"
        ('4.511e+18', '3.386e+18')
        """
        batch = whole_number(batch, "batch")
        layer, head = self.layer_work(1, recompute=recompute), self.head_work(1)
        return batch * (self.layers * layer.flops + head.flops)

    def layer_work(self, microbatch: int, tensor: int = 1, recompute: str = "none", sequence_parallel: bool = False) -> Work:
        """Return what a GPU does in one layer for one microbatch, forward, recomputation and backward.

        Every matrix product reads its operands and writes its result once; every element-wise operation too. Sequence
        parallelism divides the operations outside attention and MLP by t as well (Korthikanti et al., sec. 4.2.2); its all-gathers
        and reduce-scatters carry the bytes of the all-reduces that they replace.

        >>> Transformer(layers=48, hidden=6144, heads=64).layer_work(4, tensor=8)
        Work(flops=2937757630464.0, operand_bytes=3762290688.0, elementwise_bytes=6496976896.0, all_reduces=4)
        """
        known_name(recompute, RECOMPUTE, "recomputation")
        again, core = int(recompute == "full"), int(recompute != "none")  # forwards run again: the layer's, its attention's
        h, s, t = self.hidden, self.sequence, whole_number(tensor, "tensor")
        microbatch = whole_number(microbatch, "microbatch")
        tokens, scores = microbatch * s, self.heads * s * s * microbatch / t
        linear, attention = 24.0 * tokens * h * h / t, 4.0 * tokens * s * h / t
        matrices = 2 * (tokens * (4 * h + 12 * h / t) + 12 * h * h / t)  # operands of the products with the four of weights, each way
        whole, shared = (tokens * h / (t if true_or_false(sequence_parallel, "sequence_parallel") else 1), tokens * h / t)
        attended, attended_back = PRODUCTS_OF_SCORES[0] * scores + 8 * shared, PRODUCTS_OF_SCORES[1] * scores + 16 * shared
        forward, backward = WHOLE[0] * whole + SHARED[0] * shared, WHOLE[1] * whole + SHARED[1] * shared
        operands = (3 + again) * matrices + (1 + core) * attended + attended_back
        elementwise = (1 + again) * forward + backward + ((1 + core) * SCORES[0] + SCORES[1]) * scores
        return Work((3 + again) * linear + (3 + core) * attention, operands, elementwise, 4 + 2 * again if t > 1 else 0)

    def head_work(self, microbatch: int, tensor: int = 1) -> Work:
        """Return what a GPU does for one microbatch to turn hidden units into logits, a loss and its gradient.

        >>> Transformer(layers=48, hidden=6144, heads=64).head_work(4, tensor=8).flops / 1e12
        1.9327352832
        """
        h, share = self.hidden, self.vocabulary / whole_number(tensor, "tensor")
        tokens = whole_number(microbatch, "microbatch") * self.sequence
        operands = 3 * 2 * (tokens * h + tokens * share + h * share)
        return Work(6.0 * tokens * h * share, operands, HEAD * tokens * share, int(tensor > 1))

    def layer_activation_bytes(self, microbatch: int, tensor: int = 1, recompute: str = "none", sequence_parallel: bool = False) -> float:
        """Return the bytes that one layer keeps of one microbatch on one GPU, from its forward to its backward.

        Of sbh: 10 + 24/t + 5as/(ht) with nothing recomputed, 10 + 24/t without the attention's core (selective), the layer's
        input, 2, alone (full). Sequence parallelism divides the 10, and the 2, by t too. Korthikanti et al., Table 2.

        >>> gpt = Transformer(layers=48, hidden=6144, heads=64)
        >>> [round(gpt.layer_activation_bytes(4, 8, recompute) / 1e6) for recompute in RECOMPUTE]
        [1325, 654, 101]
        """
        known_name(recompute, RECOMPUTE, "recomputation")
        numbers = whole_number(microbatch, "microbatch") * self.sequence * self.hidden
        tensor = whole_number(tensor, "tensor")
        apart = tensor if true_or_false(sequence_parallel, "sequence_parallel") else 1
        if recompute == "full":
            return 2 * numbers / apart
        scores = 0.0 if recompute == "selective" else 5 * self.heads * self.sequence / (self.hidden * tensor)
        return numbers * (10 / apart + 24 / tensor + scores)

    def activation_bytes(
        self,
        microbatch: int,
        tensor: int = 1,
        pipeline: int = 1,
        chunks: int = 1,
        recompute: str = "none",
        sequence_parallel: bool = False,
        microbatches: int | None = None,
    ) -> float:
        """Return the activation memory of a GPU of the first stage, in bytes: it holds as many microbatches as there are stages.

        So l layers' worth, times 1 + (p-1)/(pv) with v chunks, on each of p stages, but no more than ``microbatches`` fill. The
        embedding's input and the logits are left out. Korthikanti et al., arXiv 2205.05198, sec. 4.2.3.

        >>> round(Transformer(layers=96, hidden=12288, heads=96).activation_bytes(1, tensor=8, pipeline=8, chunks=3) / 2**30, 5)
        66.84375
        """
        pipeline, chunks = whole_number(pipeline, "pipeline"), whole_number(chunks, "chunks")
        held = pipeline + (pipeline - 1) / chunks if chunks > 1 else float(pipeline)
        if microbatches is not None:
            held = min(held, whole_number(microbatches, "microbatches"))
        a_layer = self.layer_activation_bytes(microbatch, tensor, recompute, sequence_parallel)
        return held * self.layers / pipeline * a_layer
