"""What the files of a model say before anything of it is loaded.

The libraries that load models put up with much: they leave out an adapter, a model's own code, or a
head, and still give vectors. What they would leave out is refused here, by name.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from tokenizers import Tokenizer

from neuralviz.errors import ModelError

_LIBRARY = "sentence_transformers."  # other modules would be code from the model's repository
_AUTO_CLASSES = (
    "AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoModelForMaskedLM",
    "AutoModelForPreTraining", "AutoModelForTextEncoding", "AutoProcessor", "AutoTokenizer",
)  # fmt: skip
_ADAPTERS = ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin",
             "pytorch_adapter.bin")  # fmt: skip
_FORMATS = {
    ".gguf": "GGUF", ".onnx": "ONNX", ".msgpack": "Flax", ".h5": "TensorFlow", ".npz": "NumPy",
    ".bin": "pickled", ".pt": "pickled", ".pth": "pickled", ".ckpt": "pickled", ".pkl": "pickled",
}  # fmt: skip
_TABLES = ("StaticEmbedding", "WordEmbeddings", "BoW")
_LARGEST_EMPTY_TOKENIZER = 2**20  # bytes; a tokenizer.json that is larger has a vocabulary
_LONGEST_HEADER = 100_000_000  # bytes that safetensors allows
_POINTER = b"version https://git-lfs"
_READ = (".safetensors", ".json", ".model", ".txt")


@dataclass(frozen=True)
class _Module:
    """A part of a model of sentence-transformers: its class as a dotted path, and its folder."""

    path: str
    folder: Path

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def is_router(self) -> bool:
        return self.name in ("Router", "Asym")


def check_folder(folder: Path, model_id: str) -> None:
    """Refuse a model that would be loaded as something else than it is.

    Args:
        folder: of the model's files.
        model_id: as it was chosen, for the sentence.

    Raises:
        ModelError: it is a cross-encoder, a sparse or a multi-vector encoder, or an adapter; it
            needs code of its own; its weights are quantised, or not in safetensors format; or its
            tokenizer cannot be read or knows no word.
    """
    modules = _read_modules(folder, model_id)
    folders = list(dict.fromkeys([folder, *(module.folder for module in modules)]))
    folders = [each for each in folders if each.is_dir()]
    for each in folders:
        _check_pointers(each, model_id)
        _check_adapter(each, model_id)
    _check_kind(folder, modules, model_id)
    _check_code(folders, modules, model_id)
    for each in folders:
        _check_weights(each, model_id)
        _check_tokenizer(each, model_id)


def transformer_folder(folder: Path, model_id: str) -> Path:
    """Folder of the transformer in a model's folder, whose files are checked.

    Older versions of sentence-transformers save it in a folder of its own.

    Raises:
        ModelError: as of `check_folder`, or the model has no transformer, or several.
    """
    check_folder(folder, model_id)
    modules = _read_modules(folder, model_id)
    first = modules[0] if modules else None
    if first is not None and first.is_router:
        raise ModelError(
            f"{model_id} sends texts to different encoders ({first.name}), so it has no single "
            "transformer. Use it with the method sentence-transformer."
        )
    if first is not None and first.name in _TABLES:
        raise ModelError(
            f"{model_id} is a table of token embeddings without a transformer ({first.name}). "
            "Use it with the method sentence-transformer."
        )
    if "model_type" in _read_mapping(folder / "config.json", model_id) or first is None:
        return folder
    return first.folder


def missing_weights(model_id: str, names: Iterable[str]) -> ModelError:
    """The error for a model none of whose files is in safetensors format.

    Args:
        model_id: the model.
        names: of its files, as paths from its folder.
    """
    paths = sorted((PurePosixPath(name) for name in names), key=lambda path: len(path.parts))
    if any(path.name in _ADAPTERS for path in paths):
        return _adapter_error(model_id, {}, has_weights=False)
    other = next((path for path in paths if path.suffix in _FORMATS), None)
    only = f", only {_FORMATS[other.suffix]} ones ({other.name})" if other else ""
    return ModelError(
        f"{model_id} has no weights in safetensors format{only}. neuralviz loads no other format, "
        "as some can run code; convert the model with `transformers`."
    )


def _read_mapping(path: Path, model_id: str) -> dict[str, Any]:
    """A JSON file's mapping; empty where there is no such file.

    Raises:
        ModelError: it is something else.
    """
    if not path.is_file():
        return {}
    content = _read_json(path, model_id)
    if not isinstance(content, dict):
        raise ModelError(f"Could not read the {path.name} of {model_id}.")
    return content


def _read_json(path: Path, model_id: str) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"Could not read the {path.name} of {model_id}.") from error


def _read_modules(folder: Path, model_id: str) -> list[_Module]:
    """The modules of a model of sentence-transformers, a router's parts behind it; else none."""
    if not (folder / "modules.json").is_file():
        return []
    try:
        modules = [
            _Module(str(entry["type"]), _inside(folder, entry.get("path", "")))
            for entry in _read_json(folder / "modules.json", model_id)
        ]
        for module in list(modules):
            if module.is_router:
                modules += [
                    _Module(str(path), _inside(module.folder, name))
                    for name, path in _read_router(module.folder, model_id)["types"].items()
                ]
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise ModelError(f"Could not read the modules.json of {model_id}.") from error
    if not modules:
        raise ModelError(f"Could not read the modules.json of {model_id}.")
    return modules


