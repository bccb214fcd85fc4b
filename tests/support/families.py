"""Every family of text models that the installed transformers can build, each as a tiny folder."""

from __future__ import annotations

import dataclasses
import inspect
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

Head = Literal["masked", "next token", "none"]

VOCABULARY = 256
POSITIONS = 320
LARGEST = 8_000_000
"""Parameters of a model that is still called tiny."""
_FIRST_RESERVED = 232  # ids that no text has: of images, sounds and the like

# Names of sizes, and what they become where they are larger; the first that fits counts.
_SIZES: tuple[tuple[str, int], ...] = (
    (r"\w*(hidden_layers|encoder_layers|decoder_layers)|n_layers?|num_layers|depth", 4),
    (r"\w*(key_value_heads|kv_heads)", 2),
    (r"\w*(attention_heads|num_heads|n_heads?)", 4),
    (r"\w*head_dim|d_kv|d_head|dim_head", 8),
    (r"\w*lora_rank", 16),
    (r"rotary_dim", 4),
    (r"d_model|n_embd|dim|emb_dim|embed_dim|embedding_(size|dim)", 32),
    (r"\w*hidden_size\w*|\w*projection_dim|project_dim", 32),
    (r"\w*(intermediate_size|ffn_dim|d_ff|dff|dim_ff|d_inner|hidden_dim)\w*", 48),
    (r"\w*(routed_experts|num_experts|local_experts)", 4),
    (r"\w*(experts_per_tok|moe_k|top_k|moe_topk)", 2),
    (r"n_group|topk_group", 1),
    (r"max_(position_embeddings|source_positions|target_positions)", POSITIONS),
    (r"n_positions|n_ctx|max_seq_len|max_text_len\w*|context_length", POSITIONS),
    (r"sliding_window\w*|window_size|local_attention", 16),
    (r"(mamba_)?chunk_size|\w+_attn_chunk_length|block_size", 16),
    (r"image_size|input_size", 32),
    (r"patch_size", 8),
)
_PART = "text_config|vision|image|video|audio|speech|codec|vq_|protein|flow_head|backbone"
_VOCABULARY = r"(?!type_)\w*vocab_size\w*"
_IDS = {
    "pad_token_id": 0, "unk_token_id": 1, "bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3,
    "sep_token_id": 3, "mask_token_id": 4,
}  # fmt: skip
# Sizes that some classes leave open, though their models need them.
_UNSET = {
    "head_dim": 8, "num_key_value_heads": 2, "n_routed_experts": 4, "num_experts_per_tok": 2,
}  # fmt: skip
_ROPE: dict[str, Any] = {"rope_type": "default", "rope_theta": 10000.0}
_THREE_AXES = {"rope_parameters": _ROPE | {"mrope_section": [2, 1, 1]}}  # half a head together
_LINEAR_AND_FULL = ["linear_attention", "full_attention"] * 2
_OWN_SIZES: dict[str, dict[str, Any]] = {
    "bailing_hybrid": {"layer_types": _LINEAR_AND_FULL},
    "bamba": {"attn_layer_indices": [1, 3]},
    "big_bird": {"block_size": 8, "num_random_blocks": 1},
    "blt": {"encoder_hash_byte_group_vocab": 200},
    "cohere_compass_text": {
        "rope_parameters": {"full_attention": _ROPE}
    },
    "cosmos3_edge_text": _THREE_AXES,
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "clip_qkv": 8.0}},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "dots1": {"n_shared_experts": 1},
    "dots3_note_text": {
        "num_key_value_heads": 4, "swa_num_attention_heads": 4, "swa_num_key_value_heads": 4,
        "swa_q_lora_rank": 16, "swa_kv_lora_rank": 16, "swa_head_dim": 16,
        "swa_qk_nope_head_dim": 8, "swa_v_head_dim": 8,
    },
    "esm": {
        "vocab_size": VOCABULARY, "pad_token_id": 0, "mask_token_id": 4,
        "position_embedding_type": "rotary",
    },
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "glm4v_moe_text": {
        "rope_parameters": _ROPE | {"mrope_section": [1, 1, 0], "partial_rotary_factor": 0.5}
    },
    "glm4v_text": _THREE_AXES,
    "glm5_next_text": {"num_key_value_heads": 4},
    "glm_image_text": _THREE_AXES,
    "glm_ocr_text": _THREE_AXES,
    "gpt_neo": {"attention_types": [[["global", "local"], 2]], "window_size": 16},
    "granitemoehybrid": {"layer_types": _LINEAR_AND_FULL},
    "hunyuan_vl_text": _THREE_AXES,
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "kimi_linear": {"layer_types": _LINEAR_AND_FULL},
    "layoutlmv3": {"coordinate_size": 6, "shape_size": 4},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "lilt": {"hidden_size": 48},
    "longformer": {"attention_window": 16},
    "mamba2": {"num_heads": 8, "n_groups": 2},
    "nemotron_h": {"mamba_num_heads": 8, "n_groups": 2},
    "neomme": {"head_dim": 16},
    "paddleocr_vl_text": _THREE_AXES,
    "perceiver": {
        "d_latents": 32, "num_latents": 8, "num_self_attends_per_block": 2,
        "num_self_attention_heads": 4, "num_cross_attention_heads": 4,
    },
    "qwen2_5_omni_text": _THREE_AXES,
    "qwen2_5_omni_thinker": {"vision_start_token_id": 240},
    "qwen2_5_vl_text": _THREE_AXES,
    "qwen2_vl_text": _THREE_AXES,
    "qwen3_omni_moe_thinker": {"vision_start_token_id": 240},
    "qwen4_exp_text": {
        "indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 8, "indexer_budget": 16,
        "indexer_compress_ratio": 4,
    },
    "reformer": {
        "axial_pos_shape": [16, 16], "axial_pos_embds_dim": [16, 16], "attention_head_size": 8,
        "local_attn_chunk_length": 8, "lsh_attn_chunk_length": 8, "feed_forward_size": 48,
        "max_position_embeddings": 256, "attn_layers": ["local", "lsh"] * 2,
    },
    "step3p5": {"sliding_window": 16},
    "zamba": {"num_hidden_layers": 6, "attn_layer_period": 3, "attn_layer_offset": 1},
    "zamba2": {
        "num_hidden_layers": 6,
        "layers_block_type": ["linear_attention", "hybrid", "linear_attention"] * 2,
    },
}  # fmt: skip
"""What depends on other sizes of a family, or would play no part in texts of a hundred tokens."""


