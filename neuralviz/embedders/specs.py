"""The embedding methods with their options: how they are typed, named for people, and made."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import chain
from typing import Any

from neuralviz.embedders.base import ConcatenatedEmbedder, Embedder
from neuralviz.errors import ModelError, SettingsError
from neuralviz.layers.settings import MOST_WINDOW, PARTS, VARIANTS
from neuralviz.micro_tuning import TuningSettings, parse_blueprints
from neuralviz.micro_tuning.settings import (
    DEFAULT_TOLERANCE,
    MAX_EPOCHS,
    PRECISIONS,
    Blueprint,
    check_numbers,
    check_precision,
    check_tolerance,
    is_fast,
)
from neuralviz.models import BUNDLED, MINILM
from neuralviz.models.shared import JUDGES, LOADERS, Loaders, ModelKind, ModelRef
from neuralviz.words import joined

JOIN = "+"
OPTIONS_SIGN = "@"  # before a method's own options
DELTAS = ("neural", "neural-1", "gradient")  # whose vectors can be added to the model's weights
IMPORTED = "imported"  # in place of a method: vectors from a file
_OPTION = re.compile(r"\s*[\w.-]*\s*=")  # how NAME=VALUE begins


# Defaults when many texts are embedded and kept. Half the usual epochs take less time, and neural
# embeddings by the bundled model then say more about a text's topic: docs/bundled_model.md.
FOR_CORPORA = {"precision": "fast", "neural.epochs": "5"}


@dataclass(frozen=True)
class Option:
    """A setting of a method."""

    name: str  # of the embedder's argument
    line: str  # what it sets, such as ``Number of epochs``
    expects: str  # what to type, such as ``a whole number``
    read: Callable[[str], Any]  # converts what was typed; raises ValueError or `SettingsError`
    default: str  # as typed
    choices: tuple[str, ...] = ()  # all values, if they can be listed


@dataclass(frozen=True)
class Method:
    """A way to embed texts."""

    line: str  # its description
    kind: ModelKind  # of model
    model_id: str  # default
    embedder: str  # module of `neuralviz.embedders`, colon, class or function
    options: tuple[Option, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)  # fixed ones of the embedder

    def find_maker(self) -> Callable[..., Any]:
        """The embedder's class or function, called with a model and options. Imports torch."""
        module, _, name = self.embedder.partition(":")
        maker = getattr(import_module(f"neuralviz.embedders.{module}"), name)
        return partial(maker, **self.arguments)


