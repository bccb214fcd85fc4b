"""The page of the corpus map below its title: choosing, finding and making the maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from neuralviz.embedders import FOR_CORPORA, EmbedderSpec
from neuralviz.embedders.specs import labels_by_spec, list_models, make_embedder
from neuralviz.errors import NeuralvizError
from neuralviz.jobs import Run
from neuralviz.jobs.mapping import MakeMaps, MapChoice, MapsState
from neuralviz.jobs.results import find_status
from neuralviz.jobs.training import TEXTBOOKS
from neuralviz.maps.example import NAME, add_example, add_example_once
from neuralviz.maps.kept import KeptMap, KeptMaps
from neuralviz.maps.mapping import check_enough_texts
from neuralviz.maps.neighbours import METRICS
from neuralviz.maps.opened import OpenMap
from neuralviz.maps.projection import LIMITS, REDUCERS, SETTING_NAMES, ProjectionSettings, warm_up
from neuralviz.models.shared import LOADERS, held_model, is_at_hand, trained_encoder
from neuralviz.store.corpora import Corpus, CorpusStore
from neuralviz.store.importing import FILE, imported_specs
from neuralviz.store.vectors import embedder_id
from neuralviz.ui.choices import choose_one, corpus_store
from neuralviz.ui.corpus.choose import ADDED, PLACES, RUNS, choose_corpus, current_run
from neuralviz.ui.corpus.lists import describe_neighbourhoods, show_accuracy, show_lists
from neuralviz.ui.corpus.opened import open_maps
from neuralviz.ui.corpus.search import (
    MapView,
    forget_selection,
    place_sentence,
    read_chosen_text,
    search_samples,
    show_search,
    write_chosen_text,
)
from neuralviz.ui.corpus.show import list_colours, show_maps
from neuralviz.ui.limits import is_served
from neuralviz.ui.links import RUN
from neuralviz.ui.model_choice import choose_method
from neuralviz.ui.pace import WARMING
from neuralviz.ui.page import plain, show_error
from neuralviz.ui.runs import RunSentences, is_of_others, show_run_panel
from neuralviz.ui.stage import show_headline, show_on_stage, slide
from neuralviz.words import many

_EXAMPLES = (NAME, TEXTBOOKS)  # listed after the user's corpora; the example with maps comes first
_LAST_CORPUS = "corpus-shown"  # session state: the id of the last corpus shown
COLOUR_WIDTH = 150  # px
# step and help of the numbers among a projection's settings
_NUMBERS: dict[str, tuple[Any, str]] = {
    "n_neighbors": (1, "Low values show local detail, high values the overall structure."),
    "min_dist": (0.05, "How close together points may be placed."),
    "perplexity": (5.0, "Roughly the number of neighbours that count for each text."),
    "seed": (1, "The same seed gives the same map."),
}
_HELD = {kind: partial(held_model, kind) for kind in LOADERS}
_SENTENCES = RunSentences(describe_stopped=lambda _: "Stopped. Finished embeddings are saved.")
_OUTDATED = " (the model has changed since the saved map was made)"


def show() -> None:
    try:
        add_example_once(CorpusStore())
        ranks = {name: rank for rank, name in enumerate(_EXAMPLES)}
        corpora = sorted(corpus_store().corpora(), key=lambda saved: ranks.get(saved.name, -1))
        corpus = choose_corpus(corpora)
        if corpus is not None:
            _show_corpus(corpus)
        else:
            st.info("No corpora yet. Add one, or open the example.")
            if st.button("Open the example", type="primary"):
                add_example(CorpusStore())
                st.rerun()
    except NeuralvizError as error:
        show_error(error)
    if is_served():
        WARMING.call_soon(warm_up)  # after what the page itself reads


def _show_corpus(corpus: Corpus) -> None:
    if st.session_state.get(_LAST_CORPUS, corpus.id) != corpus.id:
        forget_selection()
    st.session_state[_LAST_CORPUS] = corpus.id
    is_new = st.session_state.pop(ADDED, None) == corpus.id
    store = CorpusStore()
    places = choose_maps(imported_specs(store.vectors, lambda: store.keys(corpus)))
    if places is None:
        return
    saved = {place.choice: find_saved(corpus, place.choice) for place in places}
    kept = {place: found for place in places if (found := saved[place.choice].map) is not None}
    maps = open_maps(corpus, list(kept.values()))
    colours = [choose_colour(place, list_colours(maps)) for place in kept]
    make_missing(corpus, saved, is_new=is_new)
    names = labels_by_spec(choice.spec for choice in saved)
    for choice, state in saved.items():
        if state.may_be_outdated:
            st.caption(
                plain(
                    f"{names[choice.spec]}: the model is not loaded. If its files have "
                    "changed since this map was made, the map is outdated."
                )
            )
    if maps:
        _explore(maps, colours)


@st.fragment
def _explore(maps: Sequence[OpenMap], colours: Sequence[str]) -> None:
    try:
        view = MapView(maps, colours)
        read_chosen_text(view.corpus.n_texts)
        with slide("maps"):
            headline_area, map_area = st.container(), st.container()
        with show_on_stage("search"):
            view = show_search(view)
        with headline_area:
            show_headline(describe_neighbourhoods(view), key="maps")
        with map_area:
            view = replace(view, placed=place_sentence(maps))
        accuracy_area = st.container()
        show_lists(view)  # before the maps: a text can be read while they are drawn
        with map_area:
            show_maps(view)
        with accuracy_area:
            search_samples(maps)
            show_accuracy(view)
        write_chosen_text(view)
    except NeuralvizError as error:  # for example, deleted in another window
        show_error(error)


# --- choosing ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    key: str  # of its widgets
    choice: MapChoice
    row: DeltaGenerator  # holds its widgets


def choose_maps(imported: Mapping[str, EmbedderSpec]) -> list[Place] | None:
    """Ask for one map or two, also of ``imported`` vectors; None if a setting is invalid."""
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
        return chosen[:1]
    return chosen


def _choose_again(key: str, first: str, imported: Mapping[str, EmbedderSpec]) -> None:
    """Choose the first method after an import, and where another corpus's file was chosen."""
    current = st.session_state.get(key, "")
    is_gone = str(current).startswith(FILE) and current not in imported
    if key in st.session_state and (is_gone or st.session_state.pop(f"{key}-renewed", False)):
        st.session_state[key] = first


