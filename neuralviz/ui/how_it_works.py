"""The How it works page below its title: a story in four moments, and every step of the method."""

from __future__ import annotations

import html
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from neuralviz.headlines.micro_tuning import (
    describe_settings,
    describe_steps,
    describe_story,
    short_layer_names,
    warn_of_unread,
)
from neuralviz.jobs.micro_tuning import WalkThrough
from neuralviz.micro_tuning.blanks import BLANK, read_hidden_word
from neuralviz.models.shared import ModelRef
from neuralviz.plots import micro_tuning as plots
from neuralviz.plots.report import About
from neuralviz.plots.theme import shorten
from neuralviz.ui.address import remember_number
from neuralviz.ui.choices import choose_one, chosen_model_id, may_load
from neuralviz.ui.downloads import Entry, offer
from neuralviz.ui.figures import show_figure
from neuralviz.ui.inputs import ALL_EXAMPLES, ask_text_fields
from neuralviz.ui.page import (
    ASSETS,
    dim_old_results,
    plain,
    show_headline,
    show_questions,
    show_start_button,
    slide,
    stage_step,
)
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.words import many, number

if TYPE_CHECKING:
    from neuralviz.micro_tuning.walkthrough import Walkthrough

PAGE = "walk"
RUNS = SessionRuns(PAGE, kept=8)
PATIENCE = 0.5  # seconds
NEURONS = 16
STORY = "In two minutes"
HEIGHT = 460  # px
QUOTED = 90  # characters of a text in the settings of its figures
_POSITION = f"{PAGE}-position"
FIELDS = ("First text", "Second text", "Unrelated text")
EXAMPLES: dict[str, list[str]] = ALL_EXAMPLES["how-it-works"]

View: TypeAlias = "Callable[[Walkthrough], None]"


class Step(NamedTuple):
    show: View
    title: str
    sentence: str
    formula: str = ""  # none in the story
    source: str = ""


def show() -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        is_story = _choose_length() == STORY
        show_start_button()
        show_questions()
    steps, key = (MOMENTS, "moment") if is_story else (STEPS, "step")
    number = _show_navigation(key, len(steps))
    place = st.container()
    body = st.container()
    with place, st.expander("Use your own texts", icon=":material/edit:"):
        keys = [f"{PAGE}-{label}".lower() for label in FIELDS]
        examples = {name: dict(zip(keys, texts, strict=True)) for name, texts in EXAMPLES.items()}
        fields = dict(zip(FIELDS, EXAMPLES["Similar"], strict=True))
        texts = ask_text_fields(PAGE, fields, examples)
    with body:
        model_id = chosen_model_id()
        if not may_load(model_id):
            return
        run = RUNS.start(WalkThrough(ModelRef.from_id(model_id), tuple(texts)))
        latest = RUNS.last_with_result()
        last: Walkthrough | None = latest.result if latest is not None else None
        sentences = RunSentences(
            start="The model is training on the texts …",
            error_advice="Showing the last valid texts." if last is not None else "",
            done="",
        )
        draw = partial(_show_step, steps, number, last, tuple(texts))
        show_run_panel(RUNS, run, draw, sentences=sentences, patience=PATIENCE)


def _choose_length() -> str:
    """The story, or every step, which a link to a step opens."""
    lengths = [STORY, "Step by step"]
    opened = lengths["step" in st.query_params]
    return choose_one(
        partial(st.segmented_control, label_visibility="collapsed", width="content"),
        "Length",
        lengths,
        key="length",
        default=opened,
    )


