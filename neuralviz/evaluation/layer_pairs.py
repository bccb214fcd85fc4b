"""How well layers, poolings and the parts of SBERT-WK follow the scores of sentence pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuralviz.errors import ModelError, ShouldStop, TextError, UnreadableTextError, never
from neuralviz.evaluation.best_layer import MeasuredPooling
from neuralviz.layers.sbert_wk import ablation, sbert_wk_pooling
from neuralviz.layers.settings import POOLINGS, VARIANTS, Variant, check_sbert_wk
from neuralviz.layers.states import Pooling, make_pooling, pool_texts
from neuralviz.models import TextModel, TokenizedText, tokenize

if TYPE_CHECKING:
    from neuralviz.reading.pairs import ScoredPairs

PAIRS_AT_ONCE = 32
WINDOWS = (1, 2, 3, 4)
# kind, pooling or variant, and layer, part, window or first layer
Place = tuple[str, str, int | str]
DIGITS = 9  # of a cosine: the same sentence twice, however rounded, is a tie at 1


@dataclass(frozen=True, eq=False)
class LayerPairs:
    """A model's layers, measured on the first of ``total`` pairs."""

    model_id: str
    fingerprint: str
    pairs: ScoredPairs
    total: int
    # for each pooling that the model has, its layers 0 … n_blocks (frozen features, Figure 1)
    by_layer: Mapping[str, tuple[MeasuredPooling, ...]]
    # for each variant of SBERT-WK, its parts alone and together (Table VII)
    ablation: Mapping[Variant, Mapping[str, MeasuredPooling]]
    # windows, layer_starts: for each variant, the windows 1 … 4, and the first layers 0 …
    # n_blocks - 1 (Figure 3)
    windows: Mapping[Variant, tuple[MeasuredPooling, ...]]
    layer_starts: Mapping[Variant, tuple[MeasuredPooling, ...]]


def measure_layers(
    model: TextModel, pairs: ScoredPairs, *, should_stop: ShouldStop = never
) -> Iterator[LayerPairs]:
    """Yield results of the pairs so far; TextError without tokens, ModelError if not finite."""
    poolings = _poolings(model)
    tokens = _tokens(model, pairs)
    sentences = pairs.sentences1, pairs.sentences2
    last_use = {text: n for n, pair in enumerate(zip(*sentences, strict=True)) for text in pair}
    vectors: dict[str, np.ndarray] = {}  # [pooling, d_model] of sentences needed now or again
    cosines = np.zeros((len(poolings), len(pairs)))
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        end = min(start + PAIRS_AT_ONCE, len(pairs))
        batch = list(zip(pairs.sentences1[start:end], pairs.sentences2[start:end], strict=True))
        new = [s for s in dict.fromkeys(s for pair in batch for s in pair) if s not in vectors]
        if new:
            pooled = pool_texts(
                model, [tokens[s] for s in new], list(poolings.values()), should_stop=should_stop
            )
            by_text = np.stack(pooled, axis=1).astype(np.float64)
            vectors |= dict(zip(new, by_text, strict=True))
        for number, (first, second) in enumerate(batch, start):
            cosines[:, number] = _cosines(vectors[first], vectors[second])
        if not np.isfinite(cosines).all():
            raise ModelError(
                f"The model “{model.id}” outputs infinite or NaN values. Choose another model."
            )
        vectors = {s: v for s, v in vectors.items() if last_use[s] >= end}
        yield _result(model, pairs, poolings, cosines[:, :end])


def _poolings(model: TextModel) -> dict[Place, Pooling]:
    layers = range(model.n_blocks + 1)
    poolings: dict[Place, Pooling] = {
        ("by_layer", name, layer): make_pooling(model, name, (layer,))
        for name in POOLINGS
        if {"cls": model.prefix_ids, "sep": model.suffix_ids}.get(name, True)
        for layer in layers
    }
    for variant in VARIANTS:
        parts = ablation(check_sbert_wk(model, variant=variant))
        poolings |= {("ablation", variant, part): pooling for part, pooling in parts.items()}
        for window in WINDOWS:
            settings = check_sbert_wk(model, variant=variant, window=window)
            poolings["windows", variant, window] = sbert_wk_pooling(settings)
        for start in range(model.n_blocks):
            settings = check_sbert_wk(model, variant=variant, layer_start=start)
            poolings["layer_starts", variant, start] = sbert_wk_pooling(settings)
    return poolings


def _result(
    model: TextModel, pairs: ScoredPairs, places: Iterable[Place], cosines: np.ndarray
) -> LayerPairs:
    """Name what was measured; ``cosines`` is [pooling, pair]."""
    first = pairs.first(cosines.shape[1])
    groups: dict[str, dict[Any, dict[Any, MeasuredPooling]]] = defaultdict(dict)
    for (kind, name, place), row in zip(places, cosines, strict=True):
        measured = MeasuredPooling(row.copy(), first.scores, first.numbers)
        groups[kind].setdefault(name, {})[place] = measured
    ablations = groups.pop("ablation")
    rows = {
        kind: {name: tuple(group.values()) for name, group in by_name.items()}
        for kind, by_name in groups.items()
    }
    return LayerPairs(model.id, model.fingerprint, first, len(pairs), ablation=ablations, **rows)


def _tokens(model: TextModel, pairs: ScoredPairs) -> dict[str, TokenizedText]:
    sentences = list(dict.fromkeys([*pairs.sentences1, *pairs.sentences2]))
    try:
        return dict(zip(sentences, tokenize(model, sentences), strict=True))
    except UnreadableTextError as error:
        start = sentences[error.place][:60]
        raise TextError(f"The sentence “{start}” {error.reason} Or remove the pair.") from None


def _cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """[pooling] cosines of [pooling, d_model] vectors, 0 with a vector of zeros."""
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = (first * second).sum(axis=1)
    return np.round(products / np.where(lengths == 0, 1, lengths), DIGITS)
