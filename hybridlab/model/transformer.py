"""The shape of a transformer, and its number of parameters, operations, memory traffic and activation memory."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from os import PathLike, fspath
from typing import Any

from hybridlab.checks import known_name, short_repr, true_or_false, whole_number, with_known_arguments
from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.model.config import read_config
from hybridlab.model.operations import CAUSAL, FUSED_HEAD, HEAD, LayerSums, Share, Work, layer_operations, layer_sums, recomputed_names
from hybridlab.model.structure import GPT, LLAMA, Experts, Latent, Structure

RECOMPUTE = ("none", "selective", "full")


@with_known_arguments
@dataclass(frozen=True)
class Transformer:
    """The shape of a GPT model, or of a later one.

    Parameters
    ----------
    layers : int
        Transformer layers, l.
    hidden : int
        Hidden size, h.
    heads : int
        Attention heads of a layer, a.
    vocabulary : int
        Size of the vocabulary, V.
    sequence : int
        Tokens of a sample, s.
    kv_heads : int, optional
        Heads of keys and values, which groups of query heads share (grouped-query attention). The default is ``heads``.
    head_size : int, optional
        Numbers of a head. The default is ``hidden / heads``.
    ffn : int, optional
        Inner size of the MLP. The default is 4h.
    gated : bool
        Whether the MLP multiplies two products (SwiGLU). A model with a gated MLP has no biases, no dropout, RMSNorm and rotated positions,
        as Llama; one without has all of GPT. ``structure`` changes that.
    tied : bool
        Whether the logits use the weights of the embedding.
    experts : Experts, optional
        Experts in place of one MLP.
    latent : Latent, optional
        Multi-head latent attention.
    structure : Structure, optional
        Biases, normalisations and positions of a family of models.

    Raises
    ------
    HybridLabError
        A size is not a whole number of at least 1, or an argument has the wrong type or is unknown.
    UnsupportedSize
        ``hidden`` is not a multiple of ``heads`` and there is no ``head_size``, ``kv_heads`` do not divide ``heads``, or there are fewer
        layers than dense ones.

    Examples
    --------
    >>> Transformer(layers=96, hidden=12288, heads=96).parameters / 1e9
    174.615822336
    >>> llama = Transformer(32, 4096, 32, 128256, 8192, kv_heads=8, ffn=14336, gated=True, tied=False)
    >>> llama.parameters
    8030261248
    """

    layers: int
    hidden: int
    heads: int
    vocabulary: int = 51200
    sequence: int = 2048
    _: KW_ONLY
    kv_heads: int = None  # type: ignore[assignment]  # a size after __init__, as the next two
    head_size: int = None  # type: ignore[assignment]
    ffn: int = None  # type: ignore[assignment]
    gated: bool = False
    tied: bool = True
    experts: Experts | None = None
    latent: Latent | None = None
    structure: Structure = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        def put(field: str, value: object) -> None:
            object.__setattr__(self, field, value)  # because the dataclass is frozen

        for field in ("layers", "hidden", "heads", "vocabulary", "sequence"):
            put(field, whole_number(getattr(self, field), field))
        for field in ("gated", "tied"):
            put(field, true_or_false(getattr(self, field), field))
        for field, kind, example in (
            ("experts", Experts, "Experts(count=8, active=2, ffn=14336)"),
            ("latent", Latent, "Latent(q_rank=1536, kv_rank=512, rope=64, nope=128, value=128)"),
            ("structure", Structure, "Structure(norm_weights=2)"),
        ):
            value = getattr(self, field)
            if value is not None and not isinstance(value, kind):
                raise HybridLabError(f"{field} must be None or {kind.__name__}, such as {example}, not {short_repr(value)}", "wrong-type")
        given: Mapping[str, Any] = vars(self)  # values that may be None until here
        put("kv_heads", self.heads if given["kv_heads"] is None else whole_number(self.kv_heads, "kv_heads"))
        put("ffn", 4 * self.hidden if given["ffn"] is None else whole_number(self.ffn, "ffn"))
        put("structure", given["structure"] or (LLAMA if self.gated else GPT))
        if self.latent:
            put("head_size", self.latent.nope + self.latent.rope)
        elif given["head_size"] is not None:
            put("head_size", whole_number(self.head_size, "head_size"))
        elif self.hidden % self.heads:
            near = max(self.hidden // self.heads, 1) * self.heads
            message = f"{self.hidden} is not a multiple of {self.heads}; try {near} or {near + self.heads}"
            raise UnsupportedSize(f"hidden must be a multiple of heads: {message}", "not-divisible")
        else:
            put("head_size", self.hidden // self.heads)
        if self.heads % self.kv_heads:
            fit = ", ".join(str(count) for count in range(1, self.heads + 1) if not self.heads % count)
            message = (
                f"{self.kv_heads} heads of keys and values cannot be shared equally by {self.heads} heads: kv_heads must be one of {fit}"
            )
            raise UnsupportedSize(message, "not-divisible")
        if self.experts and self.experts.dense_layers > self.layers:
            message = f"{self.experts.dense_layers} of {self.layers} layers cannot be dense; try dense_layers={self.layers} or fewer"
            raise UnsupportedSize(message, "too-large")

    @classmethod
    def from_config(cls, path: "str | PathLike[str]", sequence: int | None = None) -> "Transformer":
        """Return the model that a published ``config.json`` describes, in the names of Hugging Face Transformers.

        Of a model that also sees images, only the part for text is counted. Sliding windows are not: every token sees all tokens before it.
        Layers that predict a second token (``num_nextn_predict_layers``) are not counted either.

        Parameters
        ----------
        path : path
            The file. An unknown ``model_type`` raises an error that lists the known ones.
        sequence : int, optional
            Tokens of a sample. The default is the number of positions that the model knows, but at most 8192, because models that know more
            are mostly trained on shorter samples; and 2048 if the file does not name the number of positions.

        Raises
        ------
        HybridLabError
            The file cannot be read, is larger than 4 MB or no JSON object; the family of the model is unknown; or a size is left out, is
            not a whole number or contradicts another.
        UnsupportedSize
            The sizes do not fit together, or ``sequence`` is longer than the model's embedding of positions.

        Examples
        --------
        >>> import json, tempfile
        >>> sizes = {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8}
        >>> more = {"model_type": "llama", "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072}
        >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        ...     json.dump(sizes | more, file)
        ...     file.flush()
        ...     llama = Transformer.from_config(file.name)
        >>> llama.parameters, llama.sequence
        (8030261248, 8192)
        """
        try:
            return cls(**read_config(path, sequence))
        except UnsupportedSize as why:
            raise UnsupportedSize(f"{fspath(path)}: {why}", why.code) from None

    @property
    def value_size(self) -> int:
        """Numbers of a head's value."""
        return self.latent.value if self.latent else self.head_size

    @property
    def dense_layers(self) -> int:
        """Layers with one MLP: all of them, unless the model has experts."""
        return self.experts.dense_layers if self.experts else self.layers

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer: weights, biases and normalisations. For GPT, 12h^2 + 13h. With experts, of a layer with experts."""
        return self._weights(dense=not self.experts)

    def _weights(self, dense: bool, active: bool = False) -> int:
        """Return the parameters of a layer, or only those that a token uses."""
        rows = layer_operations(self, dense)
        return int(sum(row.weights * (row.copies if active and row.sets > 1 else row.sets) for row in rows))

    def _all(self, active: bool) -> int:
        """Return the parameters of the model, or only those that a token uses."""
        of_layers = self.dense_layers * self._weights(True) if self.dense_layers else 0
        if self.experts:
            of_layers += (self.layers - self.dense_layers) * self._weights(False, active)
        return of_layers + self.embedding_parameters + self.head_parameters

    @property
    def embedded_positions(self) -> int:
        """Number of positions that have an embedding of their own."""
        return self.sequence if self.structure.positions is True else int(self.structure.positions)

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the embedding of tokens, and of positions if they have one."""
        return (self.vocabulary + self.embedded_positions) * self.hidden

    @property
    def head_parameters(self) -> int:
        """Parameters of the logits that are not those of the embedding, and of the normalisation before them."""
        norm = self.structure.final_norm * self.structure.norm_weights * self.hidden
        return norm + (0 if self.tied else self.vocabulary * self.hidden)

    @property
    def parameters(self) -> int:
        """Number of all parameters. For GPT, 12lh^2 (1 + 13/(12h) + (V + s)/(12lh)) (Narayanan et al., arXiv 2104.04473, eq. 2)."""
        return self._all(active=False)

    @property
    def active_parameters(self) -> int:
        """Number of parameters that a token uses: of the experts only the active and the shared ones, and the whole embedding."""
        return self._all(active=True)

    def flops(self, batch: int, recompute: str | tuple[str, ...] = "none", *, causal: bool = False) -> float:
        """Return the number of operations in all matrix products of one step, recomputed products included.

        Parameters
        ----------
        batch : int
            Samples of the step, B.
        recompute : str or tuple of str
            "none", "selective", "full", or the names of operations.
        causal : bool
            Whether the scores of attention count half, because a token sees only the tokens before it. The papers below count them whole.

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
        >>> f"{gpt.flops(1536, 'full'):.4g}", f"{gpt.flops(1536):.4g}", f"{gpt.flops(1536, causal=True):.4g}"
        ('4.511e+18', '3.386e+18', '3.341e+18')
        """
        batch = whole_number(batch, "batch")
        return batch * _sample_flops(self, checked_recompute(recompute), true_or_false(causal, "causal"))

    def layer_work(
        self, microbatch: int, tensor: int = 1, recompute: str | tuple[str, ...] = "none", sequence_parallel: bool = False
    ) -> Work:
        """Return the work of one GPU in one layer for one microbatch: forward, recomputation and backward together.

        The model of memory traffic: each matrix product and each element-wise operation reads its operands once and writes its result once.
        The attention is not fused.

        Parameters
        ----------
        microbatch : int
            Samples of the microbatch, b.
        tensor : int
            GPUs that share the layer, t.
        recompute : str or tuple of str
            The recomputed operations: "none", "selective" (scores, softmax, dropout and output of the attention), "full" (the whole
            layer), or names of operations.
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
        Work(flops=2937757630464.0, operand_bytes=3762290688.0, elementwise_bytes=6496976896.0, all_reduces=4, narrow_flops=0.0)
        """
        layer = self._checked_layer(microbatch, tensor, recompute, sequence_parallel)
        return layer.forward.plus(layer.backward)

    def _checked_layer(self, microbatch: int, tensor: int, recompute: str | tuple[str, ...], sequence_parallel: bool) -> LayerSums:
        """Return the sums over the operations of a layer, after checks of the arguments."""
        share = Share(
            whole_number(microbatch, "microbatch"),
            whole_number(tensor, "tensor"),
            checked_recompute(recompute),
            true_or_false(sequence_parallel, "sequence_parallel"),
        )
        return layer_sums(self, not self.experts, share)

    def head_work(self, microbatch: int, tensor: int = 1, *, fused: bool = False) -> Work:
        """Return the work of one GPU for the logits of one microbatch, their loss and the gradient of the loss.

        Parameters
        ----------
        microbatch : int
            Samples of the microbatch, b.
        tensor : int
            GPUs that share the vocabulary, t.
        fused : bool
            Whether one kernel computes the loss.

        Raises
        ------
        HybridLabError
            ``microbatch`` or ``tensor`` is not a whole number of at least 1.

        Examples
        --------
        >>> Transformer(layers=48, hidden=6144, heads=64).head_work(4, tensor=8).flops / 1e12
        1.9327352832
        """
        tokens = whole_number(microbatch, "microbatch") * self.sequence
        h, share = self.hidden, self.vocabulary / whole_number(tensor, "tensor")
        # three products of 2-byte numbers: forward, gradient of the input, gradient of the weights
        operands = 3 * 2 * (tokens * h + tokens * share + h * share)
        nbytes = (FUSED_HEAD if true_or_false(fused, "fused") else HEAD) * tokens * share
        return Work(6.0 * tokens * h * share, operands, nbytes, int(tensor > 1))

    def layer_activation_bytes(
        self, microbatch: int, tensor: int = 1, recompute: str | tuple[str, ...] = "none", sequence_parallel: bool = False
    ) -> float:
        """Return the bytes of activations that one layer stores on one GPU for one microbatch, from its forward to its backward.

        For GPT without recomputation, a layer stores sbh (10 + 24/t + 5as/(ht)) bytes. With selective recomputation, it stores
        sbh (10 + 24/t) bytes. With full recomputation, it stores only its input, 2sbh bytes. Sequence parallelism also divides the numbers
        10 and 2 in these formulas by t. The arguments are as in :meth:`layer_work`.

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
        return self._checked_layer(microbatch, tensor, recompute, sequence_parallel).kept

    def activation_bytes(
        self,
        microbatch: int,
        tensor: int = 1,
        pipeline: int = 1,
        chunks: int = 1,
        recompute: str | tuple[str, ...] = "none",
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


@lru_cache(maxsize=1024)  # a search asks for few of these, many times
def _sample_flops(model: Transformer, recompute: str | tuple[str, ...], causal: bool) -> float:
    """Return the operations of a sample: forward, recomputation and backward."""
    again, tokens = recomputed_names(recompute), 0.0
    for dense, layers in ((True, model.dense_layers), (False, model.layers - model.dense_layers)):
        for row in layer_operations(model, dense) if layers else ():
            # a backward has two products for each product of the forward
            passes = 3 + (again is None or row.name in again)
            tokens += layers * passes * row.flops * (CAUSAL if causal and row.name in ("scores", "values") else 1)
    return tokens * model.sequence + model.head_work(1).flops


def checked_recompute(recompute: object) -> str | tuple[str, ...]:
    """Return a kind of recomputation or the names of operations, or raise an error."""
    if isinstance(recompute, (tuple, list)):
        return tuple(known_name(name, OPERATIONS, "operation") for name in recompute)
    return known_name(recompute, RECOMPUTE, "recomputation")


def _names() -> tuple[str, ...]:
    """Return the names of all operations that a layer can have."""
    dense = Transformer(1, 2, 1, gated=True, structure=Structure(query_key_norm=True, norms=4))
    latent = Transformer(1, 2, 1, gated=True, experts=Experts(2, 1, 1, 1), latent=Latent(1, 1, 1, 1, 1))
    found = [row.name for model, fused in ((dense, False), (dense, True)) for row in layer_operations(model, True, fused)]
    return tuple(dict.fromkeys(found + [row.name for row in layer_operations(latent, False)]))


OPERATIONS = _names()  # the names that recompute takes
