"""Frozen models: a `TextModel` reads texts, a `LanguageModel` can also be micro-tuned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from neuralviz.errors import ModelError, SettingsError

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from neuralviz.models.passes import Behaviour, TokenTypes

BUNDLED = "bundled"
MINILM = "all-MiniLM-L6-v2"  # the sentence encoder that comes with neuralviz
Part = Literal["embeddings", "block", "head"]

_NORM = re.compile(r"norm", re.IGNORECASE)
_BLOCK = re.compile(r"(?:^|\.)(?:layer|layers|h|block|blocks|albert_layer_groups)\.(\d+)\.")

_LAST_BLOCK_SUFFIXES = (
    ("output.LayerNorm.weight", "output.LayerNorm.bias", "output.dense.bias"),  # BERT and kin
    ("output_layer_norm.weight", "output_layer_norm.bias", "ffn.lin2.bias"),  # DistilBERT
    ("mlp_norm.weight", "mlp_norm.bias", "mlp.Wo.bias"),  # ModernBERT
    (  # ALBERT, whose blocks are one and the same
        "albert_layers.0.full_layer_layer_norm.weight",
        "albert_layers.0.full_layer_layer_norm.bias",
        "albert_layers.0.ffn_output.bias",
    ),
)


@dataclass(frozen=True)
class Layer:
    """A 1-D parameter of a model, which micro-tuning can change."""

    name: str  # such as ``cls.predictions.transform.dense.bias``
    part: Part
    block: int | None  # index of its transformer block, from 0; None outside the blocks
    size: int  # number of values

    @property
    def kind(self) -> str:
        """The name within its block or part, such as ``output.dense.bias``."""
        if self.block is not None:
            return _BLOCK.split(self.name, maxsplit=1)[2]
        return self.name

    @property
    def block_name(self) -> str:
        """``block 6``, counted from 1, or another part, such as ``head``."""
        return self.part if self.block is None else f"block {self.block + 1}"


def list_layers(shapes: Mapping[str, tuple[int, ...]], base_prefix: str) -> tuple[Layer, ...]:
    """1-D parameters, head last; the output bias embeds poorly (neural paper, Appendix A)."""
    layers = []
    for name, shape in shapes.items():
        is_head = not name.startswith(f"{base_prefix}.")
        block = None if is_head else _BLOCK.search(name)
        part: Part = "head" if is_head else "block" if block else "embeddings"
        if len(shape) == 1:
            layers.append(Layer(name, part, int(block[1]) if block else None, *shape))
    order = {"embeddings": 0, "block": 1, "head": 2}
    return tuple(sorted(layers, key=lambda layer: (order[layer.part], layer.block or 0)))


def head_layers(layers: Iterable[Layer], vocab_size: int) -> tuple[str, ...]:
    """Default layers: the prediction head's norm, then its dense bias (neural paper, section 2)."""
    names = [la.name for la in layers if la.part == "head" and la.size != vocab_size]
    ends = ("weight", "bias")
    by_end = sorted(names, key=lambda name: [not name.endswith(f".{end}") for end in ends])
    return tuple(sorted(by_end, key=lambda name: not _NORM.search(name)))


def last_block_layers(layers: Iterable[Layer]) -> tuple[str, ...]:
    """The last block's output layers (neural paper, Appendix A), or its last three if unknown."""
    blocks = [la for la in layers if la.block is not None]
    if not blocks:
        return ()
    last = max(la.block for la in blocks if la.block is not None)
    by_kind = {la.kind: la.name for la in blocks if la.block == last}
    for suffixes in _LAST_BLOCK_SUFFIXES:
        if suffixes[0] in by_kind:
            return tuple(by_kind[suffix] for suffix in suffixes if suffix in by_kind)
    return tuple(by_kind.values())[-3:]


