"""One table of the operations of a transformer layer. Parameters, operations, traffic, activations and exchanges are sums over it.

A row is an operation of the forward. Its numbers are for one token, and for all GPUs that share the layer together. A number takes 2 bytes,
an element of a dropout mask 1 byte. A new kind of layer is new rows.
"""

from functools import lru_cache
from typing import Any, NamedTuple

Shape = Any  # a Transformer, whose file imports this one
CORE = ("scores", "softmax", "values")  # the core of the attention, which selective recomputation runs again
HEAD = 52  # bytes per logit, in FP32: maximum, difference, exponential, sum, quotient, and the gradient
FUSED_HEAD = 32  # the same with fewer kernels: cast and maximum 10, difference, exponential and sum 8, gradient 8, cast 6
FUSED_BACKWARD = 2.5  # operations of the backward of fused attention over those of its forward: it computes the scores again
# Bytes per number that a product takes in FP8: read 2 for the largest number, then read 2 and write 1 as it is and 1 transposed
QUANTISING = 6.0
CAUSAL = 0.5  # share of the scores that a token may see, on average: fused attention leaves the others out


class Operation(NamedTuple):
    """One operation of a layer, for one token.

    Attributes
    ----------
    name : str
        The operation.
    inner, outer : float
        A product of matrices reads ``inner`` numbers and writes ``outer`` numbers; it takes 2 x inner x outer operations. Both are 0 for an
        element-wise operation.
    split : str
        What tensor parallelism divides: "outer" and "inner" are sides of the product's weights, "both" are all its operands (each head
        belongs to one GPU), and "tokens" is nothing unless the GPUs share the tokens (sequence parallelism).
    weights : float
        Parameters, biases included.
    others : float
        Numbers of the product's operands that are neither ``inner`` nor weights: keys or values, and the scores.
    forward, backward : float
        Bytes that element-wise operations read and write.
    kept : float
        Bytes that its result takes from the forward to the backward.
    exchange : tuple of int
        All-reduces over the GPUs that share the layer, after the (forward, backward).
    copies : float
        How often the operation runs for a token: the number of experts that a token goes to.
    sets : int
        Sets of weights: the number of experts.
    share : float
        Share of the scores that are computed: 0.5 with a causal mask in fused attention.
    again : float
        Operations of the backward over those of the forward.
    """

    name: str
    inner: float = 0.0
    outer: float = 0.0
    split: str = "tokens"
    weights: float = 0.0
    others: float = 0.0
    forward: float = 0.0
    backward: float = 0.0
    kept: float = 0.0
    exchange: tuple[int, int] = (0, 0)
    copies: float = 1.0
    sets: int = 1
    share: float = 1.0
    again: float = 2.0

    @property
    def flops(self) -> float:
        """Operations of a forward for one token."""
        return 2.0 * self.inner * self.outer * self.copies * self.share


@lru_cache(maxsize=256)
def layer_operations(model: Shape, dense: bool = True, fused: bool = False, eager: bool = True) -> tuple[Operation, ...]:
    """Return the operations of a layer of a model, in the order of the forward.

    Parameters
    ----------
    model : Transformer
        The model.
    dense : bool
        Whether the layer has one MLP. Otherwise it has experts.
    fused : bool
        Whether one kernel computes the attention and never writes the scores (FlashAttention, arXiv 2205.14135).
    eager : bool
        Whether PyTorch runs each element-wise operation of a gated MLP and of rotated positions as a kernel of its own. (The software of
        2021 had fused kernels for what GPT needs.)
    """
    h, made = model.hidden, model.structure
    dropped = int(made.dropout)
    normalise = Operation("norm", weights=made.norm_weights * h, forward=4 * h, backward=10 * h, kept=2 * h)
    # a mask takes a byte to write and a byte to read; the gradient of a bias reads 2 bytes
    residual = Operation(
        "residual",
        forward=(6 + dropped) * h,
        backward=(6 + 5 * dropped + 2 * ("output" in made.biases)) * h,
        kept=(2 + dropped) * h,
    )
    after = (normalise._replace(name="norm after", kept=2 * h),) if made.norms == 4 else ()
    mlp = _mlp(model, "", model.ffn, eager) if dense else _experts(model, eager)
    before = (normalise,) if made.norms > 1 else ()  # with one normalisation, the MLP takes what the attention takes
    return (normalise, *_attention(model, fused, eager), *after, residual, *before, *mlp, *after, residual)


