"""The results of a finished run: word shares, predictions, similarities, downloads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.headlines.micro_tuning import describe_similar, describe_words
from neuralviz.plots.micro_tuning import (
    describe_run,
    products_figure,
    shares_figure,
    shares_width,
    short_layer_names,
)
from neuralviz.plots.theme import shorten
from neuralviz.ui.figures import allow_swiping, download_table, show_figure
from neuralviz.ui.headline import show_headline
from neuralviz.ui.micro_tuning.one_step import offer_one_step
from neuralviz.ui.page import plain
from neuralviz.ui.stage import slide
from neuralviz.words import many, number, why_above_100

if TYPE_CHECKING:
    from neuralviz.micro_tuning.record import RunRecord

SHOWN_PRODUCTS = 100


def show_results(record: RunRecord, key: str, text: int) -> None:
    """Show a finished text: word shares, predictions, cosine similarities, downloads."""
    if not record.started():
        return
    if text in record.reports:
        _show_shares(record, key, text)
        _show_predictions(record, key, text)
    else:
        st.caption("Word shares and predictions appear only when micro-tuning is finished.")
    if text in record.started() and len(record.alike(text)) > 1:
        _show_products(record, key, text)
    offer_one_step(record, key)
    _offer_downloads(record, key)


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
    labels = [
        f"{word} (?)" if is_unknown else word
        for word, is_unknown in zip(words, unknown, strict=True)
    ]
    with slide(f"{key}-words"):
        show_headline(plain(describe_words(record, text)), key=f"{key}-words")
        with allow_swiping(f"{key}-shares-wide", shares_width(labels)):
            show_figure(
                shares_figure(labels, shares, "Which words shaped the embedding"),
                key=f"{key}-shares",
                numbers=pd.DataFrame({"word": words, "share": shares, "unknown": unknown}),
                name=f"word shares of text {text + 1}",
                height=400,
                provenance=describe_run(record, text),
            )
    decay = number(report.decay_share, ",.1%")
    note = f"The shares of all words and of weight decay ({decay}) sum to 100%."
    if reason := why_above_100([*shares, report.decay_share]):
        note += f" {reason}"
    if unknown.any():
        listed = ", ".join(dict.fromkeys(w for w, u in zip(words, unknown, strict=True) if u))
        note += f" Words marked (?) are not in the vocabulary: {shorten(listed, 200)}."
    if record.settings.in_bf16:
        note += " Rounding to bfloat16 changes these shares far more than it changes the embedding."
    st.caption(plain(note))


def _show_predictions(record: RunRecord, key: str, text: int) -> None:
    report = record.reports[text]
    predictions = report.predictions
    st.markdown("**What the model predicts at the masked positions**")
    table = pd.DataFrame(
        {
            "masked input": predictions.input + 1,
            "masked token": [f"“{report.text.piece(token)}”" for token in predictions.token],
            "probability before": predictions.before * 100,
            "probability after": predictions.after * 100,
            "top predictions before": predictions.words_before,
            "top predictions after": predictions.words_after,
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
    text_note = f" of text {text + 1}" if len(record.texts) > 1 else ""
    st.caption(
        f"Mean probability of the masked tokens{text_note}: {predictions.before.mean():.0%} before "
        f"and {predictions.after.mean():.0%} after micro-tuning. It rose at "
        f"{(predictions.after > predictions.before).mean():.0%} of "
        f"{many(len(predictions.input), 'masked position')}."
    )


def _show_products(record: RunRecord, key: str, text: int) -> None:
    """Cosine similarities of ``text`` and the other texts that have had as many epochs."""
    alike = record.alike(text)
    shown_texts = alike[:SHOWN_PRODUCTS]
    vectors = record.embeddings()[np.searchsorted(record.started(), shown_texts)]
    products = vectors @ vectors.T
    labels = [record.texts[i] for i in shown_texts]
    if len(shown_texts) < len(alike):
        st.caption(f"Showing the first {len(shown_texts)} of {len(alike):,} texts.")
    table = pd.DataFrame(products, columns=[f"text {i + 1}" for i in shown_texts])
    table.insert(0, "text", labels)
    with slide(f"{key}-similar"):
        show_headline(plain(describe_similar(vectors, labels)), key=f"{key}-similar")
        show_figure(
            products_figure(labels, products, shown_texts),
            key=f"{key}-products",
            numbers=table,
            name="products of neural embeddings",
            height=min(720, 200 + 60 * len(shown_texts)),
            provenance=describe_run(record),
        )


def losses_table(record: RunRecord) -> pd.DataFrame:
    """A row for every number of epochs from 0, as drawn; unknown losses are empty."""
    started = record.started()
    losses = record.loss_curves()[started].T
    table = pd.DataFrame(losses, columns=[f"text {i + 1}" for i in started])
    table.insert(0, "epoch", np.arange(len(losses)))
    return table


def norms_table(record: RunRecord) -> pd.DataFrame:
    """A row for every started text and finished epoch, a column for every layer."""
    started = record.started()
    norms = record.delta_norm[:, started]  # [epoch, text, layer]
    table = pd.DataFrame(
        norms.transpose(1, 0, 2).reshape(-1, record.n_layers),
        columns=short_layer_names(record.settings.layers),
    )
    table.insert(0, "epoch", np.tile(np.arange(1, len(norms) + 1), len(started)))
    table.insert(0, "text", np.repeat([i + 1 for i in started], len(norms)))
    return table.dropna()


def embeddings_table(record: RunRecord) -> pd.DataFrame:
    """A row for every started text: its id, epochs and embedding."""
    started = record.started()
    return pd.DataFrame(
        {
            "id": [str(i + 1) for i in started],
            "text": [record.texts[i] for i in started],
            "epochs": [record.epochs_done(i) for i in started],
            "vector": list(record.embeddings()),
        }
    )


def _offer_downloads(record: RunRecord, key: str) -> None:
    """Offer embeddings, losses and norms as files."""
    provenance = describe_run(record)
    tables = {
        "Embeddings": ("neural embeddings", embeddings_table),
        "Losses": ("micro-tuning losses", losses_table),
        "Norms of the deltas": ("micro-tuning delta norms", norms_table),
    }
    with st.popover(
        "Download the run", icon=":material/download:", type="tertiary", key=f"{key}-all"
    ):
        for label, (name, make) in tables.items():
            download_table(
                label, partial(make, record), name, key=f"{key}-take", provenance=provenance
            )
