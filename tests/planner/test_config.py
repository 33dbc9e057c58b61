"""Read published configurations, and compare their parameters with counts that others made."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import in_turn, refusal

from hybridlab import HybridLabError, Transformer, UnsupportedSize
from hybridlab.model.config import FAMILIES, LARGEST_FILE

MODELS = json.loads((Path(__file__).parents[1] / "data" / "models.json").read_text(encoding="utf-8"))["models"]
Read = Callable[..., Transformer]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that writes fields to a config.json and reads the model from it."""

    def of(fields: Any, sequence: int | None = None) -> Transformer:
        path = tmp_path / "config.json"
        path.write_bytes(fields if isinstance(fields, bytes) else json.dumps(fields).encode())
        return Transformer.from_config(path, sequence)

    return of


@in_turn("model", MODELS)
def test_the_parameters_of_published_models(model: dict[str, Any], read: Read) -> None:
    count, ours = model["own_count"], read(model["config"])
    assert (ours.parameters, ours.active_parameters) == (count["total"], count["active"])
    assert ours.active_parameters - ours.embedding_parameters == count["active_without_input_embedding"]
    assert ours.sequence == min(model["config"]["max_position_embeddings"], 8192)


BLOOM = {"model_type": "bloom", "n_layer": 70, "num_attention_heads": 112, "n_embed": 14336, "vocab_size": 250880, "n_inner": None}
PYTHIA = {
    "model_type": "gpt_neox", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 16384,
    "vocab_size": 50432, "max_position_embeddings": 2048, "tie_word_embeddings": False,
}  # fmt: skip
KIMI = {
    "model_type": "kimi_k2", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 64, "intermediate_size": 18432,
    "vocab_size": 163840, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "n_routed_experts": 384, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 1,
}  # fmt: skip
GROK = {
    "model_type": "grok-1", "num_hidden_layers": 64, "hidden_size": 6144, "num_attention_heads": 48, "num_key_value_heads": 8,
    "intermediate_size": 32768, "vocab_size": 131072, "num_experts": 8, "num_experts_per_tok": 2,
}  # fmt: skip


def test_numbers_that_authors_print(read: Read) -> None:
    """BLOOM: model card. Pythia 6.9B without embedding and head: arXiv 2304.01373, Table 1. Kimi K2: arXiv 2507.20534. Grok-1: README."""
    bloom, pythia, kimi, grok = (read(fields) for fields in (BLOOM, PYTHIA, KIMI, GROK))
    assert (bloom.parameters, bloom.embedding_parameters, bloom.sequence) == (176_247_271_424, 3_596_615_680, 2048)
    assert pythia.parameters - 2 * pythia.embedding_parameters == 6_444_163_072
    assert kimi.parameters == pytest.approx(1.04e12, rel=0.015)  # the report counts one more layer, which predicts a second token
    assert (grok.parameters, grok.structure.norms) == (pytest.approx(314e9, rel=0.006), 4)
    assert kimi.active_parameters - kimi.embedding_parameters == pytest.approx(32e9, rel=0.01)


