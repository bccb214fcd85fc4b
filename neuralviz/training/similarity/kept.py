"""Saved similarity models: safetensors files with settings in the header; lists without torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save

import neuralviz.models
from neuralviz.errors import ModelError, SettingsError, ShouldStop, StoreError, never
from neuralviz.files import write_beside
from neuralviz.models import TextModel
from neuralviz.models.shared import MODEL_NAME, check_free_name
from neuralviz.paths import similarity_models_folder
from neuralviz.reading.pairs import Scale, ScoredPairs
from neuralviz.store.embedding import EmbeddingEvent
from neuralviz.store.vectors import MemoryVectors, VectorStore
from neuralviz.training.similarity.data import different_texts, look_up, make_room, pair_features
from neuralviz.training.similarity.settings import Rung, SimilarityEnded, SimilaritySettings

FORMAT = 1  # of a file
KIND = "similarity model"
SUFFIX = ".safetensors"
_PLAIN = ("n_layers", "d_model", "losses", "best_epoch", "epochs", "dev")


@dataclass(frozen=True, eq=False)
class SimilarityModel:
    """A trained similarity model with its scale, and the frozen model's id and weights' hash."""

    trained: SimilarityEnded
    scale: Scale
    model: str
    fingerprint: str

    def score(
        self,
        pairs: ScoredPairs,
        store: VectorStore | None = None,
        *,
        on_progress: Callable[[EmbeddingEvent], None] = lambda _: None,
        should_stop: ShouldStop = never,
    ) -> np.ndarray:
        """[pair] scores on people's scale; the pairs' own scores are ignored.

        Features are kept in ``store``, if given. `ModelError` if the frozen model is another one by
        now or cannot be loaded; else raises as `look_up`.
        """
        model = neuralviz.models.load_text_model(self.model)
        return score_pairs(
            [self], pairs, model, store, on_progress=on_progress, should_stop=should_stop
        )[0]


def score_pairs(
    trained: Sequence[SimilarityModel],
    pairs: ScoredPairs,
    model: TextModel,
    store: VectorStore | None = None,
    *,
    on_progress: Callable[[EmbeddingEvent], None] = lambda _: None,
    should_stop: ShouldStop = never,
) -> list[np.ndarray]:
    """As `SimilarityModel.score`, for several with one frozen model and pooling."""
    from neuralviz.embedders.pooled import LayerwiseEmbedder
    from neuralviz.training.similarity.loop import load_network, predict

    for member in trained:
        if model.fingerprint != member.fingerprint:
            raise ModelError(
                f"The weights of “{member.model}” have changed since this similarity model was "
                "trained. Train it again."
            )
    embedder = LayerwiseEmbedder(model, trained[0].trained.settings.pooling)
    texts = different_texts([pairs])
    vectors, store = make_room(len(texts), embedder), store or MemoryVectors(0)
    for event in look_up(vectors, embedder, texts, store, should_stop=should_stop):
        on_progress(event)
    features = pair_features(pairs, texts, embedder.unfold(vectors))
    return [
        member.scale.scores(predict(load_network(member.trained), features)) for member in trained
    ]


def save_similarity_model(model: SimilarityModel, name: str) -> Path:
    """Save under a name; `SettingsError` if invalid or taken, `StoreError` if unwritable."""
    path = model_path(check_free_name(name, KIND))
    trained = model.trained
    header = {
        "format": FORMAT,
        "model": model.model,
        "fingerprint": model.fingerprint,
        **asdict(model.scale),
        "settings": asdict(trained.settings),
        "heard": trained.layer_shares,
        **{name: getattr(trained, name) for name in _PLAIN},
    }
    text = json.dumps(header, default=np.ndarray.tolist)
    content = save(load(trained.weights), {"neuralviz": text})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_beside(path) as file:
            file.write(content)
            check_free_name(name, KIND)  # once more: somebody else may have been faster
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"Could not save the similarity model: {reason}.") from error
    return path


def load_similarity_model(name: str) -> SimilarityModel:
    """Load by name; `ModelError` if missing, damaged or of a newer version."""
    from neuralviz.training.similarity.loop import load_network

    path = model_path(name)
    if not path.is_file():
        raise _unknown(name)
    try:
        content = path.read_bytes()
        header = _read_header(path)
        if header["format"] > FORMAT:
            raise ModelError(
                f"A newer neuralviz saved the similarity model “{name}”. Update neuralviz."
            )
        trained = SimilarityEnded(
            settings=SimilaritySettings(**header["settings"]),
            weights=content,
            layer_shares=np.array(header["heard"], float),
            **{name: header[name] for name in _PLAIN},
        )
        if trained.losses is not None:
            trained = replace(trained, losses=np.array(trained.losses, float))
        load_network(trained)
        scale = Scale(float(header["low"]), float(header["high"]))
        return SimilarityModel(trained, scale, str(header["model"]), str(header["fingerprint"]))
    except OSError as error:
        reason = error.strerror or error
        raise ModelError(f"The similarity model “{name}” cannot be read: {reason}.") from error
    except (*_DAMAGES, RuntimeError) as error:
        raise ModelError(f"The similarity model “{name}” is damaged. Train it again.") from error


# --- where they lie -------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeptSimilarityModel:
    """A saved similarity model by its file's header; ``model`` is the frozen one's id."""

    name: str
    model: str
    rung: Rung


def model_path(name: str) -> Path:
    """The file of a name, existing or not; ModelError for an invalid name."""
    if not MODEL_NAME.fullmatch(name):
        raise _unknown(name)
    return similarity_models_folder() / f"{name}{SUFFIX}"


def is_similarity_model(name: str) -> bool:
    return bool(MODEL_NAME.fullmatch(name)) and model_path(name).is_file()


def similarity_models() -> list[KeptSimilarityModel]:
    """All saved similarity models, by name; unreadable files are left out."""
    models = []
    for path in sorted(similarity_models_folder().glob(f"*{SUFFIX}")):
        name = path.name.removesuffix(SUFFIX)
        with suppress(OSError, *_DAMAGES):
            header = _read_header(path)
            if MODEL_NAME.fullmatch(name):
                settings = SimilaritySettings(**header["settings"])
                models.append(KeptSimilarityModel(name, str(header["model"]), settings.rung))
    return models


def _unknown(name: str) -> ModelError:
    """The error for a name that no saved similarity model has, with the names there are."""
    advice = "None is saved yet: train one with `neuralviz train similarity`."
    if names := [model.name for model in similarity_models()]:
        advice = f"Saved: {', '.join(names)}."
    return ModelError(f"No similarity model is called “{name[:80]}”. {advice}")


def delete_similarity_model(name: str) -> None:
    """Delete by name; ModelError if missing, or if deletion fails."""
    try:
        model_path(name).unlink()
    except FileNotFoundError as error:
        raise _unknown(name) from error
    except OSError as error:
        raise ModelError(f"Could not delete “{name}”: {error.strerror or error}.") from error


_DAMAGES = (ValueError, LookupError, TypeError, SettingsError, SafetensorError)


def _read_header(path: Path) -> dict[str, Any]:
    """Our part of the header of a safetensors file."""
    with safe_open(path, framework="numpy") as file:
        header: dict[str, Any] = json.loads(file.metadata()["neuralviz"])
    return header
