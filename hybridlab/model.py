"""The shape of a transformer, and its number of parameters, operations, memory traffic and activation memory.

The letters are as in the papers: l layers, h hidden size, a attention heads, s sequence length, V vocabulary size, b samples in a
microbatch, t GPUs that share each layer (tensor parallelism), p pipeline stages, v chunks of a stage. Weights and activations are 16-bit
numbers, as in mixed-precision training.
"""

from dataclasses import dataclass
from typing import NamedTuple

from hybridlab.checks import known_name, true_or_false, whole_number, with_known_arguments
from hybridlab.errors import UnsupportedSize

RECOMPUTE = ("none", "selective", "full")

# The constants WHOLE, SHARED and SCORES are bytes that the element-wise operations of a layer read and write, as (forward, backward).
# Each operation reads its operands from memory and writes its result to memory. A number takes 2 bytes, and an element of a dropout
# mask takes 1 byte.
# WHOLE: bytes per token and hidden unit that tensor parallelism does not divide. Two normalisations and two additions of bias, dropout
# and residual cause these bytes. The backward also adds the gradients of the residuals, and computes the gradients of the biases and of
# the weights of the normalisations.
WHOLE = (4 + 7 + 4 + 7, 2 * (5 + 6) + 2 * 10 + 4)
# SHARED: bytes per token and hidden unit that tensor parallelism divides. GeLU with its bias (on 4h numbers) and a copy of the
# attention's output cause these bytes.
SHARED = (16 + 4, 24 + 8 + 6 + 4)
# SCORES: bytes per attention score, for softmax (2 read, 2 written) and dropout. A sample has a x s x s scores in each layer.
SCORES = (4 + 5, 5 + 6)
# Bytes per attention score that the matrix products before and after the softmax read and write, as (forward, backward). There are two
# products in the forward and four in the backward. For the other operands (query, key, value, output and their gradients), these
# products read and write 8 bytes in the forward and 16 bytes in the backward, per token and hidden unit.
PRODUCTS_OF_SCORES = (4, 8)
HEAD = 52  # bytes per logit, in FP32: maximum, difference, exponential, sum, quotient, and the gradient


class Work(NamedTuple):
    """The work of one GPU for one microbatch: forward, recomputation and backward together.

    Attributes
    ----------
    flops : float
        Operations of the matrix products.
    operand_bytes : float
        Bytes that the matrix products read and write.
    elementwise_bytes : float
        Bytes that all other operations read and write.
    all_reduces : int
        Number of all-reduces for tensor parallelism. An all-reduce sums the activations of the microbatch over the t GPUs.
    """

    flops: float
    operand_bytes: float
    elementwise_bytes: float
    all_reduces: int

    @property
    def nbytes(self) -> float:
        """All bytes that the GPU reads from and writes to memory."""
        return self.operand_bytes + self.elementwise_bytes


