"""Which words make a pair of texts similar: a view of the page Compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.arrays import unit_vectors
from neuralviz.embedders import EmbedderSpec
from neuralviz.evaluation.explanation import Explanation
from neuralviz.headlines.explanation import (
    NamedPairs,
    describe_deletions,
    describe_unknown,
    describe_words,
)
from neuralviz.headlines.micro_tuning import short_layer_names
from neuralviz.jobs.comparing import ExplainPair, PairExplanation
from neuralviz.models.shared import ModelRef
from neuralviz.plots.explanation import pairs_figure, words_figure
from neuralviz.plots.report import About
from neuralviz.plots.theme import escape, shorten
from neuralviz.ui.choices import choose_one
from neuralviz.ui.figures import allow_swiping, show_figure, show_table
from neuralviz.ui.page import hide_on_stage, plain, show_headline, show_only_on_stage, wide_columns
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.words import joined, number

RUNS = SessionRuns("compare-why")
AS_IS, CENTRED = "As it is", "Minus the mean"
WORDS, ALL_PAIRS, LAYERS = "Words", "All pairs", "Layers"
READING_HELP = "Minus the mean: without what all compared texts have in common, their mean vector."
NO_WORD = "no word"  # the name of what belongs to none
MOST_WORDS = 40  # of a text; longer ones are explained by sentences
LISTED = 6  # pairs of each method
Matrix = tuple[Sequence[str], Sequence[str], np.ndarray]  # names of rows, of columns, values
PATIENCE = 0.5  # seconds: enough for most pairs


def show_explanation(
    methods: Mapping[int, tuple[str, EmbedderSpec, np.ndarray]],
    texts: Mapping[str, str],  # two, by name
    models: tuple[ModelRef, ...],
    show_terms: Callable[[bool], None],  # of a figure of words, or another
) -> None:
    """Explain a pair by methods: by place, label, specification and vectors of all texts."""
    centres = [
        np.nanmean(unit_vectors(vectors.astype(np.float64)), axis=0).tobytes()
        for _, _, vectors in methods.values()
    ]
    specs = tuple(spec for _, spec, _ in methods.values())
    first, second = texts.values()
    task = ExplainPair(specs, tuple(methods), (first, second), models, tuple(centres))
    run = RUNS.start(task)
    labels = {place: label for place, (label, _, _) in methods.items()}
    # the mean of two unit vectors leaves them opposite, whatever the texts say
    readings = [AS_IS, CENTRED] if len(next(iter(methods.values()))[2]) > 2 else [AS_IS]

    def draw(explained: dict[int, PairExplanation] | None, _live: bool) -> None:
        if explained:
            _show_explained(explained, labels, list(texts), readings, show_terms)

    sentences = RunSentences(start="Splitting the vectors into parts …", done="")
    show_run_panel(RUNS, run, draw, sentences=sentences, patience=PATIENCE)


def _show_explained(
    explained: Mapping[int, PairExplanation],
    labels: Mapping[int, str],
    sides: Sequence[str],
    readings: Sequence[str],
    show_terms: Callable[[bool], None],
) -> None:
    for place, part in explained.items():
        if part.error:
            st.error(plain(f"{labels[place]}: {part.error}"))
    with hide_on_stage("compare-reading"), st.container(horizontal=True, gap="medium"):
        reading = choose_one(
            st.segmented_control, "Reading", readings, key="why-reading", help=READING_HELP
        )
        detail = choose_one(
            st.segmented_control, "Detail", [WORDS, ALL_PAIRS, LAYERS], key="why-detail"
        )
    chosen = {
        labels[place]: explanation
        for place, part in explained.items()
        if (explanation := part.plain if reading == AS_IS else part.centred) is not None
    }
    if not chosen:
        return
    pairs = _name_pairs(list(chosen.values()))
    named = dict(zip(chosen, pairs, strict=True))
    first = next(iter(chosen.values()))
    sentence = describe_words(
        named, sides, are_equal=first.texts[0] == first.texts[1], by_pair=detail == ALL_PAIRS
    )
    show_headline(plain(sentence), key="compare-why")
    with show_only_on_stage("why-texts"):
        show_terms(detail == WORDS and "sentence" not in pairs[0].units)
    if detail == WORDS:
        _show_words(chosen, named, sides)
    else:
        _show_matrices(_list_matrices(chosen, named if detail == ALL_PAIRS else None))
    st.markdown(
        plain(describe_unknown(word for part in explained.values() for word in part.unknown))
    )
    with hide_on_stage("compare-checks"):
        agreements = {
            labels[place]: part.deletions.agreement
            for place, part in explained.items()
            if part.deletions is not None and part.deletions.agreement is not None
        }
        check = describe_deletions(agreements) if reading == AS_IS else ""
        st.caption(plain(" ".join(filter(None, [check, _name_inexact(chosen)]))))


def _name_inexact(chosen: Mapping[str, Explanation]) -> str:
    inexact = [method for method, explanation in chosen.items() if not explanation.is_exact]
    if not inexact:
        return ""
    return (
        f"By {joined(inexact)}, the vectors of these texts are no sums of parts: what is shown is "
        "how the cosine changes when words are left out."
    )


def _name_pairs(explanations: Sequence[Explanation]) -> list[NamedPairs]:
    """By the first one's words, or by the sentences of a text with many words and several."""
    first = explanations[0]
    sides = list(zip(first.words.spans, first.sentences.spans, strict=True))
    is_long = [len(words) > MOST_WORDS and len(sentences) > 1 for words, sentences in sides]
    if any(is_long):
        st.caption(f"A text of more than {MOST_WORDS} words is explained by numbered sentences.")
    spans = [side[long] for side, long in zip(sides, is_long, strict=True)]
    grouped = [explanation.group(spans) for explanation in explanations]
    return [NamedPairs.of_texts(first.texts, passages, *is_long) for passages in grouped]


