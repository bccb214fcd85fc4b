"""The layer dynamics page below its title, which shows one of its views."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from neuralviz.errors import NeuralvizError, SettingsError, TextError
from neuralviz.evaluation.best_layer import BEST_OF_ALL, MeasuredPooling
from neuralviz.headlines import layers as headlines
from neuralviz.headlines.micro_tuning import describe_settings, describe_warnings, warn_of_unread
from neuralviz.jobs import Run
from neuralviz.jobs.layers import FollowedText, FollowText, FollowWords, MeasureLayers
from neuralviz.jobs.micro_tuning import TuneBlocks
from neuralviz.layers.geometry import (
    TokenStates,
    cosine_maps,
    followed_words,
    mean_map,
    offset_diagonals,
    word_importance,
)
from neuralviz.layers.settings import (
    PARTS,
    POOLING_NAMES,
    VARIANT_NAMES,
    VARIANTS,
    WIDEST_WINDOW,
    SbertWkSettings,
    check_sbert_wk,
    is_noise,
    kind_in_words,
    kinds_of_blocks,
)
from neuralviz.micro_tuning.events import RunRecord
from neuralviz.models import TextModel
from neuralviz.models.language_model import Layer
from neuralviz.models.shared import ModelRef, shared_text_model
from neuralviz.paths import sample_data
from neuralviz.plots import layers as plots
from neuralviz.plots.report import About
from neuralviz.plots.theme import GREEN, shorten
from neuralviz.reading.pairs import read_pairs
from neuralviz.reading.source import Source
from neuralviz.reading.texts import ReadTexts, read_texts
from neuralviz.ui.address import remember_number, write
from neuralviz.ui.choices import (
    REMEMBERED,
    choose_masked_model,
    choose_one,
    choose_text_model,
    load_model_or_none,
    may_load,
)
from neuralviz.ui.downloads import table_files
from neuralviz.ui.figures import (
    allow_swiping,
    list_cells,
    list_worst,
    quote,
    show_figure,
    show_html,
    show_table,
)
from neuralviz.ui.inputs import (
    ALL_EXAMPLES,
    VIEW,
    ask_text_fields,
    ask_texts,
    choose_pairs,
    put_texts_in_address,
    put_upload_in_address,
)
from neuralviz.ui.micro_tuning import ask_epochs_and_rate, check_choices, find_layers
from neuralviz.ui.page import (
    USER_SOURCES,
    dim_old_results,
    is_tour_at,
    plain,
    show_error,
    show_only_on_stage,
    slide,
    stage_step,
    wide_columns,
)
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.words import many, name_texts, number

if TYPE_CHECKING:
    from neuralviz.evaluation.layer_pairs import LayerPairs
    from neuralviz.layers.words import TokenWeights, WordVariances

Draw = Callable[..., object]


def show() -> None:
    tab = choose_one(
        st.segmented_control,
        "View",
        list(TABS),
        key="layers-view",
        on_change=_forget_texts,
        persist_state="session",
        label_visibility="collapsed",
    )
    if not is_tour_at("Layer dynamics"):
        _lead_through_tabs(tab)
    TABS[tab]()


def _lead_through_tabs(tab: str) -> None:
    """Buttons that the stage presses at the ends of a tab."""
    tabs = list(TABS)
    place = tabs.index(tab)
    key = stage_step(place + 1, len(tabs))
    with show_only_on_stage("views"), st.container(key=key, horizontal=True):
        for label, moved in (("Back", -1), ("Next", 1)):
            other = tabs[(place + moved) % len(tabs)]
            is_last = not 0 <= place + moved < len(tabs)
            st.button(
                label,
                key=f"stage-{label.lower()}",
                on_click=_open_tab,
                args=(other,),
                disabled=is_last,
            )


def _open_tab(tab: str) -> None:
    st.session_state["layers-view"] = tab
    _forget_texts()


def _forget_texts() -> None:
    """Take the last tab's texts out of the address: each tab has its own."""
    write({VIEW: ""})


# --- a text: how its tokens change from layer to layer, and SBERT-WK's weights --------------------


TEXT_KEY = "layers-text"
TEXT_RUNS = SessionRuns(TEXT_KEY)
PATIENCE = 1.0  # seconds: enough to read most texts
BY_DEPTH = "One third of the way"
MEAN = -1  # in place of a token's number
STRONGEST = 60  # per cent of colour behind the most important word, which stays readable
EXAMPLES: dict[str, str] = ALL_EXAMPLES["layers"]


