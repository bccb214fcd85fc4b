"""Refuse models that libraries would load without an adapter, a head or their own code."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open

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
# Classes, modules and settings of models that give no dense vector of a text.
_OTHER_KINDS = re.compile(
    r"^sentence_transformers\.(cross|sparse|multi_vector)_encoder\.|^sbert_ce_"
    r"|^sentence_transformers$|For(SequenceClassification|MultipleChoice|Retrieval)$"
    r"|CrossEncoder|ColBERT|splade",
    re.IGNORECASE,
)
_SAVE_ENCODER = (
    "Use an encoder, or save the encoder inside it with "
    "`AutoModel.from_pretrained(…).save_pretrained(…)`."
)
_TWINS = ({"roberta", "camembert", "xlm_roberta"}, {"t5", "mt5"})  # packages alike in all but name
_ADAPTERS = ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin",
             "pytorch_adapter.bin")  # fmt: skip
_OTHER_FORMATS = (
    ".gguf", ".onnx", ".msgpack", ".h5", ".npz", ".bin", ".pt", ".pth", ".ckpt", ".pkl",
)  # fmt: skip
_BLOCK = re.compile(r"(?:^|\.)(?:layers?|h|blocks?|albert_layer_groups)\.\d+\.")
# Heads that stand first in a weight's name; one that was only there for pre-training is not missed
_HEADS = re.compile(
    r"(?!sop_|nsp_)(\w+_)?(classifier|classification_head|score|regressor|logits_proj|"
    r"multiple_choice_head|sequence_summary|value_head|v_head)\."
    r"|(?!vocab_|lm_|mlm_|unembedding_|output_projection\.)"
    r"(\w+_)?(linear|projection|proj|dense)\."
)
_TAGS = re.compile(r"classifier\.(weight|bias)")  # of tokens, where nothing makes a text's vector
_MAKES_VECTOR = re.compile(r"(^|\.)(\w*pooler|pre_classifier|head)\.")
_BUFFERS = ("position_ids", "inv_freq", "masked_bias", "attn.bias", "attention.bias")


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
        return self.read("config.json")

    @property
    def architectures(self) -> list[str]:
        """Names of the classes that were saved; empty if the configuration has none."""
        names = self.config.get("architectures")
        return list(map(str, names)) if isinstance(names, list) else []

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
        raise files.error(
            f"has no transformer, or several ({first.name}). Use it with the method "
            "sentence-transformer."
        )
    if first and first.name in _TRANSFORMERS:
        files = first.files
    kind = str(files.config.get("model_type"))[:40]
    if kind == "model2vec":
        raise files.error(
            "has no transformer (model2vec). Save it with sentence-transformers "
            "(`StaticEmbedding.from_model2vec`) and use it with the method sentence-transformer."
        )
    if {"vision_config", "audio_config", "image_config"} & files.config.keys():
        raise files.error(
            f"({kind}) reads pictures or sounds, too, by networks of their own. Use a model of "
            "texts alone, or the method sentence-transformer if it was saved by that library."
        )
    if "model_type" not in files.config:
        raise files.error("contains no model: config.json is missing, or has no model_type.")
    return files


def _check_kind(files: ModelFiles) -> None:
    library_config = files.read("config_sentence_transformers.json")
    kind = str(library_config.get("model_type") or "SentenceTransformer")
    names = [*files.architectures, *(module.path for module in files.modules), *files.config]
    if kind == "SentenceTransformer":
        kind = next(filter(_OTHER_KINDS.search, names), "") or _find_token_projection(files)
    if kind:
        raise files.error(
            f"gives no dense vector of a text ({_tail(kind)}): it is a cross-encoder, a "
            "classifier, a sparse or multi-vector encoder, or the like. "
            f"{_SAVE_ENCODER}"
        )


def _find_token_projection(files: ModelFiles) -> str:
    """The module that changes the vectors of tokens, which nothing pools; else empty."""
    names = {module.name for module in files.modules}
    outputs = [module.files.read("sentence_bert_config.json") for module in files.modules]
    if any(output.get("module_output_name") == "sentence_embedding" for output in outputs):
        return ""
    return "Dense" if "Dense" in names and not names & {"Pooling", "CLIPModel", *_TABLES} else ""


def _tail(path: str) -> str:
    return path.rpartition(".")[2][:60]


def _check_code(files: ModelFiles) -> None:
    foreign = [module.path for module in files.modules if not module.path.startswith(_LIBRARY)]
    unknown = []
    for module in files.modules:
        activation = str(module.files.config.get("activation_function", "torch."))
        if module.name == "Dense" and not activation.startswith("torch."):
            foreign.append(activation)
    for part in files.parts:
        foreign += _list_custom_classes(part.config.get("auto_map"), part.architectures)
        unknown += _list_unknown_classes(part)
        for file in ("tokenizer_config.json", "processor_config.json"):
            foreign += _list_custom_classes(part.read(file).get("auto_map"))
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


def _list_custom_classes(auto_map: Any, saved: Sequence[str] = ()) -> list[str]:
    """Classes from the model's repository that the libraries would load."""
    if not isinstance(auto_map, dict):  # a tokenizer's, in older files
        auto_map = {"AutoTokenizer": auto_map}
    return [
        str(path)
        for auto_class, entry in auto_map.items()
        for path in (entry if isinstance(entry, list) else [entry])
        if path and (auto_class in _AUTO_CLASSES or _tail(str(path)) in saved)
    ]