def choose_colour(place: Place, options: Mapping[str, str]) -> str:
    """Ask for the colour of a map's points, at first the first label; see `list_colours`."""
    key, keys = f"colour-{place.key}", list(options)
    first = next((option for option in keys if option.startswith("label:")), keys[0])
    if st.session_state.get(key, first) not in options:
        del st.session_state[key]
    return place.row.selectbox(
        "Colour by",
        keys,
        index=keys.index(first),
        format_func=options.__getitem__,
        key=key,
        bind="query-params",
        width=COLOUR_WIDTH,
    )


def _choose_projection(place: str) -> ProjectionSettings:
    key = f"map-{place}"
    # before the box is there, the address has the title of the projection that it will show
    linked = {title: name for name, title in REDUCERS.items()}.get(
        st.query_params.get(f"{key}-reducer", ""), "umap"
    )
    with st.popover(
        REDUCERS[st.session_state.get(f"{key}-reducer") or linked],
        icon=":material/scatter_plot:",
        help="Projection settings",
        key=f"{key}-projection",
    ):
        reducer = st.selectbox(
            "Projection",
            list(REDUCERS),
            format_func=REDUCERS.__getitem__,
            key=f"{key}-reducer",
            bind="query-params",
            help=(
                "UMAP keeps neighbours together. t-SNE does so more strongly, but distorts "
                "the overall layout. PCA is a linear projection."
            ),
        )
        values: dict[str, Any] = ProjectionSettings(reducer).relevant()
        if reducer != "tsne":
            values["dimensions"] = choose_one(
                st.segmented_control, "Dimensions", [2, 3], default=2, key=f"{key}-dimensions"
            )
        values["metric"] = st.selectbox(
            "Distance", METRICS, key=f"{key}-metric", bind="query-params"
        )
        for name in filter(values.__contains__, _NUMBERS):
            kind, low, high = LIMITS[name]
            step, help_ = _NUMBERS[name]
            values[name] = st.number_input(
                SETTING_NAMES.get(name, name).capitalize(),
                kind(low),
                kind(high),
                values[name],
                step,
                key=f"{key}-{name}",
                bind="query-params",
                help=help_,
            )
    return ProjectionSettings.from_dict(values)


# --- what is saved -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Saved:
    # the newest if it cannot be compared with a model in memory; None if there is none
    map: KeptMap | None
    is_outdated: bool = False  # the only map is by a model that has changed since
    # by a model of a folder or the Hub, which may have changed and is not loaded
    may_be_outdated: bool = False


def find_saved(corpus: Corpus, choice: MapChoice) -> Saved:
    """Find the saved map for a choice of settings without loading a model."""
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
    """Offer to make missing maps, or show progress; a new corpus's first map starts by itself."""
    missing = [choice for choice, state in saved.items() if state.map is None]
    run = current_run(corpus)
    makeable = missing
    if run is not None and not run.is_over:  # another session's run may go on beside one's own
        under_way = _get_task(run).choices if is_of_others(run) else missing
        makeable = [choice for choice in missing if choice not in under_way]
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
        status = find_status(st.query_params.get(RUN, ""), _name_work(corpus))
        if missing and status not in (None, "done"):
            st.info(
                "Work on this corpus ended early, or another server is still at it. The embeddings "
                "that were finished are saved. Press the button above to make the rest."
            )
        return
    is_shown = not is_of_others(run) or any(c in _get_task(run).choices for c in missing)
    if run.is_over:
        is_shown = bool(missing) and run.status != "done"
    if is_shown:
        show_run_panel(RUNS, run, lambda _result, _live: None, sentences=_SENTENCES)
    if run.is_over and run.result.unread:
        st.warning(plain(run.result.unread))


def _name_work(corpus: Corpus) -> str:
    return f"maps of {corpus.id}"


def _get_task(run: Run[MapsState]) -> MakeMaps:
    return cast("MakeMaps", run.task)
