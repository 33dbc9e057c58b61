"""Read the shape of a transformer from a published ``config.json``, which has the names of Hugging Face Transformers."""

import json
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from hybridlab.checks import known_name, short_repr, true_or_false, whole_number
from hybridlab.errors import HybridLabError, UnsupportedSize
from hybridlab.model.structure import GPT, LLAMA, Experts, Latent, Structure

LARGEST_FILE = 4_000_000  # bytes; published files have a few thousand
MOST = 10**9  # of any size
SEQUENCE, UNNAMED_SEQUENCE = 8192, 2048  # tokens of a sample, at most and in a file that names no positions

ATTENTION, MLP = frozenset({"query, key, value", "output"}), frozenset({"up", "down"})
QUERY = frozenset({"query, key, value"})
NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType({  # names of a size, each in some families
    "layers": ("num_hidden_layers", "n_layer", "n_layers"),
    "hidden": ("hidden_size", "n_embd", "n_embed", "d_model"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads"),
    "head_size": ("head_dim",),
    "ffn": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
    "vocabulary": ("vocab_size",),
    "positions": ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"),
    "count": ("num_local_experts", "num_experts", "n_routed_experts"),
    "active": ("num_experts_per_tok",),
    "shared": ("n_shared_experts",),
})  # fmt: skip
DROPOUTS = ("resid_pdrop", "residual_dropout", "hidden_dropout", "dropout", "attn_pdrop", "attention_dropout")


class _File(NamedTuple):
    """The fields of a file; a field that is null counts as left out. ``given`` are the family's own sizes for fields that are left out."""

    name: str
    family: str
    fields: Mapping[str, Any]
    given: Mapping[str, int]

    def value(self, field: str, otherwise: Any = None) -> Any:
        value = self.fields.get(field)
        return otherwise if value is None else value

    def flag(self, field: str, otherwise: bool) -> bool:
        return true_or_false(self.value(field, otherwise), f"{field} in {self.name}")

    def size_or_none(self, size: str, at_least: int = 1) -> int | None:
        """Return a size, or None if the file leaves it out. ``size`` is a name of this project or that of a field."""
        there = [field for field in NAMES.get(size, (size,)) if self.value(field) is not None]
        values = {whole_number(self.fields[field], f"{field} in {self.name}", at_least, MOST) for field in there}
        if len(values) > 1:
            listed = " and ".join(f"{field} is {self.fields[field]}" for field in there)
            raise HybridLabError(f"{self.name} contradicts itself: {listed}, and both are the same size", "contradiction")
        return values.pop() if values else self.given.get(size)

    def size(self, size: str) -> int:
        """Return a size that the file must have."""
        value = self.size_or_none(size)
        if value is None:
            first, *others = NAMES.get(size, (size,))
            also = f" (or {', '.join(others)})" if others else ""
            raise HybridLabError(f"{self.name} leaves out {first}{also}, which a model of the family {self.family} needs", "missing")
        return value


class ModelFamily(NamedTuple):
    """What the models of a family have in common.

    Attributes
    ----------
    structure : Structure
        Biases, normalisations and positions, unless the file says otherwise.
    gated, tied : bool
        Whether the MLP is gated, and whether the logits use the embedding's weights if the file does not say it.
    biases : mapping
        Fields that switch the biases of products on or off.
    expert : str
        The field with the inner size of an expert; empty for models without.
    latent : bool
        Whether the attention is multi-head latent attention.
    given : mapping
        Sizes of files that leave them out.
    only : mapping
        Fields with the one value that is known here.
    more : function
        Returns further arguments of the model, from the file and the arguments so far.
    """

    structure: Structure = LLAMA
    gated: bool = True
    tied: bool = False
    biases: Mapping[str, frozenset[str]] = MappingProxyType({"attention_bias": ATTENTION, "mlp_bias": MLP})
    expert: str = ""
    latent: bool = False
    given: Mapping[str, int] = MappingProxyType({})
    only: Mapping[str, object] = MappingProxyType({})
    more: Callable[[_File, dict[str, Any]], dict[str, Any]] = lambda file, model: {}


def _opt(file: _File, model: dict[str, Any]) -> dict[str, Any]:
    width = file.size_or_none("word_embed_proj_dim")
    if width not in (None, model["hidden"]):
        raise HybridLabError(
            f"{file.name}: an embedding of {width} numbers for a hidden size of {model['hidden']} is not known", "unknown-structure"
        )
    return {"structure": model["structure"]._replace(positions=model["structure"].positions + 2)}  # the first two are for padding


def _falcon(file: _File, model: dict[str, Any]) -> dict[str, Any]:
    new, parallel = file.flag("new_decoder_architecture", False), file.flag("parallel_attn", True)
    norms = 2 if not parallel else file.size_or_none("num_ln_in_parallel_attn") or 1 + new
    kv_heads = model["kv_heads"] if new or not file.flag("multi_query", True) else 1
    return {"kv_heads": kv_heads, "structure": model["structure"]._replace(norms=norms, alibi=file.flag("alibi", False))}


def _mpt(file: _File, model: dict[str, Any]) -> dict[str, Any]:
    attention = file.value("attn_config", {})
    if (
        not isinstance(attention, Mapping)
        or not attention.get("alibi", True)
        or attention.get("attn_type") not in (None, "multihead_attention")
    ):
        raise HybridLabError(f"{file.name}: only the attn_config of multihead_attention with alibi is known", "unknown-structure")
    return {"ffn": (file.size_or_none("expansion_ratio") or 4) * model["hidden"]}


def _normed(file: _File, model: dict[str, Any]) -> dict[str, Any]:
    return {"structure": model["structure"]._replace(query_key_norm=file.flag("use_qk_norm", False))}


def _llama4(file: _File, model: dict[str, Any]) -> dict[str, Any]:
    return {"ffn": file.size("intermediate_size_mlp")}


_LAYER_NORM = Structure(norm_weights=2)
_BIASED = Structure(ATTENTION | MLP, norm_weights=2)
_GEMMA3 = ModelFamily(
    Structure(norms=4, query_key_norm=True), tied=True,
    given={"heads": 8, "kv_heads": 4, "head_size": 256, "vocabulary": 262208, "positions": 131072},
)  # fmt: skip
_LLAMA4 = ModelFamily(expert="intermediate_size", given={"shared": 1}, more=_llama4)
_DEEPSEEK = ModelFamily(expert="moe_intermediate_size", latent=True, only={"attention_bias": False, "moe_layer_freq": 1}, biases={})
_DEEPSEEK3 = _DEEPSEEK._replace(structure=Structure(router_bias=True))
_GROK = ModelFamily(Structure(norms=4), tied=True, expert="intermediate_size", biases={})
FAMILIES: Mapping[str, ModelFamily] = MappingProxyType({
    "bloom": ModelFamily(_BIASED._replace(alibi=True, final_norm=2), gated=False, tied=True, biases={}),
    "cohere": ModelFamily(Structure(norms=1, whole_norm=True), tied=True, more=_normed),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK3,
    "falcon": ModelFamily(_LAYER_NORM, gated=False, tied=True, biases={"bias": ATTENTION | MLP}, more=_falcon),
    "gemma": ModelFamily(tied=True, given={"head_size": 256}),
    "gemma2": ModelFamily(Structure(norms=4), tied=True, given={"head_size": 256}),
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    "glm4_moe": ModelFamily(Structure(router_bias=True), expert="moe_intermediate_size", biases={"attention_bias": QUERY}, more=_normed),
    "gpt2": ModelFamily(GPT._replace(final_norm=1), gated=False, tied=True, biases={}),
    "gpt_neox": ModelFamily(_BIASED, gated=False, biases={"attention_bias": ATTENTION}),
    "gpt_oss": ModelFamily(
        Structure(ATTENTION | MLP, sinks=True, router_bias=True), expert="intermediate_size", given={"head_size": 64},
        biases={"attention_bias": ATTENTION},
    ),
    "grok": _GROK,
    "grok-1": _GROK,
    "kimi_k2": _DEEPSEEK3,
    "llama": ModelFamily(),
    "llama4": _LLAMA4,
    "llama4_text": _LLAMA4,
    "mistral": ModelFamily(),
    "mixtral": ModelFamily(expert="intermediate_size"),
    "mpt": ModelFamily(Structure(alibi=True), gated=False, tied=True, only={"no_bias": True}, more=_mpt),
    "nemotron": ModelFamily(_LAYER_NORM, gated=False),
    "olmo2": ModelFamily(Structure(query_key_norm=True, whole_norm=True)),
    "opt": ModelFamily(
        GPT._replace(final_norm=1), gated=False, tied=True, biases={"enable_bias": ATTENTION | MLP}, more=_opt,
        only={"do_layer_norm_before": True, "layer_norm_elementwise_affine": True, "_remove_final_layer_norm": False},
    ),
    "phi3": ModelFamily(),
    "qwen2": ModelFamily(Structure(QUERY), biases={}),
    "qwen3": ModelFamily(Structure(query_key_norm=True), given={"head_size": 128}),
    "qwen3_moe": ModelFamily(Structure(query_key_norm=True), expert="moe_intermediate_size"),
    "starcoder2": ModelFamily(_BIASED, gated=False, tied=True, biases={"use_bias": ATTENTION | MLP}),
})  # fmt: skip


def read_config(path: str | PathLike[str], sequence: int | None = None) -> dict[str, Any]:
    """Return the arguments of the model that a published ``config.json`` describes: see :meth:`hybridlab.Transformer.from_config`."""
    name, fields = _fields(path)
    inner = fields.get("text_config")
    if isinstance(inner, dict):
        fields = {**{key: fields[key] for key in ("model_type", "tie_word_embeddings") if key in fields}, **inner}
    if "model_type" not in fields:
        raise HybridLabError(f"{name} has no model_type, which names the family of the model, such as llama", "missing")
    kind = known_name(fields["model_type"], FAMILIES, f"model_type in {name}:")
    family = FAMILIES[kind]
    return _arguments(_File(name, kind, fields, family.given), family, sequence)


def _fields(path: object) -> tuple[str, dict[str, Any]]:
    """Return the name of a file and the fields of its JSON object."""
    if not isinstance(path, (str, PathLike)):
        raise HybridLabError(f"path must be the path of a config.json, not {short_repr(path)}", "wrong-type")
    name = str(fspath(path))
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as why:
        raise HybridLabError(f"{short_repr(name)} cannot be read: {getattr(why, 'strerror', None) or why}", "not-found") from None
    if len(content) > LARGEST_FILE:
        raise HybridLabError(f"{name} has more than {LARGEST_FILE:,} bytes, which is too large for a config.json", "too-large")
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        raise HybridLabError(f"{name} is not JSON: a config.json is one JSON object", "not-json") from None
    if not isinstance(fields, dict):
        raise HybridLabError(f"{name} must be a JSON object with fields, not {short_repr(fields)}", "wrong-type")
    return name, fields


def _arguments(file: _File, family: ModelFamily, sequence: int | None) -> dict[str, Any]:
    """Return the arguments of the model that a file describes."""
    for field, value in family.only.items():
        if file.value(field, value) != value:
            found = short_repr(file.fields[field])
            message = f"{field} in {file.name} is {found}: models of the family {file.family} are known only with {value}"
            raise HybridLabError(message, "unknown-structure")
    biases = family.structure.biases
    for field, products in family.biases.items():
        biases = biases | products if file.flag(field, products <= biases) else biases - products
    structure = family.structure._replace(biases=biases, dropout=any(file.value(field, 0) for field in DROPOUTS))
    positions = file.size("positions") if structure.positions else file.size_or_none("positions") or UNNAMED_SEQUENCE
    sequence = min(positions, SEQUENCE) if sequence is None else whole_number(sequence, "sequence")
    if structure.positions:
        structure = structure._replace(positions=positions)
        if sequence > positions:
            message = f"the model knows {positions:,} positions, and a sample of {sequence:,} tokens needs more; try sequence={positions}"
            raise UnsupportedSize(message, "too-large")
    model: dict[str, Any] = {size: file.size(size) for size in ("layers", "hidden", "heads", "vocabulary")}
    model |= {size: file.size_or_none(size) for size in ("kv_heads", "head_size")}
    model |= {"ffn": file.size("ffn") if family.gated else file.size_or_none("ffn"), "gated": family.gated, "sequence": sequence}
    model |= {"tied": file.flag("tie_word_embeddings", family.tied), "structure": structure}
    if family.expert:
        ffn, shared = file.size(family.expert), file.size_or_none("shared", 0) or 0
        model["experts"] = Experts(file.size("count"), file.size("active"), ffn, shared, _dense_layers(file, model["layers"]))
    if family.latent:
        sizes = [file.size(size) for size in ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")]
        model["latent"] = Latent(file.size_or_none("q_lora_rank") or 0, *sizes)
    return model | family.more(file, model)


def _dense_layers(file: _File, layers: int) -> int:
    """Return the number of layers without experts: the first ones, those between layers with experts, and listed ones."""
    first = file.size_or_none("first_k_dense_replace", 0) or 0
    every = file.size_or_none("decoder_sparse_step") or file.size_or_none("interleave_moe_layer_step") or 1
    listed, chosen = file.value("mlp_only_layers", ()), file.value("moe_layers")
    if not isinstance(listed, (list, tuple)) or not isinstance(chosen, (list, type(None))):
        raise HybridLabError(f"mlp_only_layers and moe_layers in {file.name} must be lists of layers", "wrong-type")
    if chosen is not None:
        return sum(layer not in chosen for layer in range(layers))
    with_experts = (layer >= first and (layer + 1) % every == 0 and layer not in listed for layer in range(layers))
    return layers - sum(with_experts)
