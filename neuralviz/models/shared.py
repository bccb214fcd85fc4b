"""Models shared by everyone in a process, each loaded once, and the encoders trained here."""

from __future__ import annotations

import copyreg
import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from neuralviz import models
from neuralviz.errors import ModelError, NoHeadError, SettingsError
from neuralviz.lazy import Lazy
from neuralviz.models import bundled
from neuralviz.models.language_model import BUNDLED, MINILM, LanguageModel, TextModel
from neuralviz.paths import home, similarity_models_folder
from neuralviz.server_settings import server_settings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

T = TypeVar("T")
ModelKind = Literal["masked", "text", "sentence-transformer"]

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
JUDGES = {MINILM: BUNDLED}  # which says what texts the former hardly reads: one vocabulary
KEPT = 3  # models; the least recently used goes first

RECORD_FILE = "neuralviz.json"  # in the folder: how it was trained
MODEL_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)

_models = Lazy(KEPT, freeze=False)  # by id and state of the files
_sentence_transformers = Lazy(KEPT, freeze=False)
loading_hooks: list[Callable[[], None]] = []  # called after each load, on the loading thread


@dataclass(frozen=True)
class ModelRef:
    """A model id with the state of its files; equal references stand for the same model."""

    id: str  # ``bundled``, a hub id or a folder
    files: tuple[tuple[int, int], ...] | None

    @classmethod
    def from_id(cls, model_id: str) -> ModelRef:
        return cls(model_id, files_stamp(model_id))

    def identity(self) -> dict[str, Any]:
        """What determines the weights, as plain values; for hub models also the commit."""
        return {"id": self.id, "files": self.files, "commit": _find_commit(self.id)}


def _find_commit(model_id: str) -> str:
    """Commit of a cached hub model, or fingerprint of the bundled weights; else empty."""
    if model_id == models.BUNDLED:
        return bundled.identity(bundled.WEIGHTS)
    if not _HUB_ID.fullmatch(model_id):
        return ""
    from huggingface_hub import constants

    folder = "--".join(["models", *model_id.split("/")])
    try:
        return (Path(constants.HF_HUB_CACHE) / folder / "refs" / "main").read_text("utf-8").strip()
    except (OSError, ValueError):
        return ""


def shared_model(model_id: str) -> LanguageModel:
    """The model, loaded at first use and when its files change; callable from any thread."""
    model = _share(model_id, models.load_model, _models)
    if isinstance(model, LanguageModel):
        return model
    tunable = _load(models.load_model, model_id)  # raises for most models that are only text models
    _models.put((model_id, files_stamp(model_id)), tunable)
    return tunable


def shared_lens_model(model_id: str) -> TextModel:
    """The model with its prediction head, if it has one."""
    load = shared_model if _has_head(ModelRef.from_id(model_id)) else shared_text_model
    return load(model_id)


@lru_cache
def _has_head(model: ModelRef) -> bool:
    try:
        shared_model(model.id)
    except NoHeadError:
        return False
    return True


def shared_text_model(model_id: str) -> TextModel:
    return _share(model_id, models.load_text_model, _models)


def shared_sentence_transformer(model_id: str) -> tuple[SentenceTransformer, str]:
    return _share(model_id, models.load_sentence_transformer, _sentence_transformers)


Loaders = Mapping[ModelKind, Callable[[str], Any]]
# Where embedders get models, by kind.
LOADERS: Loaders = {
    "masked": shared_model,
    "text": shared_text_model,
    "sentence-transformer": shared_sentence_transformer,
}


def check_may_load(model_id: str) -> None:
    """Raise `ModelError` for models by name or path if the server is a public demo."""
    if server_settings().demo and not is_at_hand(model_id):
        raise ModelError(
            "This demo only uses the models that come with it. Install neuralviz to use others."
        )


def _share(model_id: str, load: Callable[[str], T], kept: Lazy) -> T:
    check_may_load(model_id)
    return kept.get((model_id, files_stamp(model_id)), lambda: _load(load, model_id))


def _load(load: Callable[[str], T], model_id: str) -> T:
    model = load(model_id)
    for hook in loading_hooks:
        hook()
    return model


def is_loaded(model_id: str) -> bool:
    return any(find_held(kind, model_id) is not None for kind in LOADERS)


def held_model(kind: ModelKind, model_id: str) -> Any:
    """What `LOADERS` would give, if it is kept in this form; else `ModelError`."""
    if (held := find_held(kind, model_id)) is None:
        raise ModelError(f"{model_id} is not loaded.")
    return held


