"""The files of a model's weights: their formats and kinds, before anything of them is loaded."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from neuralviz.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_ADAPTERS = ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin",
             "pytorch_adapter.bin")  # fmt: skip
_FORMATS = {
    ".gguf": "GGUF", ".onnx": "ONNX", ".msgpack": "Flax", ".h5": "TensorFlow", ".npz": "NumPy",
    ".bin": "pickled", ".pt": "pickled", ".pth": "pickled", ".ckpt": "pickled", ".pkl": "pickled",
}  # fmt: skip
_BLOCK = re.compile(r"(?:^|\.)(?:layers?|h|blocks?|albert_layer_groups)\.\d+\.")
# Heads that stand first in a weight's name; one that was only there for pre-training is not missed
_SCORES = re.compile(
    r"(?!sop_|nsp_)(\w+_)?(classifier|classification_head|score|regressor|logits_proj|"
    r"multiple_choice_head|sequence_summary|value_head|v_head)\."
)
_TAGS = re.compile(r"classifier\.(weight|bias)")  # of tokens, where nothing makes a text's vector
_MAKES_VECTOR = re.compile(r"(^|\.)(\w*pooler|pre_classifier|head)\.")
_VECTORS = re.compile(
    r"(?!vocab_|lm_|mlm_|unembedding_|output_projection\.)(\w+_)?(linear|projection|proj|dense)\."
)
_BUFFERS = ("position_ids", "inv_freq", "masked_bias", "attn.bias", "attention.bias")
_LONGEST_HEADER = 100_000_000  # bytes that safetensors allows
_POINTER = b"version https://git-lfs"
_READ = (".safetensors", ".json", ".model", ".txt")


def describe_missing_weights(model_id: str, names: Iterable[str]) -> ModelError:
    """The error for a model none of whose files, given as paths, is in safetensors format."""
    paths = sorted((PurePosixPath(name) for name in names), key=lambda path: len(path.parts))
    if any(path.name in _ADAPTERS for path in paths):
        return _describe_adapter(model_id, {}, has_weights=False)
    foreign_file = next((path for path in paths if path.suffix in _FORMATS), None)
    only = (
        f", only {_FORMATS[foreign_file.suffix]} ones ({foreign_file.name})" if foreign_file else ""
    )
    return ModelError(
        f"{model_id} has no weights in safetensors format{only}. neuralviz loads no other format, "
        "as some can run code; convert the model with `transformers`."
    )


def check_unused(
    network: PreTrainedModel, info: Mapping[str, Iterable[Any]], model_id: str
) -> None:
    """Refuse weights of a file, not loaded, without which the vectors would be others.

    Heads on single tokens, for tags and answers, are left out as those for masked tokens are.

    Args:
        network: that was loaded.
        info: what the library says of the weights.
        model_id: for the sentence.

    Raises:
        ModelError: they belong to a block, or to a head that makes scores or vectors of texts.
    """
    names = sorted(info["unexpected_keys"])
    if not _makes_vector(network, info):
        names = [name for name in names if not _TAGS.fullmatch(name)]
    for heads, product, kind in (
        (_SCORES, "scores or classes", "a cross-encoder or a classifier"),
        (_VECTORS, "other vectors", "a multi-vector encoder or a projection"),
    ):
        if head := next(filter(heads.match, names), None):
            raise ModelError(
                f"{model_id} has a head that makes {product} of its encoder's vectors "
                f"({head[:120]}), as {kind} has. It would be left out. Use an encoder, or save the "
                "encoder inside it with `AutoModel.from_pretrained(…).save_pretrained(…)`."
            )
    unused = [name for name in names if _BLOCK.search(name) and not name.endswith(_BUFFERS)]
    if unused:
        raise ModelError(
            f"{model_id} has weights that its config.json has no place for, for example "
            f"{unused[0][:120]}: without them it would be another model."
        )


def _makes_vector(network: PreTrainedModel, info: Mapping[str, Iterable[Any]]) -> bool:
    """Whether a file has weights that make one vector of a text's, for a head to score."""
    if any(
        str(name).endswith("ForTokenClassification") for name in network.config.architectures or ()
    ):
        return False
    loaded = network.state_dict().keys() - set(info["missing_keys"])
    return any(map(_MAKES_VECTOR.search, [*info["unexpected_keys"], *loaded]))


def check_pointers(folder: Path, model_id: str) -> None:
    """Refuse files of which a clone without Git LFS has left only their addresses."""
    for file in sorted(path for path in folder.iterdir() if path.suffix in _READ):
        if file.is_file() and file.stat().st_size < 1024:
            with file.open("rb") as stream:
                if stream.read(len(_POINTER)) == _POINTER:
                    raise ModelError(
                        f"{file.name} of {model_id} is only a Git LFS pointer. Run `git lfs pull` "
                        "in its folder."
                    )