def _show_step(
    steps: Sequence[Step],
    number: int,
    last: Walkthrough | None,
    texts: tuple[str, ...],
    result: Walkthrough | None,
    live: bool,
) -> None:
    step, walk = steps[number - 1], last if live else result or last  # drawn once
    describe = describe_story if steps is MOMENTS else describe_steps
    is_old = walk is not None and tuple(text.text for text in walk.tuning.texts) != texts
    with dim_old_results(PAGE, is_old), slide("step"):
        st.subheader(f"{number}. {step.title}", anchor=False)
        if walk is None:
            st.markdown(step.sentence)
        else:
            answer = plain(describe(walk)[number - 1])
            show_headline(f"{answer}\n\n{step.sentence}", key=f"{PAGE}-step")
            if steps is MOMENTS and walk.is_hardly_read:
                st.warning(plain(warn_of_unread("text 1", walk.tuning.model_id)))
            step.show(walk)
    if walk is not None and step.show in MORE:
        with slide("step-more"):
            MORE[step.show](walk)
    if step.formula:
        with st.expander("The formula", icon=":material/function:"):
            st.markdown(step.formula)
            st.caption(f"Neural Embeddings for Text, {step.source}")


def _show_navigation(key: str, n_steps: int) -> int:
    """Buttons for the steps; returns the number of the chosen step."""
    with st.container(horizontal=True, vertical_alignment="center"):
        place = st.container(horizontal=True, width="content")  # of buttons, once the step is known
        number = choose_one(
            st.pills,
            "Step",
            range(1, n_steps + 1),
            key=key,
            label_visibility="collapsed",
            wrap=True,  # on a phone
        )
    buttons = place.container(horizontal=True, width="content", key=stage_step(number, n_steps))
    move = partial(buttons.button, on_click=_move)
    move("Back", "stage-back", args=(key, -1, n_steps), shortcut="Left", disabled=number == 1)
    move(
        "Next",
        "stage-next",
        args=(key, 1, n_steps),
        type="primary",
        shortcut="Right",
        disabled=number == n_steps,
    )
    return number


def _move(key: str, n_moved: int, n_steps: int) -> None:
    step = st.session_state[key] or 1  # as in `choose_one`
    st.session_state[key] = min(max(step + n_moved, 1), n_steps)


# --- what each step shows ------------------------------------------------------------------------


def _draw(walk: Walkthrough, figure: go.Figure, key: str) -> None:
    settings = {"text": shorten(walk.text.text, QUOTED), **describe_settings(walk.settings)}
    height = figure.layout.height or HEIGHT
    show_figure(figure, f"how-it-works-{key}", None, About(settings=settings), height=height)


def _show_tiles(words: list[str], captions: list[str] | None = None) -> None:
    box = (
        "background:color-mix(in srgb, currentColor 9%, transparent);border-radius:6px;"
        "padding:.35em .55em;display:flex;flex-direction:column;align-items:center"
    )
    small = "font-size:.55em;opacity:.75;font-variant-numeric:tabular-nums"
    tiles = "".join(
        f'<div style="{box}"><span dir="auto">{html.escape(word)}</span>'
        + (f'<span style="{small}">{captions[i]}</span>' if captions else "")
        + "</div>"
        for i, word in enumerate(words)
    )
    body = f'<div style="display:flex;flex-wrap:wrap;gap:.35em;font-size:1.5em">{tiles}</div>'
    st.html(body)
    offer("walk-tiles", Entry(html=lambda: body, place=f"headline-{PAGE}-step"))


def _show_sentence(walk: Walkthrough) -> None:
    _show_tiles([word.replace(BLANK, "▢") for word in walk.sentence.split()])


def _show_first_guess(walk: Walkthrough) -> None:
    _show_sentence(walk)
    title = "What the model puts into the blank"
    hidden = read_hidden_word(walk.text.text, walk.sentence)
    figure = plots.blank_figure(walk.blank, title, has_after=False, hidden=hidden)
    _draw(walk, figure, "first-guess")


def _show_training(walk: Walkthrough) -> None:
    _show_tiles(walk.text.text.split())
    _draw(walk, plots.learning_figure(walk.losses), "training")


def _show_last_guess(walk: Walkthrough) -> None:
    _show_sentence(walk)
    title = "What the model puts into the blank"
    _draw(walk, plots.blank_figure(walk.blank, title), "last-guess")


