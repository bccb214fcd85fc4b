"""The widgets for the data set, the methods and their settings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from neuralviz.embedders import METHODS, split_options
from neuralviz.embedders.specs import list_models, method_labels, split_at_commas
from neuralviz.errors import NeuralvizError, StoreError
from neuralviz.evaluation.data import BY_RANGE, LabelledData, ScoredData
from neuralviz.evaluation.examples import METHODS as FIRST_METHODS
from neuralviz.evaluation.measures import check_measures
from neuralviz.evaluation.plan import (
    EXPERIMENTS,
    EvaluationPlan,
    MeasureSettings,
    Row,
    experiment_rows,
    method_rows,
    spec_rows,
)
from neuralviz.maps.neighbourhoods import K, suggest_k
from neuralviz.models import BUNDLED, bundled
from neuralviz.models.language_model import head_layers, list_layers
from neuralviz.models.shared import LOADERS, check_may_load, is_loaded
from neuralviz.reading.scales import FIVE, UNIT, Scale
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.importing import imported_specs
from neuralviz.store.vectors import text_keys
from neuralviz.ui.choices import choose_precision
from neuralviz.ui.corpora import corpus_store
from neuralviz.ui.evaluation.data import DataChoice, choose_data
from neuralviz.ui.evaluation.probe import choose_probe
from neuralviz.ui.limits import effective_settings
from neuralviz.ui.method_choice import JOINED, MODEL_HELP
from neuralviz.ui.model_choice import offline_models, trained_names
from neuralviz.ui.page import plain, show_error, wide_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from streamlit.delta_generator import DeltaGenerator

    from neuralviz.embedders.specs import EmbedderSpec
    from neuralviz.evaluation.data import DataSet, Measure
    from neuralviz.store.corpora import Corpus
    from neuralviz.store.vectors import KeptEmbedder

MAX_K = 1000
OWN_METHODS = "Methods"
SAVED_EMBEDDINGS = "Saved embeddings"
LAYER_TABLES = ("layers", "ablations", "layer-by-layer")  # rows depend on the model


@dataclass(frozen=True, eq=False)
class EvaluationChoice:
    """The evaluation that the widgets ask for.

    Attributes:
        plan: one data set, and the methods.
        corpus: id of the saved corpus of the texts; empty for other data.
    """

    plan: EvaluationPlan
    corpus: str = ""

    @property
    def data(self) -> DataSet:
        """The data set."""
        return self.plan.data[0]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The methods."""
        return self.plan.rows

    @property
    def identity(self) -> tuple[object, ...]:
        """A key of everything that the results depend on, files of models included."""
        return self.plan.cache_key(), list_models(row.spec for row in self.rows)


@dataclass(frozen=True)
class _Settings:
    """The settings of the popover; ``error_place`` is its container for errors."""

    precision: str
    options: str
    model: str
    k: int
    thresholds: tuple[float, float] | None
    error_place: DeltaGenerator


def choose() -> tuple[EvaluationChoice | None, bool]:
    """Ask for data and methods; also whether *Evaluate* was pressed.

    The choice is None, with a message, while something is missing or not valid.
    """
    left_column, right_column = wide_columns(2, "evaluation-given")
    data_choice: DataChoice | None = None
    measures: tuple[Measure, ...] = ()
    with left_column:
        try:
            unprobed = choose_data()
            if unprobed is not None:
                data_choice, measures = choose_probe(unprobed)
        except NeuralvizError as error:
            show_error(error)
    with right_column:
        kept = data_choice.kept if data_choice is not None else ()
        imported = _find_imported(data_choice) if data_choice is not None else {}
        table = _choose_table(kept)
        chosen = _choose_methods(table, kept, imported)
        row = st.container(horizontal=True)
        pressed = row.button("Evaluate", type="primary", icon=":material/play_arrow:")
        with row.popover("Settings", icon=":material/tune:", key="evaluation-settings"):
            settings = _choose_settings(table, data_choice)
        rows = _build_rows(table, chosen, kept, imported, settings)
        if data_choice is None or rows is None:
            return None, pressed
        try:
            data = _with_thresholds(data_choice.data, settings.thresholds)
            measuring = MeasureSettings(measures, k=settings.k)
            check_measures(data, measuring)
        except NeuralvizError as error:
            show_error(error)
            return None, pressed
    plan = EvaluationPlan((data,), rows, measuring)
    return EvaluationChoice(plan, data_choice.corpus), pressed


