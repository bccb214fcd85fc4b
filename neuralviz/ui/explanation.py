"""Which words make a pair of texts similar: a view of the page Compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.arrays import unit_vectors
from neuralviz.embedders import EmbedderSpec
from neuralviz.evaluation.explanation import Explanation
from neuralviz.headlines.explanation import NamedPairs, describe_deletions, describe_words
from neuralviz.jobs.comparing import ExplainPair, PairExplanation
from neuralviz.models.shared import ModelRef
from neuralviz.plots.explanation import (
    pairs_figure,
    pairs_height,
    words_figure,
    words_height,
    words_width,
)
from neuralviz.plots.report import About
from neuralviz.plots.theme import escape, shorten
from neuralviz.ui.choices import choose_one
from neuralviz.ui.figures import allow_swiping, show_figure, show_table
from neuralviz.ui.page import hide_on_stage, plain, show_headline, show_on_stage, wide_columns
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.words import joined, number

RUNS = SessionRuns("compare-why")
AS_IS, CENTRED = "As it is", "Minus the mean"
WORDS, ALL_PAIRS, LAYERS = "Words", "All pairs", "Layers"
NO_WORD = "no word"  # the name of what belongs to none
MOST_WORDS = 40  # of a text; longer ones are explained by sentences
LISTED = 6  # pairs of each method
PATIENCE = 0.5  # seconds: enough for most pairs


def show_explanation(
    methods: Mapping[int, tuple[str, EmbedderSpec, np.ndarray]],
    texts: Mapping[str, str],  # two, by name
    models: tuple[ModelRef, ...],
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

    def draw(explained: dict[int, PairExplanation] | None, _live: bool) -> None:
        if explained:
            _show_explained(explained, labels, list(texts))

    sentences = RunSentences(start="Splitting the vectors into parts …", done="")
    show_run_panel(RUNS, run, draw, sentences=sentences, patience=PATIENCE)


def _show_explained(
    explained: Mapping[int, PairExplanation], labels: Mapping[int, str], sides: Sequence[str]
) -> None:
    for place, part in explained.items():
        if part.error:
            st.error(plain(f"{labels[place]}: {part.error}"))
    with hide_on_stage("compare-reading"), st.container(horizontal=True, gap="medium"):
        reading = choose_one(st.segmented_control, "Reading", [AS_IS, CENTRED], key="why-reading")
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
    sentence = describe_words(named, are_equal=first.texts[0] == first.texts[1])
    show_headline(plain(sentence), key="compare-why")
    if detail == WORDS:
        _show_words(chosen, named, sides)
    elif detail == ALL_PAIRS:
        _show_pairs(chosen, named)
    else:
        _show_layers(chosen)
    with hide_on_stage("compare-checks"):
        agreements = {
            labels[place]: part.deletions.agreement
            for place, part in explained.items()
            if part.deletions is not None and part.deletions.agreement is not None
        }
        checks = [describe_deletions(agreements), _name_inexact(chosen)]
        st.caption(plain(" ".join(filter(None, checks))))


def _name_inexact(chosen: Mapping[str, Explanation]) -> str:
    inexact = [method for method, explanation in chosen.items() if not explanation.is_exact]
    if not inexact:
        return ""
    return (
        f"By {joined(inexact)}, no sum of parts is known: what is shown is how the cosine changes "
        "when words are left out."
    )


def _name_pairs(explanations: Sequence[Explanation]) -> list[NamedPairs]:
    """By the first one's words, or by sentences where there are many."""
    first = explanations[0]
    is_short = max(map(len, first.words.spans)) <= MOST_WORDS
    spans = (first.words if is_short else first.sentences).spans
    grouped = [explanation.group(spans) for explanation in explanations]
    return [NamedPairs.of_texts(first.texts, passages) for passages in grouped]


def _show_words(
    chosen: Mapping[str, Explanation], named: Mapping[str, NamedPairs], sides: Sequence[str]
) -> None:
    """Both texts, their words coloured by what they add, and the strongest pairs."""
    first = next(iter(named.values()))
    for axis, (side, names) in enumerate(zip(sides, first[:2], strict=True)):
        sums = {method: pairs.contributions.sum(axis=1 - axis) for method, pairs in named.items()}
        columns = [*names, NO_WORD]
        table = pd.DataFrame({"word": columns, **sums})
        key = f"compare-why-{axis}"
        with allow_swiping(f"{key}-wide", words_width(columns)):
            show_figure(
                words_figure(columns, sums, f"What each word of {side} adds to the cosine"),
                f"words of {side}",
                table,
                _about(chosen),
                key=key,
                height=words_height(len(sums)),
            )
    rest = joined(
        list(dict.fromkeys(filter(None, (name for e in chosen.values() for name in e.rest))))
    )
    with show_on_stage("why-colours"):
        st.caption(
            "The numbers of a row add up to the cosine similarity: orange words make the texts "
            "more alike, purple ones less. Each row has its own range of colours. "
            + plain(f"{NO_WORD.capitalize()}: {joined(list(rest))}." if rest else "")
        )
    rows = [
        {"method": method, sides[0]: a, sides[1]: b, "adds": value}
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


def _show_pairs(chosen: Mapping[str, Explanation], named: Mapping[str, NamedPairs]) -> None:
    for column, (method, pairs) in zip(_columns(named), named.items(), strict=False):
        rest = [name or NO_WORD for name in chosen[method].rest]
        with column:
            _show_matrix(
                [*pairs.first, rest[0]], [*pairs.second, rest[1]], pairs.contributions, method
            )


def _show_layers(chosen: Mapping[str, Explanation]) -> None:
    several = {
        method: explanation
        for method, explanation in chosen.items()
        if max(map(len, explanation.layers)) > 1
    }
    if not several:
        st.caption("None of these methods reads more than one layer.")
        return
    for column, (method, explanation) in zip(_columns(several), several.items(), strict=False):
        names = [
            [name.rpartition("predictions.")[2] for name in side] for side in explanation.layers
        ]
        with column:
            _show_matrix(names[0], names[1], explanation.by_layer, method)


def _columns(shown: Mapping[str, object]) -> list:
    return wide_columns(min(len(shown), 2), "compare-why-columns") * 2


def _show_matrix(
    first: Sequence[str], second: Sequence[str], values: np.ndarray, method: str
) -> None:
    title = f"{escape(method)}: cosine {number(values.sum(), '.3f')}"
    table = pd.DataFrame(values, columns=list(second))
    table.insert(0, "", list(first), allow_duplicates=True)
    show_figure(
        pairs_figure(first, second, values, title),
        f"pairs {method}",
        table,
        key=f"compare-why-pairs-{method}",
        height=pairs_height(len(first)),
    )


def _about(chosen: Mapping[str, Explanation]) -> About:
    texts = next(iter(chosen.values())).texts
    return About("Why?", {f"text {s}": shorten(t, 60) for s, t in zip("AB", texts, strict=True)})
