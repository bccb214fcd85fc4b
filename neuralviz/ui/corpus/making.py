"""The maps that are chosen for a corpus: their widgets, what is saved of them, making the rest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, cast

import streamlit as st

from neuralviz.embedders import FOR_CORPORA
from neuralviz.embedders.making import make_embedder
from neuralviz.embedders.specs import labels_by_spec, list_models
from neuralviz.errors import NeuralvizError
from neuralviz.jobs.mapping import MakeMaps, MapChoice
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.mapping import check_enough_texts
from neuralviz.maps.neighbours import METRICS
from neuralviz.maps.projection import MOST_NEIGHBORS, REDUCERS, SEED, SEEDS, ProjectionSettings
from neuralviz.models.shared import LOADERS, held_model
from neuralviz.models.trained import is_at_hand, trained_encoder
from neuralviz.store.corpora import CorpusStore
from neuralviz.store.importing import FILE
from neuralviz.store.vectors import embedder_id
from neuralviz.ui.choices import choose_one
from neuralviz.ui.limits import effective_settings
from neuralviz.ui.method_choice import choose_method
from neuralviz.ui.page import plain, show_error
from neuralviz.ui.runs import RunSentences, SessionRuns, find_status, is_of_others, show_run_panel
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlit.delta_generator import DeltaGenerator

    from neuralviz.embedders import EmbedderSpec
    from neuralviz.jobs import Run
    from neuralviz.jobs.mapping import MapsState
    from neuralviz.maps.kept import KeptMap
    from neuralviz.store.corpora import Corpus

RUNS = SessionRuns("corpus-maps")
PLACES = (("a", "Map", "mean"), ("b", "Compare with", "neural"))  # keys, labels, first methods
COLOUR_WIDTH = 150  # px
_HELD = {kind: partial(held_model, kind) for kind in LOADERS}
_LOST = {
    "crashed": "The server ended while it was working on this corpus.",
    "not begun": "Work on this corpus did not begin.",
    "stopped": "Work on this corpus was stopped.",
    "failed": "Work on this corpus failed.",
    "cut off": "The process that worked on this corpus ended suddenly.",
}
_SAVED = "The embeddings that were finished are saved. Press the button above to make the rest."
_ELSEWHERE = (
    "Another server of this machine is working on this corpus. Reload the page later to see the "
    "map."
)


# --- choosing ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A place for a map: the key of its widgets, the map chosen for it, and the widgets' row."""

    key: str
    choice: MapChoice
    row: DeltaGenerator


def choose_maps(imported: Mapping[str, EmbedderSpec]) -> tuple[Place, ...] | None:
    """Widgets for one map or two; None where a setting is not valid, which the page shows.

    Args:
        imported: vectors that can be chosen beside the methods, by label; those that came last are
            the first map at the start.
    """
    chosen: list[Place] = []
    is_valid = True
    for column, (key, label, method) in zip(st.columns(len(PLACES)), PLACES, strict=True):
        is_first = key == PLACES[0][0]
        first = [method, *imported][-1] if is_first else method
        _choose_again(f"map-{key}", first, imported)
        row = column.container(horizontal=True, vertical_alignment="bottom", gap="xsmall")
        try:
            with row:
                spec = choose_method(
                    f"map-{key}",
                    label,
                    first,
                    FOR_CORPORA,
                    optional=not is_first,
                    extra_methods=imported,
                )
                if spec is not None:
                    chosen.append(Place(key, MapChoice(spec, _choose_projection(key)), row))
        except NeuralvizError as error:
            with column:
                show_error(error)
            is_valid = False
    if not is_valid:
        return None
    if len({place.choice for place in chosen}) < len(chosen):
        st.caption("Both maps are the same. Change the method or settings of one.")
        return tuple(chosen[:1])
    return tuple(chosen)


def show_import_first() -> None:
    """Choose the first methods anew, which are then those of the vectors just imported."""
    for key, *_ in PLACES:
        st.session_state[f"map-{key}-renewed"] = True


def _choose_again(key: str, first: str, imported: Mapping[str, EmbedderSpec]) -> None:
    """Choose the first method after an import, and in place of another corpus's file."""
    current = st.session_state.get(key, "")
    is_gone = str(current).startswith(FILE) and current not in imported
    if key in st.session_state and (is_gone or st.session_state.pop(f"{key}-renewed", False)):
        st.session_state[key] = first


