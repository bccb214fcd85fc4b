"""Similarity models under a name: a safetensors file each, with the settings in its header."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save

import neuralviz.models
from neuralviz.embedders.pooled import LayerwiseEmbedder
from neuralviz.errors import ModelError, SettingsError, StoreError, never
from neuralviz.reading.pairs import Scale
from neuralviz.store.files import write_beside
from neuralviz.store.vectors import MemoryVectors
from neuralviz.training.similarity.features import different_texts, look_up, pair_features
from neuralviz.training.similarity.folder import FORMAT, check_free_name, model_path
from neuralviz.training.similarity.loop import load_network, predict
from neuralviz.training.similarity.settings import SimilarityEnded, SimilaritySettings

if TYPE_CHECKING:
    from pathlib import Path

    from neuralviz.errors import ShouldStop
    from neuralviz.models import TextModel
    from neuralviz.reading.pairs import ScoredPairs
    from neuralviz.store.embedding import EmbeddingEvent
    from neuralviz.store.vectors import VectorStore


@dataclass(frozen=True, eq=False)
class SimilarityModel:
    """A trained similarity model, its scale, and id and weights' hash of the frozen one."""

    trained: SimilarityEnded
    scale: Scale
    model: str
    fingerprint: str

    def score(
        self,
        pairs: ScoredPairs,
        store: VectorStore | None = None,
        *,
        model: TextModel | None = None,
        on_progress: Callable[[EmbeddingEvent], None] = lambda _: None,
        should_stop: ShouldStop = never,
    ) -> np.ndarray:
        """[pair] scores of pairs, whose own scores are not looked at, on people's scale.

        Args:
            store: where features are found and kept; by default they are forgotten.
            model: the frozen language model, if it is loaded already.
            on_progress: called with how far the features are.

        Raises:
            ModelError: the language model cannot be loaded, or is not the one that this was
                trained with.
            TextError, StoreError, Stopped: as of `look_up`.
        """
        if model is None:
            model = neuralviz.models.load_text_model(self.model)
        (scores,) = score_pairs(
            [self], pairs, model, store, on_progress=on_progress, should_stop=should_stop
        )
        return scores


def score_pairs(
    trained: Sequence[SimilarityModel],
    pairs: ScoredPairs,
    model: TextModel,
    store: VectorStore | None = None,
    *,
    on_progress: Callable[[EmbeddingEvent], None] = lambda _: None,
    should_stop: ShouldStop = never,
) -> list[np.ndarray]:
    """As `SimilarityModel.score`, by several similarity models of one frozen model and pooling."""
    for member in trained:
        if model.fingerprint != member.fingerprint:
            raise ModelError(
                f"The weights of “{member.model}” have changed since this similarity model was "
                "trained. Train it again."
            )
    embedder = LayerwiseEmbedder(model, trained[0].trained.settings.pooling)
    texts = different_texts([pairs])
    looking = look_up(embedder, texts, store or MemoryVectors(0), should_stop=should_stop)
    while True:
        try:
            on_progress(next(looking))
        except StopIteration as end:
            features = pair_features(pairs, texts, end.value)
            return [
                member.scale.scores(predict(load_network(member.trained), features))
                for member in trained
            ]


def save_similarity_model(model: SimilarityModel, name: str) -> Path:
    """Save a model under a name, written beside and put into place.

    Raises:
        SettingsError: there is one of that name, or it is no name.
        StoreError: there is no room, or no right to write.
    """
    path = model_path(check_free_name(name))
    trained = model.trained
    header = {
        "format": FORMAT,
        "model": model.model,
        "fingerprint": model.fingerprint,
        "low": model.scale.low,
        "high": model.scale.high,
        "settings": asdict(trained.settings),
        "n_layers": trained.n_layers,
        "d_model": trained.d_model,
        "losses": None if trained.losses is None else trained.losses.tolist(),
        "best_epoch": trained.best_epoch,
        "epochs": trained.epochs,
        "dev": trained.dev,
        "heard": trained.layer_shares.tolist(),
    }
    content = save(load(trained.weights), {"neuralviz": json.dumps(header)})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_beside(path) as file:
            file.write(content)
            check_free_name(name)  # once more: somebody else may have been faster
    except OSError as error:
        raise StoreError(
            f"Could not save the similarity model: {error.strerror or error}."
        ) from error
    return path


def load_similarity_model(name: str) -> SimilarityModel:
    """The model that was kept under a name.

    Raises:
        ModelError: there is none, or its file is damaged or of a newer version.
    """
    path = model_path(name)
    if not path.is_file():
        raise ModelError(f"No similarity model is called “{name[:80]}”.")
    damaged = ModelError(f"The similarity model “{name}” is damaged. Train it again.")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(
            f"The similarity model “{name}” cannot be read: {error.strerror or error}."
        ) from error
    try:
        with safe_open(path, "pt") as file:
            header = json.loads((file.metadata() or {}).get("neuralviz", "null"))
        if header["format"] > FORMAT:
            raise ModelError(
                f"A newer neuralviz saved the similarity model “{name}”. Update neuralviz."
            )
        losses = header["losses"]
        trained = SimilarityEnded(
            settings=SimilaritySettings(**header["settings"]),
            n_layers=int(header["n_layers"]),
            d_model=int(header["d_model"]),
            weights=content,
            losses=None if losses is None else np.array(losses, float),
            best_epoch=int(header["best_epoch"]),
            epochs=int(header["epochs"]),
            dev=float(header["dev"]),
            layer_shares=np.array(header["heard"], float),
        )
        load_network(trained)
        return SimilarityModel(
            trained,
            Scale(float(header["low"]), float(header["high"])),
            str(header["model"]),
            str(header["fingerprint"]),
        )
    except (
        OSError, SafetensorError, ValueError, LookupError, TypeError, RuntimeError, SettingsError
    ) as error:  # fmt: skip
        raise damaged from error