@with_known_arguments
@dataclass(frozen=True)
class Transformer:
    """The shape of a GPT model.

    Parameters
    ----------
    layers : int
        Transformer layers, l.
    hidden : int
        Hidden size, h, a multiple of ``heads``.
    heads : int
        Attention heads of a layer, a.
    vocabulary : int
        Size of the vocabulary, V.
    sequence : int
        Tokens of a sample, s.

    Raises
    ------
    HybridLabError
        A size is not a whole number of at least 1, or an argument is unknown. There are no experts.
    UnsupportedSize
        ``hidden`` is not a multiple of ``heads``.

    Examples
    --------
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
            raise UnsupportedSize(f"hidden must be a multiple of heads: {message}", "not-divisible")

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer: weights, biases and normalisations, 12h^2 + 13h."""
        return (12 * self.hidden + 13) * self.hidden

    @property
    def parameters(self) -> int:
        """Number of all parameters, 12lh^2 (1 + 13/(12h) + (V + s)/(12lh)) (Narayanan et al., arXiv 2104.04473, eq. 2)."""
        return self.layers * self.layer_parameters + (self.vocabulary + self.sequence) * self.hidden

    def flops(self, batch: int, recompute: str = "none") -> float:
        """Return the number of operations in all matrix products of one step, recomputed products included.

        Parameters
        ----------
        batch : int
            Samples of the step, B.
        recompute : str
            "none", "selective" or "full".

        Raises
        ------
        HybridLabError
            ``batch`` is not a whole number of at least 1, or the kind of recomputation is unknown.

        References
        ----------
        Full recomputation: 96 B s l h^2 (1 + s/(6h) + V/(16lh)), Narayanan et al., arXiv 2104.04473, eq. (3). No recomputation:
        72 B s l h^2 (1 + s/(6h) + V/(12lh)), Korthikanti et al., arXiv 2205.05198, appendix A.

        Examples
        --------
        >>> gpt = Transformer(layers=96, hidden=12288, heads=96)
        >>> f"{gpt.flops(1536, 'full'):.4g}", f"{gpt.flops(1536):.4g}"
        ('4.511e+18', '3.386e+18')
        """
        batch = whole_number(batch, "batch")
        layer, head = self.layer_work(1, recompute=recompute), self.head_work(1)
        return batch * (self.layers * layer.flops + head.flops)

    def layer_work(self, microbatch: int, tensor: int = 1, recompute: str = "none", sequence_parallel: bool = False) -> Work:
        """Return the work of one GPU in one layer for one microbatch: forward, recomputation and backward together.

        The model of memory traffic: each matrix product and each element-wise operation reads its operands once and writes its result once.

        Parameters
        ----------
        microbatch : int
            Samples of the microbatch, b.
        tensor : int
            GPUs that share the layer, t.
        recompute : str
            The recomputed operations: "none", "selective" (scores, softmax, dropout and output of the attention) or "full" (the whole
            layer).
        sequence_parallel : bool
            Whether the t GPUs also share the operations outside attention and MLP. Then all-gathers and reduce-scatters replace the
            all-reduces, with the same number of bytes.

        Raises
        ------
        HybridLabError
            ``microbatch`` or ``tensor`` is not a whole number of at least 1, the kind of recomputation is unknown, or
            ``sequence_parallel`` is not True or False.

        References
        ----------
        Sequence parallelism: Korthikanti et al., arXiv 2205.05198, sec. 4.2.2.

        Examples
        --------
        >>> Transformer(layers=48, hidden=6144, heads=64).layer_work(4, tensor=8)
        Work(flops=2937757630464.0, operand_bytes=3762290688.0, elementwise_bytes=6496976896.0, all_reduces=4)
        """
        known_name(recompute, RECOMPUTE, "recomputation")
        again, core = int(recompute == "full"), int(recompute != "none")  # 1 if the forward of the layer, or of the attention, runs again
        h, s, t = self.hidden, self.sequence, whole_number(tensor, "tensor")
        microbatch = whole_number(microbatch, "microbatch")
        tokens, scores = microbatch * s, self.heads * s * s * microbatch / t
        # operations of one forward: products with four weight matrices, 24bsh^2; scores and their product with the values, 4bs^2h
        linear, attention = 24.0 * tokens * h * h / t, 4.0 * tokens * s * h / t
        # bytes of the products with the four weight matrices, in a single pass
        matrices = 2 * (tokens * (4 * h + 12 * h / t) + 12 * h * h / t)
        whole, shared = (tokens * h / (t if true_or_false(sequence_parallel, "sequence_parallel") else 1), tokens * h / t)
        attended, attended_back = PRODUCTS_OF_SCORES[0] * scores + 8 * shared, PRODUCTS_OF_SCORES[1] * scores + 16 * shared
        forward, backward = WHOLE[0] * whole + SHARED[0] * shared, WHOLE[1] * whole + SHARED[1] * shared
        operands = (3 + again) * matrices + (1 + core) * attended + attended_back
        elementwise = (1 + again) * forward + backward + ((1 + core) * SCORES[0] + SCORES[1]) * scores
        # A backward has two products for each product of the forward. A forward has two all-reduces, and so has a backward.
        return Work((3 + again) * linear + (3 + core) * attention, operands, elementwise, 4 + 2 * again if t > 1 else 0)

    def head_work(self, microbatch: int, tensor: int = 1) -> Work:
        """Return the work of one GPU for the logits of one microbatch, their loss and the gradient of the loss.

        Parameters
        ----------
        microbatch : int
            Samples of the microbatch, b.
        tensor : int
            GPUs that share the vocabulary, t.

        Raises
        ------
        HybridLabError
            ``microbatch`` or ``tensor`` is not a whole number of at least 1.

        Examples
        --------
        >>> Transformer(layers=48, hidden=6144, heads=64).head_work(4, tensor=8).flops / 1e12
        1.9327352832
        """
        h, share = self.hidden, self.vocabulary / whole_number(tensor, "tensor")
        tokens = whole_number(microbatch, "microbatch") * self.sequence
        # three products of 2-byte numbers: forward, gradient of the input, gradient of the weights
        operands = 3 * 2 * (tokens * h + tokens * share + h * share)
        return Work(6.0 * tokens * h * share, operands, HEAD * tokens * share, int(tensor > 1))

    def layer_activation_bytes(self, microbatch: int, tensor: int = 1, recompute: str = "none", sequence_parallel: bool = False) -> float:
        """Return the bytes of activations that one layer stores on one GPU for one microbatch, from its forward to its backward.

        Without recomputation, a layer stores sbh (10 + 24/t + 5as/(ht)) bytes. With selective recomputation, a layer stores sbh (10 + 24/t)
        bytes. With full recomputation, a layer stores only its input, 2sbh bytes. Sequence parallelism also divides the numbers 10 and 2 in
        these formulas by t. The arguments are as in :meth:`layer_work`.

        Raises
        ------
        HybridLabError
            As in :meth:`layer_work`.

        References
        ----------
        Korthikanti et al., arXiv 2205.05198, Table 2.

        Examples
        --------
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
        """Return the activation memory of one GPU of the first stage in bytes, under 1F1B or interleaved 1F1B.

        There are p stages with l/p layers each. At its peak, the first stage holds the activations of p microbatches. With v > 1 chunks,
        the peak is 1 + (p-1)/(pv) times as high. The result does not include the input of the embedding and the logits.

        Parameters
        ----------
        microbatch, tensor, recompute, sequence_parallel
            As in :meth:`layer_work`.
        pipeline : int
            Pipeline stages, p.
        chunks : int
            Chunks of each stage, v.
        microbatches : int, optional
            Number of microbatches in a step. The stage never holds more microbatches than this.

        Raises
        ------
        HybridLabError
            As in :meth:`layer_work`; or ``pipeline``, ``chunks`` or ``microbatches`` is not a whole number of at least 1.

        References
        ----------
        Korthikanti et al., arXiv 2205.05198, sec. 4.2.3.

        Examples
        --------
        >>> round(Transformer(layers=96, hidden=12288, heads=96).activation_bytes(1, tensor=8, pipeline=8, chunks=3) / 2**30, 5)
        66.84375
        """
        pipeline, chunks = whole_number(pipeline, "pipeline"), whole_number(chunks, "chunks")
        held = pipeline + (pipeline - 1) / chunks if chunks > 1 else float(pipeline)
        if microbatches is not None:
            held = min(held, whole_number(microbatches, "microbatches"))
        a_layer = self.layer_activation_bytes(microbatch, tensor, recompute, sequence_parallel)
        return held * self.layers / pipeline * a_layer