SMALL = {"num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100}
WIDE = SMALL | {"intermediate_size": 96, "max_position_embeddings": 128}
GROUPED = WIDE | {"num_key_value_heads": 2}
SPARSE = GROUPED | {"head_dim": 32, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48}
LATENT = WIDE | {
    "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 12, "n_routed_experts": 4, "n_shared_experts": 2,
    "num_experts_per_tok": 2, "moe_intermediate_size": 40, "first_k_dense_replace": 1,
}  # fmt: skip
SCOUT = GROUPED | {"head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 1, "intermediate_size_mlp": 80}
GPT2 = {"n_layer": 3, "n_embd": 64, "n_head": 4, "vocab_size": 100, "n_positions": 96}
OPT = SMALL | {"ffn_dim": 96, "max_position_embeddings": 96, "word_embed_proj_dim": 64}
MPT = {"n_layers": 3, "d_model": 64, "n_heads": 4, "vocab_size": 100, "no_bias": True}


@in_turn("family, fields, parameters", [
    ("llama", GROUPED | {"tie_word_embeddings": True}, 99008),
    ("llama", GROUPED | {"attention_bias": True}, 105984),
    ("llama", GROUPED | {"mlp_bias": True}, 106176),
    ("mistral", GROUPED | {"head_dim": 32}, 142272),
    ("phi3", GROUPED, 105408),
    ("olmo2", GROUPED, 105696),
    ("gemma", GROUPED, 651968),
    ("gemma2", GROUPED, 652352),
    ("gemma3_text", GROUPED | {"head_dim": 32}, 136448),
    ("nemotron", GROUPED, 87424),
    ("starcoder2", GROUPED, 82080),
    ("starcoder2", GROUPED | {"use_bias": False}, 81024),
    ("cohere", GROUPED, 98816),
    ("cohere", GROUPED | {"use_qk_norm": True}, 99104),
    ("qwen3", GROUPED, 364224),
    ("gpt_oss", SPARSE | {"attention_bias": False}, 312024),
    ("gpt_oss", SPARSE | {"head_dim": None}, 387480),
    ("qwen3_moe", SPARSE | {"decoder_sparse_step": 2}, 161152),
    ("qwen3_moe", SPARSE | {"mlp_only_layers": [1]}, 179840),
    ("deepseek_v2", LATENT | {"q_lora_rank": None}, 154352),
    ("deepseek_v3", LATENT | {"q_lora_rank": 24}, 151352 + 2 * 4),
    ("glm4_moe", SPARSE | {"n_routed_experts": 4, "n_shared_experts": 1, "moe_intermediate_size": 40, "first_k_dense_replace": 1,
                           "use_qk_norm": True, "attention_bias": True}, 183680 + 2 * 4),
    ("llama4_text", SCOUT | {"interleave_moe_layer_step": 2}, 173248),
    ("llama4_text", SCOUT | {"moe_layers": [2]}, 173248),
    ("gpt2", GPT2, 162624),
    ("gpt2", GPT2 | {"n_inner": 100, "tie_word_embeddings": False}, 108652),
    ("gpt_neox", WIDE | {"attention_bias": False}, 100192),
    ("opt", OPT, 100832),
    ("opt", OPT | {"enable_bias": False, "tie_word_embeddings": False}, 105984),
    ("falcon", SMALL, 135936),
    ("falcon", SMALL | {"multi_query": False, "parallel_attn": False, "alibi": True, "bias": True}, 156480),
    ("falcon", SMALL | {"new_decoder_architecture": True, "num_kv_heads": 2}, 142464),
    ("falcon", SMALL | {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1}, 142080),
    ("mpt", MPT, 154304),
])  # fmt: skip
def test_small_models_of_each_family(family: str, fields: dict[str, Any], parameters: int, read: Read) -> None:
    """Counted by Hugging Face Transformers 5.24.0, which does not count the bias of a router that is not trained by gradients."""
    assert read(fields | {"model_type": family}).parameters == parameters


def test_the_part_for_text_of_a_model_with_images(read: Read) -> None:
    """Files of Gemma 3 leave sizes out: its family has them."""
    inner = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "intermediate_size": 10240}
    model = read({"model_type": "gemma3", "text_config": inner, "vision_config": {"hidden_size": 1152}})
    assert (model.heads, model.kv_heads, model.head_size, model.vocabulary, model.tied) == (8, 4, 256, 262208, True)
    untied = {"model_type": "gemma3", "tie_word_embeddings": False, "text_config": inner}
    assert read(untied).parameters - model.parameters == 262208 * 2560


def test_the_length_of_a_sample(read: Read) -> None:
    llama, gpt = GROUPED | {"model_type": "llama"}, GPT2 | {"model_type": "gpt2"}
    assert [read(llama | {"max_position_embeddings": most}).sequence for most in (512, 131072, 10_485_760, None)] == [512, 8192, 8192, 2048]
    assert (read(llama, 4096).sequence, read(gpt).sequence) == (4096, 96)
    assert read(gpt, 32).parameters == read(gpt).parameters  # the table of positions stays as long as it is
    assert read(gpt, 32).structure.dropout is False
    assert read(gpt | {"resid_pdrop": 0.1}).structure.dropout is True


LLAMA = GROUPED | {"model_type": "llama"}


@in_turn("fields, code, words", [
    (b"{", "not-json", "config.json JSON"),
    (b"\xff\xfe\xfa", "not-json", "config.json JSON"),
    (b"[" * 100_000, "not-json", "config.json JSON"),
    (b"[1]", "wrong-type", "config.json object"),
    (b" " * (LARGEST_FILE + 1), "too-large", "4,000,000"),
    ({}, "missing", "model_type"),
    (LLAMA | {"model_type": "rwkv"}, "unknown-name", f"'rwkv' {' '.join(FAMILIES)}"),
    (LLAMA | {"model_type": ["llama"]}, "unknown-name", "model_type"),
    (LLAMA | {"hidden_size": None}, "missing", "hidden_size llama"),
    (LLAMA | {"intermediate_size": None}, "missing", "intermediate_size llama"),
    (LLAMA | {"hidden_size": 64.5}, "not-a-whole-number", "hidden_size 64.5"),
    (LLAMA | {"vocab_size": 0}, "too-small", "vocab_size 0"),
    (LLAMA | {"n_layer": 4}, "contradiction", "num_hidden_layers 3 n_layer 4"),
    (LLAMA | {"num_key_value_heads": 3}, "not-divisible", "config.json 3 4"),
    (LLAMA | {"hidden_size": 66}, "not-divisible", "config.json 66 64 68"),
    (LLAMA | {"tie_word_embeddings": "no"}, "not-true-or-false", "tie_word_embeddings 'no'"),
    (LATENT | {"model_type": "deepseek_v3", "attention_bias": True}, "unknown-structure", "attention_bias True False"),
    (SPARSE | {"model_type": "qwen3_moe", "num_experts_per_tok": 5}, "too-large", "config.json 5 4"),
    (SPARSE | {"model_type": "qwen3_moe", "mlp_only_layers": 2}, "wrong-type", "mlp_only_layers"),
    (OPT | {"model_type": "opt", "word_embed_proj_dim": 32}, "unknown-structure", "32 64"),
    (MPT | {"model_type": "mpt", "attn_config": {"alibi": False}}, "unknown-structure", "attn_config alibi"),
])  # fmt: skip
def test_what_is_no_configuration(fields: Any, code: str, words: str, read: Read) -> None:
    with refusal(code, *words.split()):
        read(fields)


def test_a_path_or_a_length_that_cannot_be(read: Read, tmp_path: Path) -> None:
    for path, code in ((tmp_path / "none.json", "not-found"), (tmp_path, "not-found"), ("\0", "not-found"), (3, "wrong-type")):
        with pytest.raises(HybridLabError) as caught:
            Transformer.from_config(path)  # type: ignore[arg-type]
        assert caught.value.code == code
    with refusal("too-large", "96", "97", kind=UnsupportedSize):
        read(GPT2 | {"model_type": "gpt2"}, 97)
    with refusal("not-a-whole-number", "sequence"):
        read(LLAMA, 2.5)