def choose_colour(place: Place, options: Mapping[str, str]) -> str:
    """The colours of a map's points; at first, those of the first label, on both maps.

    Args:
        place: of the map.
        options: names of the ways to colour, by key.
    """
    key = f"colour-{place.key}"
    first = next((option for option in options if option.startswith("label:")), next(iter(options)))
    if st.session_state.get(key, first) not in options:
        del st.session_state[key]
    return place.row.selectbox(
        "Colour by",
        list(options),
        index=list(options).index(first),
        format_func=lambda option: options[option],
        key=key,
        bind="query-params",
        width=COLOUR_WIDTH,
    )


def _find_reducer(key: str) -> str:
    """The projection that a box shows; before it is there, the address has its title."""
    title = st.query_params.get(key)
    linked = next((name for name in REDUCERS if REDUCERS[name] == title), "umap")
    return st.session_state.get(key) or linked


def _choose_projection(place: str) -> ProjectionSettings:
    key = f"map-{place}"
    with st.popover(
        REDUCERS[_find_reducer(f"{key}-reducer")],
        icon=":material/scatter_plot:",
        help="Projection settings",
        key=f"{key}-projection",
    ):
        reducer = st.selectbox(
            "Projection",
            list(REDUCERS),
            format_func=lambda name: REDUCERS[name],
            key=f"{key}-reducer",
            bind="query-params",
            help=(
                "UMAP keeps neighbours together. t-SNE does so more strongly, but distorts "
                "the overall layout. PCA is a linear projection."
            ),
        )
        values: dict[str, object] = {"reducer": reducer}
        if reducer != "tsne":
            values["dimensions"] = choose_one(
                st.segmented_control, "Dimensions", [2, 3], default=2, key=f"{key}-dimensions"
            )
        if reducer == "umap":
            values["n_neighbors"] = st.number_input(
                "Number of neighbours", 2, MOST_NEIGHBORS, 15, key=f"{key}-neighbors",
                bind="query-params",
                help="Low values show local detail, high values the overall structure.",
            )  # fmt: skip
            values["min_dist"] = st.number_input(
                "Minimum distance", 0.0, 0.99, 0.1, 0.05, key=f"{key}-distance",
                bind="query-params", help="How close together points may be placed.",
            )  # fmt: skip
        if reducer == "tsne":
            values["perplexity"] = st.number_input(
                "Perplexity", 1.0, 100.0, 30.0, 5.0, key=f"{key}-perplexity",
                bind="query-params",
                help="Roughly the number of neighbours that count for each text.",
            )  # fmt: skip
        values["metric"] = st.selectbox(
            "Distance", METRICS, key=f"{key}-metric", bind="query-params"
        )
        if reducer != "pca":
            values["seed"] = st.number_input(
                "Seed", 0, SEEDS - 1, SEED, key=f"{key}-seed", bind="query-params",
                help="Random seed. The same seed gives the same map.",
            )  # fmt: skip
    return ProjectionSettings.from_dict(values)


# --- what is saved -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Saved:
    """The saved map for chosen settings.

    Attributes:
        map: None where there is none; the last one where no model is in memory to compare with.
        is_outdated: whether there is only a map by a model that has changed since.
        may_be_outdated: whether the map is by a model of a folder or the Hub, which may have
            changed since: that is not known before it is loaded. Of an encoder that was trained
            here it is known.
    """

    map: KeptMap | None
    is_outdated: bool = False
    may_be_outdated: bool = False


def find_saved(corpus: Corpus, choice: MapChoice) -> Saved:
    """The saved map for a choice of settings, found without loading a model."""
    store, spec_json = CorpusStore(), choice.spec.to_json()
    embedders = [embedder for embedder in store.vectors.embedders() if embedder.spec == spec_json]
    found = [KeptMaps(store).find(corpus, embedder, choice.settings) for embedder in embedders]
    maps = [kept for kept in found if kept is not None]
    may_change = False
    try:
        current_id = embedder_id(make_embedder(choice.spec, _HELD))
        current = [kept for kept in maps if kept.embedder == current_id]
    except NeuralvizError:  # the model is not loaded, or the method does not fit it
        models = [model.id for model in list_models([choice.spec])]
        trained = [encoder for model in models if (encoder := trained_encoder(model)) is not None]
        since = max((encoder.find_last_change() for encoder in trained), default=0.0)
        current = [
            kept for kept in maps if datetime.fromisoformat(kept.created).timestamp() >= since
        ]
        may_change = not all(map(is_at_hand, models))
    if not current:
        return Saved(None, is_outdated=bool(maps))
    return Saved(current[-1], may_be_outdated=may_change)