def read_layers(text: str) -> str | tuple[str, ...]:
    """``head``, ``last_block``, or names of layers separated by commas."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    return names[0] if names in {("head",), ("last_block",)} else names


def _read_yes_or_no(text: str) -> bool:
    return {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}[
        text.lower()
    ]


def _read_tolerance(text: str) -> float:
    check_tolerance(float(text))
    return float(text)


def _read_number(text: str, kind: type, low: float, high: float = math.inf) -> Any:
    if not low <= kind(text) <= high:
        raise ValueError(text)
    return kind(text)


def _choice(name: str, line: str, choices: tuple[str, ...], default: str) -> Option:
    expects = f"{', '.join(choices[:-1])} or {choices[-1]}"
    read = dict(zip(choices, choices, strict=True)).__getitem__
    return Option(name, line, expects, read, default, choices)


def _yes_or_no(name: str, line: str, default: str) -> Option:
    return Option(name, line, "yes or no", _read_yes_or_no, default, YES_OR_NO)


YES_OR_NO = ("yes", "no")
_layer = Option(
    "layer", "Layer or layers to pool", "layer numbers separated by commas, last, or all",
    lambda text: text if text in ("last", "all") else tuple(map(int, text.split(","))), "last",
)  # fmt: skip
_blueprints = Option(
    "blueprints", "Masking blueprints", "pairs (keep, mask) such as (2, 1), (1, 3)",
    parse_blueprints, "(2, 1), (1, 1), (1, 2), (1, 3)",
)  # fmt: skip
_layers = Option(
    "layers", "Layers to micro-tune", "head, last_block, or layer names separated by commas",
    read_layers, "head",
)  # fmt: skip
_predict_unmasked = _yes_or_no("predict_unmasked", "Predict every token, without masking", "no")
_adamw = (
    Option("learning_rate", "AdamW's learning rate", "a number above 0", float, "0.01"),
    Option("weight_decay", "AdamW's weight decay", "a number of at least 0", float, "0.01"),
)
_how_exactly = (
    replace(
        _choice("precision", "How exactly micro-tuning is computed", PRECISIONS, "exact"),
        read=check_precision,
    ),
    Option(
        "tolerance",
        "With fast, how far the cosine similarity to the exact embedding may fall below 1",
        "a number above 0 and below 1", _read_tolerance, f"{DEFAULT_TOLERANCE:g}",
    ),
)  # fmt: skip
_sbert_wk = (
    _choice("variant", "The authors' program or the paper's equations", VARIANTS, "authors"),
    Option(
        "layer_start", "First layer to use", "a whole number, or default (one third of the blocks)",
        lambda text: None if text == "default" else int(text), "default",
    ),
    Option(
        "window", "Layers on each side to compare with", f"a whole number from 1 to {MOST_WINDOW}",
        partial(_read_number, kind=int, low=1, high=MOST_WINDOW), "2",
    ),
    Option(
        "omega", "Weight of alignment (novelty gets the rest)", "a number from 0 to 1",
        partial(_read_number, kind=float, low=0, high=1), "0.5",
    ),
    _choice("part", "Part of SBERT-WK to use", tuple(PARTS), "all"),
)  # fmt: skip


def _epochs(default: str) -> Option:
    return Option(
        "epochs", "Number of epochs", f"a whole number from 1 to {MAX_EPOCHS}", int, default
    )


def _pooled(line: str, *options: Option, model_id: str = MINILM, **arguments: Any) -> Method:
    options = (_layer, *options)
    return Method(line, "text", model_id, "pooled:PooledEmbedder", options, arguments)


def _tuned(line: str, pooling: str = "", difference: bool = False) -> Method:
    """*neural-1*, or with a ``pooling`` the output of a tuned model."""
    options = (*_how_exactly, _blueprints, _epochs("5"), *_adamw)
    if not pooling:
        return Method(line, "masked", BUNDLED, "neural:neural_1", options)
    arguments = {"pooling": pooling, "difference": difference}
    return Method(line, "masked", BUNDLED, "neural:TunedOutputEmbedder", options, arguments)


METHODS: dict[str, Method] = {
    "mean": _pooled(
        "Mean of the token vectors, including special tokens.",
        _yes_or_no("special_tokens", "Include special tokens in the mean", "yes"),
        pooling="mean",
    ),
    "cls": _pooled("Vector of [CLS], the special token before the text.", pooling="cls"),
    "sep": _pooled("Vector of [SEP], the special token after the text.", pooling="sep"),
    "last": _pooled("Vector of the text's last token.", pooling="last"),
    "sbert-wk": Method(
        "Weighted mean of token vectors; the weights come from how the vectors change "
        "across the layers.",
        "text",
        MINILM,
        "pooled:SbertWkEmbedder",
        _sbert_wk,
    ),
    "neural": Method(
        "Change in the model's weights after micro-tuning on the text.",
        "masked",
        BUNDLED,
        "neural:NeuralEmbedder",
        (_layers, *_how_exactly, _blueprints, _epochs("10"), *_adamw, _predict_unmasked),
    ),
    "neural-1": _tuned("Neural embedding of the last block's output bias alone."),
    "gradient": Method(
        "The direction in which one plain gradient step on the text would move the weights, "
        "without taking it.",
        "masked",
        BUNDLED,
        "neural:GradientEmbedder",
        (_layers, _blueprints, _predict_unmasked),
    ),
    "avg": _pooled(
        "Mean of the masked language model's token vectors, without special tokens or "
        "micro-tuning.",
        model_id=BUNDLED,
        pooling="mean",
        name="avg",
        special_tokens=False,
    ),
    "cls-tuned": _tuned("Vector of [CLS] after micro-tuning.", "cls"),
    "avg-tuned": _tuned(
        "Mean of the token vectors after micro-tuning, without special tokens.", "mean"
    ),
    "cls-diff": _tuned("Change in the [CLS] vector caused by micro-tuning.", "cls", True),
    "avg-diff": _tuned(
        "Change in the mean token vector caused by micro-tuning, without special tokens.",
        "mean",
        True,
    ),
    "sentence-transformer": Method(
        "Any sentence-transformers model, with its own pooling.",
        "sentence-transformer",
        MINILM,
        "sentence_transformer:SentenceTransformerEmbedder",
    ),
}


# --- specs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EmbedderSpec:
    """Everything needed to make an embedder."""

    method: str  # of a concatenation, the parts' names joined by ``+``
    model_id: str  # empty for a concatenation
    options: tuple[tuple[str, Any], ...] = ()  # pairs of name and value, sorted by name
    parts: tuple[EmbedderSpec, ...] = ()  # of a concatenation

    @property
    def singles(self) -> tuple[EmbedderSpec, ...]:
        """The concatenated methods, or itself; empty for imported vectors."""
        return () if self.is_imported else self.parts or (self,)

    @property
    def is_imported(self) -> bool:
        """Whether the vectors came in a file, so that no model can embed other texts."""
        return self.method == IMPORTED

    @property
    def label(self) -> str:
        return f"file: {dict(self.options)['file']}" if self.is_imported else self.method

    @property
    def judges(self) -> list[str]:
        """Ids of the models that say which texts it hardly reads, as far as they are loaded."""
        kinds = [(part.model_id, METHODS[part.method].kind) for part in self.singles]
        loaded = [m for m, kind in kinds if m in JUDGES or kind != "sentence-transformer"]
        return list(dict.fromkeys(JUDGES.get(model_id, model_id) for model_id in loaded))

    @property
    def learns(self) -> bool:
        return bool(self.precision)

    @property
    def precision(self) -> str:
        """Precision of micro-tuning, with an unusual tolerance; empty without micro-tuning."""
        precisions = []
        for part in self.singles:
            values = dict(part.options)
            detail = f" (tolerance {values['tolerance']:g})" if "tolerance" in values else ""
            if "precision" in _options(part.method):
                precisions.append(values.get("precision", "exact") + detail)
        return " and ".join(dict.fromkeys(precisions))

    @property
    def epochs(self) -> tuple[int, ...]:
        """Epochs of its parts, one number if all are equal; empty if all are defaults."""
        if all("epochs" not in dict(part.options) for part in self.singles):
            return ()
        options = [part.all_options for part in self.singles]
        epochs = [int(str(values["epochs"])) for values in options if "epochs" in values]
        return tuple(epochs) if len(set(epochs)) > 1 else (epochs[0],)

    @property
    def all_options(self) -> dict[str, str | int | float | bool | None]:
        """Options of a single method by name, as typed, defaults included."""
        values = dict(self.options)
        if self.is_imported:
            return values
        values = {name: o.default for name, o in _options(self.method).items()} | values
        if not is_fast(str(values.get("precision", ""))):
            values.pop("tolerance", None)
        plain = str | int | float | bool | None
        return {name: v if isinstance(v, plain) else str(v) for name, v in values.items()}

    def to_json(self) -> str:
        return json.dumps(astuple(self))

    @classmethod
    def from_json(cls, text: str) -> EmbedderSpec:
        """The spec that `to_json` wrote; `SettingsError` for any other text."""
        try:
            spec = cls._from_list(json.loads(text))
        except (ValueError, TypeError) as error:
            raise SettingsError("Could not read a saved method.") from error
        for part in spec.singles:
            if part.method not in METHODS:
                raise SettingsError(f"Unknown method “{part.method[:40]}”.")
        if spec.is_imported and "file" not in dict(spec.options):
            raise SettingsError("Could not read a saved method.")
        return spec

    @classmethod
    def _from_list(cls, entry: list[Any]) -> EmbedderSpec:
        method, model_id, options, parts = entry
        values = []
        for name, value in options:
            is_pairs = name == "blueprints"
            read = tuple(Blueprint(*pair) for pair in value) if is_pairs else _as_tuple(value)
            values.append((str(name), read))
        return cls(str(method), str(model_id), tuple(values), tuple(map(cls._from_list, parts)))


def imported_spec(file: str, digest: str) -> EmbedderSpec:
    """The spec of imported vectors: file name, and a hash of texts and vectors."""
    return EmbedderSpec(IMPORTED, "", (("digest", digest), ("file", file)))


def list_models(specs: Iterable[EmbedderSpec]) -> tuple[ModelRef, ...]:
    model_ids = dict.fromkeys(part.model_id for spec in specs for part in spec.singles)
    return tuple(map(ModelRef.from_id, model_ids))


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def split_options(
    options: Sequence[str], noun: str = "option", form: str = "NAME=VALUE"
) -> dict[str, str]:
    values: dict[str, str] = {}
    for entry in options:
        name, sign, value = (piece.strip() for piece in entry.partition("="))
        if not sign:
            raise SettingsError(f"“{entry[:40]}” has no value. Write each {noun} as {form}.")
        if name in values:
            raise SettingsError(f"The {noun} “{name[:40]}” is set twice. Set it once.")
        values[name] = value
    return values


def split_at_commas(text: str) -> list[str]:
    """Split ``NAME=VALUE`` pairs at commas; values may contain commas, too."""
    entries: list[str] = []
    for piece in text.split(","):
        if entries and not _OPTION.match(piece):
            entries[-1] += f",{piece}"
        else:
            entries.append(piece)
    return entries if text.strip() else []


def embedder_spec(
    method: str,
    typed: Mapping[str, str] | None = None,
    model_id: str | None = None,
    *,
    defaults: Mapping[str, str] | None = None,
) -> EmbedderSpec:
    return embedder_specs([method], typed, model_id, defaults=defaults)[0]


def embedder_specs(
    methods: Sequence[str],
    typed: Mapping[str, str] | None = None,
    model_id: str | None = None,
    *,
    defaults: Mapping[str, str] | None = None,
) -> tuple[EmbedderSpec, ...]:
    """Specs of methods and options as typed; `SettingsError` if one is invalid or given twice.

    Args:
        methods: of `METHODS`, or several joined by ``+``, each perhaps with options of its own:
            ``mean@MODEL``, ``neural@NAME=VALUE,…`` or ``neural@MODEL,NAME=VALUE,…``.
        typed: values by ``NAME``, for all methods with this option, or by ``METHOD.NAME``;
            ``model`` is an option of all. Options after an ``@`` take precedence.
        model_id: for all parts, instead of each method's own.
        defaults: of options that are not typed, named likewise.
    """
    named, typed = [read_methods(method) for method in methods], typed or {}
    names = list(dict.fromkeys(name for parts in named for name, _ in parts))
    for name in names:
        if name not in METHODS:
            raise SettingsError(
                f"Unknown method “{name[:40]}”. Choose from: {', '.join(METHODS)}, or "
                f"concatenate several with {JOIN}."
            )
    for key in typed:
        name, dot, option = key.rpartition(".")
        if dot and name not in names:
            raise SettingsError(
                f"The option “{key[:80]}” applies to the method “{name[:40]}”, which is not "
                "selected."
            )
        _check_option([name] if dot else names, option)
    out: list[EmbedderSpec] = []
    for method, parts in zip(methods, named, strict=True):
        specs = [
            _read_single_spec(name, select_options(name, defaults or {}, typed) | values, model_id)
            for name, values in parts
        ]
        out.append(concatenate_specs(specs))
        if out[-1] in out[:-1]:
            raise SettingsError(
                f"The method “{method[:80]}” is named twice with the same model and options. Name "
                "it once, or set the two apart: mean@bundled, neural@epochs=5."
            )
    return tuple(out)


def concatenate_specs(parts: Sequence[EmbedderSpec]) -> EmbedderSpec:
    if len(parts) == 1:
        return parts[0]
    name = JOIN.join(part.method for part in parts)
    if len(set(parts)) < len(parts):
        raise SettingsError(
            f"“{name[:80]}” concatenates a method with itself, which changes nothing: it is named "
            "twice with the same model and options."
        )
    return EmbedderSpec(name, "", parts=tuple(parts))


def read_methods(typed: str) -> list[tuple[str, dict[str, str]]]:
    """Methods joined by ``+`` with their options; ``precision=fast+bf16`` stays whole."""
    pieces: list[str] = []
    for piece in typed.split(JOIN):
        is_method = piece.partition(OPTIONS_SIGN)[0].strip() in METHODS
        if pieces and OPTIONS_SIGN in pieces[-1] and not is_method:
            pieces[-1] += JOIN + piece
        else:
            pieces.append(piece)
    split = [piece.partition(OPTIONS_SIGN) for piece in pieces]
    return [
        (name.strip(), _read_own_options(name.strip(), options) if sign else {})
        for name, sign, options in split
    ]


def _read_own_options(method: str, text: str) -> dict[str, str]:
    entries = split_at_commas(text)
    if entries and not _OPTION.match(entries[0]):
        entries[0] = f"model={entries[0]}"
    options = split_options(entries)
    for name in options if method in METHODS else ():
        _check_option([method], name)
    return options


def select_options(method: str, *mappings: Mapping[str, str]) -> dict[str, str]:
    """A method's options by name, from mappings by ``NAME`` or ``METHOD.NAME``; the last counts."""
    by_name: dict[str, str] = {}
    start = f"{method}."
    for mapping in mappings:
        single = {key.removeprefix(start): v for key, v in mapping.items() if key.startswith(start)}
        by_name |= {name: value for name, value in mapping.items() if _takes(method, name)}
        by_name |= single
    return by_name