def ask_text() -> str:
    examples = {name: {"followed-text": text} for name, text in EXAMPLES.items()}
    (text,) = ask_text_fields("followed", {"Text": EXAMPLES["Two banks"]}, examples, height=100)
    return text


def ask_more_figures() -> bool:
    """A switch for the further figures of a view."""
    return st.toggle("More figures", key="layers-more", **REMEMBERED)


def _show_text() -> None:
    inputs, output = wide_columns([2, 3], TEXT_KEY)
    with inputs:
        text = ask_text()
        model = load_model_or_none(choose_text_model(), shared_text_model)
        if model is None:
            return
        task = FollowText(ModelRef.from_id(model.id), text, _choose_settings(model))
    run = TEXT_RUNS.start(task)
    sentences = RunSentences(
        start="Running the model …",
        error_advice="Showing the last valid text."
        if TEXT_RUNS.last_with_result() is not None
        else "",
        done="",
    )
    with output:
        show_run_panel(TEXT_RUNS, run, _show_turns, sentences=sentences, patience=PATIENCE)
    latest = TEXT_RUNS.last_with_result()
    if latest is not None and ask_more_figures():
        with dim_old_results(f"{TEXT_KEY}-more", latest is not run):
            draw = partial(show_figure, provenance=_describe_text(latest))
            _show_maps(latest.result.states, draw)
            _show_layer_weights(latest.result.states, latest.result.weights, draw)


def _choose_settings(model: TextModel) -> SbertWkSettings:
    windows = list(range(1, min(WIDEST_WINDOW, model.n_blocks) + 1))
    with st.expander("SBERT-WK settings", icon=":material/tune:"):
        columns = [*st.columns(2), *st.columns(2)]
        variant = columns[0].selectbox(
            "Variant",
            VARIANTS,
            format_func=VARIANT_NAMES.__getitem__,
            key="layers-variant",
            **REMEMBERED,
            help=(
                "The authors' program, which produced the paper's tables, differs from the "
                "paper's equations: for the first layers it uses only later layers, and it "
                "measures alignment with a layer's projection onto its neighbouring layers."
            ),
        )
        start = columns[1].selectbox(
            "First layer",
            [BY_DEPTH, *map(str, range(model.n_blocks))],
            key="layers-first",
            **REMEMBERED,
            help="Layers before this one are ignored. The paper starts at layer 4 of 12.",
        )
        window = columns[2].selectbox(
            "Layer window",
            windows,
            index=min(1, len(windows) - 1),
            key="layers-window",
            **REMEMBERED,
            help="Number of layers on each side that a layer is compared with.",
        )
        omega = columns[3].slider(
            "Omega: weight of alignment",
            0.0,
            1.0,
            0.5,
            0.1,
            key="layers-omega",
            **REMEMBERED,
            help="Novelty gets the rest.",
        )
    layer_start = None if start == BY_DEPTH else int(start)
    return check_sbert_wk(
        model, variant=variant, layer_start=layer_start, window=window, omega=round(omega, 1)
    )


def _describe_text(run: Run[FollowedText]) -> About:
    followed, settings = run.result, run.result.weights.settings
    return About(
        "A text, layer by layer",
        {
            "text": shorten(followed.states.text.text, 60),
            "model": run.task.model.id,
            "SBERT-WK": (
                f"{VARIANT_NAMES[settings.variant].lower()}, first layer {settings.layer_start}, "
                f"layer window {settings.window}, omega {settings.omega:g}"
            ),
        },
    )


def _show_turns(result: FollowedText | None, live: bool) -> None:
    """Draw the headline, the text with its important words, and how far the words turn."""
    latest = TEXT_RUNS.last_with_result()
    if latest is None:
        return
    states, weights = latest.result.states, latest.result.weights
    if states.is_cut:
        st.info(
            f"The text has {len(states.text):,} tokens, more than fit in the model's window, so "
            "it is read in parts. Only the first one is shown: "
            f"{len(states.tokens):,} tokens, special tokens included.",
            icon=":material/content_cut:",
        )
    words, provenance = followed_words(states, weights.importance), _describe_text(latest)
    shares = word_importance(states, weights.importance)
    punctuation = float(shares.sum()) - sum(word.importance for word in words)
    headline = plain(headlines.describe_text(words, weights, punctuation))
    with dim_old_results(TEXT_KEY, latest.result is not result), slide(TEXT_KEY, headline):
        if states.text.looks_foreign:
            st.warning(plain(warn_of_unread("this text", latest.task.model.id)))
        _show_importance(states, weights, provenance)
        if words:
            turns = np.array([word.turns for word in words])
            axes = {"word": [word.word for word in words], "layer": range(1, turns.shape[1] + 1)}
            importance = np.repeat([word.importance for word in words], turns.shape[1])
            n_named = min(headlines.NAMED, max(1, len(words) - 1))
            show_figure(
                plots.turns_figure(words, n_named, int(weights.layers[0])),
                "turns-of-words-by-layer",
                lambda: list_cells(axes, importance=importance, turn=turns),
                provenance,
                height=330,
            )
        st.caption(
            "Each point is 1 minus the cosine of a word's vectors before and after a layer: the "
            "higher, the further the layer turns the word. In colour: the most important words."
        )