@dataclass(frozen=True, eq=False, kw_only=True)
class TextModel:
    """A frozen transformer that gives a vector for every token at every layer; shared by all."""

    id: str  # ``bundled``, ``all-MiniLM-L6-v2``, a hub id, or a folder
    fingerprint: str  # revision or content hash of the weights; part of every cache key
    network: PreTrainedModel  # the ``transformers`` model, float32
    tokenizer: PreTrainedTokenizerFast
    encoder: Tokenizer  # without padding, truncation or special tokens
    prefix_ids: tuple[int, ...]  # special tokens before a text
    suffix_ids: tuple[int, ...]  # special tokens after a text
    pad_id: int
    unknown_id: int | None  # id of ``[UNK]``, or None where every string can be spelt
    window: int  # most tokens of one input, special tokens included
    behaviour: Behaviour  # of its encoder in a forward pass, found by trial
    token_types: TokenTypes | None = None  # of a text, unless they are all 0
    prompts: Mapping[str, str] = field(default_factory=dict)  # of sentence-transformers, by name

    def __repr__(self) -> str:
        network = type(self.network).__name__
        return f"{type(self).__name__}(id={self.id!r}, network={network}, window={self.window})"

    def __copy__(self) -> TextModel:
        return self  # models are immutable

    def __deepcopy__(self, memo: object) -> TextModel:
        return self

    def __post_init__(self) -> None:
        if self.room < 1:
            raise ModelError(
                f"{self.id} reads {self.window} tokens at most, which leaves no room for a text."
            )

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    @property
    def family(self) -> str:
        return self.network.config.model_type

    @property
    def n_blocks(self) -> int:
        """Number of transformer blocks; with the embedding output, there is one more layer."""
        return self.behaviour.n_layers - 1

    @property
    def d_model(self) -> int:
        return self.behaviour.d_model

    @property
    def room(self) -> int:
        """Most tokens of a chunk: the window without the special tokens."""
        return self.window - len(self.prefix_ids) - len(self.suffix_ids)


@dataclass(frozen=True, eq=False, kw_only=True)
class LanguageModel(TextModel):
    """A masked language model: a `TextModel` that predicts masked tokens and can be micro-tuned."""

    __repr__ = TextModel.__repr__

    mask_id: int  # id of ``[MASK]``
    layers: tuple[Layer, ...] = field(repr=False)  # every 1-D parameter

    @property
    def vocab_size(self) -> int:
        return self.network.get_output_embeddings().weight.shape[0]

    @property
    def head_layers(self) -> tuple[str, ...]:
        return head_layers(self.layers, self.vocab_size)

    @property
    def last_block_layers(self) -> tuple[str, ...]:
        return last_block_layers(self.layers)

    def check_layers(self, names: Iterable[str] | str | None) -> tuple[str, ...]:
        """Expand ``"head"``, ``"last_block"`` or None (the head, else the last block); check names.

        `SettingsError` for no layer, a layer given twice, or what is no 1-D parameter of the model.
        """
        groups = {"head": self.head_layers, "last_block": self.last_block_layers}
        if names is None:
            chosen = self.head_layers or self.last_block_layers
        elif isinstance(names, str):
            chosen = groups.get(names, (names,))
        else:
            chosen = tuple(names)
        if not chosen:
            raise SettingsError(
                f"Name at least one layer: by default, the model “{self.id}” ({self.family}) has "
                "none that is tuned. `neuralviz models layers` lists them."
            )
        layer_names = {layer.name for layer in self.layers}
        if unknown := [name for name in chosen if name not in layer_names]:
            raise SettingsError(
                f"“{str(unknown[0])[:120]}” is not a layer (1-D parameter) of the model "
                f"“{self.id}”. `neuralviz models layers` lists them."
            )
        if len(set(chosen)) != len(chosen):
            raise SettingsError("A layer is named twice. Name it only once.")
        return chosen


def check_model(model: object, kind: type[TextModel], user: str) -> None:
    """Raise `SettingsError` if a model, needed by ``user``, is not of a kind."""
    if not isinstance(model, kind):
        load = "load_text_model" if kind is TextModel else "load_model"
        description = f"{model!r:.60}"
        if isinstance(model, TextModel):
            description = f"“{model.id}”, which predicts no masked tokens"
        raise SettingsError(
            f"{user} needs a loaded model, as neuralviz.models.{load} gives it, not {description}."
        )
