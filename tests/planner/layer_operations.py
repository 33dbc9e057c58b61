"""List what each operation of a transformer layer reads and writes, to check the bytes that `hybridlab.model` computes.

The list was written from the layer itself, not from the sums in the library. The layer is that of Megatron-LM in 2021. It has three
fused kernels: bias, dropout and residual; bias and GeLU; scale, mask and softmax. Each line of the list has an operation, the tensors
that it reads, and the tensors that it writes.
"""

from collections.abc import Iterable

# the last value is the bytes per number: two for numbers of 16 bits, one for a dropout mask
SIZE = {
    "x": ("whole", 1, 2),  # h numbers per token, on every GPU; used by normalisation, residual addition and dropout
    "mask": ("whole", 1, 1),
    "full": ("gemm", 1, 2),  # h numbers per token, read or written by a matrix product; sequence parallelism gathers them first
    "q": ("shared", 1, 2),
    "k": ("shared", 1, 2),
    "v": ("shared", 1, 2),
    "qkv": ("shared", 3, 2),
    "context": ("shared", 1, 2),
    "wide": ("shared", 4, 2),  # 4h numbers of the MLP
    "scores": ("scores", 1, 2),
    "scores_mask": ("scores", 1, 1),
    "w_qkv": ("weights", 3, 2),
    "w_out": ("weights", 1, 2),
    "w_up": ("weights", 4, 2),
    "w_down": ("weights", 4, 2),
}
Operations = tuple[tuple[str, str, str], ...]
CORE: Operations = (  # the core of the attention, which selective recomputation runs again
    ("scores = q k", "q k", "scores"),
    ("scale, mask, softmax", "scores", "scores"),
    ("dropout", "scores", "scores scores_mask"),
    ("context = scores v", "scores v", "context"),
)
FORWARD: Operations = (
    ("normalise", "x", "x"),
    ("query, key, value", "full w_qkv", "qkv"),
    ("put heads in order", "context", "context"),
    ("output", "context w_out", "full"),
    ("bias, dropout, residual", "x x", "x mask"),
    ("normalise", "x", "x"),
    ("up", "full w_up", "wide"),
    ("bias, GeLU", "wide", "wide"),
    ("down", "wide w_down", "full"),
    ("bias, dropout, residual", "x x", "x mask"),
)
BACKWARD: Operations = (
    ("dropout of the MLP", "x mask", "x"),
    ("gradient of down's bias", "x", ""),
    ("down: gradient of its input", "full w_down", "wide"),
    ("down: gradient of its weights", "wide full", "w_down"),
    ("GeLU", "wide wide", "wide"),
    ("gradient of up's bias", "wide", ""),
    ("up: gradient of its input", "wide w_up", "full"),
    ("up: gradient of its weights", "full wide", "w_up"),
    ("normalisation: gradient of its input", "x x", "x"),
    ("normalisation: gradients of its weights", "x x", ""),
    ("add the residual's gradient", "x x", "x"),
    ("dropout of the attention", "x mask", "x"),
    ("gradient of output's bias", "x", ""),
    ("output: gradient of its input", "full w_out", "context"),
    ("output: gradient of its weights", "context full", "w_out"),
    ("put heads in order", "context", "context"),
    ("context: gradient of the scores", "context v", "scores"),
    ("context: gradient of v", "scores context", "v"),
    ("dropout of the scores", "scores scores_mask", "scores"),
    ("softmax", "scores scores", "scores"),
    ("scores: gradient of q", "scores k", "q"),
    ("scores: gradient of k", "scores q", "k"),
    ("gradient of the bias of query, key, value", "qkv", ""),
    ("query, key, value: gradient of their input", "qkv w_qkv", "full"),
    ("query, key, value: gradient of their weights", "full qkv", "w_qkv"),
    ("normalisation: gradient of its input", "x x", "x"),
    ("normalisation: gradients of its weights", "x x", ""),
    ("add the residual's gradient", "x x", "x"),
)
PRODUCTS = ("scores =", "context =", "query,", "output", "up", "down", "context:", "scores:")  # matrix products begin with these
# (bytes read, bytes written) per logit by each operation of the loss, from 16 bits to FP32 and back
LOSS = ((2, 4), (4, 0), (4, 4), (4, 4), (4, 0), (4, 4), (4, 4), (4, 2))  # cast, max, minus, exp, sum, divide, gradient, cast
# The same per parameter, for: gradient to FP32, unscale, norm, clip, Adam, weight to 16 bits, zero the gradient. Adam uses the gradient,
# the weight and two moments.
OPTIMISER = ((2, 4), (4, 4), (4, 0), (4, 4), (16, 12), (4, 2), (0, 2))


def nbytes(tensors: str, tokens: int, hidden: int, heads: int, sequence: int, tensor: int, split: bool) -> float:
    """Return the bytes of the named tensors on one GPU."""
    numbers = {
        "whole": tokens * hidden / (tensor if split else 1),
        "gemm": tokens * hidden,
        "shared": tokens * hidden / tensor,
        "scores": tokens * sequence * heads / tensor,
        "weights": hidden * hidden / tensor,
    }
    return sum(numbers[SIZE[name][0]] * SIZE[name][1] * SIZE[name][2] for name in tensors.split())


def layer_bytes(microbatch: int, hidden: int, heads: int, sequence: int, tensor: int, recompute: str, split: bool) -> list[float]:
    """Return the bytes that one layer moves for one microbatch on one GPU, in forward, recomputation and backward.

    The first number is for matrix products, the second for all other operations.
    """
    again: dict[str, Iterable[tuple[str, str, str]]] = {"none": (), "selective": CORE, "full": (*FORWARD, *CORE)}
    sizes = (microbatch * sequence, hidden, heads, sequence, tensor, split)
    operations = (*FORWARD, *CORE, *again[recompute], *BACKWARD)
    moved = [0.0, 0.0]
    for name, read, written in operations:
        moved[not name.startswith(PRODUCTS)] += nbytes(read, *sizes) + nbytes(written, *sizes)
    return moved
