"""Train the ladder of similarity models, from cosines to encoders, and test each once."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import replace

import numpy as np
import torch
from sklearn.linear_model import LinearRegression

from neuralviz.embedders.base import Embedder, find_unread
from neuralviz.embedders.pooled import LayerwiseEmbedder, PooledEmbedder
from neuralviz.embedders.specs import embedder_spec, make_embedder
from neuralviz.errors import ModelError, ShouldStop, never
from neuralviz.evaluation.best_layer import MeasuredPooling
from neuralviz.evaluation.correlation import correlate
from neuralviz.evaluation.ladder_results import (
    FLOOR,
    LINEAR,
    NEURAL,
    SENTENCE,
    Baseline,
    FeatureProgress,
    LadderEvent,
    LadderSettings,
    LayerCosines,
    RungEvent,
    RungResult,
    TestPairs,
)
from neuralviz.layers.settings import POOLINGS, PoolingName
from neuralviz.models import TextModel
from neuralviz.models.language_model import LanguageModel
from neuralviz.models.passes import encode_last
from neuralviz.reading.pairs import Scale, ScoredPairs
from neuralviz.store.embedding import embed
from neuralviz.store.vectors import VectorStore
from neuralviz.training.similarity.data import (
    PairFeatures,
    SplitPairs,
    check_different,
    different_texts,
    look_up,
    make_room,
    pair_features,
)
from neuralviz.training.similarity.loop import fit, load_network, predict
from neuralviz.training.similarity.settings import RUNG_NAMES, SimilarityEnded

MOST_TUNED_ON = 400  # texts; each is a micro-tuning
DIGITS = 6  # of a cosine: float32 has no more
ROUNDING = 1e-4  # cosines by two programs of one embedding differ by less


def own_embeddings(model: TextModel, split: SplitPairs) -> list[tuple[str, Embedder]]:
    """Baselines: an encoder's own embedding, or a masked model's neural one if affordable."""
    # models that predict the next token have none
    if isinstance(model, LanguageModel):
        if len(different_texts([split.dev, split.test])) > MOST_TUNED_ON:
            return []
        spec = embedder_spec("neural", {"precision": "fast"}, model.id)
        return [(NEURAL, make_embedder(spec))]
    spec = embedder_spec("sentence-transformer", model_id=model.id)
    try:
        return [(SENTENCE, make_embedder(spec))]
    except ModelError:  # a model without a pooling of its own
        return []


def model_poolings(model: TextModel) -> tuple[PoolingName, ...]:
    """The poolings that a model has tokens for, the default first."""
    # a causal model has seen the whole text only at its last token, and nothing at a token before
    # it
    looks_ahead = is_bidirectional(model)
    lacking = set() if model.suffix_ids else {"sep"}
    if not (looks_ahead and model.prefix_ids):
        lacking.add("cls")
    first = "mean" if looks_ahead else "last"
    return tuple(sorted((n for n in POOLINGS if n not in lacking), key=lambda n: n != first))


@torch.no_grad()
def is_bidirectional(model: TextModel) -> bool:
    """Whether a token's vector depends on the tokens after it, unlike in GPT-2."""
    words = set(model.encoder.encode("a b c d e f", add_special_tokens=False).ids)
    if len(words) < 2:
        return True  # no two tokens to tell by, as in nearly all models of this kind
    first, second = sorted(words)[:2]
    ids = torch.tensor(
        [[*model.prefix_ids, first, last, *model.suffix_ids] for last in (first, second)],
        device=model.device,
    )
    states = encode_last(model, ids, torch.ones_like(ids))
    position = len(model.prefix_ids)
    return not torch.allclose(states[0, position], states[1, position], rtol=1e-3, atol=1e-5)


def measure_cosines(
    model: TextModel, pairs: ScoredPairs, store: VectorStore, *, should_stop: ShouldStop = never
) -> Generator[FeatureProgress | LayerCosines]:
    """Compare each layer's cosines with people's scores, for each pooling (FREEZE, Figure 1).

    Features are kept in ``store``. Raises as `make_room` and `look_up`.
    """
    texts = different_texts([pairs])
    for pooling in model_poolings(model):
        embedder = LayerwiseEmbedder(model, pooling)
        vectors = yield from _features(embedder, texts, store, pooling, should_stop)
        cosines = _cosines(pair_features(pairs, texts, vectors))
        yield LayerCosines(pooling, _measure(cosines, pairs))


