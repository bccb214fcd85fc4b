"""The widgets of the training page: corpus, encoder, pairs, settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from neuralviz.errors import NeuralvizError
from neuralviz.jobs.training import (
    ENCODER,
    KINDS,
    PART,
    TrainOnCorpus,
    first_label,
    first_settings,
    watched_training,
)
from neuralviz.models import BUNDLED, MINILM
from neuralviz.models.trained import trained_encoders
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.training.pairs import PairSource, steps_of_epoch
from neuralviz.training.settings import (
    LEARNING_RATE,
    PAIR_KINDS,
    PARTS,
    STARTS,
    TABLE_LEARNING_RATE,
    WHOLE_NUMBERS,
    PairKind,
    Part,
    TrainingSettings,
)
from neuralviz.ui.choices import choose_one
from neuralviz.ui.limits import effective_settings
from neuralviz.ui.page import plain, show_error, wide_columns
from neuralviz.words import many

CORPUS = "training-corpus"  # session state and address: the id of the corpus
N_PREVIEWED = 10  # pairs
MAX_KINDS = 2  # of pairs, trained side by side
_PARTS: dict[Part, str] = {"model": "Whole model", "table": "Embedding table"}
_NUMBERS = {  # of `TrainingSettings`, and what they are called
    "epochs": "Epochs",
    "batch_size": "Batch size",
    "seed": "Seed",
    "shortest": "Shortest sentence, characters",
    "longest": "Longest sentence, characters",
    "sentences": "Sentences of a chunk",
    "frozen_blocks": "Frozen blocks from below",
}
_PAIR_LINES: dict[PairKind, str] = {
    "crops": "A pair is two parts of one text: the encoder learns to bring them together.",
    "dropout": "Each part is read twice, each time with other units of the encoder left out.",
    "masking": "A pair is two parts of one text, in both of which tokens are masked.",
}


def choose_training(corpora: Sequence[Corpus]) -> tuple[TrainOnCorpus | None, bool]:
    """Ask for a training, None while it is incomplete; also whether *Train* was pressed."""
    left_column, right_column = wide_columns(2, "training-given")
    with left_column:
        corpus = _choose_corpus(corpora)
        label = _choose_label(corpus)
    with right_column:
        model_id = _choose_encoder()
        kinds = _choose_kinds()
    row = st.container(horizontal=True, vertical_alignment="center")
    pressed = row.button("Train", type="primary", icon=":material/fitness_center:")
    with row.popover("Settings", icon=":material/tune:", key="training-settings"):
        options = _choose_settings()
    wants_pairs = row.button("Ten pairs", icon=":material/compare_arrows:", key="training-pairs")
    if not kinds:
        st.info("Choose one or two ways to make pairs.")
        return None, pressed
    try:
        settings = tuple(TrainingSettings(**options, pairs=kind) for kind in kinds)
        source = _make_pairs(corpus.id, settings[0])
    except NeuralvizError as error:
        show_error(error)
        return None, pressed
    if wants_pairs:
        _show_preview(corpus, label, source)
    with row:
        _describe_steps(corpus, settings[0], source)
    return watched_training(model_id, corpus, label, settings, source), pressed


def _describe_steps(corpus: Corpus, settings: TrainingSettings, source: PairSource) -> None:
    batch = min(settings.batch_size, len(source))
    steps = steps_of_epoch(len(source), batch) * settings.n_epochs
    skipped = f"; {len(source.skipped):,} of {corpus.n_texts:,} texts are too short"
    st.caption(
        f"{_PARTS[settings.part]}: {many(steps, 'step')} of {many(batch, 'pair')}"
        f"{skipped if len(source.skipped) else ''}."
    )
    if source.is_mostly_skipped:
        st.info(plain(source.skipped_in_words()))


def _choose_corpus(corpora: Sequence[Corpus]) -> Corpus:
    by_id = {corpus.id: corpus for corpus in corpora}
    if st.session_state.get(CORPUS) not in by_id:
        address_id = st.query_params.get(CORPUS)
        st.session_state[CORPUS] = address_id if address_id in by_id else next(iter(by_id))
    chosen = st.selectbox(
        "Corpus",
        list(by_id),
        format_func=lambda corpus_id: (
            f"{by_id[corpus_id].name} · {many(by_id[corpus_id].n_texts, 'text')}"
        ),
        key=CORPUS,
        persist_state="session",
        help="Add your own on the page *Corpus map*. Texts of several sentences work best.",
    )
    st.query_params[CORPUS] = chosen
    return by_id[chosen]


def _choose_encoder() -> str:
    options = [BUNDLED, MINILM, *(encoder.name for encoder in trained_encoders())]
    chosen = st.selectbox(
        "Encoder",
        options,
        key="encoder",
        bind="query-params",
        accept_new_options=not effective_settings().demo,
        help="What the training begins with. You can also enter a Hugging Face Hub ID or a folder.",
    )
    return chosen or ENCODER


def _choose_label(corpus: Corpus) -> str:
    columns = [column.name for column in corpus.columns if column.kind == "text"]
    if not columns:
        st.caption("This corpus has no labels: accuracy cannot be measured, all else can.")
        return ""
    return choose_one(
        st.pills,
        "Measure by",
        columns,
        key="training-label",
        default=first_label(corpus),
        format_func=plain,
        help="Labels are never trained on. They only show whether like texts come together.",
    )


def _choose_kinds() -> list[PairKind]:
    chosen = st.pills(
        "Pairs",
        PAIR_KINDS,
        default=list(KINDS),
        selection_mode="multi",
        format_func=str.capitalize,
        key="pairs",
        bind="query-params",
        help="Two ways run beside each other, on the same texts, seed and steps.",
    )
    if len(chosen) > MAX_KINDS:
        st.caption(f"Two run at a time: {chosen[0]} and {chosen[1]}.")
    return list(chosen)[:MAX_KINDS]


def _choose_settings() -> dict[str, Any]:
    part: Part = choose_one(
        st.segmented_control,
        "What is trained",
        PARTS,
        key="training-part",
        default=PART,
        format_func=_PARTS.__getitem__,
        help="The table of token embeddings alone, without a transformer, trains in seconds.",
    )
    first = first_settings(part)
    options: dict[str, Any] = {"part": part}
    left_column, right_column = st.columns(2)
    options["learning_rate"] = right_column.number_input(
        "Learning rate", 0.0, 10.0, first.peak_rate, format="%.6g",
        key=f"training-rate-{part}", bind="query-params",
        help=f"For corpora of about a thousand texts. The paper, with far more of them, uses "
        f"{LEARNING_RATE:g} for the model and its authors {TABLE_LEARNING_RATE:g} for the table.",
    )  # fmt: skip
    for place, (name, label) in enumerate(_NUMBERS.items()):
        if name == "frozen_blocks" and part == "table":
            continue
        _, lowest, highest = WHOLE_NUMBERS[name]
        key = f"training-{name.replace('_', '-')}" + (f"-{part}" if name == "epochs" else "")
        options[name] = (left_column, right_column)[place % 2].number_input(
            label, lowest, highest, getattr(first, name), key=key, bind="query-params"
        )
    if part == "model":
        options["start"] = choose_one(
            st.segmented_control,
            "Start from",
            STARTS,
            key="training-start",
            default=STARTS[0],
            format_func=lambda start: f"{start.capitalize()} weights",
        )
    return options


@st.cache_data(max_entries=2, show_spinner="Reading the corpus …")
def load_texts(corpus_id: str) -> tuple[str, ...]:
    store = CorpusStore()
    return tuple(store.texts(store.corpus(corpus_id)))


def _hash_pair_settings(settings: TrainingSettings) -> tuple[object, ...]:
    """The settings that decide the pairs."""
    s = settings
    return s.pairs, s.sentences, s.shortest, s.longest, s.splitting, s.seed


@st.cache_resource(
    max_entries=4,
    show_spinner="Making pairs …",
    hash_funcs={TrainingSettings: _hash_pair_settings},
)
def _make_pairs(corpus_id: str, settings: TrainingSettings) -> PairSource:
    """The pairs of a corpus; takes seconds, as all texts are split into sentences."""
    return PairSource(load_texts(corpus_id), settings)


@st.dialog("Ten pairs of this corpus", width="large")
def _show_preview(corpus: Corpus, label: str, source: PairSource) -> None:
    """Show the pairs of the first steps, each with its text."""
    labels = CorpusStore().labels(corpus, label) if label else ()
    st.caption(f"{_PAIR_LINES[source.settings.pairs]} {plain(source.skipped_in_words())}")
    for pair in source.preview(N_PREVIEWED):
        label_note = f" · {plain(str(labels[pair.text]))}" if label else ""
        st.markdown(f"**Text {pair.text + 1:,}**{label_note}")
        chunks = dict.fromkeys((pair.anchor, pair.positive))  # one, where both are the same
        for column, chunk in zip(st.columns(len(chunks)), chunks, strict=True):
            column.markdown(plain(chunk))