def _show_importance(states: TokenStates, weights: TokenWeights, provenance: About) -> None:
    """Draw the text, its words coloured by their share of the sentence vector."""
    shares, text = word_importance(states, weights.importance), states.text.text
    highest = max(float(shares.max(initial=0.0)), 1e-12)
    parts, words, end_before = [], [], 0
    for (start, end), share in zip(states.text.word_spans, shares, strict=False):
        words.append(text[start:end])
        parts.append(
            f'{html.escape(text[end_before:start])}<span title="{share:.1%}" style="background: '
            f'{_tint(share / highest)}; padding: 0.1em 0.12em; border-radius: 0.25em">'
            f"{html.escape(words[-1])}</span>"
        )
        end_before = max(end, end_before)
    token_words = states.text.words[: states.n_counted - states.n_prefix]
    table = pd.DataFrame(
        {
            "position": range(states.n_counted),
            "token": states.counted,
            "word": [""] * states.n_prefix + [words[i] for i in token_words],
            "importance": weights.importance,
        }
    )
    show_html(
        '<div dir="auto" style="font-size: 1.35em; line-height: 1.9; white-space: pre-wrap; '
        f'overflow-wrap: anywhere; max-height: 7.6em; overflow-y: auto">{"".join(parts)}</div>',
        f"{TEXT_KEY}-importance",
        title="Importance of tokens",
        files=table_files(table, "token-importance", provenance),
    )
    with show_only_on_stage("importance"):
        st.markdown(headlines.TEXT_IN_SHORT)
    st.caption(f"Words in colour by importance, up to {highest:.1%}.")


def _tint(strength: float) -> str:
    return f"color-mix(in srgb, {GREEN} {STRONGEST * strength:.0f}%, transparent)"


def _show_maps(states: TokenStates, draw: Draw) -> None:
    """Draw the cosine map of a token or of their mean, and its offset diagonals."""
    st.subheader("How the vectors change direction", anchor=False)
    names = {MEAN: f"Mean over {many(states.n_counted, 'token')}"}
    names |= {i: f"{i}. {shorten(token, 40)}" for i, token in enumerate(states.tokens)}
    key = f"{TEXT_KEY}-token"
    remember_number(key, range(MEAN, len(states.tokens)), MEAN, states.tokens)
    token = st.selectbox(
        "Token",
        list(names),
        format_func=names.__getitem__,
        key=key,
        persist_state="session",
        width=360,
        help="The mean includes the text's tokens and [CLS], as in SBERT-WK.",
    )
    if token == MEAN:
        cosines, source, subject, value = (
            mean_map(states),
            "token mean",
            "words",
            "mean of 1 − cosine",
        )
    else:
        cosines = cosine_maps(states.vectors[:, token : token + 1])[0]
        source = subject = f"“{shorten(states.tokens[token], 20)}”"
        value = "1 − cosine"
    layers, diagonals = range(len(cosines)), offset_diagonals(cosines)
    table = pd.DataFrame(
        [
            (offset, layer, layer + offset, value)
            for offset, values in diagonals.items()
            for layer, value in enumerate(values)
        ],
        columns=["offset", "layer", "other layer", "cosine"],
    )
    with slide(f"{TEXT_KEY}-maps", plain(headlines.describe_map(cosines, subject, value))):
        map_column, diagonals_column = wide_columns(2, f"{TEXT_KEY}-maps")
        with map_column:
            draw(
                plots.cosine_map_figure(cosines, source),
                "cosine-similarity-between-layers",
                list_cells({"layer": layers, "other layer": layers}, cosine=cosines),
                height=440,
            )
        with diagonals_column:
            figure = plots.diagonals_figure(diagonals, source)
            draw(figure, "cosine-similarity-by-layer-distance", table, height=440)
            st.caption(
                "Each line is a diagonal of the heatmap. A token's importance is the variance of "
                "its top line from the chosen *first layer* on."
            )


