"""Embedders by name, each with the options that it declares."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from neuralviz.embedders.concatenated import ConcatenatedEmbedder
from neuralviz.embedders.neural import NeuralEmbedder, neural_1
from neuralviz.embedders.pooled import PooledEmbedder, SbertWkEmbedder
from neuralviz.embedders.sentence_transformer import SentenceTransformerEmbedder
from neuralviz.embedders.tuned import TunedOutputEmbedder
from neuralviz.errors import SettingsError
from neuralviz.micro_tuning import TuningSettings, parse_blueprints
from neuralviz.micro_tuning.settings import (
    DEFAULT_TOLERANCE,
    PRECISIONS,
    check_numbers,
    check_precision,
    check_tolerance,
    is_fast,
)
from neuralviz.models import (
    BUNDLED,
    MINILM,
    load_model,
    load_sentence_transformer,
    load_text_model,
)

if TYPE_CHECKING:
    from neuralviz.embedders.base import Embedder
    from neuralviz.layers.pooling import PoolingName

ModelKind = Literal["masked", "text", "sentence-transformer"]
Loaders = Mapping[ModelKind, Callable[[str], Any]]
JOIN = "+"
FOR_CORPORA = {"precision": "fast"}
"""What stands in for options that are not given when many texts are embedded to be kept."""

LOADERS: Loaders = {
    "masked": load_model,
    "text": load_text_model,
    "sentence-transformer": load_sentence_transformer,
}


@dataclass(frozen=True)
class Option:
    """A setting of a method.

    Attributes:
        name: the argument of the embedder.
        expects: what a person has to type, e.g. ``a whole number``.
        read: the value from what was typed; raises ValueError or `SettingsError`.
        default: what is typed by default.
        choices: the values, where they can be listed.
    """

    name: str
    expects: str
    read: Callable[[str], Any]
    default: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Method:
    """A way to embed texts.

    Attributes:
        make: called with a model and the options.
        line: what it does, in a line.
        kind: the models that it takes.
        model_id: the one it takes by default.
        options: those it takes.
    """

    make: Callable[..., Embedder]
    line: str
    kind: ModelKind
    model_id: str
    options: tuple[Option, ...] = ()


@dataclass(frozen=True)
class EmbedderSpec:
    """All that has to be said to make an embedder.

    Attributes:
        method: its name; of a concatenation, the parts' names joined by ``+``.
        model_id: the model; empty for a concatenation.
        options: pairs of name and value, in the order of the names.
        parts: of a concatenation.
    """

    method: str
    model_id: str
    options: tuple[tuple[str, Any], ...] = ()
    parts: tuple[EmbedderSpec, ...] = ()

    @property
    def learns(self) -> bool:
        """Whether a model is tuned on every text, which takes long."""
        return bool(self.precisions)

    @property
    def precisions(self) -> tuple[str, ...]:
        """How exactly its parts learn texts, each once; empty where nothing is learnt.

        A tolerance is named where it is not the one that fast has by default.
        """
        found = []
        for part in self.parts or (self,):
            if METHODS[part.method].kind == "masked":
                options = dict(part.options)
                tolerance = options.get("tolerance")
                told = "" if tolerance is None else f" (tolerance {tolerance:g})"
                found.append(options.get("precision", "exact") + told)
        return tuple(dict.fromkeys(found))

    @property
    def all_options(self) -> dict[str, str | int | float | bool | None]:
        """Of one method: its options by name, those left at their defaults included, as typed."""
        given = dict(self.options)
        found: dict[str, str | int | float | bool | None] = {}
        for option in METHODS[self.method].options:
            value = given.get(option.name, option.default)
            if option.name != "tolerance" or is_fast(str(found.get("precision", ""))):
                known = isinstance(value, str | int | float | bool | None)
                found[option.name] = value if known else str(value)
        return found

    def to_json(self) -> str:
        """The spec as text, to be kept."""
        return json.dumps(self._as_list())

    @classmethod
    def from_json(cls, text: str) -> EmbedderSpec:
        """The spec that `to_json` wrote.

        Raises:
            SettingsError: it is none, or of a method that there is not.
        """
        try:
            spec = cls._from_list(json.loads(text))
        except (ValueError, TypeError) as error:
            raise SettingsError("What was kept of a method cannot be read.") from error
        for part in spec.parts or (spec,):
            if part.method not in METHODS:
                raise SettingsError(f"There is no method “{part.method[:40]}”.")
        return spec

    def _as_list(self) -> list[Any]:
        parts = [part._as_list() for part in self.parts]
        return [self.method, self.model_id, self.options, parts]

    @classmethod
    def _from_list(cls, entry: list[Any]) -> EmbedderSpec:
        method, model_id, options, parts = entry
        read = tuple((str(name), _as_tuple(value)) for name, value in options)
        return cls(str(method), str(model_id), read, tuple(map(cls._from_list, parts)))


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def read_layers(text: str) -> str | tuple[str, ...]:
    """``head``, ``last_block``, or names of layers with commas between them."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    return names[0] if names in {("head",), ("last_block",)} else names