def _takes(method: str, option: str) -> bool:
    return option == "model" or option in _options(method)


def _options(method: str) -> dict[str, Option]:
    return {option.name: option for option in METHODS[method].options}


def _check_option(methods: Sequence[str], name: str) -> None:
    """Raise `SettingsError` if none of the methods has an option of that name."""
    if any(_takes(method, name) for method in methods):
        return
    names = ", ".join(dict.fromkeys([*chain.from_iterable(map(_options, methods)), "model"]))
    any_of = joined([f"“{method}”" for method in methods], "or")
    raise SettingsError(
        f"The method {any_of} has no option “{name[:40]}”. Its options are: {names}."
    )


def _read_single_spec(method: str, typed: Mapping[str, str], model_id: str | None) -> EmbedderSpec:
    values = {}
    for name, option in _options(method).items():
        if name not in typed:
            continue
        try:
            values[name] = option.read(typed[name])
        except SettingsError:
            raise
        except (ValueError, KeyError) as error:
            raise SettingsError(
                f"The option “{name}” must be {option.expects}, not “{typed[name][:40]}”."
            ) from error
        if values[name] == option.read(option.default):
            del values[name]  # so that equal specs compare equal
    if not is_fast(str(values.get("precision", "exact"))):
        values.pop("tolerance", None)  # without effect
    numbers = ("epochs", "learning_rate", "weight_decay")  # checked before a download
    if "epochs" in _options(method):
        check_numbers(*(values.get(name, getattr(TuningSettings, name)) for name in numbers))
    chosen = typed.get("model") or model_id or METHODS[method].model_id
    return EmbedderSpec(method, chosen, tuple(sorted(values.items())))


