"""The results of a finished run: shares, predictions, similarities, downloads, filled blanks."""

from __future__ import annotations

import hashlib
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from neuralviz.embedders import embedder_spec
from neuralviz.headlines.micro_tuning import describe_similar, describe_words
from neuralviz.jobs.comparing import Compare
from neuralviz.jobs.micro_tuning import FillBlanks
from neuralviz.micro_tuning.blanks import (
    MAX_SCALE,
    FilledBlank,
    describe_blanks,
    describe_deltas,
    sentence_with_blank,
)
from neuralviz.micro_tuning.blueprints import DEFAULT_BLUEPRINTS
from neuralviz.micro_tuning.record import RunRecord
from neuralviz.micro_tuning.settings import TuningSettings
from neuralviz.models import BUNDLED
from neuralviz.models.shared import ModelRef, is_held
from neuralviz.paths import app_folder
from neuralviz.plots import micro_tuning as plots
from neuralviz.plots.standalone import About
from neuralviz.plots.theme import shorten
from neuralviz.ui import compare
from neuralviz.ui.figures import (
    allow_swiping,
    download_table,
    list_cells,
    open_downloads,
    show_figure,
)
from neuralviz.ui.limits import character_limit
from neuralviz.ui.links import View, save_once
from neuralviz.ui.micro_tuning.choose import find_layers, list_presets
from neuralviz.ui.page import plain
from neuralviz.ui.runs import RunSentences, SessionRuns, show_run_panel
from neuralviz.ui.stage import show_headline, show_on_stage, slide
from neuralviz.ui.tour import is_tour_at
from neuralviz.words import many, number, why_above_100

SHOWN_PRODUCTS = 100
BLANKS = SessionRuns("try-delta")
PREDICT_KEY = "try-delta-asked"
PATIENCE = 0.6  # seconds: enough to fill most sentences
NO_OTHER = -1


def pick_text(record: RunRecord) -> int:
    """Ask for a text of a run; other runs on the same texts keep the choice."""
    if len(record.texts) == 1:
        return 0
    return st.selectbox(
        "Look at text",
        range(len(record.texts)),
        format_func=lambda i: f"{i + 1}. {shorten(record.texts[i], 60)}",
        key=f"look-at-{digest_texts(record)}",
        persist_state="session",
    )


def digest_texts(record: RunRecord) -> str:
    return hashlib.blake2b(repr(record.texts).encode(), digest_size=8).hexdigest()


def show_results(record: RunRecord, key: str, text: int) -> None:
    """Show a finished text: word shares, predictions, cosine similarities, downloads."""
    if not record.started_texts:
        return
    if text in record.reports:
        _show_shares(record, key, text)
        _show_predictions(record, key, text)
    else:
        st.caption("Word shares and predictions appear only when micro-tuning is finished.")
    if text in record.started_texts and len(record.texts_like(text)) > 1:
        _show_products(record, key, text)
    if len(record.texts) > 1 and record.settings.epochs > 1:
        _offer_one_step(record, key)
    tables = {
        "Embeddings": ("neural embeddings", list_embeddings),
        "Losses": ("micro-tuning losses", list_losses),
        "Norms of the deltas": ("micro-tuning delta norms", list_norms),
    }
    with open_downloads(f"{key}-all", "Download the run"):
        for label, (name, make) in tables.items():
            table, provenance = partial(make, record), plots.describe_run(record)
            download_table(label, table, name, key=f"{key}-take", provenance=provenance)


def _show_shares(record: RunRecord, key: str, text: int) -> None:
    report = record.reports[text]
    if report.shares is None:
        st.caption(
            "Word shares are not available for long texts or for the output layer's bias; "
            "they would take too much time and memory."
        )
        return
    words = [report.text.text[start:end] for start, end in report.text.word_spans]
    shares = np.bincount(report.text.words, weights=report.shares, minlength=len(words))
    unknown = np.bincount(report.text.words, weights=report.text.unknown, minlength=len(words)) > 0
    marked = dict.fromkeys(word for word, is_so in zip(words, unknown, strict=True) if is_so)
    labels = [f"{word} (?)" if is_so else word for word, is_so in zip(words, unknown, strict=True)]
    with (
        slide(f"{key}-words", plain(describe_words(record, text))),
        allow_swiping(f"{key}-shares-wide", plots.shares_width(labels)),
    ):
        show_figure(
            plots.shares_figure(labels, shares, "Which words shaped the embedding"),
            f"word shares of text {text + 1}",
            pd.DataFrame({"word": words, "share": shares, "unknown": unknown}),
            plots.describe_run(record, text),
            key=f"{key}-shares",
            height=400,
        )
    decay = number(report.decay_share, ",.1%")
    notes = [
        f"The shares of all words and of weight decay ({decay}) sum to 100%.",
        why_above_100([*shares, report.decay_share]),
    ]
    if marked:
        listed = shorten(", ".join(marked), 200)
        notes.append(f"Words marked (?) are not in the vocabulary: {listed}.")
    if record.settings.in_bf16:
        notes.append("Rounding to bfloat16 changes these shares far more than the embedding.")
    st.caption(plain(" ".join(filter(None, notes))))