def check_adapter(folder: Path, model_id: str) -> None:
    if not any((folder / name).is_file() for name in _ADAPTERS):
        return
    settings = read_mapping(folder / "adapter_config.json", model_id)
    has_weights = any(path.name not in _ADAPTERS for path in folder.glob("*.safetensors"))
    raise _describe_adapter(model_id, settings, has_weights)


def _describe_adapter(model_id: str, settings: dict[str, Any], has_weights: bool) -> ModelError:
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


def check_weights(folder: Path, model_id: str) -> None:
    """Refuse weights in a format that is not read, or would be read wrongly."""
    config = read_mapping(folder / "config.json", model_id)
    settings = config.get("quantization_config") or config.get("compression_config")
    if settings:
        method = settings.get("quant_method") if isinstance(settings, dict) else ""
        raise _describe_quantised(model_id, str(method or "quantization_config"))
    files = sorted(folder.glob("*.safetensors"))
    headers = {file.name: _read_header(file) for file in files}
    for name, entry in (pair for header in headers.values() for pair in (header or {}).items()):
        is_matrix = name.endswith("weight") and len(entry["shape"]) > 1
        if is_matrix and not re.fullmatch(r"B?F(16|32|64)|F8_E\dM\d.*", str(entry["dtype"])):
            raise _describe_quantised(model_id, str(entry["dtype"]))
    foreign_names = [path.name for path in folder.iterdir() if path.suffix in _FORMATS]
    if not files and any(name != "training_args.bin" for name in foreign_names):
        raise describe_missing_weights(model_id, foreign_names)
    if files and "model_type" in config:
        _check_files(folder, headers, model_id)


def _check_files(folder: Path, headers: Mapping[str, dict[str, Any] | None], model_id: str) -> None:
    """Refuse files of which the library would read nothing, a part, or either of two."""
    loaded = ["model.safetensors"]
    if loaded[0] not in headers:
        index = read_mapping(folder / "model.safetensors.index.json", model_id)
        places = index.get("weight_map")
        if not index:
            raise ModelError(
                f"{model_id} has its weights in {min(headers)}, where they are not looked for. "
                "Files are read that are called model.safetensors, or listed in "
                "model.safetensors.index.json: copy what is missing, or rename the file."
            )
        if not isinstance(places, dict) or "metadata" not in index:
            raise ModelError(f"Could not read the model.safetensors.index.json of {model_id}.")
        loaded = sorted({str(name) for name in places.values()})
    sources: dict[str, str] = {}
    for name in loaded:
        if name not in headers:
            raise ModelError(f"{model_id} lacks the file {name[:120]}. Download or copy it again.")
        header = headers[name]
        if header is None:
            raise ModelError(f"{name} of {model_id} is damaged. Download or copy it again.")
        for tensor in header.keys() - {"__metadata__"}:
            if tensor in sources:
                raise ModelError(
                    f"{model_id} has the weights {tensor[:120]} twice, in {sources[tensor]} and in "
                    f"{name}. Save the model again with `save_pretrained`."
                )
            sources[tensor] = name


def _describe_quantised(model_id: str, method: str) -> ModelError:
    return ModelError(
        f"{model_id} has quantised weights ({method[:40]}), which neuralviz does not read. Use the "
        "weights in float32, float16 or bfloat16 that they were made from."
    )


def _read_header(file: Path) -> dict[str, Any] | None:
    """What a file of weights says of them; None where it is damaged or not whole."""
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            header = json.loads(stream.read(min(length, _LONGEST_HEADER)))
        entries = [entry for name, entry in header.items() if name != "__metadata__"]
        ends = [8 + length + entry["data_offsets"][1] for entry in entries]
        is_whole = max(ends, default=8 + length) == file.stat().st_size
        return header if is_whole and all(len(entry["shape"]) >= 0 for entry in entries) else None
    except (
        OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error
    ):  # fmt: skip
        return None


def read_mapping(path: Path, model_id: str) -> dict[str, Any]:
    """A JSON file's mapping, empty where there is no such file; ModelError for another content."""
    if not path.is_file():
        return {}
    content = read_json(path, model_id)
    if not isinstance(content, dict):
        raise ModelError(f"Could not read the {path.name} of {model_id}.")
    return content


def read_json(path: Path, model_id: str) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"Could not read the {path.name} of {model_id}.") from error
