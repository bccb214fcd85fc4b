"""Refuse models that libraries would load without an adapter, a head or their own code."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from neuralviz.errors import ModelError
from neuralviz.models.quiet import quiet_transformers

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_LIBRARY = "sentence_transformers."  # other modules would be code from the model's repository
_AUTO_CLASSES = (
    "AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoModelForMaskedLM",
    "AutoModelForPreTraining", "AutoModelForTextEncoding", "AutoProcessor", "AutoTokenizer",
)  # fmt: skip
_TRANSFORMERS = ("Transformer", "CLIPModel")
_TABLES = ("StaticEmbedding", "WordEmbeddings", "BoW")
_WITH_SETTINGS = ("Pooling", "Dense")  # modules of sentence-transformers that no default fits
# By package of sentence-transformers: its model types, a pattern of its classes, and the message.
_OTHER_KINDS = {
    "cross_encoder": (
        ("CrossEncoder",),
        r"For(SequenceClassification|MultipleChoice)$|CrossEncoder",
        "a cross-encoder or a classifier ({}): it gives scores or classes, no vector of a text. "
        "Use an encoder, or save the encoder inside it with "
        "`AutoModel.from_pretrained(…).save_pretrained(…)`.",
    ),
    "sparse_encoder": (
        ("SparseEncoder",),
        "splade",
        "a sparse encoder ({}), whose vectors are almost all zeros. Use a dense encoder.",
    ),
    "multi_vector_encoder": (
        ("MultiVectorEncoder", "ColBERT"),
        r"ColBERT|ForRetrieval$",
        "a multi-vector encoder ({}): it gives a vector of each token, not of a text. Use an "
        "encoder that gives one vector.",
    ),
}
_TWINS = ({"roberta", "camembert", "xlm_roberta"}, {"t5", "mt5"})  # packages alike in all but name
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


@dataclass(frozen=True)
class ModelFiles:
    """A model's files in a folder; errors call it ``model_id``."""

    folder: Path
    model_id: str

    def read(self, name: str, kind: type = dict) -> Any:
        """Content of a JSON file, empty if there is none; `ModelError` if it is not a ``kind``."""
        path = self.folder / name
        try:
            content = json.loads(path.read_text("utf-8")) if path.is_file() else kind()
        except (OSError, ValueError, RecursionError) as error:
            raise self.unreadable(path.name) from error
        if not isinstance(content, kind):
            raise self.unreadable(path.name)
        return content

    def unreadable(self, file: str) -> ModelError:
        return ModelError(f"Could not read the {file} of {self.model_id}.")

    def error(self, problem: str) -> ModelError:
        return ModelError(f"{self.model_id} {problem}")

    @cached_property
    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = self.read("config.json")
        return config

    @cached_property
    def modules(self) -> list[Module]:
        """Its sentence-transformers modules, followed by the parts of routers; else empty."""
        entries = self.read("modules.json", list)
        try:
            modules = [
                Module(str(entry["type"]), self._enter(entry.get("path", ""))) for entry in entries
            ]
            for module in list(modules):
                if module.is_router:  # older versions of the library call its settings config.json
                    settings = module.files.read("router_config.json") or module.files.config
                    modules += [
                        Module(str(path), module.files._enter(name))
                        for name, path in settings["types"].items()
                    ]
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise self.unreadable("modules.json") from error
        if not modules and (self.folder / "modules.json").is_file():
            raise self.unreadable("modules.json")
        return modules

    def _enter(self, name: object) -> ModelFiles:
        path = PurePosixPath(str(name))
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(name)
        return ModelFiles(self.folder / path, self.model_id)

    @property
    def parts(self) -> list[ModelFiles]:
        parts = {files.folder: files for files in (self, *(m.files for m in self.modules))}
        return [files for files in parts.values() if files.folder.is_dir()]

    @property
    def transformers(self) -> list[Path]:
        """Folders of all transformers, in sentence-transformers' order; none for other models."""
        all_files = (module.files for module in self.modules)
        return list(dict.fromkeys(f.folder for f in all_files if "model_type" in f.config))


@dataclass(frozen=True)
class Module:
    """A module of sentence-transformers: its class as a dotted path, and its files."""

    path: str
    files: ModelFiles

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def is_router(self) -> bool:
        return self.name in ("Router", "Asym")


