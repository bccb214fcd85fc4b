"""The widgets of the training page: corpus, encoder, pairs, settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.jobs.training import TrainOnCorpus
from neuralviz.models import BUNDLED, MINILM
from neuralviz.models.shared import ModelRef
from neuralviz.models.trained import trained_encoders
from neuralviz.store.corpora import CorpusStore
from neuralviz.training.pairs import PairSource
from neuralviz.training.settings import (
    LEARNING_RATE,
    PAIR_KINDS,
    TABLE_LEARNING_RATE,
    TrainingSettings,
    with_options,
)
from neuralviz.ui.choices import choose_one
from neuralviz.ui.page import plain, show_error
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuralviz.store.corpora import Corpus
    from neuralviz.training.settings import PairKind

WATCHED = 400  # texts
SNAPSHOTS = 6  # between the first and the last
MOST_LABELS = 1000
CORPUS = "training-corpus"
"""Where session and address keep the id of the corpus."""


@dataclass(frozen=True)
class Chosen:
    """What is to be trained.

    Attributes:
        corpus: it is trained on.
        task: the work.
        texts: of the corpus.
    """

    corpus: Corpus
    task: TrainOnCorpus
    texts: tuple[str, ...]


def choose(store: CorpusStore, corpora: Sequence[Corpus]) -> tuple[Chosen | None, bool]:
    """What is to be trained, and whether *Train* was pressed; None where something is missing.

    Args:
        store: that keeps the corpora.
        corpora: at least one.
    """
    corpus = _choose_corpus(corpora)
    model_id = _choose_encoder()
    label = _choose_label(corpus)
    kinds = _choose_kinds()
    options = _choose_settings()
    pressed = st.button("Train", type="primary", icon=":material/fitness_center:")
    if not kinds:
        st.info("Choose one or two ways to make pairs.")
        return None, pressed
    try:
        settings = tuple(with_options(TrainingSettings(), **options, pairs=kind) for kind in kinds)
        texts = _texts(corpus.id)
        source = _pairs(corpus.id, settings[0])
    except NeuralvizError as error:
        show_error(error)
        return None, pressed
    _preview(source)
    batch = min(settings[0].batch_size, len(source))
    per_epoch = -(-(len(source) - 1) // batch)
    steps = per_epoch * settings[0].n_epochs
    task = TrainOnCorpus(
        ModelRef.now(model_id),
        corpus.id,
        label,
        settings,
        n_watched=WATCHED,
        watch_every=max(1, round(steps / SNAPSHOTS)),
    )
    st.caption(
        f"{many(len(source), 'pair')} an epoch, {many(steps, 'step')} of "
        f"{many(batch, 'pair')}. {plain(source.skipped_in_words())}"
    )
    return Chosen(corpus, task, texts), pressed


def _choose_corpus(corpora: Sequence[Corpus]) -> Corpus:
    by_id = {corpus.id: corpus for corpus in corpora}
    asked = st.query_params.get(CORPUS)
    if CORPUS not in st.session_state and asked in by_id:
        st.session_state[CORPUS] = asked
    if st.session_state.get(CORPUS) not in by_id:
        st.session_state[CORPUS] = next(iter(by_id))
    chosen = st.selectbox(
        "Corpus",
        list(by_id),
        format_func=lambda one: f"{by_id[one].name} · {many(by_id[one].n_texts, 'text')}",
        key=CORPUS,
        persist_state="session",
        help="Add your own on the page *Corpus map*. Texts of several sentences work best.",
    )
    st.query_params[CORPUS] = chosen
    return by_id[chosen]


def _choose_encoder() -> str:
    options = [MINILM, BUNDLED, *(encoder.name for encoder in trained_encoders())]
    chosen = st.selectbox(
        "Encoder",
        options,
        key="encoder",
        bind="query-params",
        accept_new_options=True,
        help="What the training begins with. You can also enter a Hugging Face Hub ID or a folder.",
    )
    return chosen or MINILM


def _choose_label(corpus: Corpus) -> str:
    columns = [one.name for one in corpus.columns if one.kind == "text"]
    if not columns:
        st.caption("This corpus has no labels: accuracy cannot be measured, all else can.")
        return ""
    return choose_one(
        st.pills,
        "Measure by",
        columns,
        key="training-label",
        default=columns[-1],
        help="Labels are never trained on. They only show whether like texts come together.",
    )


def _choose_kinds() -> list[PairKind]:
    chosen = st.pills(
        "Pairs",
        PAIR_KINDS,
        default=list(PAIR_KINDS[:2]),
        selection_mode="multi",
        format_func=str.capitalize,
        key="pairs",
        bind="query-params",
        help="Two ways run beside each other, on the same texts, seed and steps.",
    )
    return list(chosen)[:2]


def _choose_settings() -> dict[str, Any]:
    with st.expander("Settings"):
        whole = choose_one(
            st.segmented_control,
            "What is trained",
            ["Whole model", "Embedding table"],
            key="training-part",
            help="The table of token embeddings alone, without a transformer, trains in seconds.",
        )
        is_table = whole == "Embedding table"
        options: dict[str, Any] = {"part": "table" if is_table else "model"}
        rate = TABLE_LEARNING_RATE if is_table else LEARNING_RATE
        left, right = st.columns(2)
        options["epochs"] = left.number_input(
            "Epochs", 1, 1000, 10 if is_table else 1, key=f"training-epochs-{whole}"
        )
        options["learning_rate"] = right.number_input(
            "Learning rate", 0.0, 10.0, rate, format="%.6g", key=f"training-rate-{whole}"
        )
        options["batch_size"] = left.number_input("Batch size", 2, 1024, 64, key="training-batch")
        options["seed"] = right.number_input("Seed", 0, 2**32 - 1, 42, key="training-seed")
        options["sentences"] = left.number_input(
            "Sentences of a chunk", 1, 20, 2, key="training-sentences"
        )
        options["shortest"] = left.number_input(
            "Shortest sentence, characters", 1, 10_000, 100, key="training-shortest"
        )
        options["longest"] = right.number_input(
            "Longest sentence, characters", 1, 100_000, 250, key="training-longest"
        )
        if not is_table:
            options["frozen_blocks"] = right.number_input(
                "Frozen blocks from below", 0, 100, 0, key="training-frozen"
            )
            options["start"] = choose_one(
                st.segmented_control,
                "Start from",
                ["pretrained", "random"],
                key="training-start",
                format_func=lambda start: f"{start.capitalize()} weights",
            )
    return options


@st.cache_data(max_entries=2, show_spinner="Reading the corpus …")
def _texts(corpus_id: str) -> tuple[str, ...]:
    store = CorpusStore()
    return tuple(store.texts(store.corpus(corpus_id)))


@st.cache_resource(
    max_entries=4, show_spinner="Making pairs …", hash_funcs={TrainingSettings: repr}
)
def _pairs(corpus_id: str, settings: TrainingSettings) -> PairSource:
    return PairSource(_texts(corpus_id), settings.pairs, settings.seed)


def _preview(source: PairSource) -> None:
    with st.expander("Ten pairs of this corpus"):
        for pair in source.preview():
            left, right = st.columns(2)
            left.markdown(plain(pair.anchor))
            right.markdown(plain(pair.positive))