@cache
def all_families() -> dict[str, Head]:
    """Every family that one of the mappings for texts names, by what its model predicts."""
    from transformers.models.auto import modeling_auto

    heads: tuple[tuple[str, Head], ...] = (
        ("MODEL_FOR_MASKED_LM_MAPPING_NAMES", "masked"),
        ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "next token"),
        ("MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES", "none"),
        ("MODEL_MAPPING_NAMES", "none"),
    )
    families: dict[str, Head] = {}
    for mapping, head in heads:
        for family in getattr(modeling_auto, mapping):
            families.setdefault(family, head)
    return dict(sorted(families.items()))


@cache
def why_left_out(family: str) -> str:
    """Why a family is not among those that are checked; empty where it is."""
    from transformers.models.auto import modeling_auto

    for mapping in ("TEXT_TO_WAVEFORM", "TEXT_TO_SPECTROGRAM"):
        if family in getattr(modeling_auto, f"MODEL_FOR_{mapping}_MAPPING_NAMES"):
            return "makes sound"
    try:
        network = _class(family, "none")
        reads = inspect.signature(network.forward).parameters
        main = network.main_input_name
    except KeyError:
        return "has no model that `AutoModel` loads"
    except (AttributeError, ImportError) as error:
        return _why_missing(error)
    if "input_ids" not in reads:
        return "reads no tokens"
    if main != "input_ids" and all_families()[family] != "masked":
        return f"reads {main}"
    return ""


def text_families() -> dict[str, Head]:
    """The families that are checked."""
    return {name: head for name, head in all_families().items() if not why_left_out(name)}


class NotBuiltError(Exception):
    """A family of which no tiny model can be made here; the message says why."""


def save_family(family: str, folder: Path, seed: int = 0, **sizes: Any) -> Path:
    """Write a random model of a few layers of 32 values, and a tokenizer; returns the folder."""
    from neuralviz.models.quiet import quiet_transformers
    from tests.support.models import draw_weights

    head = all_families()[family]
    with quiet_transformers():
        network = _make_network(family, head, sizes)
        draw_weights(network, seed)
        network.save_pretrained(folder)
        _save_tokenizer(folder, has_mask=head != "next token")
    return folder