def find_held(kind: ModelKind, model_id: str) -> Any:
    """What `LOADERS` would give, if it is kept in this form; else None."""
    kept = _sentence_transformers if kind == "sentence-transformer" else _models
    held = kept.peek((model_id, files_stamp(model_id)))
    return None if kind == "masked" and not isinstance(held, LanguageModel) else held


def files_stamp(model_id: str) -> tuple[tuple[int, int], ...] | None:
    """Changes when the files of a folder change; None if there is no folder."""
    try:
        trained = trained_encoder(model_id)
        folder = trained.folder if trained else Path(model_id).expanduser()
        if not folder.is_dir():
            return None
        patterns = ("*", "*/*", "*/*/*", "*/*/*/*")  # as for the fingerprint
        files = [path.stat() for depth in patterns for path in sorted(folder.glob(depth))]
    except (OSError, ValueError, RuntimeError):
        return None
    return tuple((file.st_mtime_ns, file.st_size) for file in files)


def _load_again(model_id: str, fingerprint: str, device: str, is_masked: bool) -> TextModel:
    """The model that a pickle names, on the same device if this machine has it."""
    model = (shared_model if is_masked else shared_text_model)(model_id)
    if model.device.type != device:
        with suppress(ModelError):  # this machine may lack the device
            model = (models.load_model if is_masked else models.load_text_model)(model_id, device)
    check_unchanged(model_id, model.fingerprint, fingerprint)
    return model


def check_unchanged(model_id: str, fingerprint: str, fingerprint_then: str) -> None:
    if fingerprint != fingerprint_then:
        raise ModelError(
            f"The files of {model_id} have changed since this was saved. Make it again with the "
            "model as it is now."
        )


def _reduce_to_name(model: TextModel) -> tuple[object, ...]:
    is_masked = isinstance(model, LanguageModel)
    return _load_again, (model.id, model.fingerprint, model.device.type, is_masked)


for _kind in (TextModel, LanguageModel):  # models are pickled by name
    copyreg.pickle(_kind, _reduce_to_name)  # type: ignore[arg-type]


# --- encoders trained here: named folders of sentence-transformers -------------------------------


@dataclass(frozen=True)
class TrainedEncoder:
    name: str  # usable as a model id
    folder: Path
    record: dict[str, Any]  # how it was trained, as `save_encoder` wrote it

    @property
    def is_table(self) -> bool:
        """Whether it is only a table of token embeddings, without layers."""
        settings = self.record.get("settings")
        return isinstance(settings, dict) and settings.get("part") == "table"

    def find_last_change(self) -> float:
        """Seconds since 1970 when one of its files last changed; 0 once deleted."""
        try:
            files = [path.stat() for path in (self.folder, *self.folder.rglob("*"))]
        except OSError:
            return 0.0
        return max(max(file.st_mtime, file.st_ctime) for file in files)


def encoders_folder() -> Path:
    return home() / "encoders"


def trained_encoders() -> list[TrainedEncoder]:
    names = sorted(path.name for path in encoders_folder().glob("*"))
    return [encoder for encoder in map(trained_encoder, names) if encoder is not None]


def trained_encoder(name: str) -> TrainedEncoder | None:
    if not MODEL_NAME.fullmatch(name):
        return None
    folder = encoders_folder() / name
    try:
        record = json.loads((folder / RECORD_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return TrainedEncoder(name, folder, record) if isinstance(record, dict) else None


def is_at_hand(model_id: str) -> bool:
    """Whether a model comes with neuralviz or was trained here, so that no network is needed."""
    return model_id in (BUNDLED, MINILM) or trained_encoder(model_id) is not None


def check_free_name(name: str, kind: str = "encoder") -> str:
    """Strip a name for a new model; `SettingsError` if it is invalid or any model has it."""
    name = name.strip()
    if not MODEL_NAME.fullmatch(name):
        raise SettingsError(
            f"Name the {kind} with letters, digits, dots, hyphens and underscores, 64 at most; "
            "the first must be a letter or a digit."
        )
    similarity_file = similarity_models_folder() / f"{name}.safetensors"
    if is_at_hand(name) or (encoders_folder() / name).exists() or similarity_file.exists():
        raise SettingsError(f"There is already a model called “{name}”. Choose another name.")
    return name


def delete_encoder(name: str) -> None:
    """Delete a trained encoder; `ModelError` if there is none, or it cannot be deleted."""
    encoder = trained_encoder(name)
    if encoder is None:
        raise ModelError(f"No trained encoder is called “{name[:80]}”.")
    try:
        if encoder.folder.is_symlink():  # the encoder itself lies elsewhere and stays
            encoder.folder.unlink()
        else:
            shutil.rmtree(encoder.folder)
    except OSError as error:
        raise ModelError(f"Could not delete “{name}”: {error.strerror or error}.") from error