def method_labels(specs: Sequence[EmbedderSpec]) -> tuple[str, ...]:
    """`method_label` of each spec; namesakes get what sets them apart in brackets."""
    labels: list[str] = []
    for spec in specs:
        label = method_label(spec)
        namesakes = [namesake for namesake in specs if namesake.method == spec.method]
        models = {tuple(part.model_id for part in namesake.singles) for namesake in namesakes}
        names = _short_names(namesakes)
        is_repeated = len({part.method for part in spec.singles}) < len(spec.singles)
        values: list[str] = []
        for part in spec.singles if is_repeated or len(namesakes) > 1 else ():
            values += [
                f"{name} {_describe_value(value)}"
                for name, value in part.options
                if name not in ("precision", "tolerance", "epochs")
            ]
            values += [names[part.model_id]] * (is_repeated or len(models) > 1)
        if values:
            start = f"{label[:-1]}, " if label.endswith(")") else f"{label} ("
            label = f"{start}{', '.join(values)})"
        labels.append(label if label not in labels else f"{label} · {len(labels) + 1}")
    return tuple(labels)


def labels_by_spec(specs: Iterable[EmbedderSpec]) -> dict[EmbedderSpec, str]:
    different = list(dict.fromkeys(specs))
    return dict(zip(different, method_labels(different), strict=True))