def _read_router(folder: Path, model_id: str) -> dict[str, Any]:
    """The settings of a router, which older versions of the library call ``config.json``."""
    settings = _read_mapping(folder / "router_config.json", model_id)
    return settings or _read_mapping(folder / "config.json", model_id)


def _inside(folder: Path, name: object) -> Path:
    """A folder within another.

    Raises:
        ValueError: it would lie elsewhere.
    """
    path = PurePosixPath(str(name))
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(name)
    return folder / path


def _check_pointers(folder: Path, model_id: str) -> None:
    """Refuse files of which a clone without Git LFS has left only their addresses."""
    for file in sorted(path for path in folder.iterdir() if path.suffix in _READ):
        if file.is_file() and file.stat().st_size < 1024:
            with file.open("rb") as stream:
                if stream.read(len(_POINTER)) == _POINTER:
                    raise ModelError(
                        f"{file.name} of {model_id} is only a Git LFS pointer. Run `git lfs pull` "
                        "in its folder."
                    )


def _check_adapter(folder: Path, model_id: str) -> None:
    if not any((folder / name).is_file() for name in _ADAPTERS):
        return
    settings = _read_mapping(folder / "adapter_config.json", model_id)
    has_weights = any(path.name not in _ADAPTERS for path in folder.glob("*.safetensors"))
    raise _adapter_error(model_id, settings, has_weights)


def _adapter_error(model_id: str, settings: dict[str, Any], has_weights: bool) -> ModelError:
    base = str(settings.get("base_model_name_or_path") or "its base model")[:80]
    if has_weights:
        return ModelError(
            f"{model_id} has an adapter beside its own weights, which would be left out. Merge the "
            "two with peft's `merge_and_unload` and save the result, or take the adapter's files "
            "out of the folder."
        )
    return ModelError(
        f"{model_id} is an adapter, not a whole model. Merge it into {base} with peft's "
        "`merge_and_unload` and save the result."
    )


def _check_kind(folder: Path, modules: list[_Module], model_id: str) -> None:
    """Refuse what gives no single dense vector of a text."""
    about = _read_mapping(folder / "config_sentence_transformers.json", model_id)
    config = _read_mapping(folder / "config.json", model_id)
    architectures = config.get("architectures")
    names = [str(n) for n in architectures] if isinstance(architectures, list) else []
    kind = str(about.get("model_type") or "SentenceTransformer")
    paths = [module.path for module in modules]
    packages = {path.split(".")[1]: path for path in paths if path.startswith(_LIBRARY)}
    if name := (
        "CrossEncoder" * (kind == "CrossEncoder")
        or packages.get("cross_encoder")
        or _first(names, r"ForSequenceClassification$|CrossEncoder")
        or _first(config, r"^sbert_ce_|^sentence_transformers$")
    ):
        raise ModelError(
            f"{model_id} is a cross-encoder or a classifier ({_last(name)}): it gives scores or "
            "classes, no vector of a text. Use an encoder, or save the encoder inside it with "
            "`AutoModel.from_pretrained(…).save_pretrained(…)`."
        )
    if name := (
        "SparseEncoder" * (kind == "SparseEncoder")
        or packages.get("sparse_encoder")
        or _first(names, r"splade")
    ):
        raise ModelError(
            f"{model_id} is a sparse encoder ({_last(name)}), whose vectors are almost all zeros. "
            "Use a dense encoder."
        )
    if name := (
        kind * (kind in ("MultiVectorEncoder", "ColBERT"))
        or packages.get("multi_vector_encoder")
        or _first(paths, r"^pylate\.")
        or _first(names, r"ColBERT|ForRetrieval$")
        or _projects_tokens(modules, model_id)
    ):
        raise ModelError(
            f"{model_id} is a multi-vector encoder ({_last(name)}): it gives a vector of each "
            "token, not of a text. Use an encoder that gives one vector."
        )
    if kind != "SentenceTransformer":
        raise ModelError(
            f"{model_id} is a {kind[:40]}, not a SentenceTransformer. Use a dense encoder."
        )


def _first(names: Iterable[str], pattern: str) -> str | None:
    return next((name for name in names if re.search(pattern, name, re.IGNORECASE)), None)


def _last(path: str) -> str:
    return path.rpartition(".")[2][:60]