def _with_thresholds(data: DataSet, thresholds: tuple[float, float] | None) -> DataSet:
    """Scored pairs with the chosen thresholds.

    Raises:
        SettingsError: the dissimilar threshold is above the similar one.
    """
    if thresholds is None or not isinstance(data, ScoredData):
        return data
    notes = data.notes
    if thresholds != (data.similar, data.dissimilar):  # they no longer follow the range
        notes = tuple(note for note in notes if note != BY_RANGE.note(data.scores))
    return replace(data, similar=thresholds[0], dissimilar=thresholds[1], notes=notes)


def _choose_table(kept: Sequence[EmbedderSpec]) -> str:
    return st.selectbox(
        "Evaluate",
        [*[SAVED_EMBEDDINGS] * bool(kept), OWN_METHODS, *EXPERIMENTS],
        key="experiment-of-corpus" if kept else "experiment",
        bind="query-params",
        help="Choose your own methods, or an experiment from the papers.",
    )


def _find_imported(data_choice: DataChoice) -> dict[str, EmbedderSpec]:
    """By label, the imported vectors that cover all texts and belong to a saved corpus.

    None for an example: its page opens without the store, which takes long to load.
    """
    if data_choice.is_example:
        return {}
    try:
        store = corpus_store()
        imported = imported_specs(store.vectors, text_keys(data_choice.data.texts))
        if not imported:
            return {}
        imported_jsons = {spec.to_json() for spec in imported.values()}
        corpus_jsons = {
            kept.spec
            for kept in store.vectors.embedders()
            if kept.spec in imported_jsons and _is_beside_corpus(store, kept)
        }
    except StoreError:  # opening a saved corpus shows the error
        return {}
    return {label: spec for label, spec in imported.items() if spec.to_json() in corpus_jsons}


def _is_beside_corpus(store: CorpusStore, kept: KeptEmbedder) -> bool:
    version = store.vectors.version(kept)
    return any(_has_all(store.folder, corpus, kept, version) for corpus in store.corpora())


@st.cache_data(max_entries=1024, show_spinner=False)
def _has_all(folder: Path, corpus: Corpus, kept: KeptEmbedder, version: int) -> bool:
    """Whether all texts of a corpus have a vector; a new version empties the cache."""
    store = CorpusStore(folder)
    return bool(store.vectors.has_vectors(kept, store.keys(corpus)).all())


def _choose_methods(
    table: str, kept: Sequence[EmbedderSpec], imported: Mapping[str, EmbedderSpec]
) -> Sequence[str]:
    """Ask for methods, or for embeddings of a corpus; empty for a predefined table."""
    if table == SAVED_EMBEDDINGS:
        labels = method_labels(kept)
        return st.multiselect(
            "Embeddings", labels, default=labels, key=f"kept-{'-'.join(labels)}",
            label_visibility="collapsed", placeholder="Choose saved embeddings",
        )  # fmt: skip
    if table != OWN_METHODS:
        st.caption(EXPERIMENTS[table].line)
        return ()
    return st.multiselect(
        "Methods",
        [*METHODS, *JOINED, *_trained_encoder_methods(), *imported],
        default=list(FIRST_METHODS),
        key="methods",
        bind="query-params",
        accept_new_options=True,
        label_visibility="collapsed",
        placeholder="Choose methods, or type mean@bundled or neural+mean",
    )


def _trained_encoder_methods() -> list[str]:
    """A method for each encoder that was trained here."""
    return [f"sentence-transformer@{name}" for name in trained_names("sentence-transformer")]


def _choose_settings(table: str, data_choice: DataChoice | None) -> _Settings:
    precision, options, k = "exact", "", K
    model: str | None = None
    if data_choice is not None and _has_voters(data_choice):
        k = _choose_k(data_choice.data)
    thresholds = _choose_thresholds(data_choice.data if data_choice is not None else None)
    if table != SAVED_EMBEDDINGS:
        precision = choose_precision("Precision", "precision", "exact")
        options = st.text_input(
            "Options",
            key="options",
            bind="query-params",
            placeholder="epochs=5, mean.layer=all" if table == OWN_METHODS else "NAME=VALUE",
            help=(
                "Options for every method that has them, or for one method with METHOD.NAME=VALUE. "
                "To use a method several times, type its model or options behind an @: "
                "mean@bundled, neural@epochs=5."
            ),
        )
        model = st.selectbox(
            "Model",
            list(dict.fromkeys([*offline_models("text"), *offline_models("sentence-transformer")])),
            index=None,
            key="evaluation-model",
            bind="query-params",
            accept_new_options=not effective_settings().demo,
            placeholder="each method's default",
            help=MODEL_HELP,
        )
    elif not _has_voters(data_choice):
        st.caption("Saved embeddings have their settings already.")
    return _Settings(precision, options or "", (model or "").strip(), k, thresholds, st.container())