def _show_layer_weights(states: TokenStates, weights: TokenWeights, draw: Draw) -> None:
    """Draw alignment, novelty and both together, token by token."""
    st.subheader("Which layers shape a word's vector", anchor=False)
    kinds = {name: getattr(weights, name) for name in ("alignment", "novelty", "combined")}
    titled = {name.title(): values for name, values in kinds.items()}
    axes = {"position": range(states.n_counted), "layer": weights.layers}
    tokens = np.repeat(states.counted, len(weights.layers))
    with slide(f"{TEXT_KEY}-weights"), allow_swiping(f"{TEXT_KEY}-scrolled", 720):
        draw(
            plots.weights_figure(titled, weights.layers, states.counted),
            "layer-weights",
            lambda: list_cells(axes, token=tokens, **kinds),
        )
    if states.n_counted > plots.MAX_TOKENS:
        st.caption(f"Showing the first {plots.MAX_TOKENS} of {states.n_counted:,} tokens.")
    st.caption(
        "**Alignment** is high where a layer points away from its neighbouring layers, **novelty** "
        "where it contains something they do not. "
        f"**Combined** is {weights.settings.omega:.0%} alignment and "
        f"{1 - weights.settings.omega:.0%} novelty."
    )


# --- a corpus: words by how unevenly they change --------------------------------------------------


CORPUS_KEY = "layers-words"
CORPUS_RUNS = SessionRuns(CORPUS_KEY)
MAX_TEXTS = 5000
NAMED_WORDS = 7  # of the most uneven words, and of the least uneven


def _show_corpus() -> None:
    inputs, output = wide_columns([2, 3], CORPUS_KEY)
    with inputs:
        model_id = choose_text_model()
        texts = ask_texts(CORPUS_KEY, {"Sample sentences": _read_sample()}, MAX_TEXTS).texts
    if not texts or not may_load(model_id):
        return
    if st.session_state[f"{CORPUS_KEY}-source"] in USER_SOURCES:
        put_texts_in_address(CORPUS_KEY, texts)
    run = CORPUS_RUNS.start(FollowWords(ModelRef.from_id(model_id), tuple(texts)))
    result: WordVariances | None = run.result if run.is_over else None
    least = None
    if result is not None:
        key, most = f"{CORPUS_KEY}-least", int(result.occurrences.max(initial=1))
        remember_number(key, range(1, most + 1), result.default_min_count(), run.task)
        least = inputs.number_input(
            "Minimum number of occurrences",
            1,
            most,
            key=key,
            persist_state="session",
            help=(
                "The variance of a rare word depends more on its few sentences than on the "
                "word itself. The paper uses words that occur more than 50 times."
            ),
        )
    with output:
        show_run_panel(CORPUS_RUNS, run, partial(_show_extremes, least, texts))


@st.cache_data(max_entries=1, show_spinner=False)
def _read_sample() -> ReadTexts:
    """All sentences of the sample data, each once."""
    folder = sample_data()
    pairs = read_pairs(Source.from_path(folder / "scored_pairs.csv"))
    texts = [*pairs.sentences1, *pairs.sentences2]
    for name in ("sentences.csv", "triplet_groups.csv"):
        texts += read_texts(Source.from_path(folder / name)).texts
    return ReadTexts(tuple(dict.fromkeys(texts)))


def _are_samples(texts: Iterable[str]) -> bool:
    return set(texts) <= set(_read_sample().texts)


def _describe_corpus(result: WordVariances, least: int) -> About:
    return About(
        "Words by how unevenly they turn from layer to layer",
        {
            "texts": f"{result.n_read:,}",
            "words": f"that occur {least:,} times or more" if least > 1 else "all",
            "model": result.model_id,
        },
    )


