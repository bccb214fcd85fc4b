"""Names of embedders for people, no two alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from neuralviz.words import joined

if TYPE_CHECKING:
    from neuralviz.embedders.specs import EmbedderSpec


def method_labels(specs: Sequence[EmbedderSpec]) -> tuple[str, ...]:
    """A label for each spec, as of `method_label`: ``neural, fast, 5 epochs``.

    Behind them in brackets stands what sets it apart from a namesake: all models, where these
    differ, and every other option that is not the method's default.
    """
    labels: list[str] = []
    for spec in specs:
        label = method_label(spec)
        namesakes = [namesake for namesake in specs if namesake.method == spec.method]
        models = [[part.model_id for part in namesake.singles] for namesake in namesakes]
        names = _short_names(namesakes)
        is_repeated = len({part.method for part in spec.singles}) < len(spec.singles)
        has_models = is_repeated or any(ids != models[0] for ids in models)
        values: list[str] = []
        for part in spec.singles if is_repeated or len(namesakes) > 1 else ():
            values += [*_list_settings(part), *[names[part.model_id]] * has_models]
        if values:
            start = f"{label[:-1]}, " if label.endswith(")") else f"{label} ("
            label = f"{start}{', '.join(values)})"
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


def short_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Labels as they are said in a sentence: only names, where no two are alike."""
    short = [label.partition(",")[0] for label in labels]
    return tuple(
        name if short.count(name) == 1 and "(" not in label else label
        for name, label in zip(short, labels, strict=True)
    )


def part_names(spec: EmbedderSpec) -> dict[str, EmbedderSpec]:
    """The parts of a method, or itself, by name, or by label where two names are alike."""
    parts = spec.parts or (spec,)
    names = [part.method for part in parts]
    labels = method_labels(parts)
    return {
        label if names.count(name) > 1 else name: part
        for name, label, part in zip(names, labels, parts, strict=True)
    }


def full_method_labels(specs: Sequence[EmbedderSpec]) -> tuple[str, ...]:
    """The methods' names with their models and every setting, for what is downloaded."""
    names = _short_names(specs)

    def describe(part: EmbedderSpec) -> str:
        values = {"model": names[part.model_id], **part.all_options}
        words = (f"{name} {_describe_value(value)}" for name, value in values.items())
        return f"{part.method} ({', '.join(words)})"

    return tuple(" + ".join(map(describe, spec.singles)) or spec.label for spec in specs)


def _short_names(specs: Iterable[EmbedderSpec]) -> dict[str, str]:
    """The end of each model's id or path, as long as it takes for no two to be alike."""
    models = {part.model_id for spec in specs for part in spec.singles}
    steps = {model: model.rstrip("/").split("/") for model in models}

    def shorten(model: str) -> str:
        for n in range(1, len(steps[model]) + 1):
            end = steps[model][-n:]
            if all(parts[-n:] != end for name, parts in steps.items() if name != model):
                return "/".join(end)
        return model

    return {model: shorten(model) for model in steps}


def _list_settings(spec: EmbedderSpec) -> list[str]:
    """What of a spec's options differs from the method's defaults, in words."""
    in_label = ("precision", "tolerance", "epochs")
    return [
        f"{name} {_describe_value(value)}" for name, value in spec.options if name not in in_label
    ]


def _describe_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
