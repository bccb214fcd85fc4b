"""The training page below its title: its widgets, a training, its encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from neuralviz import training
from neuralviz.errors import NeuralvizError, StoreError
from neuralviz.files import corpus_view
from neuralviz.headlines import training as headlines
from neuralviz.jobs import Run
from neuralviz.jobs import training as jobs
from neuralviz.jobs.training import TrainOnCorpus
from neuralviz.models import BUNDLED, MINILM
from neuralviz.models.shared import (
    check_free_name,
    encoders_folder,
    shared_text_model,
    trained_encoder,
    trained_encoders,
)
from neuralviz.paths import app_folder
from neuralviz.plots import training as plots
from neuralviz.plots.report import About
from neuralviz.store.corpora import Corpus, CorpusStore, add_once
from neuralviz.training.record import CURVES, Lesson, NewNeighbours, Watch, new_neighbours
from neuralviz.training.settings import (
    LEARNING_RATE,
    PAIR_KINDS,
    PAIR_LINES,
    PARTS,
    STARTS,
    TABLE_LEARNING_RATE,
    WHOLE_NUMBERS,
    PairKind,
    PairSource,
    Part,
    TrainingSettings,
    steps_of_epoch,
)
from neuralviz.ui.address import remember_number
from neuralviz.ui.choices import choose_one, corpus_store, pick_corpus, save_by_name
from neuralviz.ui.figures import show_figure, show_table
from neuralviz.ui.limits import effective_settings
from neuralviz.ui.page import (
    hide_on_stage,
    plain,
    show_error,
    show_headline,
    show_only_on_stage,
    slide,
    wide_columns,
)
from neuralviz.ui.runs import RunSentences, SessionRuns, find_current_run, show_current_run
from neuralviz.words import many

Lessons = tuple[Lesson, ...]

RUNS = SessionRuns("training")
HEIGHT = 310  # px, of the figures on the first screen
N_LISTED = 15  # texts whose neighbours changed most
CORPUS = "training-corpus"  # session state and address: the id of the corpus
N_PREVIEWED = 10  # pairs
MAX_KINDS = 2  # of pairs, trained side by side
_PAIR_SETTINGS = attrgetter("pairs", "sentences", "shortest", "longest", "splitting", "seed")
_PARTS: dict[Part, str] = {"model": "Whole model", "table": "Embedding table"}
_NUMBERS = {  # of `TrainingSettings`, and what they are called
    "epochs": "Epochs",
    "batch_size": "Batch size",
    "seed": "Seed",
    "shortest": "Shortest sentence (characters)",
    "longest": "Longest sentence (characters)",
    "sentences": "Sentences per chunk",
    "frozen_blocks": "Frozen blocks, from below",
}


def show() -> None:
    try:
        store = CorpusStore()
        add_once(store, "textbooks", lambda: jobs.add_textbooks(store))
        saved_corpora = corpus_store().corpora()
    except NeuralvizError as error:
        show_error(error)
        return
    if not saved_corpora:
        st.info("No corpora yet. Add one on the page *Corpus map*.")
        return
    corpora = sorted(saved_corpora, key=lambda corpus: corpus.name != jobs.TEXTBOOKS)
    task, pressed = choose_training(corpora)
    recorded = _load_recorded_run(corpora[0].id) if corpora[0].name == jobs.TEXTBOOKS else None
    view = corpus_view(task.corpus) if task is not None else ""
    run = find_current_run(RUNS, task, view, pressed=pressed, recorded=recorded)
    if run is None:
        st.info("Press **Train**.")
    else:
        saved = "“Run again” resumes." if any(run.task.kept_steps()) else ""
        start = "Loading the encoder and making the first pairs …"
        sentences = RunSentences(start, saved, stopped=saved)
        draw = partial(_show_training, run, is_recorded=run is recorded)
        # the stage shows why nothing can be trained, and no other training
        with hide_on_stage("training-others") if task is None else st.container():
            show_current_run(RUNS, run, task, "Train", draw, sentences, recorded=recorded)


@st.cache_resource(max_entries=1, show_spinner=False)
def _load_recorded_run(corpus_id: str) -> Run[Lessons] | None:
    """The recorded training as a finished run; None if the example corpus has other texts."""
    lessons, texts = jobs.recorded_lessons(), load_texts(corpus_id)
    if not lessons or texts != tuple(jobs.textbooks().texts):
        return None
    task = jobs.example_training(CorpusStore().corpus(corpus_id), texts)
    return Run.from_result(task, lessons)


def _show_training(run: Run[Lessons], lessons: Lessons, live: bool, *, is_recorded: bool) -> None:
    """Show the main finding, loss and accuracy live; the map and *Save* when the run is over."""
    task = run.task
    try:
        corpus = CorpusStore().corpus(task.corpus)
    except NeuralvizError as error:  # it was deleted
        show_error(error)
        return
    provenance = plots.describe_training(lessons, corpus.name, task.model.id)
    sentence = headlines.describe_lessons(lessons, plain(task.labels))
    texts = "textbook passages" if corpus.name == jobs.TEXTBOOKS else f"“{plain(corpus.name)}”"
    terms = headlines.explain_pairs(lessons, sentence, plain(task.labels), texts)
    _show_lessons(f"training-{run.id}", sentence, terms, lessons, task.labels, provenance)
    if live:
        return
    if any(lesson.maps is not None for lesson in lessons):
        _show_moves(run, lessons, provenance)
    if not is_recorded:
        with hide_on_stage("training-save"):
            _offer_to_save(task, lessons)


# --- loss and accuracy -------------------------------------------------------------------------


def _show_lessons(
    key: str, sentence: str, terms: str, lessons: Sequence[Lesson], label: str, provenance: About
) -> None:
    """Show a headline, loss and accuracy, and accuracy at every layer and step."""
    measured = [lesson for lesson in lessons if len(lesson.accuracy)]
    has_layers = any(lesson.accuracy.shape[1] > 1 for lesson in measured)
    draw = partial(show_figure, height=HEIGHT, provenance=provenance)
    with slide(key, sentence):
        show_only_on_stage(f"{key}-pairs").markdown(terms)
        left_column, right_column = wide_columns(2, f"{key}-curves")
        with left_column, hide_on_stage(f"{key}-loss") if measured else st.container():
            figure = plots.training_loss_figure(lessons)
            draw(figure, "training loss", lambda: _tabulate_curves(lessons), key=f"{key}-loss")
        if measured:
            make = plots.accuracy_by_layer_figure if has_layers else plots.accuracy_by_step_figure
            numbers = partial(_tabulate_accuracies, lessons)
            with right_column:
                draw(make(lessons, label), "accuracy", numbers, key=f"{key}-accuracy")
            if untrained := headlines.describe_untrained(measured):
                st.caption(untrained)
            if measured[0].is_sampled:
                st.caption(plain(measured[0].measured))
    looked_at = [lesson for lesson in measured if len(lesson.accuracy) > 1]
    if not (has_layers and looked_at):
        return
    with slide(f"{key}-layers", headlines.describe_trained_layers(looked_at)):
        columns = wide_columns(len(looked_at), f"{key}-layers")
        for number, (column, lesson) in enumerate(zip(columns, looked_at, strict=True)):
            name = f"accuracy by step {lesson.settings.pairs}"
            numbers = partial(_tabulate_accuracies, [lesson])
            with column:
                figure = plots.accuracy_map_figure(lesson, lessons)
                draw(figure, name, numbers, key=f"{key}-steps-{number}")


def _tabulate_curves(lessons: Sequence[Lesson]) -> pd.DataFrame:
    tables = []
    for lesson in lessons:
        table = pd.DataFrame(lesson.curves, columns=CURVES)
        table.insert(0, "pairs", lesson.settings.pairs)
        table.insert(1, "step", range(1, lesson.step + 1))
        tables.append(table)
    return pd.concat(tables)


def _tabulate_accuracies(lessons: Sequence[Lesson]) -> pd.DataFrame:
    columns = ("pairs", "step", "layer", "accuracy")
    rows = [
        (lesson.settings.pairs, snapshot.step, layer, float(value))
        for lesson in lessons
        for snapshot in lesson.snapshots
        if snapshot.accuracy is not None
        for layer, value in enumerate(snapshot.accuracy)
    ]
    return pd.DataFrame(rows, columns=columns)


# --- the map -----------------------------------------------------------------------------------


@st.fragment
def _show_moves(run: Run[Lessons], lessons: Lessons, provenance: About) -> None:
    """Draw the map at every snapshot, in one frame, and list texts with new neighbours."""
    mapped = {lesson.settings.pairs: lesson for lesson in lessons if lesson.maps is not None}
    texts, groups = _load_watched(run.task)
    with st.container(key="training-moves"):
        with st.container(horizontal=True):
            kind = _choose_kind("Pairs on the map", list(mapped), "training-map-of")
            lesson = mapped[kind]
            steps = [snapshot.step for snapshot in lesson.snapshots]
            key, places = f"training-snapshot-{kind}", range(len(steps))
            remember_number(key, places, len(steps) - 1, run.task.cache_key())
            snapshot = st.select_slider(
                "After step", list(places),
                format_func=lambda place: f"{steps[place]:,}" if steps[place] else "before",
                key=key, persist_state="session",
            )  # fmt: skip
        changed = new_neighbours(lesson, N_LISTED)
        show_headline(headlines.describe_moves(lesson), key="training-moves")
        left_column, right_column = wide_columns([2, 1], "training-moves-seen")
        maps = np.asarray(lesson.maps)
        followed = [change.text for change in changed]
        with left_column:
            show_figure(
                plots.moving_map_figure(maps, snapshot, steps, texts, groups, followed),
                f"map while training {kind}",
                lambda: _tabulate_points(lesson, texts, groups),
                provenance,
                key=f"training-map-{run.id}-{kind}",
                height=520,
            )
        with right_column:
            _list_changes(changed, texts)


def _choose_kind(label: str, kinds: Sequence[PairKind], key: str) -> PairKind:
    if len(kinds) == 1:
        return kinds[0]
    return choose_one(st.pills, label, kinds, key=key, format_func=str.capitalize)


def _list_changes(changed: Sequence[NewNeighbours], texts: Sequence[str]) -> None:
    """List the nearest neighbour of some texts before and after the training."""
    rows = [[texts[i] for i in (change.text, change.before, change.after)] for change in changed]
    frame = pd.DataFrame(rows, columns=["text", "nearest before", "nearest after"])
    column = st.column_config.TextColumn(width=110)  # so that all three are seen
    narrow = dict.fromkeys(map(str, frame), column)
    title = "Texts with new neighbours"
    show_table(frame, "training-changed", title=title, height=520, column_config=narrow)


@st.cache_data(max_entries=4, show_spinner=False, hash_funcs={TrainOnCorpus: repr})
def _load_watched(task: TrainOnCorpus) -> tuple[list[str], list[str]]:
    """The texts of the points, and their labels in the column with the fewest different ones."""
    store = CorpusStore()
    corpus = store.corpus(task.corpus)
    texts = store.texts(corpus)
    columns = {
        column.name: store.label_names(corpus, column.name)
        for column in corpus.columns
        if column.kind != "number"
    }
    watch = Watch(texts, columns[task.labels] if task.labels else None, n_texts=task.n_watched)
    varied = [labels for labels in columns.values() if len(set(labels)) > 1]
    coarsest = min(varied, key=lambda labels: len(set(labels)), default=[""] * len(texts))
    return [texts[i] for i in watch.watched], [coarsest[i] for i in watch.watched]


def _tabulate_points(lesson: Lesson, texts: list[str], groups: list[str]) -> pd.DataFrame:
    assert lesson.maps is not None
    columns = {"text": texts, "label": groups}
    return pd.concat(
        pd.DataFrame({"step": snapshot.step, **columns, "x": points[:, 0], "y": points[:, 1]})
        for snapshot, points in zip(lesson.snapshots, lesson.maps, strict=True)
    )


# --- saving ------------------------------------------------------------------------------------


def _offer_to_save(task: TrainOnCorpus, lessons: Lessons) -> None:
    """Ask for an encoder and a name, and save it; a message where no weights are left."""
    if effective_settings().demo:
        st.caption("Encoders cannot be saved in this demo.")
        return
    kept = task.kept_steps()
    numbers = {lesson.settings.pairs: n for n, lesson in enumerate(lessons) if kept[n]}
    if not numbers:
        st.caption("The weights of this training are not saved, so its encoder cannot be saved.")
        return
    st.subheader("Save the encoder", anchor=False)
    number = numbers[_choose_kind("Encoder of", list(numbers), "training-save-of")]
    settings = task.settings[number]
    if kept[number] < lessons[number].step:  # the training ended suddenly
        st.caption(f"The last saved weights are those after {many(kept[number], 'step')}.")
    name = save_by_name(
        "training", "my-encoder", (task.model, task.corpus, settings),
        partial(_save_encoder, task, number), lambda name: trained_encoder(name) is not None,
    )  # fmt: skip
    if name:
        _offer_maps(task, settings, name)


def _offer_maps(task: TrainOnCorpus, settings: TrainingSettings, name: str) -> None:
    """Offer maps of the corpus by the trained encoder and by the original one."""
    if st.button("Map the corpus with it", icon=":material/scatter_plot:"):
        before = settings.pooling
        after = before if settings.part == "model" else "sentence-transformer"  # has no layers
        address = {"corpus": task.corpus}
        for side, method, model in (("a", after, name), ("b", before, task.model.id)):
            address |= {f"map-{side}": method, f"map-{side}-{method}-model": model}
        st.switch_page(app_folder() / "pages/corpus_map.py", query_params=address)


def _save_encoder(task: TrainOnCorpus, number: int, name: str) -> Path:
    """Save an encoder of a training under a name."""
    folder = encoders_folder() / check_free_name(name)
    model = shared_text_model(task.model.id)
    store = CorpusStore()
    texts = store.texts(store.corpus(task.corpus))
    restored = training.restore_training(model, texts, task.settings[number], task.folder(number))
    if restored is None:
        raise StoreError("This training's weights are no longer saved. Train again.")
    training.save_encoder(restored, model, folder)
    return folder


# --- the widgets ---------------------------------------------------------------------------------


def choose_training(corpora: Sequence[Corpus]) -> tuple[TrainOnCorpus | None, bool]:
    """Ask for a training, None while it is incomplete; also whether *Train* was pressed."""
    left_column, right_column = wide_columns(2, "training-given")
    with left_column:
        by_id = {corpus.id: corpus for corpus in corpora}
        help_ = "Add your own on the page *Corpus map*. Texts of several sentences work best."
        corpus = pick_corpus(st.selectbox, by_id, CORPUS, help=help_)
        if corpus is None:
            return None, False
        label = _choose_label(corpus)
    with right_column:
        model_id = _choose_encoder()
        kinds = _choose_kinds()
    row = st.container(horizontal=True, vertical_alignment="center")
    place = row.container(width="content")
    with row.popover("Settings", icon=":material/tune:", key="training-settings"):
        options = _choose_settings()
    pairs_place = row.container(width="content")
    settings: tuple[TrainingSettings, ...] = ()
    source: PairSource | None = None
    problem: NeuralvizError | None = None
    try:
        settings = tuple(TrainingSettings(**options, pairs=kind) for kind in kinds)
        source = _make_pairs(corpus.id, settings[0]) if settings else None
    except NeuralvizError as error:
        problem = error
    pressed = place.button(
        "Train", type="primary", icon=":material/fitness_center:", disabled=source is None
    )
    wants_pairs = pairs_place.button(
        "Ten pairs", icon=":material/compare_arrows:", key="training-pairs", disabled=source is None
    )
    if source is None:
        with slide("training-problem"):
            if problem:
                show_error(problem)
            else:
                st.info("Choose one or two kinds of pairs.")
        if settings:
            _offer_single_sentences(corpus.id, settings[0])
        return None, False
    if wants_pairs:
        _show_preview(corpus, label, source)
    with row:
        _describe_steps(settings[0], source, label)
    return jobs.watched_training(model_id, corpus, label, settings, source), pressed


def _offer_single_sentences(corpus_id: str, settings: TrainingSettings) -> None:
    """A button that makes chunks of short texts, if that is enough for pairs."""
    try:
        _make_pairs(corpus_id, replace(settings, sentences=1, shortest=1))
    except NeuralvizError:
        return
    update = {"training-sentences": 1, "training-shortest": 1}
    st.button(
        "Use single sentences of any length",
        icon=":material/short_text:",
        on_click=st.session_state.update,
        args=(update,),
    )


def _describe_steps(settings: TrainingSettings, source: PairSource, label: str) -> None:
    batch = min(settings.batch_size, len(source))
    steps = steps_of_epoch(len(source), batch) * settings.n_epochs
    sentence = f"{many(steps, 'step')} of {many(batch, 'pair')}."
    note = " They are still counted." if label and len(source.skipped) else ""
    st.caption(plain(f"{sentence} {source.skipped_in_words()}{note}"))


def _choose_encoder() -> str:
    options = [BUNDLED, MINILM, *(encoder.name for encoder in trained_encoders())]
    chosen = st.selectbox(
        "Encoder",
        options,
        key="encoder",
        bind="query-params",
        accept_new_options=not effective_settings().demo,
        help="The model to train. You can also enter a Hugging Face Hub ID or a folder.",
    )
    return chosen or jobs.ENCODER


def _choose_label(corpus: Corpus) -> str:
    columns = [column.name for column in corpus.columns if column.kind != "number"]
    if not columns:
        st.caption("This corpus has no labels, so accuracy cannot be measured.")
        return ""
    return choose_one(
        st.pills,
        "Measure by",
        columns,
        key="training-label",
        default=_find_first_label(corpus.id),
        format_func=plain,
        help="Labels are never trained on. They show whether texts of one label come together.",
    )


@st.cache_data(max_entries=16, show_spinner=False)
def _find_first_label(corpus_id: str) -> str:
    return jobs.first_label(CorpusStore().corpus(corpus_id))


def _choose_kinds() -> list[PairKind]:
    chosen = st.pills(
        "Pairs",
        PAIR_KINDS,
        default=list(jobs.KINDS),
        selection_mode="multi",
        format_func=str.capitalize,
        key="pairs",
        bind="query-params",
        help="Two kinds are trained side by side, on the same texts, seed and steps.",
    )
    if len(chosen) > MAX_KINDS:
        st.caption(f"Only two are trained at a time: {chosen[0]} and {chosen[1]}.")
    return list(chosen)[:MAX_KINDS]


def _choose_settings() -> dict[str, Any]:
    part: Part = choose_one(
        st.segmented_control,
        "What is trained",
        PARTS,
        key="training-part",
        default=jobs.PART,
        format_func=_PARTS.__getitem__,
        help="The table of token embeddings alone, without a transformer, trains in seconds.",
    )
    first = jobs.first_settings(part)
    options: dict[str, Any] = {"part": part}
    left_column, right_column = st.columns(2)
    options["learning_rate"] = right_column.number_input(
        "Learning rate", 0.0, 10.0, first.peak_rate, format="%.6g",
        key=f"training-rate-{part}", bind="query-params",
        help=f"For about a thousand texts. The paper, with far more texts, uses "
        f"{LEARNING_RATE:g} for the model, and {TABLE_LEARNING_RATE:g} for the table.",
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
            format_func=lambda start: f"{start.capitalize()} weights",
        )
    return options


@st.cache_data(max_entries=2, show_spinner="Reading the corpus …")
def load_texts(corpus_id: str) -> tuple[str, ...]:
    store = CorpusStore()
    return tuple(store.texts(store.corpus(corpus_id)))


@st.cache_resource(
    max_entries=4, show_spinner="Making pairs …", hash_funcs={TrainingSettings: _PAIR_SETTINGS}
)
def _make_pairs(corpus_id: str, settings: TrainingSettings) -> PairSource:
    """The pairs of a corpus; takes seconds, as all texts are split into sentences."""
    return PairSource(load_texts(corpus_id), settings)


@st.dialog("Ten pairs of this corpus", width="large")
def _show_preview(corpus: Corpus, label: str, source: PairSource) -> None:
    """Show the pairs of the first steps, each with its text."""
    labels = CorpusStore().labels(corpus, label) if label else ()
    kind = source.settings.pairs
    st.caption(f"{kind.capitalize()}: {PAIR_LINES[kind]}. {plain(source.skipped_in_words())}")
    for pair in next(source.batches(0, N_PREVIEWED)):
        label_note = f" · {plain(str(labels[pair.text]))}" if label else ""
        st.markdown(f"**Text {pair.text + 1:,}**{label_note}")
        chunks = dict.fromkeys((pair.anchor, pair.positive))  # one, where both are the same
        for column, chunk in zip(st.columns(len(chunks)), chunks, strict=True):
            column.markdown(plain(chunk))
