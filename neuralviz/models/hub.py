"""Models from the Hugging Face Hub: from the local cache if possible, else downloaded."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from huggingface_hub import HfApi, constants, errors, snapshot_download

from neuralviz.errors import ModelError, shorten_reason
from neuralviz.models.folder_check import describe_missing_weights

T = TypeVar("T")
NETWORK_SECONDS = 3.0
# also in the subfolder of a sentence-transformers module
_FILES = re.compile(r"((\w+_)?\d+_\w+/)*([\w.-]+\.(json|txt|model)|model[\w.-]*\.safetensors)")
_OTHER_WEIGHTS = re.compile(r"model.+\.safetensors")
_TOKENIZER_FILES = (  # each of these sets makes a tokenizer
    {"tokenizer.json"}, {"vocab.txt"}, {"vocab.json", "merges.txt"}, {"sentencepiece.bpe.model"},
    {"spiece.model"}, {"spm.model"},
)  # fmt: skip


def fetch(model_id: str) -> Path:
    """Folder of a model's files in the cache, named by commit; missing files are downloaded.

    `ModelError` if the Hub has no such model, cannot be reached, or the disk is full.
    """
    if cached := _find_cached(model_id):
        return cached
    names = _list_files(model_id)
    try:
        patience = 2 * NETWORK_SECONDS
        return Path(snapshot_download(model_id, allow_patterns=names, etag_timeout=patience))
    except Exception as error:  # the client also raises errors of its HTTP library
        raise _explain(model_id, error) from error


def _find_cached(model_id: str) -> Path | None:
    try:
        # Files of the commit that are never fetched must not count as missing.
        folder = snapshot_download(model_id, allow_patterns="config.json", local_files_only=True)
        return Path(folder) if _is_complete(Path(folder)) else None
    except (OSError, ValueError, KeyError):  # the hub's own “not in the cache” is an OSError
        return None


def _is_complete(folder: Path) -> bool:
    """Whether a snapshot has a whole model; interrupted downloads leave parts."""
    files = {path.name for path in folder.iterdir() if path.is_file()}
    shards = {"model.safetensors"}
    if shards - files and "model.safetensors.index.json" in files:
        index = json.loads((folder / "model.safetensors.index.json").read_text("utf-8"))
        shards = set(index["weight_map"].values())
    has_tokenizer = any(names <= files for names in _TOKENIZER_FILES)
    return has_tokenizer and {"config.json", *shards} <= files


def _list_files(model_id: str) -> list[str]:
    info = ask_hub(lambda hub: hub.model_info(model_id, timeout=NETWORK_SECONDS))
    if isinstance(info, Exception):
        raise _explain(model_id, info) from info
    all_names = [sibling.rfilename for sibling in info.siblings or ()]
    names = list(filter(_FILES.fullmatch, all_names))
    if "model.safetensors" in names:  # the same weights as in other formats
        names = [name for name in names if "/" in name or not _OTHER_WEIGHTS.fullmatch(name)]
    if not any(name.endswith(".safetensors") for name in names):
        raise describe_missing_weights(model_id, all_names)
    return names


def ask_hub(question: Callable[[HfApi], T]) -> T | Exception:
    """The Hub's answer or an error, a timeout included; in a thread, as name lookup may hang."""
    answer: list[T | Exception] = []

    def ask() -> None:
        try:
            answer.append(question(HfApi(endpoint=constants.ENDPOINT)))
        except Exception as error:  # handed over to the thread that waits
            answer.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(NETWORK_SECONDS)
    return answer[0] if answer else TimeoutError()


def _explain(model_id: str, error: Exception) -> ModelError:
    causes = list(_list_causes(error))
    if any(isinstance(cause, errors.GatedRepoError) for cause in causes):
        return ModelError(f"Access to “{model_id}” is restricted. Log in with `hf auth login`.")
    responses = [getattr(cause, "response", None) for cause in causes]
    if any(getattr(response, "status_code", None) in (401, 404) for response in responses):
        return ModelError(
            f"The Hugging Face Hub has no public model “{model_id}”. Check the spelling."
        )
    return ModelError(
        f"{model_id} is not on this machine, and could not be fetched from the Hugging Face Hub "
        f"({type(error).__name__}: {shorten_reason(error)}). Try again, or use the bundled model."
    )


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
