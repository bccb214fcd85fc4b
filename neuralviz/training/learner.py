"""What is trained: a copy of a model, or of its token embeddings alone."""

from __future__ import annotations

import copy
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from neuralviz.embedders.pooled import PooledEmbedder
from neuralviz.errors import ModelError, SettingsError, ShouldStop, check_stop, never
from neuralviz.layers.states import LayerStates, TokenWeights, pool_texts
from neuralviz.models import TextModel, tokenize
from neuralviz.models.passes import pad_inputs, seeded
from neuralviz.models.quiet import quiet_transformers
from neuralviz.store.embedding import embed
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.store.vectors import VectorStore
    from neuralviz.training.record import Watch
    from neuralviz.training.settings import TrainingPooling, TrainingSettings

TOGETHER = 16  # texts per forward pass
SEVENTH = 6  # index of the arbitrary token that ``seventh`` takes
TABLE_DROPOUT = 0.1  # as in the models that the tables come from
PROBED = 4  # tokens of the pass that finds a block's parameters
_BLOCK = re.compile(r"(?:^|\.)(?:layer|layers|h|block|blocks|albert_layer_groups)\.(\d+)\.")


class Learner(nn.Module, ABC):
    window: int  # tokens of a text that are read; the rest is cut off
    mask_id: int | None  # of ``[MASK]``, if any

    def __init__(self, model: TextModel) -> None:
        super().__init__()
        self._model = model
        self._tokenizer = model.encoder
        self._pad = model.pad_id
        self._prefix: tuple[int, ...] = model.prefix_ids
        self._suffix: tuple[int, ...] = model.suffix_ids
        self.window = model.window
        self.mask_id = getattr(model.tokenizer, "mask_token_id", None)

    def vectors(
        self, texts: Sequence[str], *, masked: float = 0.0, draw: np.random.Generator | None = None
    ) -> Tensor:
        """[text, dim]; a share ``masked`` of each text's tokens, chosen by ``draw``, is masked."""
        rows = self._read(texts)
        if masked and draw is not None:
            mask_id = -1 if self.mask_id is None else self.mask_id
            rows = [np.where(draw.random(len(row)) < masked, mask_id, row) for row in rows]
        order = np.argsort([-len(row) for row in rows], kind="stable")
        groups = (order[start : start + TOGETHER] for start in range(0, len(order), TOGETHER))
        vectors = torch.cat([self(*self._padded([rows[i] for i in group])) for group in groups])
        return vectors[torch.from_numpy(np.argsort(order)).to(vectors.device)]

    @torch.no_grad()
    def of_layers(
        self, texts: Sequence[str], should_stop: ShouldStop = never, *, is_whole: bool = True
    ) -> np.ndarray:
        """[layer, text, dim] float32 vectors without dropout; zeros for a text without tokens."""
        # longer texts are read in chunks, or cut off unless ``is_whole``
        was_training = self.training
        self.eval()
        try:
            return self._layers(texts, should_stop, is_whole)
        finally:
            self.train(was_training)

    @abstractmethod
    def _layers(self, texts: Sequence[str], should_stop: ShouldStop, is_whole: bool) -> np.ndarray:
        """As of `of_layers`, in evaluation mode."""

    def _read(self, texts: Sequence[str]) -> list[np.ndarray]:
        """[token] ids of each text without special tokens, cut off at the window."""
        room = self.window - len(self._prefix) - len(self._suffix)
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(encoding.ids[:room], dtype=np.int64) for encoding in encoded]

    def _padded(self, rows: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
        """[text, token] ids and attention, with special tokens."""
        inputs = [[*self._prefix, *row, *self._suffix] for row in rows]
        return pad_inputs(inputs, self._pad, next(self.parameters()).device)


class TransformerLearner(Learner):
    """A copy of a model with dropout and pooling; `SettingsError`, `ModelError` if untrainable."""

    def __init__(self, model: TextModel, settings: TrainingSettings) -> None:
        super().__init__(model)
        is_plain = model.behaviour.is_plain and model.behaviour.batching == "padded"
        if model.token_types is not None or not is_plain:
            raise ModelError(
                f"{model.id} ({model.family}) cannot be trained in batches: it reads a text "
                "differently beside other texts, or has token types of its own for it. Train its "
                "token table, or another model."
            )
        self.network = copy.deepcopy(model.network.base_model)
        if settings.start == "random":
            with quiet_transformers(), seeded(settings.seed):
                fresh = type(self.network)(self.network.config)
            self.network.load_state_dict(fresh.state_dict(), strict=False)
        self.network.requires_grad_(True)
        self.pooling = settings.pooling
        for parameter in _frozen(self.network, model, settings.frozen_blocks):
            parameter.requires_grad_(False)
        for name, parameter in self.network.named_parameters():
            if name.startswith("pooler."):  # does not affect the tokens' vectors
                parameter.requires_grad_(False)

    def forward(self, ids: Tensor, attention: Tensor) -> Tensor:
        options = self._model.behaviour.options
        out = self.network(input_ids=ids, attention_mask=attention, **options)
        return pool_tokens(out.last_hidden_state, attention, self.pooling)

    def _layers(self, texts: Sequence[str], should_stop: ShouldStop, is_whole: bool) -> np.ndarray:
        # New weights change none of this: only architectures that allow padding and keep no state
        # were accepted above.
        model = replace(self._model, network=self.network)
        rows = self._read(texts)
        readable = [i for i, row in enumerate(rows) if len(row) and texts[i].strip()]
        read = tokenize(model, [texts[i] for i in readable])
        if not is_whole:
            read = [replace(text, chunks=(slice(0, model.room),)) for text in read]
        layers = np.zeros((model.n_blocks + 1, len(texts), model.d_model), np.float32)
        poolings = [partial(self._weigh_tokens, layer) for layer in range(len(layers))]
        layers[:, readable] = pool_texts(model, read, poolings, should_stop=should_stop)
        return layers

    def _weigh_tokens(self, layer: int, states: LayerStates) -> TokenWeights:
        counted = states.attention
        if self.pooling != "mean":
            position = _find_position(states.lengths, self.pooling)
            counted = torch.arange(counted.shape[1], device=counted.device) == position[:, None]
        return TokenWeights.of_layers([layer], counted, states)


class TableLearner(Learner):
    """A copy of the token embeddings: a text's vector is their mean, special tokens excluded."""

    def __init__(self, model: TextModel, settings: TrainingSettings) -> None:
        super().__init__(model)
        self._prefix = self._suffix = ()
        self.window = sys.maxsize  # only a transformer has one
        table = model.network.get_input_embeddings().weight.detach().clone()
        if settings.start == "random":
            with seeded(settings.seed):
                table = torch.randn_like(table) * table.std()
        self.table = nn.Embedding.from_pretrained(table, freeze=False)
        # a table has no dropout of its own to tell such pairs apart
        self._dropout = nn.Dropout(TABLE_DROPOUT if settings.pairs == "dropout" else 0.0)

    def forward(self, ids: Tensor, attention: Tensor) -> Tensor:
        return pool_tokens(self._dropout(self.table(ids)), attention, "mean")

    def _layers(self, texts: Sequence[str], should_stop: ShouldStop, is_whole: bool) -> np.ndarray:
        rows = self._read(texts)
        starts = np.cumsum([0, *map(len, rows[:-1])])
        weights = self.table.weight
        ids, offsets = (
            torch.from_numpy(array).to(weights.device) for array in (np.concatenate(rows), starts)
        )
        vectors = functional.embedding_bag(ids, weights, offsets, mode="mean")
        check_stop(should_stop)
        return vectors.cpu().numpy()[None]


def make_learner(model: TextModel, settings: TrainingSettings) -> Learner:
    """What the settings train, in training mode; raises as `TransformerLearner`."""
    kind = TableLearner if settings.part == "table" else TransformerLearner
    learner = kind(model, settings)
    if settings.pairs == "masking" and learner.mask_id is None:
        raise SettingsError(
            f"The model “{model.id}” has no mask token. Use crops or dropout in place of masking."
        )
    return learner.train()


def pool_tokens(vectors: Tensor, attention: Tensor, pooling: TrainingPooling) -> Tensor:
    """[text, d_model] from [text, token, d_model] vectors and [text, token] attention."""
    if pooling == "mean":
        weights = attention.unsqueeze(-1).to(vectors.dtype)  # [text, token, 1]
        return (vectors * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
    position = _find_position(attention.sum(dim=1), pooling)
    return vectors[torch.arange(len(vectors), device=vectors.device), position]


def _find_position(lengths: Tensor, pooling: TrainingPooling) -> Tensor:
    """[text] place of the token whose vector is a text's, from the [text] numbers of tokens."""
    last = lengths - 1
    places = {"cls": torch.zeros_like(last), "sep": last, "seventh": last.clamp(max=SEVENTH)}
    return places[pooling]


def _frozen(network: nn.Module, model: TextModel, n: int) -> list[nn.Parameter]:
    """All parameters that block ``n``'s output depends on, including those shared by all blocks."""
    if not n:
        return []
    if n >= model.n_blocks:
        raise SettingsError(
            f"The model “{model.id}” has {many(model.n_blocks, 'block')}; with {n} of them frozen, "
            f"nothing is left to train. Freeze {model.n_blocks - 1} at most."
        )
    blocks = (_BLOCK.search(name) for name, _ in network.named_parameters())
    if len({int(match[1]) for match in blocks if match}) != model.n_blocks:
        raise ModelError(
            f"The blocks of the model “{model.id}” share their weights, so none of them can be "
            "frozen alone. Freeze none."
        )
    parameters = list(network.parameters())
    ids = torch.arange(PROBED, device=parameters[0].device)[None]
    states = network(input_ids=ids, output_hidden_states=True).hidden_states[n]
    met = torch.autograd.grad(states.sum(), parameters, allow_unused=True)
    return [
        weight for weight, gradient in zip(parameters, met, strict=True) if gradient is not None
    ]


def measure_untrained(
    model: TextModel,
    settings: TrainingSettings,
    watch: Watch,
    store: VectorStore,
    should_stop: ShouldStop = never,
) -> float | None:
    """10-NN accuracy, 0 … 1, of the untrained model's mean pooling; vectors go to ``store``.

    None without labels, or if training starts there anyway. Raises `Stopped` or `StoreError`.
    """
    is_less = settings.part == "table" or settings.start == "random" or settings.pooling != "mean"
    if not (is_less and watch.has_labels):
        return None
    accuracy = watch.look(_LastLayer(model, store), 0, should_stop).accuracy
    return None if accuracy is None else float(accuracy[-1])


class _LastLayer:
    """The last layer of a model, read by `Watch.look`; zeros for a text without tokens."""

    def __init__(self, model: TextModel, store: VectorStore) -> None:
        self._model, self._store = model, store

    def of_layers(
        self, texts: Sequence[str], should_stop: ShouldStop = never, *, is_whole: bool = True
    ) -> list[np.ndarray]:
        encoded = self._model.encoder.encode_batch_fast(list(texts), add_special_tokens=False)
        readable = [i for i, text in enumerate(texts) if encoded[i].ids and text.strip()]
        embedder = PooledEmbedder(self._model, "mean")
        vectors = np.zeros((len(texts), embedder.dim), np.float32)
        read = [texts[i] for i in readable]
        for event in embed(read, embedder, self._store, should_stop=should_stop):
            if event.vectors is not None:
                vectors[np.array(readable)[event.at]] = event.vectors
        return [vectors]