def _show_extremes(
    least: int | None, texts_read: Iterable[str], result: WordVariances | None, live: bool
) -> None:
    """Draw the headline, and the words that turn most and least unevenly."""
    if result is None:
        return
    if result.foreign:
        st.warning(plain(warn_of_unread(name_texts(result.foreign), result.model_id)))
    least = least or result.default_min_count()
    try:
        words = result.rank(least)
    except SettingsError as error:
        if not live:
            show_error(error)
        return
    n = min(NAMED_WORDS, len(words) // 2)
    drawn = pd.concat([words.tail(n)[::-1], words.head(n)[::-1]])
    texts = many(result.n_read, "sample sentence" if _are_samples(texts_read) else "text")
    ranked = words["word"].tolist(), words["variance"].to_numpy()
    sentence = headlines.describe_corpus(*ranked, texts)
    with slide(CORPUS_KEY, plain(sentence)):
        with show_only_on_stage(CORPUS_KEY):
            st.markdown(headlines.EXPLAIN_CORPUS)
        figure, provenance = plots.words_figure(drawn), _describe_corpus(result, least)
        show_figure(figure, "words-by-variance", words, provenance)
    if not live:
        occurrences = many(int(words["occurrences"].sum()), "occurrence")
        st.caption(
            f"{many(len(words), 'word')} with {occurrences} in {many(result.n_read, 'text')}. Each "
            "dot is a word, placed at its variance: that of the cosines between its vectors at "
            "consecutive layers, averaged over its occurrences. Special tokens, punctuation and "
            "symbols are excluded, and case is ignored."
        )
        with st.expander("All words, in three groups of equal size"):
            variance = st.column_config.NumberColumn(format="%.5f")
            show_table(words, f"{CORPUS_KEY}-words", column_config={"variance": variance})


# --- scored pairs: layers, poolings and the parts of SBERT-WK -------------------------------------


PAIRS_KEY = "layers-pairs"
PAIRS_RUNS = SessionRuns(PAIRS_KEY)
MAX_PAIRS = 1000
MOST_DISAGREEING = 20
COEFFICIENTS = {"Spearman": "spearman", "Pearson": "pearson", "Kendall tau-b": "kendall_b"}
_NUMBERS = {**COEFFICIENTS, "Kendall tau-c": "kendall_c", "pairs": "n"}  # columns of tables


def _show_pairs() -> None:
    inputs, output = wide_columns([2, 3], PAIRS_KEY)
    with inputs:
        model_id = choose_text_model()
        pairs = choose_pairs(PAIRS_KEY, MAX_PAIRS)
        coefficient = choose_one(
            st.segmented_control,
            "Correlation",
            list(COEFFICIENTS),
            key="layers-coefficient",
            persist_state="session",
            help=(
                "Spearman and Kendall compare only the order of the pairs. Pearson "
                "measures a linear relation."
            ),
        )
    if pairs is None or not may_load(model_id):
        return
    put_upload_in_address(PAIRS_KEY)
    run = PAIRS_RUNS.start(MeasureLayers(ModelRef.from_id(model_id), pairs))
    with output:
        show_run_panel(PAIRS_RUNS, run, partial(_show_best_layer, coefficient))
    if run.is_over and run.result is not None and ask_more_figures():
        draw = partial(show_figure, provenance=_describe_pairs(run.result))
        _show_parts(run.result, coefficient, draw)
        _show_scatter(run.result, coefficient, draw)


def _describe_pairs(result: LayerPairs) -> About:
    title = f"Layers against human scores on {many(len(result.pairs), 'pair')}"
    return About(title, {"model": result.model_id})


def _get_values(measured: Iterable[MeasuredPooling], coefficient: str) -> list[float]:
    return [getattr(row.correlation, COEFFICIENTS[coefficient]) for row in measured]


def draw_layers(
    by_layer: Mapping[str, Sequence[MeasuredPooling]],
    coefficient: str,
    *,
    is_whole: bool,
    noun: str = "sentence pair",
) -> tuple[str, go.Figure]:
    """A sentence on the layer that agrees best with the scores, and the figure of all layers."""
    sentence, best = headlines.describe_best_layer(
        by_layer, COEFFICIENTS[coefficient], coefficient, is_whole=is_whole, noun=noun
    )
    values = {name: _get_values(layers, coefficient) for name, layers in by_layer.items()}
    place = (best.pooling, best.layer) if best is not None else None
    return sentence, plots.layer_figure(values, coefficient, place)


def tabulate_coefficients(
    heads: tuple[str, str],  # of the two columns that say which one it is
    measured: Mapping[str, Sequence[MeasuredPooling] | Mapping[str, MeasuredPooling]],
    first: int = 0,  # number of the first in a sequence
) -> pd.DataFrame:
    """A row for everything measured, with all coefficients."""
    numbered = {
        name: rows if isinstance(rows, Mapping) else dict(enumerate(rows, first))
        for name, rows in measured.items()
    }
    rows = [
        (name, place, *(getattr(row.correlation, field) for field in _NUMBERS.values()))
        for name, places in numbered.items()
        for place, row in places.items()
    ]
    return pd.DataFrame(rows, columns=[*heads, *_NUMBERS])


def _show_best_layer(coefficient: str, result: LayerPairs | None, live: bool) -> None:
    """Draw which layer agrees best with the scores, and how well all layers do."""
    if result is None:
        return
    if np.ptp(result.pairs.scores) == 0:
        st.warning("All pairs have the same human score, so the correlation is undefined.")
    noun = "sample " * _are_samples(result.pairs.sentences1) + "sentence pair"
    sentence, figure = draw_layers(result.by_layer, coefficient, is_whole=not live, noun=noun)
    table = tabulate_coefficients(("pooling", "layer"), result.by_layer)
    with slide(PAIRS_KEY, sentence):
        with show_only_on_stage(PAIRS_KEY):
            st.markdown(headlines.explain_layers(coefficient, sentence))
        show_figure(figure, "correlation-by-layer", table, _describe_pairs(result))
    st.caption(BEST_OF_ALL)


def _show_parts(result: LayerPairs, coefficient: str, draw: Draw) -> None:
    """Draw the parts of SBERT-WK and the effect of its settings."""
    st.subheader("SBERT-WK on these pairs", anchor=False)
    variant = choose_one(
        st.segmented_control,
        "SBERT-WK variant",
        VARIANTS,
        format_func=VARIANT_NAMES.__getitem__,
        key="layers-pairs-variant",
        persist_state="session",
        help=(
            "The authors' program, which produced the paper's tables, differs from the "
            "paper's equations in three places."
        ),
    )
    parts = result.ablation[variant]
    headline = headlines.describe_parts(
        parts[PARTS["all"]], parts[PARTS["last"]], COEFFICIENTS[coefficient], coefficient
    )
    values = dict(zip(parts, _get_values(parts.values(), coefficient), strict=True))
    by_variant = {VARIANT_NAMES[name]: measured for name, measured in result.ablation.items()}
    table = tabulate_coefficients(("variant", "part"), by_variant)
    with slide(f"{PAIRS_KEY}-ablation", headline):
        draw(plots.ablation_figure(values, coefficient), "ablation", table)
    st.caption(
        "SBERT-WK (green) and the mean of the last layer (blue), all without [SEP]. "
        "*Alignment* and *novelty* weight the layers of each token; *token importance* "
        "weights the tokens of a sentence."
    )
    with slide(f"{PAIRS_KEY}-sweeps"):
        columns = wide_columns(2, f"{PAIRS_KEY}-sweeps")
        for column, setting in zip(columns, ("layer window", "first layer"), strict=True):
            with column:
                _show_sweep(result, coefficient, setting, draw)


def _show_sweep(result: LayerPairs, coefficient: str, setting: str, draw: Draw) -> None:
    """Draw how the result depends on one of the two settings."""
    measured, first = result.layer_starts, 0
    if setting == "layer window":
        measured, first = result.windows, 1
    lines = {name: _get_values(row, coefficient) for name, row in measured.items()}
    figure = plots.sweep_figure(
        range(first, first + len(next(iter(lines.values())))),
        lines,
        plain=_get_values([result.ablation["authors"][PARTS["last"]]], coefficient)[0],
        axis=setting,
        coefficient=coefficient,
    )
    by_variant = {VARIANT_NAMES[name]: row for name, row in measured.items()}
    table = tabulate_coefficients(("variant", setting), by_variant, first)
    draw(figure, f"sbert-wk-{setting}", table)


def _show_scatter(result: LayerPairs, coefficient: str, draw: Draw) -> None:
    """Draw every pair, and list those on which scores and cosines disagree most."""
    st.subheader("Pair by pair", anchor=False)
    last = len(result.by_layer["mean"]) - 1
    with st.container(horizontal=True, gap="large"):
        pooling = st.selectbox(
            "Pooling",
            list(result.by_layer),
            format_func=POOLING_NAMES.__getitem__,
            key="layers-pairs-pooling",
            width=300,
            **REMEMBERED,
        )
        layer_key = f"layers-pairs-layer-of-{last}"
        layers = range(last + 1)
        layer = st.selectbox("Layer", layers, last, key=layer_key, width=140, **REMEMBERED)
    pairs, measured = result.pairs, result.by_layer[pooling][layer]
    table = pd.DataFrame(
        {
            "sentence1": pairs.sentences1,
            "sentence2": pairs.sentences2,
            "score": pairs.scores,
            "cosine": measured.cosines,
            **pairs.labels,
        }
    )
    value = number(_get_values([measured], coefficient)[0], ".3f")
    sentences = list(zip(pairs.sentences1, pairs.sentences2, strict=True))
    kinds, title = pairs.labels.get("kind"), f"Score and cosine: {coefficient} {value}"
    figure = plots.scatter_figure(measured.cosines, pairs.scores, sentences, kinds, title)
    draw(figure, "pairs", table, height=520)
    st.caption(
        "Each dot is a pair; hover over it to read the sentences. At the lower right, the cosine "
        "similarity is high but the human score is low."
    )
    ranks = table[["score", "cosine"]].rank(pct=True)
    disagreement = (ranks["cosine"] - ranks["score"]).abs().sort_values(ascending=False)
    st.markdown("**Pairs with the largest disagreement**")
    worst = table.loc[disagreement.index[:MOST_DISAGREEING]]
    list_worst(worst.rename(columns={"score": "human score"}), f"{PAIRS_KEY}-worst")


# --- change by block: what micro-tuning on a text changes -----------------------------------------


BLOCKS_KEY = "layers-marks"
BLOCKS_RUNS = SessionRuns(BLOCKS_KEY)
MEASURES = {"per value": "Root mean square change", "norm": "Norm of the delta"}


def _show_blocks() -> None:
    inputs, output = wide_columns([2, 3], BLOCKS_KEY)
    run: Run[RunRecord] | None = None
    with inputs:
        model_id = choose_masked_model()
        text = ask_text()
        choice = find_layers(model_id)
        if choice is not None:
            run = _ask_run(model_id, text, choice[0])
        measure = choose_one(
            st.segmented_control,
            "Measure",
            list(MEASURES),
            format_func=MEASURES.__getitem__,
            key="layers-measure",
            persist_state="session",
            label_visibility="collapsed",
        )
        epoch_place = st.container()
    is_old, run = run is None, run or BLOCKS_RUNS.last_to_show()
    if run is None:
        return
    epoch = None
    with epoch_place:
        if is_old:
            st.caption(
                "The result is of another text or other settings. Press **Tune** to update it."
            )
        if run.is_over and run.result.epochs_reached:
            epoch = n_epochs = run.result.epochs_reached
            if n_epochs > 1:
                key, numbers = f"{BLOCKS_KEY}-epoch", range(1, n_epochs + 1)
                remember_number(key, numbers, n_epochs, run.task)
                epoch = st.slider("Epoch shown", 1, n_epochs, key=key, persist_state="session")
            _show_loss(run.result)
    with output, dim_old_results(BLOCKS_KEY, is_old):
        show_run_panel(BLOCKS_RUNS, run, partial(_show_changes, run, measure, epoch))
        if epoch is not None and ask_more_figures():
            _show_kinds(run, measure, epoch)


def _ask_run(model_id: str, text: str, layers: Sequence[Layer]) -> Run[RunRecord] | None:
    """Ask for a run's settings; *Tune* or a first visit starts it. None if the last run differs."""
    button = st.container()
    with st.expander("Settings", icon=":material/tune:"):
        kinds = _choose_kinds(layers)
        epochs, learning_rate = ask_epochs_and_rate("layers-epochs", "layers-rate")
    pressed = button.button(
        "Tune", type="primary", icon=":material/play_arrow:", key=f"{BLOCKS_KEY}-tune"
    )
    last = BLOCKS_RUNS.last()
    chosen = tuple(layer for layer in layers if layer.block is not None and layer.kind in kinds)
    try:
        settings = check_choices([layer.name for layer in chosen], epochs, learning_rate)
        if not text.strip():
            raise TextError("The text is empty. Enter at least one word.")
    except NeuralvizError as error:
        if pressed or last is None:
            show_error(error, "Showing the last run instead." if BLOCKS_RUNS.last_to_show() else "")
        return None
    task = TuneBlocks(ModelRef.from_id(model_id), (text,), settings, chosen)
    if pressed or last is None:
        return BLOCKS_RUNS.start(task, again=True)
    return last if last.task == task else None


def _choose_kinds(layers: Sequence[Layer]) -> list[str]:
    kinds = kinds_of_blocks(layers)
    key, first = "layers-kinds", [kind for kind in kinds if not is_noise(kind)]
    if not set(st.session_state.get(key, first)) <= set(kinds):  # another model may have others
        st.session_state[key] = first
    return st.multiselect(
        "Kinds of layers to tune in every block",
        kinds,
        first,
        format_func=kind_in_words,
        key=key,
        **REMEMBERED,
        help=(
            "The key bias of attention is off by default. It cannot change the model's "
            "output, so its gradient is rounding noise, which AdamW scales up to full steps."
        ),
    )


def _describe_tuning(task: TuneBlocks) -> About:
    settings = task.settings
    return About(
        "What micro-tuning on a text changes, by block",
        {
            "text": shorten(task.texts[0], 60),
            "model": task.model.id,
            **describe_settings(settings),
            "layers": f"{len(settings.layers):,}",
        },
    )


def _show_changes(
    run: Run[RunRecord], measure: str, epoch: int | None, record: RunRecord, live: bool
) -> None:
    """Draw how much each block has changed."""
    if not record.epochs_reached:
        return
    for warning in describe_warnings(record):
        st.warning(plain(warning))
    if live or epoch is None:
        epoch = record.epochs_reached
    changes = list_changes(run.task.layers, record.delta_norm[: record.epochs_reached, 0])
    by_block = join_blocks(changes[changes["epoch"] == epoch], per_value=measure == "per value")
    text = quote(run.task.texts[0])
    with slide(BLOCKS_KEY, headlines.describe_blocks(by_block, epoch, text)):
        with show_only_on_stage(BLOCKS_KEY):
            st.markdown(headlines.EXPLAIN_BLOCKS)
        show_figure(
            plots.blocks_figure(by_block, MEASURES[measure], f"epoch {epoch}"),
            "change-by-block",
            pd.DataFrame({"block": list(by_block), measure: list(by_block.values())}),
            _describe_tuning(run.task),
            key=f"{BLOCKS_KEY}-blocks-{run.id}",
            height=330,
        )
    st.caption(
        "The norm of a delta grows with the number of its values; the root mean square does not."
    )


def _show_kinds(run: Run[RunRecord], measure: str, epoch: int) -> None:
    """Draw how much each kind of layer has changed in each block."""
    layers, record = run.task.layers, run.result
    changes = list_changes(layers, record.delta_norm[: record.epochs_reached, 0])
    column = "root_mean_square" if measure == "per value" else "norm"
    shown, kinds = changes[changes["epoch"] == epoch], kinds_of_blocks(layers)
    figure = plots.marks_figure(
        shown.pivot(index="kind", columns="block", values=column).reindex(kinds),
        measure=MEASURES[measure],
        moment=f"epoch {epoch}",
    )
    with allow_swiping(f"{BLOCKS_KEY}-scrolled", 480):
        show_figure(
            figure,
            "change-by-block-and-kind-of-layer",
            changes,
            _describe_tuning(run.task),
            key=f"{BLOCKS_KEY}-grid-{run.id}",
            height=max(300, 130 + 30 * len(kinds)),
        )


def _show_loss(record: RunRecord) -> None:
    """Show the last loss, and its course."""
    losses = record.loss[: record.epochs_reached, 0]
    losses = losses[np.isfinite(losses)]
    if len(losses):
        change = f"{losses[-1] - losses[0]:.2f}"
        st.metric(
            "Loss at the masked positions, nats (lower is better)",
            f"{losses[-1]:.2f}",
            delta=f"{change} since epoch 0" if float(change) else None,
            delta_color="inverse",
            chart_data=losses.tolist() if len(losses) > 1 else None,
            chart_type="line",
        )


def list_changes(layers: Sequence[Layer], norms: np.ndarray) -> pd.DataFrame:
    """A row for every layer and epoch, from [epoch, layer] norms of the deltas; blocks from 1."""
    rows = [(layer.name, layer.kind, (layer.block or 0) + 1, layer.size) for layer in layers]
    layers_table = pd.DataFrame(rows, columns=["layer", "kind", "block", "values"])
    table = pd.DataFrame({"epoch": range(1, len(norms) + 1)}).merge(layers_table, how="cross")
    norm = norms.ravel()
    return table.assign(norm=norm, root_mean_square=norm / np.sqrt(table["values"]))


def join_blocks(changes: pd.DataFrame, *, per_value: bool) -> dict[int, float]:
    """The norm of each block's change, or its root mean square, from rows of `list_changes`."""
    squares = changes["norm"].pow(2).groupby(changes["block"]).sum()
    if per_value:
        squares /= changes.groupby("block")["values"].sum()
    return {int(block): float(value) for block, value in np.sqrt(squares).items()}


TABS = {
    "A text": _show_text,
    "A corpus": _show_corpus,
    "Scored pairs": _show_pairs,
    "Change by block": _show_blocks,
}