def _read_layer_numbers(text: str) -> str | tuple[int, ...]:
    return text if text in ("last", "all") else tuple(int(part) for part in text.split(","))


def _read_yes_or_no(text: str) -> bool:
    return {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}[
        text.lower()
    ]


def _read_choice(text: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise ValueError(text)
    return text


def _read_layer_start(text: str) -> int | None:
    return None if text == "default" else int(text)


def _read_window(text: str) -> int:
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def _read_share(text: str) -> float:
    if not 0 <= float(text) <= 1:
        raise ValueError(text)
    return float(text)


def _read_tolerance(text: str) -> float:
    check_tolerance(float(text))
    return float(text)


YES_OR_NO = ("yes", "no")
VARIANTS = ("authors", "paper")  # of SBERT-WK
SBERT_WK_PARTS = ("all", "alignment", "novelty", "importance", "importance-last", "last")
_layer = Option(
    "layer", "numbers with commas between them, last or all", _read_layer_numbers, "last"
)
_blueprints = Option(
    "blueprints", "pairs like (2, 1), (1, 3)", parse_blueprints, "(2, 1), (1, 1), (1, 2), (1, 3)"
)
_learning_rate = Option("learning_rate", "a number", float, "0.01")
_weight_decay = Option("weight_decay", "a number", float, "0.01")
_how_exactly = (
    Option("precision", "exact, fast, bf16 or fast+bf16", check_precision, "exact", PRECISIONS),
    Option(
        "tolerance", "a number above 0 and below 1", _read_tolerance, f"{DEFAULT_TOLERANCE:g}"
    ),
)  # fmt: skip


def _special_tokens(default: str) -> Option:
    return Option("special_tokens", "yes or no", _read_yes_or_no, default, YES_OR_NO)


def _epochs(default: str) -> Option:
    return Option("epochs", "a whole number", int, default)


def _pooled(pooling: PoolingName, line: str, *more: Option) -> Method:
    return Method(partial(PooledEmbedder, pooling=pooling), line, "text", MINILM, (_layer, *more))


def _tuned(pooling: Literal["cls", "mean"], difference: bool, line: str) -> Method:
    return Method(
        partial(TunedOutputEmbedder, pooling=pooling, difference=difference),
        line,
        "masked",
        BUNDLED,
        (*_how_exactly, _blueprints, _epochs("5"), _learning_rate, _weight_decay),
    )


def _sentence_transformer(loaded: tuple[Any, str]) -> Embedder:
    encoder, fingerprint = loaded
    return SentenceTransformerEmbedder(encoder, fingerprint)


METHODS: dict[str, Method] = {
    "mean": _pooled(
        "mean", "Mean of the token vectors, special tokens included.", _special_tokens("yes")
    ),
    "cls": _pooled("cls", "The vector of the first special token."),
    "sep": _pooled("sep", "The vector of the special token behind the text."),
    "last": _pooled("last", "The vector of the text's own last token."),
    "sbert-wk": Method(
        SbertWkEmbedder,
        "Token vectors weighed by how they move through the layers.",
        "text",
        MINILM,
        (
            Option(
                "variant", "authors or paper", partial(_read_choice, choices=VARIANTS),
                "authors", VARIANTS,
            ),
            Option("layer_start", "a whole number or default", _read_layer_start, "default"),
            Option("window", "a whole number of at least 1", _read_window, "2"),
            Option("omega", "a number from 0 to 1", _read_share, "0.5"),
            Option(
                "part", f"one of {', '.join(SBERT_WK_PARTS)}",
                partial(_read_choice, choices=SBERT_WK_PARTS), "all", SBERT_WK_PARTS,
            ),
        ),
    ),
    "neural": Method(
        NeuralEmbedder,
        "The change of weights that learning the text causes.",
        "masked",
        BUNDLED,
        (
            Option("layers", "head, last_block or names of layers", read_layers, "head"),
            *_how_exactly,
            _blueprints,
            _epochs("10"),
            _learning_rate,
            _weight_decay,
            Option("predict_unmasked", "yes or no", _read_yes_or_no, "no", YES_OR_NO),
        ),
    ),
    "neural-1": Method(
        neural_1,
        "The neural embedding of the last block's output bias alone.",
        "masked",
        BUNDLED,
        (*_how_exactly, _blueprints, _epochs("5"), _learning_rate, _weight_decay),
    ),
    "avg": Method(
        partial(PooledEmbedder, pooling="mean", name="avg", special_tokens=False),
        "Mean of the masked model's vectors of the text's own tokens, untuned.",
        "text",
        BUNDLED,
        (_layer,),
    ),
    "cls-tuned": _tuned("cls", False, "The first special token's vector after micro-tuning."),
    "avg-tuned": _tuned("mean", False, "Mean of the own tokens' vectors after micro-tuning."),
    "cls-diff": _tuned("cls", True, "How micro-tuning changes the first special token's vector."),
    "avg-diff": _tuned("mean", True, "How micro-tuning changes the mean of the own tokens."),
    "sentence-transformer": Method(
        _sentence_transformer,
        "Any model of sentence-transformers, with its own pooling.",
        "sentence-transformer",
        MINILM,
    ),
}  # fmt: skip


def split_options(options: Sequence[str]) -> dict[str, str]:
    """``name=value`` pairs as a mapping.

    Raises:
        SettingsError: one is no pair, or a name comes twice.
    """
    values: dict[str, str] = {}
    for entry in options:
        name, sign, value = entry.partition("=")
        if not sign:
            raise SettingsError(f"“{entry[:40]}” is not an option; write NAME=VALUE.")
        if name.strip() in values:
            raise SettingsError(f"The option {name.strip()} is given twice.")
        values[name.strip()] = value.strip()
    return values


def embedder_spec(
    method: str,
    typed: Mapping[str, str] | None = None,
    model_id: str | None = None,
    *,
    defaults: Mapping[str, str] | None = None,
) -> EmbedderSpec:
    """What to make, from a method's name and what was typed for its options.

    Args:
        method: one of `METHODS`, or several joined by ``+``.
        typed: option to value. ``NAME`` goes to every part of a concatenation that has such an
            option, ``METHOD.NAME`` to one of them. ``model`` is an option of every method.
        model_id: the model for all parts; by default each method's own.
        defaults: values of options that are not typed, for the methods that have them;
            `FOR_CORPORA` where vectors are kept.

    Raises:
        SettingsError: there is no such method, it has no such option, or a value cannot be read.
    """
    return embedder_specs([method], typed, model_id, defaults=defaults)[0]


def embedder_specs(
    methods: Sequence[str],
    typed: Mapping[str, str] | None = None,
    model_id: str | None = None,
    *,
    defaults: Mapping[str, str] | None = None,
) -> tuple[EmbedderSpec, ...]:
    """As `embedder_spec` for several methods, each of which takes the options that it has.

    Raises:
        SettingsError: as of `embedder_spec`, when no method has an option, or when a method is
            given twice.
    """
    names_of = [tuple(name.strip() for name in method.split(JOIN)) for method in methods]
    names = list(dict.fromkeys(name for names in names_of for name in names))
    for name in names:
        if name not in METHODS:
            raise SettingsError(
                f"There is no method “{name[:40]}”; there is {', '.join(METHODS)}, and several "
                f"joined by {JOIN}."
            )
    if any(len(set(names)) != len(names) for names in names_of):
        raise SettingsError("A method is named twice; joining it with itself adds nothing.")
    if len(set(names_of)) != len(names_of):
        raise SettingsError("A method is given twice; name each once.")
    values: dict[str, dict[str, str]] = {
        name: {key: value for key, value in (defaults or {}).items() if key in _options(name)}
        for name in names
    }
    typed = typed or {}
    for key in sorted(typed, key=lambda key: "." in key):  # what is for one method comes last
        name, dot, option = key.rpartition(".")
        if dot and name not in names:
            raise SettingsError(f"The option {key} is for the method “{name}”, which is not used.")
        candidates = [name] if dot else names
        takers = [taker for taker in candidates if option == "model" or option in _options(taker)]
        if not takers:
            raise SettingsError(_no_such_option(candidates, option))
        for taker in takers:
            values[taker][option] = typed[key]
    out = []
    for method_names in names_of:
        parts = tuple(_single_spec(name, values[name], model_id) for name in method_names)
        joined = EmbedderSpec(JOIN.join(method_names), "", parts=parts)
        out.append(parts[0] if len(parts) == 1 else joined)
    return tuple(out)


def _options(method: str) -> dict[str, Option]:
    return {option.name: option for option in METHODS[method].options}


def _no_such_option(methods: Sequence[str], name: str) -> str:
    has = ", ".join(dict.fromkeys([*(one for m in methods for one in _options(m)), "model"]))
    if len(methods) > 1:
        all_of = ", ".join(methods)
        return f"None of the methods {all_of} has an option “{name[:40]}”; they have {has}."
    return f"The method {methods[0]} has no option “{name[:40]}”; it has {has}."


def _single_spec(method: str, typed: Mapping[str, str], model_id: str | None) -> EmbedderSpec:
    values = {}
    options = _options(method)
    for name, text in typed.items():
        if name == "model":
            continue
        try:
            values[name] = options[name].read(text)
            if values[name] == options[name].read(options[name].default):
                del values[name]  # one way to say one thing
        except (ValueError, KeyError) as error:
            raise SettingsError(
                f"The option {name} has to be {options[name].expects}, and “{text[:40]}” is not."
            ) from error
    if not is_fast(str(values.get("precision", "exact"))):
        values.pop("tolerance", None)  # it changes nothing
    numbers = ("epochs", "learning_rate", "weight_decay")  # looked at before a download
    if "epochs" in options:
        check_numbers(*(values.get(name, getattr(TuningSettings, name)) for name in numbers))
    chosen = typed.get("model") or model_id or METHODS[method].model_id
    return EmbedderSpec(method, chosen, tuple(sorted(values.items())))


def make_embedder(spec: EmbedderSpec | str, loaders: Loaders = LOADERS) -> Embedder:
    """The embedder that a spec describes, or a method's with its defaults.

    Args:
        spec: from `embedder_spec`, or a method's name.
        loaders: where models come from, by kind.

    Raises:
        ModelError: a model cannot be had.
        SettingsError: the values make no sense for the model.
    """
    if isinstance(spec, str):
        spec = embedder_spec(spec)
    embedder: Embedder
    if spec.parts:
        embedder = ConcatenatedEmbedder([make_embedder(part, loaders) for part in spec.parts])
    else:
        method = METHODS[spec.method]
        embedder = method.make(loaders[method.kind](spec.model_id), **dict(spec.options))
    embedder.spec = spec
    return embedder
