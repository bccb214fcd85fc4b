"""The command that says which words make two texts similar."""

from __future__ import annotations

import json
from typing import Annotated

import numpy as np
import typer
from rich.text import Text

from neuralviz.cli import options
from neuralviz.cli.console import (
    print_line,
    print_notes,
    printable,
    status,
    stdout,
    stop,
    stop_on_interrupt,
)
from neuralviz.cli.corpus import find_embedder, open_corpus
from neuralviz.embedders import FOR_CORPORA, embedder_specs, make_embedder, split_options
from neuralviz.embedders.base import find_unread
from neuralviz.embedders.specs import labels_by_spec
from neuralviz.errors import Stopped
from neuralviz.evaluation.explanation import Explanation, explain, find_unknown_words
from neuralviz.headlines import plain_headline
from neuralviz.headlines.explanation import NamedPairs, describe_unknown, describe_words
from neuralviz.headlines.micro_tuning import list_unread
from neuralviz.micro_tuning.watching import find_hardly_read
from neuralviz.models.tokens import check_texts
from neuralviz.words import choose_format, number

ORANGE, PURPLE = "#E07B00", "#8F6FDF"
EXPLAINED = ("neural", "mean", "sbert-wk")
N_PAIRS = 6  # that are printed
STRONG, WEAK = 0.5, 0.1  # of the largest sum; weaker words are not coloured

commands = typer.Typer(add_completion=False)


@commands.command("explain")
def explain_texts(
    a: Annotated[str, typer.Argument(help="First text.")],
    b: Annotated[str, typer.Argument(help="Second text.")],
    method: Annotated[list[str] | None, options.declare_methods(", ".join(EXPLAINED))] = None,
    option: Annotated[list[str] | None, options.declare_options()] = None,
    model: options.MethodsModel = None,
    corpus: Annotated[str | None, typer.Option(help="Subtract this saved corpus's mean.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all numbers as JSON.")] = False,
) -> None:
    """Explain the cosine similarity of two texts by pairs of their words."""
    check_texts([a, b])  # checked before a model is loaded
    defaults, typed = FOR_CORPORA if corpus else None, split_options(option or [])
    specs = embedder_specs(method or EXPLAINED, typed, model, defaults=defaults)
    centre, numbers = None, []
    for spec, label in labels_by_spec(specs).items():
        if corpus:
            store, saved = open_corpus(corpus)
            kept = find_embedder(store, saved, spec)
            centre = store.vectors.get(kept, store.keys(saved)).mean(axis=0, dtype=np.float64)
        try:
            with stop_on_interrupt() as should_stop, status(f"{label} …"):
                embedder = make_embedder(spec)
                explanation = explain(embedder, a, b, centre=centre, should_stop=should_stop)
                unread, unknown = find_unread(embedder, [a, b])
                read = [(m, find_hardly_read(m, [a, b], should_stop)) for m in spec.judges]
                notes = list_unread(unread, [("", unknown), *read])
                notes += [describe_unknown(find_unknown_words(embedder, explanation))]
        except (KeyboardInterrupt, Stopped) as error:
            raise stop("Stopped.") from error
        numbers.append(_list_numbers(label, explanation))
        if not as_json:
            _print_explanation(f"{label}, centred on “{corpus}”" if corpus else label, explanation)
        print_notes([f"{label}: {note}" for note in notes if note])
    if as_json:
        typer.echo(json.dumps(numbers, ensure_ascii=False))


def _list_numbers(label: str, explanation: Explanation) -> dict[str, object]:
    spans, contributions = explanation.words
    numbers = {"spans": [side.tolist() for side in spans], "contributions": contributions.tolist()}
    plain = {name: getattr(explanation, name) for name in ("texts", "cosine", "is_exact", "rest")}
    return {"method": label, **plain, **numbers}


def _print_explanation(label: str, explanation: Explanation) -> None:
    pairs = NamedPairs.of_texts(explanation.texts, explanation.words)
    cells, spans = pairs.contributions, explanation.words.spans
    print_line(f"{label}: cosine similarity {number(explanation.cosine, '.4f')}", "bold")
    if not explanation.is_exact:
        print_line("These vectors are no sums of parts. Words were left out in turn.")
    sums = cells.sum(axis=1), cells.sum(axis=0)  # each with what belongs to no word last
    largest = max(float(np.abs(side[:-1]).max()) for side in sums) or 1.0
    sides = zip(explanation.texts, spans, sums, explanation.rest, strict=True)
    for text, places, side, rest in sides:
        stdout().print(_colour_words(text, places, side[:-1], largest))
        if rest:
            print_line(f"  {rest}: {number(float(side[-1]), '+.2f')}")
    strongest = [pair for pair in pairs.strongest(N_PAIRS) if pair[2]]  # none with [CLS] alone
    digits = choose_format([value for *_, value in strongest])
    for first, second, value in strongest:
        verb, colour = ("adds", ORANGE) if value >= 0 else ("subtracts", PURPLE)
        print_line(f"  “{first}” with “{second}” {verb} {abs(value):{digits}}", colour)
    are_equal = explanation.texts[0] == explanation.texts[1]
    print_line(plain_headline(describe_words({explanation.method: pairs}, are_equal=are_equal)))
    print_line()


def _colour_words(text: str, spans: np.ndarray, sums: np.ndarray, largest: float) -> Text:
    """The text with its words in colour, or followed by their sums where there are no colours."""
    has_colours = stdout().color_system is not None and not stdout().no_color
    parts, place = Text(), 0
    for (start, end), value in zip(spans, sums, strict=True):
        strength, colour = abs(value) / largest, ORANGE if value > 0 else PURPLE
        style = f"bold {colour}" if strength >= STRONG else colour if strength >= WEAK else ""
        parts.append(printable(text[place:start])).append(printable(text[start:end]), style)
        parts.append("" if has_colours else f" ({number(value, '+.2f')})")
        place = end
    return parts.append(printable(text[place:]))