# --- making the rest -----------------------------------------------------------------------------


def make_missing(corpus: Corpus, saved: Mapping[MapChoice, Saved], *, is_new: bool) -> None:
    """Offer to make the missing maps, or show their progress.

    The first map of a new corpus is made without a press of the button.
    """
    missing = [choice for choice, state in saved.items() if state.map is None]
    run = current_run(corpus)
    makeable = _find_makeable(run, missing)
    try:
        check_enough_texts(corpus)
    except NeuralvizError as error:
        if missing:
            st.info(plain(str(error)))
            makeable = []
    if makeable:
        row = st.container(horizontal=True, vertical_alignment="center")
        label = "Make the maps" if len(makeable) > 1 else "Make the map"
        pressed = row.button(label, type="primary", icon=":material/map:")
        names = labels_by_spec(choice.spec for choice in saved)
        work = [names[choice.spec] + _OUTDATED * saved[choice].is_outdated for choice in makeable]
        row.caption(plain(f"{' · '.join(work)}: {many(corpus.n_distinct, 'different text')}"))
        if pressed or is_new:
            task = MakeMaps.for_current_models(corpus.id, makeable if pressed else makeable[:1])
            RUNS.start(task, again=True, work=_name_work(corpus))
            st.rerun()
    if run is None:
        if missing:
            _tell_lost_run(corpus)
        return
    is_met = is_of_others(run)
    makes_missing = any(choice in _get_task(run).choices for choice in missing)
    if (missing and run.status != "done") if run.is_over else (makes_missing or not is_met):
        show_run_panel(
            RUNS,
            run,
            lambda _result, _live: None,
            sentences=RunSentences(describe_stopped=partial(describe_stopped, _get_task(run))),
        )
    if run.is_over and run.result.unread:
        st.warning(plain(run.result.unread))


_OUTDATED = " (the model has changed since the saved map was made)"


def current_run(corpus: Corpus) -> Run[MapsState] | None:
    """The run on this corpus: the session's last, else one under way that the address names.

    Where users do not share corpora, the last one under way counts without being named.
    """
    return RUNS.meet(
        lambda task: isinstance(task, MakeMaps) and task.corpus_id == corpus.id,
        unnamed=effective_settings().private or not effective_settings().open,
    )


def _find_makeable(run: Run[MapsState] | None, missing: Sequence[MapChoice]) -> list[MapChoice]:
    """The missing maps that a new run may make now.

    Empty while this session's run is under way; while another session's is, those that it leaves.
    """
    if run is None or run.is_over:
        return list(missing)
    under_way = _get_task(run).choices
    return [choice for choice in missing if is_of_others(run) and choice not in under_way]


def _tell_lost_run(corpus: Corpus) -> None:
    """Say what became of a lost run that the address names."""
    status = find_status(_name_work(corpus))
    if status == "elsewhere":
        st.info(_ELSEWHERE)
    elif status in _LOST:
        st.info(f"{_LOST[status]} {_SAVED}")


def _name_work(corpus: Corpus) -> str:
    return f"maps of {corpus.id}"


def _get_task(run: Run[MapsState]) -> MakeMaps:
    return cast("MakeMaps", run.task)


def describe_stopped(task: MakeMaps, result: MapsState) -> str:
    """How far a stopped run came, and what it saved."""
    embedding = result.embedding
    if result.projecting is not None or (embedding is not None and embedding.is_complete):
        return "Stopped before the map was finished. The embeddings are saved."
    if embedding is None or not embedding.done:
        return "Stopped before the first text was embedded."
    return (
        f"Stopped. {embedding.done:,} of {embedding.total:,} different texts are embedded by "
        f"{task.methods[result.place]} and saved. Press “Run again” to resume."
    )