def _choose_k(data: DataSet) -> int:
    """Ask for the number of voting neighbours: first ten, or fewer for labels with few texts."""
    labels = data.labels if isinstance(data, LabelledData) else ()
    first = suggest_k([list(Counter(labels).values())])
    chosen = st.number_input(
        "Neighbours",
        min_value=1,
        max_value=MAX_K,
        value=first,
        key="neighbours" if first == K else f"neighbours-{first}",  # other data reset it
        bind="query-params",
        help="Number of neighbours that vote on a text's label.",
    )
    return chosen or first


def _has_voters(data_choice: DataChoice | None) -> bool:
    """Whether neighbours vote on labels of the data."""
    return data_choice is not None and "neighbours" in data_choice.data.by_default


def _choose_thresholds(data: DataSet | None) -> tuple[float, float] | None:
    """Ask for the lowest similar and the highest dissimilar score; None without scores."""
    if not isinstance(data, ScoredData):
        return None
    row = st.container(horizontal=True)
    score_scale = Scale.from_scores(data.scores)
    range_suffix = (
        "-of-1" if score_scale == UNIT else f"-of-{score_scale.low:g}-{score_scale.high:g}"
    )
    key_suffix = "" if score_scale == FIVE else range_suffix
    step = (score_scale.high - score_scale.low) / 20 if key_suffix else 0.5
    similar = row.number_input(
        "Similar if at least", value=data.similar, step=step, format="%g",
        key=f"similar{key_suffix}", bind="query-params",
        help="Pairs with this score or higher count as similar.",
    )  # fmt: skip
    dissimilar = row.number_input(
        "Dissimilar if at most", value=data.dissimilar, step=step, format="%g",
        key=f"dissimilar{key_suffix}", bind="query-params",
        help="Pairs with this score or lower count as dissimilar.",
    )  # fmt: skip
    return similar, dissimilar


def _build_rows(
    table: str,
    chosen: Sequence[str],
    kept: Sequence[EmbedderSpec],
    imported: Mapping[str, EmbedderSpec],
    settings: _Settings,
) -> tuple[Row, ...] | None:
    """The rows of the plan; None, with a message, where a method is missing or not valid."""
    if table in (OWN_METHODS, SAVED_EMBEDDINGS) and not chosen:
        st.caption(f"Choose at least one {'method' if table == OWN_METHODS else 'embedding'}.")
        return None
    if table == SAVED_EMBEDDINGS:
        specs = dict(zip(method_labels(kept), kept, strict=True))
        return spec_rows([specs[label] for label in chosen if label in specs])
    try:
        return _build_rows_with_options(table, chosen, imported, settings)
    except NeuralvizError as error:
        show_error(error)
        with settings.error_place:  # the popover may cover the page
            show_error(error)
        return None


def _build_rows_with_options(
    table: str,
    methods: Sequence[str],
    imported: Mapping[str, EmbedderSpec],
    settings: _Settings,
) -> tuple[Row, ...] | None:
    typed = split_options(split_at_commas(settings.options))
    model_id = settings.model or None
    masked = model_id or BUNDLED
    if table in LAYER_TABLES and masked != BUNDLED and not is_loaded(masked):
        st.caption("This experiment needs the model's layers.")
        if not st.button(plain(f"Load {masked[:60]}")):
            return None

    def rows_with(options: dict[str, str]) -> tuple[Row, ...]:
        if table == OWN_METHODS:
            return method_rows(methods, options, model_id, imported)
        return experiment_rows(table, options, model_id, _read_head_layers, _count_blocks)

    rows = rows_with(typed)
    if settings.precision != "exact" and any(row.spec.learns for row in rows):
        rows = rows_with({"precision": settings.precision} | typed)
    for part in (part for row in rows for part in row.spec.singles):
        check_may_load(part.model_id)
    return rows


def _read_head_layers(model_id: str) -> Sequence[str]:
    """The layers of the head; of the bundled model without loading it."""
    if model_id == BUNDLED:
        shapes = bundled.shapes()
        return head_layers(list_layers(shapes, "bert"), shapes["cls.predictions.bias"][0])
    return LOADERS["masked"](model_id).head_layers


def _count_blocks(model_id: str) -> int:
    """The number of blocks; of the bundled model without loading it."""
    if model_id == BUNDLED:
        blocks = {layer.block for layer in list_layers(bundled.shapes(), "bert")}
        return len(blocks - {None})
    return LOADERS["text"](model_id).n_blocks