def train_ladder(
    model: TextModel,
    split: SplitPairs,
    settings: LadderSettings,
    store: VectorStore,
    *,
    own_embedders: Sequence[tuple[str, Embedder]] = (),
    should_stop: ShouldStop = never,
) -> Generator[LadderEvent]:
    """Train every rung on a frozen model's features, and test each once.

    ``own_embedders``, named as in `BASELINES`, are baselines; features are kept in ``store``.
    Yields feature progress, layers, test pairs, baselines, then rungs. Raises TextError if train or
    dev scores are constant or a text is unreadable, and as `look_up` and `fit`.
    """
    check_different(split.train.scores, "train")
    scale = Scale.from_scores(split.train.scores)
    check_different(split.dev.scores, "dev")
    texts = different_texts(split.parts)
    embedder = LayerwiseEmbedder(model, settings.pooling)
    vectors = yield from _features(embedder, texts, store, settings.pooling, should_stop)
    raw = [pair_features(part, texts, vectors) for part in split.parts]
    cosines = [_cosines(part) for part in raw]
    yield LayerCosines(settings.pooling, _measure(cosines[0], split.train))
    yield TestPairs(
        split.test.sentences1,
        split.test.sentences2,
        np.asarray(split.test.scores, float),
        scale,
        len(split.train),
        len(split.dev),
        (*split.notes, *filter(None, [find_unread(embedder, texts).message])),
        model.fingerprint,
    )
    if settings.pooling == "mean":
        yield (floor := _baseline(FLOOR, cosines[1][:, -1], cosines[2][:, -1], split))
    else:
        floor = yield from _own_baseline(FLOOR, PooledEmbedder(model), split, store, should_stop)
        yield floor
    line = LinearRegression().fit(cosines[0], scale.shares(raw[0].scores))
    yield _baseline(LINEAR, line.predict(cosines[1]), scale.scores(line.predict(cosines[2])), split)
    for name, own_embedder in own_embedders:
        baseline = yield from _own_baseline(name, own_embedder, split, store, should_stop)
        if not np.allclose(baseline.measured.cosines, floor.measured.cosines, atol=ROUNDING):
            yield baseline  # else the model's own embedding is mean pooling
    train, dev, test = (replace(part, scores=scale.shares(part.scores)) for part in raw)
    for rung_settings in settings.list_trainings():
        began = time.monotonic()
        for event in fit(train, dev, rung_settings, should_stop=should_stop):
            if not isinstance(event, SimilarityEnded):
                yield RungEvent(rung_settings.rung, rung_settings.seed, event)
                continue
            seconds = time.monotonic() - began
            predicted = scale.scores(predict(load_network(event), test))
            (measured,) = _measure(predicted[:, None], split.test)
            yield RungResult(RUNG_NAMES[event.settings.rung], event.dev, measured, event, seconds)


def _measure(values: np.ndarray, pairs: ScoredPairs) -> tuple[MeasuredPooling, ...]:
    """[pair, layer] cosines, or predictions, beside people's scores."""
    scores, numbers = np.asarray(pairs.scores, float), pairs.numbers
    return tuple(MeasuredPooling(column, scores, numbers) for column in values.T)


def _cosines(features: PairFeatures) -> np.ndarray:
    """[pair, layer], the same on every machine."""
    return np.round(features.cosines.astype(float), DIGITS)


def _features(
    embedder: LayerwiseEmbedder,
    texts: Sequence[str],
    store: VectorStore,
    source: str,
    should_stop: ShouldStop,
) -> Generator[FeatureProgress, None, np.ndarray]:
    """[text, layer, d_model] of different texts."""
    vectors = make_room(len(texts), embedder)
    for event in look_up(vectors, embedder, texts, store, should_stop=should_stop):
        yield FeatureProgress(event.done, event.total, event.found, source)
    return embedder.unfold(vectors)


def _own_baseline(
    name: str, embedder: Embedder, split: SplitPairs, store: VectorStore, should_stop: ShouldStop
) -> Generator[FeatureProgress, None, Baseline]:
    parts = split.dev, split.test
    texts = different_texts(parts)
    vectors = np.zeros((len(texts), embedder.dim), np.float32)
    for event in embed(texts, embedder, store, should_stop=should_stop):
        if event.vectors is not None:
            vectors[event.at] = event.vectors
        yield FeatureProgress(event.done, event.total, event.found, name)
    dev, test = (_cosines(pair_features(part, texts, vectors[:, None]))[:, 0] for part in parts)
    return _baseline(name, dev, test, split)


def _baseline(name: str, dev: np.ndarray, test: np.ndarray, split: SplitPairs) -> Baseline:
    (measured,) = _measure(test[:, None], split.test)
    return Baseline(name, correlate(dev, split.dev.scores).spearman, measured)