def check_files(files: ModelFiles) -> None:
    """Raise `ModelError` for a model that would be loaded as something else than it is."""
    for part in files.parts:
        _check_pointers(part)
        _check_adapter(part)
    _check_kind(files)
    _check_code(files)
    for part in files.parts:
        _check_weights(part, is_loaded=part.folder in (files.transformers or [files.folder]))
        _check_tokenizer(part)
        _check_lengths(part)


def check_modules(files: ModelFiles) -> None:
    """Refuse what is not of sentence-transformers, or lacks a module's settings."""
    if not files.modules:
        raise files.error(
            "is not a sentence-transformers model: modules.json is missing. The methods mean, cls, "
            "sep, last and sbert-wk work with any encoder."
        )
    for module in files.modules:
        settings = module.files.folder / "config.json"
        if module.name in _WITH_SETTINGS and not settings.is_file():
            name = settings.relative_to(files.folder).as_posix()
            raise files.error(f"is incomplete: {name} is missing.")


def find_transformer(files: ModelFiles) -> ModelFiles:
    """Files of a model's transformer, perhaps in a subfolder; `ModelError` for none or several."""
    first = files.modules[0] if files.modules else None
    if first and (first.is_router or first.name in _TABLES):
        contents = "is a table of token embeddings without a transformer"
        if first.is_router:
            contents = "sends texts to different encoders"
        raise files.error(
            f"{contents} ({first.name}). Use it with the method sentence-transformer."
        )
    if first and first.name in _TRANSFORMERS:
        files = first.files
    kind = str(files.config.get("model_type"))[:40]
    if kind == "model2vec":
        raise files.error(
            "is a table of token embeddings without a transformer (model2vec). Save it with "
            "sentence-transformers (`StaticEmbedding.from_model2vec`) and use it with the method "
            "sentence-transformer."
        )
    if keys := {"vision_config", "audio_config", "image_config"} & files.config.keys():
        senses = "sounds" if "audio_config" in keys else "pictures"
        raise files.error(
            f"({kind}) reads {senses} and texts, by networks of their own. Use a model of texts "
            "alone, or the method sentence-transformer if it was saved by that library."
        )
    return files


def _check_kind(files: ModelFiles) -> None:
    architectures = files.config.get("architectures")
    names = list(map(str, architectures)) if isinstance(architectures, list) else []
    library_config = files.read("config_sentence_transformers.json")
    kind = str(library_config.get("model_type") or "SentenceTransformer")
    paths = [module.path for module in files.modules]
    packages = {path.split(".")[1]: path for path in paths if path.startswith(_LIBRARY)}
    other_signs = {
        "cross_encoder": _find_first(files.config, r"^sbert_ce_|^sentence_transformers$"),
        "multi_vector_encoder": _find_first(paths, r"^pylate\.")
        or _find_token_projection(files.modules),
    }
    for package, (kinds, classes, description) in _OTHER_KINDS.items():
        name = (
            kind * (kind in kinds)
            or packages.get(package)
            or _find_first(names, classes)
            or other_signs.get(package)
        )
        if name:
            raise files.error(f"is {description.format(_tail(name))}")
    if kind != "SentenceTransformer":
        raise files.error(f"is a {kind[:40]}, not a SentenceTransformer. Use a dense encoder.")


def _find_first(names: Iterable[str], pattern: str) -> str | None:
    return next((name for name in names if re.search(pattern, name, re.IGNORECASE)), None)


def _tail(path: str) -> str:
    return path.rpartition(".")[2][:60]


def _find_token_projection(modules: list[Module]) -> str:
    """The module that changes token vectors although none pools them; else empty."""
    if any(module.name in ("Pooling", "CLIPModel", *_TABLES) for module in modules):
        return ""
    for module in modules:
        settings = module.files.read("sentence_bert_config.json")
        if settings.get("module_output_name") == "sentence_embedding":
            return ""
    return "Dense without Pooling" * any(module.name == "Dense" for module in modules)


def _check_code(files: ModelFiles) -> None:
    foreign = [module.path for module in files.modules if not module.path.startswith(_LIBRARY)]
    unknown = []
    for module in files.modules:
        activation = str(module.files.config.get("activation_function", "torch."))
        if module.name == "Dense" and not activation.startswith("torch."):
            foreign.append(activation)
    for part in files.parts:
        foreign += _custom_classes(part.config.get("auto_map"), part.config.get("architectures"))
        unknown += _list_unknown_classes(part)
        for file in ("tokenizer_config.json", "processor_config.json"):
            foreign += _custom_classes(part.read(file).get("auto_map"), None)
    if foreign:
        raise files.error(
            f"needs custom code ({foreign[0][:60]}), which neuralviz never runs. Use a model of a "
            "class that `transformers` has."
        )
    if unknown:
        raise files.error(
            f"was saved from a class that `transformers` does not have ({unknown[0][:60]}), so "
            "what it computes is not known. If it only pools the vectors of a transformer, put "
            "that one's class, such as BertModel, in its place in the “architectures” of "
            "config.json."
        )