def method_label(spec: EmbedderSpec) -> str:
    """The method's name and how it learns texts, if it does: ``neural, fast, 5 epochs``."""
    parts = [spec.label, spec.precision]
    if spec.epochs:
        noun = "epoch" if spec.epochs == (1,) else "epochs"
        parts.append(f"{joined([str(n) for n in spec.epochs])} {noun}")
    return ", ".join(part for part in parts if part)


def short_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Labels for sentences: names alone, unless they repeat."""
    short = [label.partition(",")[0] for label in labels]
    return tuple(
        name if short.count(name) == 1 and "(" not in label else label
        for name, label in zip(short, labels, strict=True)
    )


def part_names(spec: EmbedderSpec) -> dict[str, EmbedderSpec]:
    """The parts of a method, or itself, by name, or by label where names repeat."""
    parts = spec.parts or (spec,)
    names = [part.method for part in parts]
    labels = zip(method_labels(parts), parts, strict=True)
    return {label if names.count(p.method) > 1 else p.method: p for label, p in labels}


def full_method_labels(specs: Sequence[EmbedderSpec]) -> tuple[str, ...]:
    """Names with models and every setting, for downloads."""
    names = _short_names(specs)

    def describe(part: EmbedderSpec) -> str:
        values = {"model": names[part.model_id], **part.all_options}
        words = (f"{name} {_describe_value(value)}" for name, value in values.items())
        return f"{part.method} ({', '.join(words)})"

    return tuple(" + ".join(map(describe, spec.singles)) or spec.label for spec in specs)


def _short_names(specs: Iterable[EmbedderSpec]) -> dict[str, str]:
    """The shortest endings of the models' ids or paths that tell them apart."""
    models = dict.fromkeys(part.model_id for spec in specs for part in spec.singles)
    steps = {model: model.rstrip("/").split("/") for model in models}
    names = dict(zip(models, models, strict=True))
    for model, parts in steps.items():
        for n in range(len(parts), 0, -1):
            if [other[-n:] for other in steps.values()].count(parts[-n:]) == 1:
                names[model] = "/".join(parts[-n:])
    return names


def _describe_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


# --- making ---------------------------------------------------------------------------------------


def make_embedder(spec: EmbedderSpec | str, loaders: Loaders = LOADERS) -> Embedder:
    """The embedder of a spec, or of a method with its defaults; `ModelError` without a model."""
    if isinstance(spec, str):
        spec = embedder_spec(spec)
    if not isinstance(spec, EmbedderSpec):
        raise SettingsError(f"Name a method, such as “mean”, or give a spec, not {spec!r:.60}.")
    if spec.is_imported:
        raise ModelError(
            f"The vectors of “{spec.label}” were imported: there is no model to embed with."
        )
    embedder: Embedder
    if spec.parts:
        embedder = ConcatenatedEmbedder([make_embedder(part, loaders) for part in spec.parts])
    else:
        method = METHODS[spec.method]
        loaded = loaders[method.kind](spec.model_id)
        model = loaded if isinstance(loaded, tuple) else (loaded,)  # an encoder and its fingerprint
        embedder = method.find_maker()(*model, **dict(spec.options))
    embedder.spec = spec
    return embedder