def _show_predictions(record: RunRecord, key: str, text: int) -> None:
    report = record.reports[text]
    before, after = report.before, report.after
    st.markdown("**What the model predicts at the masked positions**")
    table = pd.DataFrame(
        {
            "masked input": before.input + 1,
            "masked token": [f"“{report.text.piece(token)}”" for token in before.token],
            "probability before": before.probability * 100,
            "probability after": after.probability * 100,
            "top predictions before": before.top_words,
            "top predictions after": after.top_words,
        }
    )
    st.dataframe(
        table,
        hide_index=True,
        height=320,
        key=f"{key}-predictions",
        column_config={
            name: st.column_config.ProgressColumn(name, format="%.1f%%", min_value=0, max_value=100)
            for name in ("probability before", "probability after")
        },
    )
    share = (after.probability > before.probability).mean()
    n_positions = many(len(before), "masked position")
    st.caption(f"The probability of the masked token rose at {share:.0%} of {n_positions}.")


def _show_products(record: RunRecord, key: str, text: int) -> None:
    """Cosine similarities of ``text`` and the other texts that have had as many epochs."""
    alike = record.texts_like(text)
    shown_texts = alike[:SHOWN_PRODUCTS]
    vectors = record.embeddings()[np.searchsorted(record.started_texts, shown_texts)]
    products = vectors @ vectors.T
    labels = [record.texts[i] for i in shown_texts]
    if len(shown_texts) < len(alike):
        st.caption(f"Showing the first {len(shown_texts)} of {len(alike):,} texts.")
    table = pd.DataFrame(products, columns=[f"text {i + 1}" for i in shown_texts])
    table.insert(0, "text", labels)
    with slide(f"{key}-similar", plain(describe_similar(vectors, labels))):
        show_figure(
            plots.products_figure(labels, products, shown_texts),
            "products of neural embeddings",
            table,
            plots.describe_run(record),
            key=f"{key}-products",
            height=min(720, 200 + 60 * len(shown_texts)),
        )


# --- tables to download --------------------------------------------------------------------------


def list_losses(record: RunRecord) -> pd.DataFrame:
    """A row for every number of epochs from 0; unknown losses are empty."""
    started = record.started_texts
    losses = record.loss_curves()[started].T
    table = pd.DataFrame(losses, columns=[f"text {i + 1}" for i in started])
    table.insert(0, "epoch", np.arange(len(losses)))
    return table


def list_norms(record: RunRecord) -> pd.DataFrame:
    """A row for every started text and finished epoch, a column for every layer."""
    started = record.started_texts
    names = plots.short_layer_names(record.settings.layers)
    norms = record.delta_norm[:, started].transpose(1, 0, 2)  # [text, epoch, layer]
    axes = {"text": [i + 1 for i in started], "epoch": range(1, norms.shape[1] + 1)}
    values = {name: norms[:, :, i] for i, name in enumerate(names)}
    return list_cells(axes, **values).dropna()


def list_embeddings(record: RunRecord) -> pd.DataFrame:
    """A row for every started text: its id, epochs and embedding."""
    started = record.started_texts
    return pd.DataFrame(
        {
            "id": [str(i + 1) for i in started],
            "text": [record.texts[i] for i in started],
            "epochs": [record.epochs_done(i) for i in started],
            "vector": list(record.embeddings()),
        }
    )


# --- a comparison with one step ------------------------------------------------------------------


def _offer_one_step(record: RunRecord, key: str) -> None:
    pressed = st.button(
        "Compare with one step",
        icon=":material/compare_arrows:",
        key=f"{key}-one-step",
        help=(
            "Are the texts as similar by their gradient, and after one epoch? AdamW's first step "
            "moves every weight by about the learning rate: the delta of one epoch is the sign of "
            "the gradient. The answer opens on the Compare page."
        ),
    )
    if not pressed:
        return
    methods, texts = list_one_step_methods(record), record.texts[: compare.MAX_TEXTS]
    try:
        view = save_once(View(texts))
    except OSError:
        st.error("The texts could not be saved, so Compare cannot open them.")
        return
    task = Compare.for_current_models([embedder_spec(*method) for method in methods], texts)
    run = compare.RUNS.recall(task, view)
    if run is None or run.status in ("failed", "stopped"):
        compare.RUNS.start(task, again=True, view=view)
    address = {compare.FOURTH: "false", "view": view}
    for place, (method, options) in enumerate(methods, 1):
        address[f"m{place}"] = method
        address |= {f"m{place}-{method}-{name}": value for name, value in options.items()}
    st.switch_page(app_folder() / "pages/compare.py", query_params=address)