def _show_words(
    chosen: Mapping[str, Explanation], named: Mapping[str, NamedPairs], sides: Sequence[str]
) -> None:
    """Both texts, their words coloured by what they add, and the strongest pairs."""
    first = next(iter(named.values()))
    for axis, (side, names) in enumerate(zip(sides, first[:2], strict=True)):
        sums = {method: pairs.contributions.sum(axis=1 - axis) for method, pairs in named.items()}
        columns = [*names, NO_WORD]
        table = pd.DataFrame({"word": columns, **sums})
        key, part = f"compare-why-{axis}", first.units[axis]
        title = f"What each {part} of {side} adds to the cosine similarity"
        with allow_swiping(f"{key}-wide", 166 + 46 * len(columns)):
            show_figure(
                words_figure(columns, sums, title),
                f"words of {side}",
                table,
                _describe_pair(chosen),
                key=key,
                height=150 + 44 * len(sums),
            )
    has_rest = any(name for part in chosen.values() for name in part.rest)
    st.markdown(
        "Orange words make the texts more similar, purple ones less, each row in its own range of "
        "colours. A row adds up to its *sum*, the cosine similarity (all are rounded)."
        + " *No word*: what comes from none, such as the marks that a model adds to a text."
        * has_rest
    )
    rows = [
        {"method": method, "adds": value, sides[0]: a, sides[1]: b}
        for method, pairs in named.items()
        for a, b, value in pairs.strongest(LISTED)
    ]
    with hide_on_stage("compare-strongest"):
        show_table(
            pd.DataFrame(rows),
            "compare-strongest-pairs",
            title="The strongest pairs",
            column_config={"adds": st.column_config.NumberColumn(format="%.3f")},
        )


def _list_matrices(
    chosen: Mapping[str, Explanation], named: Mapping[str, NamedPairs] | None
) -> dict[str, Matrix]:
    """By pairs that are ``named``, else by layers, of the methods that have several."""
    matrices: dict[str, Matrix] = {}
    for method, part in chosen.items():
        if named is not None:
            (*names, values), rest = named[method], [name or NO_WORD for name in part.rest]
            matrices[method] = ([*names[0], rest[0]], [*names[1], rest[1]], values)
        elif max(map(len, part.layers)) > 1:
            first, second = map(short_layer_names, part.layers)
            matrices[method] = first, second, part.by_layer
    return matrices


def _show_matrices(matrices: Mapping[str, Matrix]) -> None:
    """What the rows and columns of each method's matrix add to the cosine."""
    if not matrices:
        st.caption("None of these methods reads more than one layer.")
    for place, (method, (first, second, values)) in enumerate(matrices.items()):
        if place % 2 == 0:
            columns = wide_columns(min(len(matrices), 2), f"compare-why-columns-{place}")
        table = pd.DataFrame(values, columns=list(second))
        table.insert(0, "", list(first), allow_duplicates=True)
        title = f"{escape(method)}: cosine {number(values.sum(), '.3f')}"
        figure, key = pairs_figure(first, second, values, title), f"compare-why-pairs-{method}"
        with columns[place % 2]:
            show_figure(figure, f"pairs {method}", table, key=key, height=190 + 26 * len(first))


def _describe_pair(chosen: Mapping[str, Explanation]) -> About:
    texts = next(iter(chosen.values())).texts
    return About("Why?", {f"text {s}": shorten(t, 60) for s, t in zip("AB", texts, strict=True)})
