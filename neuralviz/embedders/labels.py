"""Names of embedders for people, no two alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from neuralviz.embedders.methods import METHODS
from neuralviz.words import joined

if TYPE_CHECKING:
    from neuralviz.embedders.specs import EmbedderSpec


def method_labels(specs: Sequence[EmbedderSpec]) -> tuple[str, ...]:
    """A label for each spec, as of `method_label`: ``neural, fast, 5 epochs``.

    Behind them in brackets stands what sets it apart from a namesake.
    """
    names = [spec.method for spec in specs]
    labels: list[str] = []
    for spec in specs:
        label = method_label(spec)
        values = [value for part in spec.singles for value in _settings(part)]
        if values and names.count(spec.method) > 1:
            differences = ", ".join(values)
            begun = f"{label[:-1]}, " if label.endswith(")") else f"{label} ("
            label = f"{begun}{differences})"
        labels.append(label if label not in labels else f"{label} · {len(labels) + 1}")
    return tuple(labels)


def labels_by_spec(specs: Iterable[EmbedderSpec]) -> dict[EmbedderSpec, str]:
    """The label of each different spec, as of `method_labels`."""
    different = list(dict.fromkeys(specs))
    return dict(zip(different, method_labels(different), strict=True))


def method_label(spec: EmbedderSpec) -> str:
    """The method's name, and how it learns the texts where it does: ``neural, fast, 5 epochs``.

    Epochs are named where they are not as many as by default.
    """
    parts = [spec.label, spec.precision]
    if spec.epochs:
        noun = "epoch" if spec.epochs == (1,) else "epochs"
        parts.append(f"{joined([str(n) for n in spec.epochs])} {noun}")
    return ", ".join(part for part in parts if part)


def spoken(labels: Sequence[str]) -> tuple[str, ...]:
    """Labels as they are said in a sentence: only names, where no two are alike."""
    short = [label.partition(",")[0] for label in labels]
    return tuple(
        name if short.count(name) == 1 and "(" not in label else label
        for name, label in zip(short, labels, strict=True)
    )


def method_in_full(spec: EmbedderSpec) -> str:
    """The method's name with its model and every setting, for what is downloaded."""
    parts = []
    for part in spec.parts or (spec,):
        options = [f"{name} {_in_words(value)}" for name, value in part.all_options.items()]
        model = part.model_id.rstrip("/").rpartition("/")[2]
        parts.append(f"{part.method} ({', '.join([f'model {model}', *options])})")
    return " + ".join(parts)


def _settings(spec: EmbedderSpec) -> list[str]:
    """What of a spec differs from the method's defaults, in words."""
    in_label = ("precision", "tolerance", "epochs")
    values = [f"{name} {_in_words(value)}" for name, value in spec.options if name not in in_label]
    default = METHODS[spec.method].model_id
    return values + [spec.model_id.rstrip("/").rpartition("/")[2]] * (spec.model_id != default)


def _in_words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