def list_one_step_methods(record: RunRecord) -> list[tuple[str, dict[str, str]]]:
    """Names and options of `gradient`, of one epoch of `neural`, and of the run."""
    settings, model_id = record.settings, record.model_id
    is_at_hand = model_id == BUNDLED or is_held("masked", model_id)  # a page must not load it
    layers = find_layers(model_id) if is_at_hand else None
    presets = list_presets(*layers) if layers is not None else {}
    typed = {presets.get("Head"): "head", presets.get("Last block"): "last_block"}
    shared = {
        "layers": typed.get(settings.layers, ",".join(settings.layers)),
        "model": record.model_id,
    }
    if settings.blueprints != DEFAULT_BLUEPRINTS:
        shared["blueprints"] = ", ".join(map(str, settings.blueprints))
    if settings.predict_unmasked:
        shared["predict_unmasked"] = "yes"
    learnt = {**shared, "precision": settings.precision}
    if settings.learning_rate != TuningSettings.learning_rate:
        learnt["learning_rate"] = str(settings.learning_rate)
    if settings.is_fast:
        learnt["tolerance"] = str(settings.tolerance)
    epochs = ("1", str(settings.epochs))
    return [("gradient", shared), *(("neural", {**learnt, "epochs": n}) for n in epochs)]


# --- blanks that the model fills, before and after -----------------------------------------------


def try_deltas(record: RunRecord, model: ModelRef, key: str, text: int) -> None:
    """A sentence with blanks, filled by the run's model before and after tuning on a text."""
    # the model is loaded when somebody asks for it; on the tour, the bundled one by itself
    if text not in record.started_texts:
        return
    is_asked = any(st.session_state.get(name, False) for name in (PREDICT_KEY, f"{key}-predict"))
    is_automatic = is_tour_at("Micro-tuning") and record.model_id == BUNDLED
    is_answered = is_asked or is_automatic or is_held("masked", record.model_id)
    with slide(f"{key}-try") if is_answered else st.container():  # an empty slide shows nothing
        st.subheader("What does it know now?", anchor=False)
        with show_on_stage("try"), st.container(horizontal=True, vertical_alignment="bottom"):
            sentence = st.text_input(
                "A sentence with a blank: ___",
                sentence_with_blank(record.texts[text], record.reports.get(text)),
                max_chars=character_limit(),
                key=f"sentence-{digest_texts(record)}-{text}",
                persist_state="session",
                help="Any sentence, also one that is not in the text. Write ___ for each blank.",
            )
            pressed = st.button("Predict", icon=":material/psychology:", key=f"{key}-predict")
        scaled = _ask_scales(record, text)
        st.session_state[PREDICT_KEY] = is_asked
        if not is_answered:
            st.caption("Press **Predict** to see what the model puts into the blank.")
            return
        deltas = tuple(record.text_delta(source) for _, source in scaled)
        task = FillBlanks(model, sentence or "", key, tuple(scaled), deltas)
        run = BLANKS.start(task, again=pressed)
        show_run_panel(
            BLANKS,
            run,
            partial(_draw_blanks, record, key, sentence or "", scaled),
            sentences=RunSentences(start="Reading the sentence …", describe_done=lambda _: ""),
            patience=PATIENCE,
        )


def _ask_scales(record: RunRecord, text: int) -> list[tuple[float, int]]:
    """Sliders for the deltas to add: pairs of a scale and a text."""

    def ask_scale(place: DeltaGenerator, text: int, key: str) -> None:
        label = "× the delta" if len(record.texts) == 1 else f"× the delta of text {text + 1}"
        scale = place.slider(label, -MAX_SCALE, MAX_SCALE, 1.0, 0.1, key=key, bind="query-params")
        scaled.append((scale, text))

    scaled: list[tuple[float, int]] = []
    first, middle, last = st.columns(3, vertical_alignment="bottom")
    ask_scale(first, text, "delta-scale")
    names = {NO_OTHER: "no other text"}
    names |= {
        i: f"{i + 1}. {shorten(record.texts[i], 40)}" for i in record.started_texts if i != text
    }
    if len(names) > 1:
        second = middle.selectbox(
            "Add the delta of",
            list(names),
            format_func=names.__getitem__,
            key=f"other-delta-{digest_texts(record)}-{text}",
            persist_state="session",
        )
        if second != NO_OTHER:
            ask_scale(last, second, "other-delta-scale")
    return scaled


def _draw_blanks(
    record: RunRecord,
    key: str,
    sentence: str,
    scaled: list[tuple[float, int]],
    blanks: tuple[FilledBlank, ...] | None,
    _live: bool,
) -> None:
    if blanks is None:
        return
    action = describe_deltas(scaled, len(record.texts))
    show_headline(plain(describe_blanks(blanks, action)), key=f"{key}-try")
    of_run = plots.describe_run(record)
    provenance = About(
        "What does it know now?",
        {"sentence": sentence, "after": action, **of_run.settings},
        files=(sentence, *of_run.files[1:]),
    )
    for place, blank in enumerate(blanks, 1):
        name = f"blank {place}" if len(blanks) > 1 else "the blank"
        rows = [(row.token, row.before, row.after, row.change) for row in blank.candidates]
        show_figure(
            plots.blank_figure(blank, f"What the model puts into {name}"),
            f"blank {place}",
            pd.DataFrame(rows, columns=["token", "before", "after", "change"]),
            provenance,
            key=f"{key}-blank-{place}",
        )