def _show_comparison(walk: Walkthrough) -> None:
    first, *other_texts = (text.text for text in walk.tuning.texts)
    vector = walk.tuning.embeddings[0]
    numbers = ", ".join(number(float(value), ".3f") for value in vector[:3])
    _show_tiles([f"1. {first}"], [f"embedding: {numbers}, … ({len(vector):,} changes)"])
    _draw(walk, plots.cosines_figure(other_texts, walk.products), "comparison")


def _show_text(walk: Walkthrough) -> None:
    first, *other_texts = walk.tuning.texts
    _show_tiles(first.text.split())
    layers, dim = walk.settings.layers, len(walk.tuning.embeddings[0])
    stations = [
        f"<b>{len(other_texts) + 1} texts</b>",
        f"<b>{', '.join(str(len(text)) for text in (first, *other_texts))} tokens</b>",
        f"<b>{many(len(walk.inputs.masked), 'masked input')}</b>, "
        f"{many(len(walk.before), 'position')}",
        f"<b>loss</b> {walk.before.mean_loss:.2f} → {walk.after.mean_loss:.2f} nats",
        f"<b>weights</b> of {many(len(layers), 'layer')}",
        f"<b>deltas</b> after {many(walk.settings.epochs, 'epoch')}",
        f"<b>embedding</b>, {dim:,} values",
        f"<b>cosine similarities</b> {', '.join(number(p, '.2f') for p in walk.products)}",
    ]
    figure = plots.overview_figure([f"{i}  {station}" for i, station in enumerate(stations, 1)])
    _draw(walk, figure, "overview")


def _show_inputs(walk: Walkthrough) -> None:
    tokens = walk.text.tokens
    window = range(len(tokens))
    figure = plots.blueprint_grid(walk.inputs, walk.settings.blueprints, tokens, window)
    _draw(walk, figure, "masked-inputs")


def _show_loss(walk: Walkthrough) -> None:
    before, after, tokens = walk.before, walk.after, walk.text.tokens

    def name(position: int) -> str:
        i = before.input[position]
        blueprint = walk.settings.blueprints[walk.inputs.blueprint[i]]
        return f"“{tokens[before.token[position]]}” in masked input {i + 1} {blueprint}"

    improved = int((after.probability - before.probability).argmax())
    remember_number(_POSITION, range(len(before)), improved, walk.text.text)
    position = st.selectbox(
        "Masked token", range(len(before)), format_func=name, key=_POSITION, persist_state="session"
    )
    masked = walk.inputs.masked[before.input[position]]
    tiles = ["▢" if is_masked else token for token, is_masked in zip(tokens, masked, strict=True)]
    tiles[before.token[position]] = "?"
    _show_tiles(tiles)

    label = tokens[before.token[position]]
    p_before, p_after = (
        dict(zip(guesses.words[position], guesses.shares[position], strict=True))
        for guesses in (before, after)
    )
    p_before[label], p_after[label] = before.probability[position], after.probability[position]
    words = sorted({*p_before, *p_after}, key=lambda w: -max(p_after.get(w, 0), p_before.get(w, 0)))
    words = words[: plots.MOST_GUESSES]
    shown_before, shown_after = (
        [p.get(word, np.nan) for word in words] for p in (p_before, p_after)
    )
    _draw(walk, plots.words_figure(words, shown_before, shown_after, label), "predictions")


def _show_losses(walk: Walkthrough) -> None:
    before, after, tokens = walk.before, walk.after, walk.text.tokens
    position = st.session_state.get(_POSITION) or 0
    sentence = (
        f"The loss at this position is $-\\ln({_tex(before.probability[position])}) = "
        f"{before.loss[position]:.2f}$ nats before micro-tuning."
    )
    show_headline(sentence, key=f"{PAGE}-more")
    figure = plots.losses_figure(tokens, before.token, before.loss, after.loss)
    _draw(walk, figure, "losses")


def _choose_layer(walk: Walkthrough) -> int:
    layers = walk.settings.layers
    key = f"{PAGE}-layer"
    if st.session_state.get(key, 0) not in range(len(layers)):
        st.session_state[key] = 0
    return choose_one(
        st.segmented_control,
        "Layer",
        range(len(layers)),
        format_func=short_layer_names(layers).__getitem__,
        key=key,
        label_visibility="collapsed",
    )