def _attention(model: Shape, fused: bool, eager: bool) -> tuple[Operation, ...]:
    """Return the operations of the attention, with its products before and behind it."""
    h, s, a, made = model.hidden, model.sequence, model.heads, model.structure
    size, value = model.head_size, model.value_size
    query, keys = a * size, model.kv_heads * size
    rows = list(_latent(model) if model.latent else _projections(model))
    if made.query_key_norm:
        width = query + keys
        own = width if made.whole_norm else 2 * size
        rows.append(Operation("query-key norm", split="both", weights=own, forward=4 * width, backward=10 * width, kept=2 * width))
    if not made.positions and not made.alibi:
        width = query + keys if not model.latent else a * model.latent.rope + model.latent.rope
        # two products, the halves in the other order, and a sum: 4 + 4 + 4 + 6 bytes a number
        moved = (18 if eager else 4) * width
        rows.append(Operation("rotary", split="both", forward=moved, backward=moved))
    out, sinks = a * value, a * made.sinks
    if fused:
        # reads query, key, value, and writes the output; the backward reads these five and writes three gradients
        moved = query + keys + model.kv_heads * value + out
        rows.append(
            Operation(
                "attention", (size + value) / 2 * a, 2 * s, "both", sinks, forward=2 * moved, backward=4 * moved,
                kept=2 * out + 4 * a, share=CAUSAL, again=FUSED_BACKWARD,
            )
        )  # fmt: skip
    else:
        dropped = made.dropout
        rows += [
            Operation("scores", query, s, "both", sinks, others=query + a * s),
            Operation(
                "softmax", split="both", forward=(4 + 5 * dropped) * a * s, backward=(6 + 5 * dropped) * a * s, kept=(2 + dropped) * a * s
            ),
            Operation("values", out, s, "both", others=out + a * s, kept=2 * dropped * a * s),
            # the heads are put in order, and the output is kept
            Operation("order of heads", split="both", forward=4 * out, backward=4 * out, kept=2 * out),
        ]
    rows.append(_product("output", out, h, "inner", made, exchange=(1, 0)))
    return tuple(rows)


def _projections(model: Shape) -> tuple[Operation, ...]:
    """Return the product with the weights of query, key and value."""
    width = (model.heads + 2 * model.kv_heads) * model.head_size
    return (_product("query, key, value", model.hidden, width, "outer", model.structure, kept=2 * width, exchange=(0, 1)),)


def _latent(model: Shape) -> tuple[Operation, ...]:
    """Return the products of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, sec. 2.1)."""
    latent, h, a, made = model.latent, model.hidden, model.heads, model.structure
    size, kv = latent.nope + latent.rope, latent.kv_rank

    def norm(name: str, width: int) -> Operation:
        return Operation(name, weights=width, forward=4 * width, backward=10 * width, kept=2 * width)

    rows: list[Operation] = []
    if latent.q_rank:
        rows += [
            _product("query down", h, latent.q_rank, "tokens", made, kept=2 * latent.q_rank),
            norm("query norm", latent.q_rank),
            _product("query up", latent.q_rank, a * size, "outer", made, kept=2 * a * size, exchange=(0, 1)),
        ]
    else:
        rows.append(_product("query up", h, a * size, "outer", made, kept=2 * a * size, exchange=(0, 1)))
    return (
        *rows,
        _product("key-value down", h, kv + latent.rope, "tokens", made, kept=2 * (kv + latent.rope)),
        norm("key-value norm", kv),
        _product("key-value up", kv, a * (latent.nope + latent.value), "outer", made, kept=2 * a * (size + latent.value)),
    )


def _mlp(model: Shape, prefix: str, width: float, eager: bool, copies: float = 1, sets: int = 1) -> tuple[Operation, ...]:
    """Return the operations of an MLP of this width. With ``sets`` experts, ``copies`` of them run for a token."""
    h, made, wide = model.hidden, model.structure, width * (1 + model.gated)
    up, down = f"{prefix}up", f"{prefix}down"
    bias = 2 * ("up" in made.biases) * wide  # the gradient of the bias reads 2 bytes
    exchange = ((0, 1), (1, 0)) if not prefix else ((0, 0), (0, 0))
    # alone, SiLU reads and writes one half, and a product multiplies it with the other half; the result of SiLU is kept, too
    apart = eager and model.gated
    forward, backward = 2 * (wide + width) + 4 * apart * width, 2 * (2 * wide + width) + bias + 6 * apart * width
    rows = (
        _product(up, h, wide, "outer", made, kept=2 * wide, exchange=exchange[0]),
        Operation(f"{prefix}activation", split="both", forward=forward, backward=backward, kept=(2 + 2 * apart) * width),
        _product(down, width, h, "inner", made, exchange=exchange[1]),
    )
    return tuple(each._replace(copies=copies, sets=sets) for each in rows)


def _experts(model: Shape, eager: bool) -> tuple[Operation, ...]:
    """Return the operations of a layer with experts: router, the experts of a token, and experts that every token goes to."""
    experts, h, made = model.experts, model.hidden, model.structure
    count, active = experts.count, experts.active
    router = Operation("router", h, count, weights=(h + made.router_bias) * count, forward=8 * count, backward=8 * count, kept=4 * count)
    # each pass reads and writes every copy of a token: to the order of the ranks, to the order of the experts there, and back
    move = Operation("permutation", split="both", forward=8 * h * active, backward=8 * h * active, kept=2 * h * active)
    rows = (router, move, *_mlp(model, "expert ", experts.ffn, eager, active, count), move._replace(name="permutation back", kept=0))
    if experts.shared:
        rows += _mlp(model, "shared ", experts.shared * experts.ffn, eager)
    # the exchanges of the layer are those of its first and last product
    return (rows[0]._replace(exchange=(0, 1)), *rows[1:-1], rows[-1]._replace(exchange=(1, 0)))