def _make_network(family: str, head: Head, sizes: dict[str, Any]) -> PreTrainedModel:
    import torch
    from transformers import CONFIG_MAPPING

    reads_more = _reads_more(CONFIG_MAPPING[family]())
    try:
        config = _shrunk(CONFIG_MAPPING[family](), **sizes)
        has_own = head == "masked" or not (reads_more or config.is_encoder_decoder)
        network_class = _class(family, head if has_own else "none")
        with torch.device("meta"):
            size = sum(parameter.numel() for parameter in network_class(config).parameters())
        if size > LARGEST:
            raise ValueError(f"{family} has {size:,} parameters")
        return network_class(config)
    except ImportError as error:
        raise NotBuiltError(_why_missing(error)) from error
    except Exception as error:  # whatever large sizes that do not fit together provoke
        if reads_more:
            raise NotBuiltError("reads more than texts; its parts do not shrink by rule") from error
        raise


def _save_tokenizer(folder: Path, *, has_mask: bool) -> None:
    """A tokenizer without a limit; of a decoder, one without padding or tokens around a text."""
    from transformers import PreTrainedTokenizerFast

    from tests.support.models import BERT_SPECIALS, fast_tokenizer, word_piece

    backend = word_piece(BERT_SPECIALS)
    if has_mask:
        tokenizer = fast_tokenizer(backend, BERT_SPECIALS)
        tokenizer.model_max_length = int(1e30)
    else:
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=backend, unk_token="[UNK]", eos_token="[SEP]"
        )
    tokenizer.save_pretrained(folder)


def _class(family: str, head: Head) -> type[PreTrainedModel]:
    """The class of a family's model with a head, or of the one that `AutoModel` loads."""
    import transformers
    from transformers.models.auto import modeling_auto

    mapping = {
        "masked": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
        "next token": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
        "none": "MODEL_MAPPING_NAMES",
    }[head]
    names = getattr(modeling_auto, mapping)[family]
    return getattr(transformers, names if isinstance(names, str) else names[0])


def _shrunk(config: PreTrainedConfig, **own: Any) -> PreTrainedConfig:
    sizes: dict[str, Any] = {}
    reserved = iter(range(_FIRST_RESERVED, VOCABULARY))
    for field in dataclasses.fields(config):
        value = vars(config).get(field.name, field.default)
        if hasattr(value, "sub_configs"):
            sizes[field.name] = _shrunk(value)
        elif value is None and field.name in _UNSET:
            sizes[field.name] = _UNSET[field.name]
        elif isinstance(value, bool) or not isinstance(value, int):
            continue
        elif field.name in _IDS:
            sizes[field.name] = _IDS[field.name]
        elif re.fullmatch(r"\w+_(id|index)", field.name):
            if value >= 16:
                sizes[field.name] = next(reserved)
        elif field.default is None:
            continue
        elif re.fullmatch(_VOCABULARY, field.name):
            sizes[field.name] = VOCABULARY
        else:
            fitting = (size for name, size in _SIZES if re.fullmatch(name, field.name))
            size = next(fitting, value)
            if size == POSITIONS:
                sizes[field.name] = size
            elif size < value or (isinstance(field.default, int) and value != field.default):
                sizes[field.name] = min(size, value)
    if "num_key_value_heads" in sizes and _heads_are_alike(config):
        sizes["num_key_value_heads"] = sizes.get("num_attention_heads", 4)
    return type(config)(**{**sizes, **_OWN_SIZES.get(config.model_type, {}), **own})


def _heads_are_alike(config: PreTrainedConfig) -> bool:
    """Whether there are as many heads of keys as of queries, which some kinds of attention need."""
    heads = vars(config)
    return heads.get("num_key_value_heads") == heads.get("num_attention_heads")


def _reads_more(config: PreTrainedConfig) -> bool:
    """Whether a model has a part for images, sounds or the like beside the one for texts."""
    parts = [name for name, value in vars(config).items() if hasattr(value, "sub_configs")]
    return any(re.search(_PART, name) for name in parts)


def _why_missing(error: Exception) -> str:
    package = re.search(r"requires the (\S+) library", str(error))
    return f"needs the package {package[1]}" if package else "is not in this version"