def _custom_classes(auto_map: Any, architectures: Any) -> list[str]:
    if isinstance(auto_map, list | tuple | str):  # a tokenizer's, in older files
        auto_map = {"AutoTokenizer": auto_map}
    if not isinstance(auto_map, dict):
        return []
    saved_classes = architectures if isinstance(architectures, list) else []
    return [
        str(path)
        for auto_class, entry in auto_map.items()
        for path in (entry if isinstance(entry, list | tuple) else [entry])
        if path and (auto_class in _AUTO_CLASSES or _tail(str(path)) in saved_classes)
    ]


def _list_unknown_classes(files: ModelFiles) -> list[str]:
    """Saved classes that `transformers` lacks; `ModelError` for one of another model type."""
    kind, names = str(files.config.get("model_type")), files.config.get("architectures")
    unknown = []
    with quiet_transformers() as transformers:
        if not isinstance(names, list) or kind not in transformers.CONFIG_MAPPING:
            return []
        classes = {name.lower() for name in transformers.__all__}  # dir() takes 0.4 s
        families = {_find_family(transformers.CONFIG_MAPPING[kind])}
        mappings = vars(transformers.models.auto.modeling_auto).items()
        entries = [m.get(kind, ()) for name, m in mappings if name.endswith("_MAPPING_NAMES")]
        known = {name for e in entries for name in ([e] if isinstance(e, str) else e)}
        families |= {twin for twins in _TWINS if twins & families for twin in twins}
        for name in map(str, names):
            plain = re.sub("^(TF|Flax)", "", name)
            family = _find_family(getattr(transformers, plain, None))
            # SimCSE's classes are an encoder and a head for training, which is not read
            if re.sub("ForCL$", "Model", plain).lower() not in classes:
                unknown.append(name)
            elif family and family not in families and plain not in known:
                raise ModelError(
                    f"The config.json of {files.model_id} contradicts itself: its model_type is "
                    f"“{kind}”, its class {name[:60]}. Correct the one that is wrong."
                )
    return unknown


def _find_family(kind: Any) -> str:
    path = str(getattr(kind, "__module__", "")).split(".")
    return path[2] if path[:2] == ["transformers", "models"] and path[2] != "auto" else ""


def _check_tokenizer(files: ModelFiles) -> None:
    if (files.folder / "tokenizer.json").is_file() or find_spec("sentencepiece"):
        return
    for path in files.folder.glob("*.model"):
        with path.open("rb") as file:
            is_sentencepiece = file.read(1) == b"\n"  # begins with a piece of the vocabulary
        if is_sentencepiece:
            raise files.error(
                f"has a SentencePiece model ({path.name}) but no tokenizer.json. Install "
                "sentencepiece with `pip install sentencepiece`, or use a model that has "
                "tokenizer.json."
            )


def _check_lengths(files: ModelFiles) -> None:
    """Refuse a maximum length that is not a number; the libraries accept anything."""
    keys = {path.name: "max_seq_length" for path in files.folder.glob("sentence_*_config.json")}
    for file, key in {"tokenizer_config.json": "model_max_length", **keys}.items():
        value = files.read(file).get(key)
        if value is not None and not isinstance(value, int | float):
            raise files.error(f"has a {key} in its {file} that is no number: {value!r:.40}.")


def describe_missing_weights(model_id: str, names: Iterable[str]) -> ModelError:
    """The error for a model without safetensors among its files, given as paths."""
    paths = sorted((PurePosixPath(name) for name in names), key=lambda path: len(path.parts))
    if any(path.name in _ADAPTERS for path in paths):
        return _describe_adapter(model_id)
    others = [path for path in paths if path.suffix in _FORMATS]
    only = f", only {_FORMATS[others[0].suffix]} ones ({others[0].name})" if others else ""
    return ModelError(
        f"{model_id} has no weights in safetensors format{only}. neuralviz loads no other format, "
        "as some can run code; convert the model with `transformers`."
    )