def _product(name: str, inner: float, outer: float, split: str, made: Any, **more: Any) -> Operation:
    """Return the product of activations with a matrix of weights."""
    bias = outer * (name.rpartition(" ")[2] in made.biases or name in made.biases)
    backward = 2 * bias if split == "outer" and not name.endswith("up") else 0.0  # the gradient of a bias; others count it elsewhere
    return Operation(name, inner, outer, split, inner * outer + bias, backward=backward, **more)


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
    narrow_flops : float
        The operations of ``flops`` whose operands are FP8 numbers.
    """

    flops: float
    operand_bytes: float
    elementwise_bytes: float
    all_reduces: float
    narrow_flops: float = 0.0

    @property
    def nbytes(self) -> float:
        """All bytes that the GPU reads from and writes to memory."""
        return self.operand_bytes + self.elementwise_bytes

    def plus(self, other: "Work") -> "Work":
        """Return the sum of two works."""
        return Work(*(one + another for one, another in zip(self, other, strict=True)))


class Share(NamedTuple):
    """What one GPU does of a layer: the numbers and words of a plan that decide it."""

    microbatch: int = 1
    tensor: int = 1
    recompute: str | tuple[str, ...] = "none"
    sequence_parallel: bool = False
    context: int = 1
    expert: int = 1
    attention: str = "unfused"
    kernels: str = "eager"
    precision: str = "bf16"


class LayerSums(NamedTuple):
    """The sums over the operations of a layer, on one GPU and for one microbatch.

    ``forward`` and ``backward`` are works, the backward with recomputation. ``kept`` are bytes from the forward to the backward,
    ``recomputed`` the bytes that the backward of a layer holds besides them, ``weights`` the parameters that every replica has, and
    ``expert_weights`` those that are divided among the ranks of experts.
    """

    forward: Work
    backward: Work
    kept: float
    recomputed: float
    weights: float
    expert_weights: float


def recomputed_names(recompute: str | tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the names of the operations that run again, or None for all."""
    return {"none": (), "selective": CORE, "full": None}[recompute] if isinstance(recompute, str) else recompute


@lru_cache(maxsize=4096)
def layer_sums(model: Shape, dense: bool, share: Share) -> LayerSums:
    """Return the sums over the operations of a layer."""
    tokens, t = share.microbatch * model.sequence / share.context, share.tensor
    apart = t if share.sequence_parallel else 1
    again = recomputed_names(share.recompute)
    kept = stored = weights = of_experts = 0.0
    ahead, back = ([0.0, 0.0, 0.0, 0, 0.0] for _ in range(2))  # sums in the order of Work
    for row in layer_operations(model, dense, share.attention == "fused", share.kernels == "eager"):
        divided = apart if row.split == "tokens" else t
        mine = tokens * row.copies
        flops, narrow = tokens * row.flops / divided, share.precision == "fp8" and row.split in ("outer", "inner")
        there, home = _operand_bytes(row, mine, divided, share, narrow)
        forward = (flops, there, row.forward * mine / divided, row.exchange[0], flops * narrow)
        backward = (row.again * flops, home, row.backward * mine / divided, row.exchange[1], row.again * flops * narrow)
        twice = again is None or row.name in again
        for place in range(5):
            ahead[place] += forward[place]
            back[place] += backward[place] + twice * forward[place]
        nbytes = row.kept * mine / divided
        stored += nbytes
        kept += 0 if twice else nbytes
        own = row.weights * row.sets / (1 if row.split == "tokens" and row.inner else t)
        if row.sets > 1:
            of_experts += own / share.expert
        else:
            weights += own
    if again is None:
        kept = 2 * tokens * model.hidden / apart
    if t == 1:
        ahead[3] = back[3] = 0
    return LayerSums(Work(*ahead), Work(*back), kept, stored - kept, weights, of_experts)


def _operand_bytes(row: Operation, tokens: float, divided: int, share: Share, narrow: bool) -> tuple[float, float]:
    """Return the bytes of the operands and results of a product on one GPU, in the forward and in the backward.

    ``narrow`` tells whether the operands are FP8 numbers. They are quantised once, for the products of both passes that take them.
    """
    if row.split == "both" or not row.inner:  # scores and their product with the values; fused attention counts its own bytes
        nbytes = 2 * (row.inner + row.others) * tokens / divided if row.others else 0.0
        return nbytes, 2 * nbytes
    t = share.tensor
    given, result = (tokens * size / (t if row.split == side else 1) for size, side in ((row.inner, "inner"), (row.outer, "outer")))
    matrix = row.inner * row.outer * row.sets / share.expert / (1 if row.split == "tokens" else t)
    if not narrow:
        nbytes = 2 * (given + result + matrix)
        return nbytes, 2 * nbytes
    # results have 16 bits: the product's own, and the gradients of its input and of the weights
    forward = (1 + QUANTISING) * (given + matrix) + 2 * result
    return forward, (QUANTISING + 1) * result + matrix + 2 * given + result + given + 2 * matrix