def _projects_tokens(modules: list[_Module], model_id: str) -> str:
    """The module that changes the tokens' vectors where none pools them; else empty."""
    if any(module.name in ("Pooling", "CLIPModel", *_TABLES) for module in modules):
        return ""
    for module in modules:
        settings = _read_mapping(module.folder / "sentence_bert_config.json", model_id)
        if settings.get("module_output_name") == "sentence_embedding":
            return ""
    return "Dense without Pooling" * any(module.name == "Dense" for module in modules)


def _check_code(folders: list[Path], modules: list[_Module], model_id: str) -> None:
    """Refuse a model that consists of other classes than those which the libraries have."""
    foreign = [module.path for module in modules if not module.path.startswith(_LIBRARY)]
    for module in modules:
        if module.name == "Dense":
            settings = _read_mapping(module.folder / "config.json", model_id)
            activation = str(settings.get("activation_function", "torch."))
            foreign += [activation] * (not activation.startswith("torch."))
    for folder in folders:
        config = _read_mapping(folder / "config.json", model_id)
        foreign += _own_classes(config.get("auto_map"), config.get("architectures"))
        for file in ("tokenizer_config.json", "processor_config.json"):
            foreign += _own_classes(_read_mapping(folder / file, model_id).get("auto_map"), None)
    if foreign:
        raise ModelError(
            f"{model_id} needs custom code ({foreign[0][:60]}), which neuralviz never runs. Where "
            "`transformers` has the model itself, remove `auto_map` from the model's JSON files."
        )


def _own_classes(auto_map: Any, architectures: Any) -> list[str]:
    """What of an ``auto_map`` stands for a class that would be loaded."""
    if isinstance(auto_map, list | tuple | str):  # a tokenizer's, in older files
        auto_map = {"AutoTokenizer": auto_map}
    if not isinstance(auto_map, dict):
        return []
    of_checkpoint = architectures if isinstance(architectures, list) else []
    own = []
    for auto_class, entry in auto_map.items():
        for path in entry if isinstance(entry, list | tuple) else [entry]:
            is_loaded = auto_class in _AUTO_CLASSES or _last(str(path)) in of_checkpoint
            own += [str(path)] * bool(path and is_loaded)
    return own


def _check_weights(folder: Path, model_id: str) -> None:
    """Refuse weights in a format that is not read, or would be read wrongly."""
    config = _read_mapping(folder / "config.json", model_id)
    settings = config.get("quantization_config") or config.get("compression_config")
    if settings:
        method = settings.get("quant_method") if isinstance(settings, dict) else ""
        raise _quantised_error(model_id, str(method or "quantization_config"))
    files = sorted(folder.glob("*.safetensors"))
    for file in files:
        for dtype in _matrix_types(file):
            if not re.fullmatch(r"B?F(16|32|64)|F8_E\dM\d.*", dtype):
                raise _quantised_error(model_id, dtype)
    other = [path.name for path in folder.iterdir() if path.suffix in _FORMATS]
    if not files and any(name != "training_args.bin" for name in other):
        raise missing_weights(model_id, other)


def _quantised_error(model_id: str, method: str) -> ModelError:
    return ModelError(
        f"{model_id} has quantised weights ({method[:40]}), which neuralviz does not read. Use the "
        "weights in float32, float16 or bfloat16 that they were made from."
    )


def _matrix_types(file: Path) -> Iterator[str]:
    """Types of the weights of more than one axis, as the file names them: ``F32``, ``I8``."""
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            header = json.loads(stream.read(min(length, _LONGEST_HEADER)))
        for name, entry in header.items():
            if name.endswith("weight") and len(entry["shape"]) > 1:
                yield entry["dtype"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        return  # a damaged file is named by what loads it


def _check_tokenizer(folder: Path, model_id: str) -> None:
    """Refuse a tokenizer that needs a package which is not there, or that knows no word."""
    file = folder / "tokenizer.json"
    if file.is_file():
        if file.stat().st_size > _LARGEST_EMPTY_TOKENIZER:
            return
        try:
            tokenizer = Tokenizer.from_file(str(file))
        except Exception:  # a damaged file is named by what loads it
            return
        special = sum(token.special for token in tokenizer.get_added_tokens_decoder().values())
        if tokenizer.get_vocab_size() <= special:
            raise ModelError(
                f"{model_id} has an empty vocabulary: its tokenizer.json has {special} special "
                "tokens and no other. Save the tokenizer again; transformers 5 ignores "
                "`vocab_file`, so make it with `vocab` or `from_pretrained`."
            )
        return
    pieces = next((path for path in folder.glob("*.model") if _is_sentencepiece(path)), None)
    if pieces is not None and find_spec("sentencepiece") is None:
        raise ModelError(
            f"The tokenizer of {model_id} is a SentencePiece model ({pieces.name}) without "
            "tokenizer.json. Install sentencepiece with `pip install sentencepiece`, or use a "
            "model that has tokenizer.json."
        )


def _is_sentencepiece(path: Path) -> bool:
    """Whether a file begins as models of SentencePiece do: with a piece of the vocabulary."""
    with path.open("rb") as file:
        return file.read(1) == b"\n"