def check_unused(
    network: PreTrainedModel, info: Mapping[str, Iterable[Any]], model_id: str
) -> None:
    """Refuse unloaded weights of blocks, or of heads on texts; heads on tokens may be left out."""
    names = sorted(info["unexpected_keys"])
    loaded = network.state_dict().keys() - set(info["missing_keys"])
    classes = map(str, network.config.architectures or ())
    is_of_tokens = any(name.endswith("ForTokenClassification") for name in classes)
    if is_of_tokens or not any(map(_MAKES_VECTOR.search, [*names, *loaded])):
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


def _check_pointers(files: ModelFiles) -> None:
    """Refuse Git LFS pointers that a clone without Git LFS left in place of files."""
    for file in sorted(path for path in files.folder.iterdir() if path.suffix in _READ):
        if file.is_file() and file.stat().st_size < 1024 and file.read_bytes().startswith(_POINTER):
            raise files.error(
                f"has only a Git LFS pointer in {file.name}. Run `git lfs pull` in its folder."
            )


def _check_adapter(files: ModelFiles) -> None:
    if not any((files.folder / name).is_file() for name in _ADAPTERS):
        return
    if any(path.name not in _ADAPTERS for path in files.folder.glob("*.safetensors")):
        raise files.error(
            "has an adapter beside its own weights, which would be left out. Merge the two with "
            "peft's `merge_and_unload` and save the result, or take the adapter's files out of "
            "the folder."
        )
    base = files.read("adapter_config.json").get("base_model_name_or_path")
    raise _describe_adapter(files.model_id, str(base or "")[:80])


def _describe_adapter(model_id: str, base: str = "") -> ModelError:
    return ModelError(
        f"{model_id} is an adapter, not a whole model. Merge it into {base or 'its base model'} "
        "with peft's `merge_and_unload` and save the result."
    )


def _check_weights(files: ModelFiles, *, is_loaded: bool) -> None:
    paths = sorted(files.folder.glob("*.safetensors"))
    headers = {path.name: _read_header(path) for path in paths}
    if method := _find_quantisation(files, headers.values()):
        raise files.error(
            f"has quantised weights ({method[:40]}), which neuralviz does not read. Use the "
            "weights in float32, float16 or bfloat16 that they were made from."
        )
    has_model = is_loaded and "model_type" in files.config
    other_names = [path.name for path in files.folder.iterdir() if path.suffix in _FORMATS]
    if not paths and (has_model or {*other_names} - {"training_args.bin"}):
        raise describe_missing_weights(files.model_id, other_names)
    if paths and has_model:
        _check_headers(files, headers)


def _find_quantisation(files: ModelFiles, headers: Iterable[dict[str, Any] | None]) -> str:
    """The method, or the type of a quantised matrix; else empty."""
    settings = files.config.get("quantization_config") or files.config.get("compression_config")
    if settings:
        method = settings.get("quant_method") if isinstance(settings, dict) else ""
        return str(method or "quantization_config")
    for name, entry in (pair for header in headers for pair in (header or {}).items()):
        is_matrix = name.endswith("weight") and len(entry["shape"]) > 1
        if is_matrix and not re.fullmatch(r"B?F(16|32|64)|F8_E\dM\d.*", str(entry["dtype"])):
            return str(entry["dtype"])
    return ""


def _check_headers(files: ModelFiles, headers: Mapping[str, dict[str, Any] | None]) -> None:
    """Refuse files that the library would ignore, read in part, or choose between."""
    loaded = ["model.safetensors"]
    if loaded[0] not in headers:
        index = files.read("model.safetensors.index.json")
        places = index.get("weight_map")
        if not index:
            raise files.error(
                f"has its weights in {min(headers)}, where they are not looked for. Files are read "
                "that are called model.safetensors, or listed in model.safetensors.index.json: "
                "copy what is missing, or rename the file."
            )
        if not isinstance(places, dict) or "metadata" not in index:
            raise files.unreadable("model.safetensors.index.json")
        loaded = sorted({str(name) for name in places.values()})
    sources: dict[str, str] = {}
    for name in loaded:
        header = headers.get(name)
        if header is None:
            raise files.error(f"has a damaged or missing file, {name[:120]}. Copy it again.")
        for tensor in header.keys() - {"__metadata__"}:
            if tensor in sources:
                raise files.error(
                    f"has the weights {tensor[:120]} twice, in {sources[tensor]} and in {name}. "
                    "Save the model again with `save_pretrained`."
                )
            sources[tensor] = name


def _read_header(file: Path) -> dict[str, Any] | None:
    """Header of a safetensors file; None if the file is damaged or incomplete."""
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
