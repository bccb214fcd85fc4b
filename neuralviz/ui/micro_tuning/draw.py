"""The figures and tables of a run on the micro-tuning page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz.plots.micro_tuning import (
    delta_heatmap,
    delta_norm_figure,
    loss_figure,
    products_figure,
    shares_figure,
    shares_width,
    short_layer_names,
)
from neuralviz.plots.theme import shorten
from neuralviz.store.writing import frame_csv
from neuralviz.ui.figures import show_figure, swiped
from neuralviz.ui.live_figure import live_figure
from neuralviz.ui.page import plain
from neuralviz.words import many, number, why_above_100

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from neuralviz.micro_tuning.record import RunRecord

SHOWN_PRODUCTS = 100
NAMED_TEXTS = 5  # in a warning


def show_record(record: RunRecord, key: str, *, wide: bool) -> int:
    """What a run shows while it goes on, and the text that is looked at.

    ``wide`` puts figures beside each other.
    """
    _warnings(record)
    places = st.columns(2) if wide else [st.container(), st.container()]
    with places[0]:
        text = _pick_text(record, key)
        figure = loss_figure(record.loss_curves(), record.texts)
        live_figure(figure, key=f"{key}-loss", height=380, name="loss")
    with places[1]:
        layer = _pick_layer(record, key)
        figure = delta_norm_figure(
            record.delta_norm[:, text], record.settings.layers, record.epochs_learnt(text)
        )
        live_figure(figure, key=f"{key}-norm", height=380, name="delta-norm")
    strongest = record.strongest_neurons(layer, text)
    changes = record.last[layer][text, strongest]
    figure = delta_heatmap(
        record.delta(layer, text), record.settings.layers[layer], strongest, changes
    )
    live_figure(figure, key=f"{key}-delta", height=340, name="delta")
    st.caption(_strongest_in_words(strongest, changes))
    return text


def _strongest_in_words(neurons: Sequence[int], changes: np.ndarray) -> str:
    """Each neuron with its change; a change that all of them share is named once."""
    said = [number(change, "+#.3g") for change in changes]
    sizes = {one.lstrip("+−") for one in said}
    if len(sizes) > 1:
        listed = [f"**{neuron}** ({one})" for neuron, one in zip(neurons, said, strict=True)]
        return f"Neurons that changed most: {', '.join(listed)}"
    shared = said[0] if len(set(said)) == 1 else f"±{sizes.pop()}"
    listed = [f"**{neuron}**" for neuron in neurons]
    return f"Neurons that changed most (each by {shared}): {', '.join(listed)}"


def _pick_text(record: RunRecord, key: str) -> int:
    return st.selectbox(
        "Text",
        record.started(),
        format_func=lambda i: f"{i + 1}. {shorten(record.texts[i], 60)}",
        key=f"{key}-text",
    )


def _pick_layer(record: RunRecord, key: str) -> int:
    names = short_layer_names(record.settings.layers)
    return st.selectbox(
        "Layer", range(len(names)), format_func=lambda i: names[i], key=f"{key}-layer"
    )


def _warnings(record: RunRecord) -> None:
    """What to know before believing the figures."""
    if record.diverged:
        st.warning(
            f"The run diverged on {_name_texts(record.diverged)}: the loss became infinite or NaN. "
            "The last finite weights are shown. Lower the learning rate (the paper uses 0.01)."
        )
    elif rose := [i for i in record.started() if record.loss_rose(i)]:
        st.warning(
            f"The loss of {_name_texts(rose)} rose instead of falling. Lower the learning "
            "rate (the paper uses 0.01)."
        )
    foreign = [i for i, report in record.reports.items() if report.text.looks_foreign]
    if foreign:
        st.warning(
            f"Many words in {_name_texts(foreign)} are not in the model's vocabulary, or are "
            "split into several tokens. For texts in another language, choose a model for that "
            "language; the bundled model is for English and ignores case."
        )


def _name_texts(texts: Collection[int]) -> str:
    """``text 3``, ``texts 1, 2``, ``texts 1, 2, 3, 4, 5 and 12 more``."""
    more = f" and {len(texts) - NAMED_TEXTS:,} more" if len(texts) > NAMED_TEXTS else ""
    numbers = ", ".join(str(i + 1) for i in sorted(texts)[:NAMED_TEXTS])
    return f"text{'s' * (len(texts) > 1)} {numbers}{more}"


def show_after(record: RunRecord, key: str, text: int) -> None:
    """What is known after a text: shares, predictions, cosine similarities, downloads."""
    if text in record.reports:
        _shares(record, key, text)
        _predictions(record, key, text)
    else:
        st.caption("Word shares and predictions appear only when micro-tuning is finished.")
    started = record.started()
    if len(started) > 1:
        shown = started[:SHOWN_PRODUCTS]
        vectors = record.embeddings()[: len(shown)]
        products = vectors @ vectors.T
        labels = [record.texts[i] for i in shown]
        if len(shown) < len(started):
            st.caption(f"Showing the first {len(shown)} of {len(started):,} texts.")
        table = pd.DataFrame(products, columns=[f"text {i + 1}" for i in shown])
        table.insert(0, "text", labels)
        show_figure(
            products_figure(labels, products),
            key=f"{key}-products",
            numbers=table,
            name="products",
            height=min(720, 200 + 60 * len(shown)),
        )
    _downloads(record, key)


def _shares(record: RunRecord, key: str, text: int) -> None:
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
    with swiped(f"{key}-shares-wide", shares_width(labels)):
        show_figure(
            shares_figure(labels, shares, "Which words shaped the embedding"),
            key=f"{key}-shares",
            numbers=pd.DataFrame({"word": words, "share": shares, "unknown": unknown}),
            name="word-shares",
            height=400,
        )
    decay = number(report.decay_share, ",.1%")
    note = f"The shares of all words and of weight decay ({decay}) sum to 100%."
    if why := why_above_100([*shares, report.decay_share]):
        note += f" {why}"
    if unknown.any():
        listed = ", ".join(dict.fromkeys(w for w, u in zip(words, unknown, strict=True) if u))
        note += f" Words marked (?) are not in the vocabulary: {shorten(listed, 200)}."
    if record.settings.in_bf16:
        note += " Rounding to bfloat16 changes these shares far more than it changes the embedding."
    st.caption(plain(note))


def _predictions(record: RunRecord, key: str, text: int) -> None:
    report = record.reports[text]
    predictions = report.predictions
    st.markdown("**What the model predicts at the masked positions**")
    table = pd.DataFrame(
        {
            "masked input": predictions.input + 1,
            "masked token": [report.text.piece(token) for token in predictions.token],
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
    st.caption(
        f"Mean probability of the masked token: {predictions.before.mean():.0%} before and "
        f"{predictions.after.mean():.0%} after micro-tuning. It rose at "
        f"{(predictions.after > predictions.before).mean():.0%} of "
        f"{many(len(predictions.input), 'masked position')}."
    )


def losses_csv(record: RunRecord) -> str:
    """A row for every number of epochs from 0, as the figure draws it; empty where not known."""
    started = record.started()
    losses = record.loss_curves()[started].T
    table = pd.DataFrame(losses, columns=[f"text {i + 1}" for i in started])
    table.insert(0, "epoch", np.arange(len(losses)))
    return frame_csv(table)


def _downloads(record: RunRecord, key: str) -> None:
    """Losses and embeddings as files."""
    started = record.started()

    def embeddings() -> bytes:
        table = {
            "id": [str(i + 1) for i in started],
            "text": [record.texts[i] for i in started],
            "vector": list(record.embeddings()),
        }
        return pd.DataFrame(table).to_parquet(index=False)

    with st.popover(
        "Download the run", icon=":material/download:", type="tertiary", key=f"{key}-all"
    ):
        st.download_button(
            "Embeddings (Parquet)", embeddings, "neural-embeddings.parquet",
            key=f"{key}-embeddings", on_click="ignore", width="stretch",
        )  # fmt: skip
        st.download_button(
            "Losses (CSV)", lambda: losses_csv(record), "losses.csv",
            key=f"{key}-losses", on_click="ignore", width="stretch",
        )  # fmt: skip