def _show_weights(walk: Walkthrough) -> None:
    layer = _choose_layer(walk)
    weights, delta = walk.weights[layer], walk.deltas[layer][-1, 0]
    strongest = np.argsort(-np.abs(delta))[:NEURONS]
    before, after = weights[strongest], (weights + delta)[strongest]
    _draw(walk, plots.weights_figure(strongest, before, after), "weights")


def _show_first_step(walk: Walkthrough) -> None:
    layer = st.session_state[f"{PAGE}-layer"]
    strongest = np.argsort(-np.abs(walk.deltas[layer][-1, 0]))[:NEURONS]
    neuron = st.selectbox(
        "AdamW's first step for neuron",
        strongest.tolist(),
        key=f"{PAGE}-neuron",
        bind="query-params",
    )
    step = walk.first_step(layer, neuron)
    sentence = (
        f"AdamW's first step takes the weight of neuron {neuron} from {step.weight:.4f} to "
        f"{step.result:.4f}."
    )
    show_headline(sentence, key=f"{PAGE}-more")
    st.latex(
        r"\begin{aligned} "
        rf"g &= {_tex(step.gradient, 6)} \\ "
        rf"m &= 0.1\,g = {_tex(step.first, 6)} \\ "
        rf"v &= 0.001\,g^2 = {_tex(step.second)} \\ "
        r"w' &= w - \eta\lambda w - \eta\,\frac{m/0.1}{\sqrt{v/0.001}+\epsilon} \\ "
        rf"&= {step.weight:.7f} - ({step.decay:.7f}) - ({step.step:.7f}) \\ "
        rf"&= {step.result:.7f} \end{{aligned}}"
    )
    settings = walk.settings
    st.caption(
        f"Learning rate η = {settings.learning_rate:g}, weight decay λ = "
        f"{settings.weight_decay:g}. In the first step, the size of the gradient cancels "
        "out: apart from weight decay, every weight moves up or down by the learning rate. From "
        "the second step on, weights move by different amounts."
    )


def _tex(value: float, digits: int = 4) -> str:
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    return rf"{mantissa}\cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def _show_delta(walk: Walkthrough) -> None:
    layer = _choose_layer(walk)
    figure = plots.neurons_figure(walk.deltas[layer][:, 0], walk.settings.layers[layer])
    _draw(walk, figure, "delta")


def _show_embedding(walk: Walkthrough) -> None:
    ends = np.cumsum([len(weights) for weights in walk.weights])[:-1]
    parts = np.split(walk.tuning.embeddings[0], ends)
    title = "The embedding, value by value"
    _draw(walk, plots.concatenated_figure(walk.settings.layers, parts, title), "embedding")


def _show_product(walk: Walkthrough) -> None:
    _show_tiles([f"{i}. {text.text}" for i, text in enumerate(walk.tuning.texts, 1)])
    first, *other_vectors = walk.tuning.embeddings
    sizes = [len(weights) for weights in walk.weights]
    figure = plots.product_figure(walk.settings.layers, sizes, first, other_vectors)
    _draw(walk, figure, "cosine-similarity")


_VIEWS: tuple[View, ...] = (
    _show_text,
    lambda walk: _show_tiles(list(walk.text.tokens), [str(i) for i in walk.text.ids]),
    _show_inputs,
    _show_loss,
    _show_weights,
    _show_delta,
    _show_embedding,
    _show_product,
)
MORE: dict[View, View] = {_show_loss: _show_losses, _show_weights: _show_first_step}  # 2nd slides
_STORY_VIEWS: tuple[View, ...] = (
    _show_first_guess,
    _show_training,
    _show_last_guess,
    _show_comparison,
)
_TEXTS = tomllib.loads((ASSETS / "how_it_works.toml").read_text("utf-8"))
MOMENTS, STEPS = (
    [Step(view, **texts) for texts, view in zip(_TEXTS[key], views, strict=True)]
    for key, views in (("moments", _STORY_VIEWS), ("steps", _VIEWS))
)