def _list_unknown_classes(files: ModelFiles) -> list[str]:
    """Saved classes that `transformers` lacks; `ModelError` for one of another model type."""
    kind = str(files.config.get("model_type"))
    with quiet_transformers() as transformers:
        if kind not in transformers.CONFIG_MAPPING:
            return []
        classes = {name.lower() for name in transformers.__all__}  # dir() takes 0.4 s
        # SimCSE's classes are an encoder and a head for training, which is not read
        plain = {
            name: re.sub("ForCL$", "Model", re.sub("^(TF|Flax)", "", name))
            for name in files.architectures
        }
        families = _list_families(transformers.CONFIG_MAPPING[kind])
        families |= {twin for twins in _TWINS if twins & families for twin in twins}
        registers = vars(transformers.models.auto.modeling_auto)
        known = {
            name
            for register, names in registers.items()
            if register.endswith("_MAPPING_NAMES")
            for name in np.atleast_1d(names.get(kind, ())).tolist()
        }
        for name, saved in plain.items():
            others = _list_families(getattr(transformers, saved, None)) - families
            if others and saved not in known:
                raise files.error(
                    f"contradicts itself in config.json: the model_type is “{kind}”, the class "
                    f"{name[:60]}. Correct the one that is wrong."
                )
    return [name for name, saved in plain.items() if saved.lower() not in classes]


def _list_families(kind: Any) -> set[str]:
    """The package of a class of `transformers`, as a set; empty for what is in none."""
    path = str(getattr(kind, "__module__", "")).split(".")
    return set(path[2:3]) - {"auto"} if path[:2] == ["transformers", "models"] else set()


def _check_tokenizer(files: ModelFiles) -> None:
    has_tokenizer = (files.folder / "tokenizer.json").is_file()
    if any(files.folder.glob("*.model")) and not has_tokenizer and not find_spec("sentencepiece"):
        raise files.error(
            "has a SentencePiece model but no tokenizer.json. Install sentencepiece with `pip "
            "install sentencepiece`, or use a model that has tokenizer.json."
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
    for path in paths:
        if path.name in _ADAPTERS:
            return _describe_adapter(model_id, path.name)
    others = [path.name for path in paths if path.suffix in _OTHER_FORMATS]
    only = f", only {others[0]}" if others else ""
    return ModelError(
        f"{model_id} has no weights in safetensors format{only}. neuralviz loads no other format, "
        "as some can run code; convert the model with `transformers`."
    )


def _describe_adapter(model_id: str, name: str) -> ModelError:
    return ModelError(
        f"{model_id} has an adapter ({name}), which would be left out. Merge it into its base "
        "model with peft's `merge_and_unload` and save the result."
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
    if head := next(filter(_HEADS.match, names), None):
        raise ModelError(
            f"{model_id} has a head that would be left out ({head[:120]}): it makes scores, "
            f"classes or other vectors of its encoder's vectors. {_SAVE_ENCODER}"
        )
    unused = [name for name in names if _BLOCK.search(name) and not name.endswith(_BUFFERS)]
    if unused:
        raise ModelError(
            f"{model_id} has weights that its config.json has no place for, for example "
            f"{unused[0][:120]}: without them it would be another model."
        )


def _check_adapter(files: ModelFiles) -> None:
    for name in _ADAPTERS:
        if (files.folder / name).is_file():
            raise _describe_adapter(files.model_id, name)


def _check_weights(files: ModelFiles, *, is_loaded: bool) -> None:
    paths = sorted(files.folder.glob("*.safetensors"))
    tensors = {path.name: _list_tensors(files, path) for path in paths}
    if method := _find_quantisation(files, tensors.values()):
        raise files.error(
            f"has quantised weights ({method[:40]}), which neuralviz does not read. Use the "
            "weights in float32, float16 or bfloat16 that they were made from."
        )
    has_model = is_loaded and "model_type" in files.config
    other_names = [path.name for path in files.folder.iterdir() if path.suffix in _OTHER_FORMATS]
    if not paths and (has_model or {*other_names} - {"training_args.bin"}):
        raise describe_missing_weights(files.model_id, other_names)
    index = files.read("model.safetensors.index.json").get("weight_map")
    if "model.safetensors" not in tensors and isinstance(index, dict):
        shards = [tensors.get(name, {}) for name in {*map(str, index.values())}]
        if repeated := [name for name, n in Counter(chain(*shards)).items() if n > 1]:
            raise files.error(
                f"has the weights {repeated[0][:120]} in two files, of which transformers takes "
                "the last. Save the model again with `save_pretrained`."
            )


def _list_tensors(files: ModelFiles, path: Path) -> dict[str, tuple[str, int]]:
    """Type and number of axes of each tensor in a file; `ModelError` if it is damaged."""
    try:
        with safe_open(path, "np") as content:
            slices = {name: content.get_slice(name) for name in content.keys()}  # noqa: SIM118
            return {name: (s.get_dtype(), len(s.get_shape())) for name, s in slices.items()}
    except (OSError, SafetensorError) as error:
        raise files.error(
            f"has a damaged file, {path.name[:120]}. Copy it again, or run `git lfs pull` in its "
            "folder."
        ) from error


def _find_quantisation(files: ModelFiles, tensors: Iterable[Mapping[str, tuple[str, int]]]) -> str:
    """The method, or the type of a quantised matrix; else empty."""
    settings = files.config.get("quantization_config") or files.config.get("compression_config")
    if settings:
        method = settings.get("quant_method") if isinstance(settings, dict) else ""
        return str(method or "quantization_config")
    for name, (dtype, n_axes) in (pair for file in tensors for pair in file.items()):
        is_matrix = name.endswith("weight") and n_axes > 1
        if is_matrix and not re.fullmatch(r"B?F(16|32|64)|F8_E\dM\d.*", dtype):
            return dtype
    return ""
