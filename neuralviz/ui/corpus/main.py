"""The page of the corpus map: choosing a corpus and maps, making maps, adding corpora."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import PurePosixPath
from typing import Any, cast

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from neuralviz.embedders import FOR_CORPORA, EmbedderSpec
from neuralviz.embedders.specs import METHODS, labels_by_spec, list_models, make_embedder
from neuralviz.errors import NeuralvizError, TextError
from neuralviz.headlines import join_names
from neuralviz.headlines.corpus import describe_unmade
from neuralviz.jobs import Run, run_queue
from neuralviz.jobs.mapping import MakeMaps, MapChoice, MapsState
from neuralviz.jobs.queue import find_status
from neuralviz.jobs.training import TEXTBOOKS
from neuralviz.maps.example import NAME, add_example, add_example_once
from neuralviz.maps.kept import KeptMap, KeptMaps, corpus_table
from neuralviz.maps.mapping import check_enough_texts
from neuralviz.maps.neighbours import METRICS
from neuralviz.maps.opened import OpenMap
from neuralviz.maps.projection import (
    FEWEST_TEXTS,
    LIMITS,
    MOST_WHOLE,
    REDUCERS,
    SETTING_NAMES,
    ProjectionSettings,
    is_large,
    warm_up,
)
from neuralviz.models.shared import LOADERS, held_model, is_at_hand, trained_encoder
from neuralviz.plots.theme import shorten
from neuralviz.reading.source import WITHOUT_NAMES, Source
from neuralviz.reading.table import SkippedColumn
from neuralviz.reading.texts import ReadTexts, read_files
from neuralviz.reading.vectors import ENDINGS, ReadVectors, list_vector_columns, read_vectors
from neuralviz.store.corpora import MAX_NAME, Corpus, CorpusStore
from neuralviz.store.importing import FILE, import_vectors, imported_label, imported_specs
from neuralviz.store.vectors import embedder_id
from neuralviz.store.writing import table_bytes
from neuralviz.ui.address import RUN, read_bound, read_new, remember_choice, run_page_again, write
from neuralviz.ui.choices import (
    choose_method,
    choose_one,
    corpus_store,
    describe_corpus_visibility,
    may_change,
    pick_corpus,
)
from neuralviz.ui.corpus.answers import describe_view, note_accuracy
from neuralviz.ui.corpus.findings import (
    DUPLICATES,
    has_duplicates,
    search_findings,
    show_duplicates,
    show_findings,
    show_held,
)
from neuralviz.ui.corpus.opened import open_maps
from neuralviz.ui.corpus.search import (
    CORPUS,
    MapView,
    forget_selection,
    note_linked_corpus,
    place_sentence,
    read_chosen_text,
    read_selection,
    remember_selection,
    search_samples,
    show_search,
    write_chosen_text,
)
from neuralviz.ui.corpus.show import find_first_colour, list_colours, show_lists, show_maps
from neuralviz.ui.downloads import Entry, offer
from neuralviz.ui.figures import ROW_HEIGHT
from neuralviz.ui.inputs import (
    BY_DIGEST,
    TEXT_ENDINGS,
    ask_pasted,
    ask_texts_of_file,
    choose_header,
)
from neuralviz.ui.limits import (
    describe_destination,
    describe_limits,
    effective_settings,
    is_served,
    n_within_limits,
)
from neuralviz.ui.pace import WARMING
from neuralviz.ui.page import plain, show_error, show_on_stage, slide
from neuralviz.ui.runs import RunSentences, SessionRuns, is_of_others, show_run_panel
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
_SENTENCES = RunSentences(stopped="Finished embeddings are saved.")
_OUTDATED = " (the model has changed since the saved map was made)"


def show() -> None:
    try:
        add_example_once(CorpusStore())
        ranks = {name: rank for rank, name in enumerate(_EXAMPLES)}
        corpora = sorted(corpus_store().corpora(), key=lambda saved: ranks.get(saved.name, -1))
        note_linked_corpus()
        corpus = choose_corpus(corpora)
        if corpus is not None:
            _show_corpus(corpus)
        elif not corpora:
            st.info("No corpora yet. Add one, or open the example.")
            if st.button("Open the example", type="primary"):
                add_example(CorpusStore())
                run_page_again()
    except NeuralvizError as error:
        show_error(error)
    if is_served() and not run_queue().has_workers:
        WARMING.call_soon(warm_up)  # after what the page itself reads


def _show_corpus(corpus: Corpus) -> None:
    is_other = st.session_state.get(_LAST_CORPUS, corpus.id) != corpus.id
    if is_other:
        forget_selection()
    st.session_state[_LAST_CORPUS] = corpus.id
    is_new = st.session_state.pop(ADDED, None) == corpus.id
    store = CorpusStore()
    imported = imported_specs(store.vectors, lambda: store.keys(corpus))
    places = choose_maps(imported, find_first_methods(corpus, imported), is_other=is_other)
    if places is None:
        return
    saved = {place.choice: find_saved(corpus, place.choice) for place in places}
    kept = {place: found for place in places if (found := saved[place.choice].map) is not None}
    maps = open_maps(corpus, list(kept.values()))
    colours = []
    if maps:
        options, first = list_colours(maps), find_first_colour(maps[0])
        colours = [choose_colour(place, options, first) for place in kept]
    with ExitStack() as stage:
        if not maps:  # on the stage, too, something is seen before there is one
            methods = labels_by_spec(choice.spec for choice in saved).values()
            joined_names = join_names([f"**{plain(method)}**" for method in methods])
            headline = describe_unmade(plain(corpus.name), corpus.n_texts, joined_names)
            stage.enter_context(slide("making", headline))
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
        read_chosen_text(view.corpus)
        with slide("maps"):
            headline_area, map_area = st.container(), st.container()
        with show_on_stage("search"):
            linked = read_selection()
            view = show_search(view)
            remember_selection(view.corpus, linked)
        with map_area:
            view = replace(view, placed=place_sentence(maps))
        with headline_area:
            accuracy = note_accuracy(view)
            show_findings(view, describe_view(view), accuracy.label)
        groups_area = st.container()
        findings = {DUPLICATES: show_duplicates} if has_duplicates(view) else {}
        show_lists(view, findings)  # before the maps: a text can be read while they are drawn
        with map_area:
            show_maps(view, accuracy)
        with groups_area:
            show_held(view)
            search_samples(maps)
        write_chosen_text(view)
        search_findings(view)
    except NeuralvizError as error:  # for example, deleted in another window
        show_error(error)


# --- choosing ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    key: str  # of its widgets
    choice: MapChoice
    row: DeltaGenerator  # holds its widgets


def choose_maps(
    imported: Mapping[str, EmbedderSpec],
    first: Sequence[str],  # methods
    *,
    is_other: bool = False,  # than the corpus whose maps were shown before
) -> list[Place] | None:
    """Ask for one map or two, also of ``imported`` vectors; None if a setting is invalid."""
    chosen: list[Place] = []
    is_valid = True
    for column, (key, label), method in zip(st.columns(len(PLACES)), PLACES, first, strict=True):
        is_first = key == PLACES[0][0]
        _choose_again(f"map-{key}", method, imported, is_other=is_other)
        row = column.container(horizontal=True, vertical_alignment="bottom", gap="xsmall")
        try:
            with row:
                spec = choose_method(
                    f"map-{key}",
                    label,
                    method,
                    FOR_CORPORA,
                    optional=not is_first,
                    extra_methods=imported,
                    in_address=False,  # `_choose_again` writes it
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


def find_first_methods(corpus: Corpus, imported: Mapping[str, EmbedderSpec]) -> tuple[str, str]:
    """The method of a corpus's oldest map, and one to compare with.

    Without a map, and after that one is deleted, it is another; the address of an open page has
    the methods, so that only links with the corpus alone change.
    """
    store, (usual, other) = CorpusStore(), FIRST_METHODS
    specs = {embedder.id: embedder.spec for embedder in store.vectors.embedders()}
    by_spec = {spec.to_json(): label for label, spec in imported.items()}
    map_methods = [
        by_spec.get(spec) or EmbedderSpec.from_json(spec).method
        for kept in reversed(KeptMaps(store).list_maps(corpus))
        if (spec := specs.get(kept.embedder))
    ]
    available = [method for method in map_methods if method in (*METHODS, *imported)]
    first = next((method for method in available if method != other), (available or [usual])[0])
    return first, usual if first == other else other


def _choose_again(
    key: str, first: str, imported: Mapping[str, EmbedderSpec], *, is_other: bool
) -> None:
    """Choose the file that was just imported here, the first one for a corpus without a file."""
    method = st.session_state.get(key, "")
    if is_other and method.startswith(FILE) and method not in imported:
        st.session_state[key] = first
    if (label := st.session_state.pop(f"{key}-imported", "")) in imported:
        st.session_state[key] = label
    remember_choice(key, first)


def choose_colour(place: Place, options: Mapping[str, str], first: str) -> str:
    """Ask for the colour of a map's points, which the address always has; see `list_colours`."""
    key = f"colour-{place.key}"
    if (linked := read_new(key)) is not None:  # old links have titles
        st.session_state[key] = {title: name for name, title in options.items()}.get(linked, linked)
    if st.session_state.get(key) not in options:
        st.session_state[key] = first
    write({key: st.session_state[key]})
    return place.row.selectbox(
        "Colour by",
        list(options),
        format_func=options.__getitem__,
        key=key,
        persist_state="session",
        width=COLOUR_WIDTH,
    )


def _choose_projection(place: str) -> ProjectionSettings:
    key = f"map-{place}"
    chosen = read_bound(f"{key}-reducer") or ""
    title = chosen if chosen in REDUCERS.values() else REDUCERS.get(chosen, REDUCERS["umap"])
    with st.popover(
        title,  # an address has the title, the session the name
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
                st.segmented_control, "Dimensions", [2, 3], key=f"{key}-dimensions"
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
        names = labels_by_spec(choice.spec for choice in saved)
        label = "Make both maps"
        if len(makeable) == 1:
            label = plain(f"Make the map by {names[makeable[0].spec]}")
        pressed = row.button(label, type="primary", icon=":material/map:")
        work = [names[choice.spec] + _OUTDATED * saved[choice].is_outdated for choice in makeable]
        texts = many(corpus.n_distinct, "different text")
        row.caption(plain(f"Not made yet: {' · '.join(work)} ({texts} to embed)"))
        if pressed or is_new:
            task = MakeMaps.for_current_models(corpus.id, makeable if pressed else makeable[:1])
            RUNS.start(task, again=True, work=_name_work(corpus))
            run_page_again()
    if run is None:
        status = find_status(st.query_params.get(RUN, ""), _name_work(corpus))
        if missing and status not in (None, "done"):
            st.info(
                "Work on this corpus ended early, or another server is working on it. Finished "
                "embeddings are saved; press the button above to make the rest."
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


RUNS = SessionRuns("corpus-maps")
PLACES = (("a", "Map"), ("b", "Compare with"))  # keys, labels
FIRST_METHODS = ("mean", "neural")
ADDED = "corpus-added"  # session state: the id of a corpus that was just added
_TIMES_ADDED = "corpus-times-added"  # in widgets' keys, so that the dialog opens empty
_NEXT = "corpus-next"  # the corpus to choose in the next run of the page
_IMPORTED = "corpus-imported"  # a message for the next run of the page
PREVIEWED = 6  # texts

_read_files = st.cache_data(max_entries=1, ttl=600, show_spinner="Reading …", hash_funcs=BY_DIGEST)(
    read_files
)


def choose_corpus(corpora: Sequence[Corpus]) -> Corpus | None:
    """Ask for a corpus, with widgets to add and manage one; None where there is none."""
    by_id = {corpus.id: corpus for corpus in corpora}
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    if (corpus_id := st.session_state.pop(_NEXT, None)) in by_id:
        st.session_state[CORPUS] = corpus_id
    corpus = pick_corpus(row.selectbox, by_id, CORPUS)
    if effective_settings().demo:
        row.caption("Corpora cannot be added or changed in this demo.")
    elif row.button("Add a corpus", icon=":material/add:", key="corpus-add"):
        st.session_state[_TIMES_ADDED] = st.session_state.get(_TIMES_ADDED, 0) + 1
        _show_add_dialog()
    if corpus is not None:
        key = f"corpus-manage-{corpus.id}"
        with row.popover("Manage", icon=":material/folder_managed:", key=key):
            _manage(corpus)
        if not is_large(corpus.n_texts):
            files = {
                label: (f"{corpus.name}{ending}", partial(_export_corpus, corpus, ending))
                for ending, label in ((".csv", "CSV"), (".parquet", "Parquet"))
            }
            offer(f"{key}-texts", Entry("Texts and labels", files, place=key))
    if message := st.session_state.pop(_IMPORTED, ""):
        st.toast(plain(message), icon=":material/check:")  # a toast stays while a map is made
    return corpus


# --- adding --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _NewCorpus:
    read: ReadTexts
    name: str = ""
    vectors: Source | None = None  # a file with the texts' vectors
    columns: Sequence[str] = ("",)  # of a Parquet file that may have them


@st.dialog("Add a corpus", width="large")
def _show_add_dialog() -> None:
    source = st.segmented_control(
        "Source", list(_READERS), default="Files", required=True, key="corpus-add-source"
    )
    try:
        new = _READERS[source]()
    except NeuralvizError as error:
        show_error(error)
        return
    for note in new.read.notes:
        if not isinstance(note, SkippedColumn) or note.column not in new.columns:
            st.caption(plain(note))  # the others are offered as embeddings
    visibility = describe_corpus_visibility()
    if not new.read.texts:
        destination = visibility or describe_destination("What you add")
        st.caption(f"{destination} Your files are not changed.")
        return
    _preview(new.read)
    name = st.text_input("Name", shorten(new.name, MAX_NAME), max_chars=MAX_NAME)
    column = _choose_vectors(new)
    if visibility:
        st.caption(visibility)
    has_enough = len(set(new.read.texts)) >= FEWEST_TEXTS
    label, icon = "Save and make a map", ":material/map:"
    if not has_enough:
        st.caption(
            f"A map needs at least {FEWEST_TEXTS} different texts. You can still save these."
        )
        label, icon = "Save", ":material/save:"
    if st.button(label, type="primary", icon=icon):
        with _run_page_after_change():
            _save(new, name, column)


def _choose_vectors(new: _NewCorpus) -> str | None:
    """Ask for the column of ready-made vectors for the map, ``""`` in an array; None for none."""
    if new.vectors is None:
        return None
    options = {column: f"Column “{column}” of {new.vectors.name}" for column in new.columns}
    if "" in options:
        options[""] = new.vectors.name
    return st.selectbox(
        "Embeddings",
        [*options, None],
        format_func=lambda column: "Compute them here" if column is None else options[column],
        key=f"corpus-vectors-of-{new.vectors.digest}",
        help="Ready-made vectors become a method of their own, which the map shows at once.",
    )


def _save(new: _NewCorpus, name: str, column: str | None) -> None:
    """Save a corpus; delete it again if the vectors do not match its texts."""
    read = new.read
    if n_within_limits(read.texts) < len(read.texts):
        raise NeuralvizError(describe_limits())
    read_of_file = None
    if new.vectors is not None and column is not None:
        read_of_file = read_vectors(new.vectors, column)
    corpus = corpus_store().add(name, read)
    if read_of_file is not None:
        try:
            _import(corpus, read_of_file)
        except NeuralvizError:
            corpus_store().delete(corpus)
            raise
    st.session_state[ADDED] = st.session_state[_NEXT] = corpus.id


def _read_pasted() -> _NewCorpus:
    key = f"corpus-{st.session_state.get(_TIMES_ADDED)}"
    read = ask_pasted(key, ("line", "blank line"), height=220)
    return _NewCorpus(read, shorten(read.texts[0], 30) if read.texts else "")


def _read_upload() -> _NewCorpus:
    files = st.file_uploader(
        "Tables or text files",
        type=[*TEXT_ENDINGS, "npy"],
        accept_multiple_files=True,
        key=f"corpus-files-{st.session_state.get(_TIMES_ADDED)}",
        help=(
            "CSV, TSV, JSON, JSONL, Parquet or XLSX with a column of texts, or plain text. "
            "If you upload several files, each plain text file is one text. A .npy array beside a "
            "table, or a Parquet column of vectors, can be its embeddings."
        ),
    )
    sources = [Source(file.name, file.getvalue()) for file in files]
    arrays = [source for source in sources if source.ending == ".npy"]
    sources = [source for source in sources if source not in arrays]
    if arrays and (len(arrays), len(sources)) != (1, 1):
        raise TextError(
            "A .npy file holds vectors alone. Upload one together with one file of their texts, "
            "in the same order."
        )
    if len(sources) != 1:
        return _read_several(sources, f"{len(sources)} files")
    (source,) = sources
    read = ask_texts_of_file(f"corpus-{source.digest}", source, with_ids=True)
    name = PurePosixPath(source.name).stem
    if arrays:
        return _NewCorpus(read, name, arrays[0])
    columns = list_vector_columns(source)
    return _NewCorpus(read, name, source if columns else None, columns)


def _read_folder() -> _NewCorpus:
    files = st.file_uploader(
        "A folder of tables and text files",
        type=TEXT_ENDINGS,
        accept_multiple_files="directory",
        key=f"corpus-folder-{st.session_state.get(_TIMES_ADDED)}",
        help=(
            "Each plain text file is one text; tables are combined. The file name becomes a label."
        ),
    )
    sources = [Source(file.name, file.getvalue()) for file in sorted(files, key=lambda f: f.name)]
    return _read_several(sources, PurePosixPath(sources[0].name).parts[0] if sources else "")


_READERS = {"Files": _read_upload, "Folder": _read_folder, "Paste": _read_pasted}


def _read_several(sources: Sequence[Source], name: str) -> _NewCorpus:
    """The texts of several files; one choice of header applies to all tables."""
    if not sources:
        return _NewCorpus(ReadTexts(()))
    tables = [source for source in sources if source.ending in WITHOUT_NAMES]
    key = f"corpus-header-{st.session_state.get(_TIMES_ADDED)}"
    header = choose_header(tables[0], key).header if tables else None
    files = [replace(source, header=header) if source in tables else source for source in sources]
    return _NewCorpus(_read_files(files), name)


def _preview(read: ReadTexts) -> None:
    st.markdown(f"**{many(len(read.texts), 'text')}**. Preview:")
    first = read.first(PREVIEWED)
    table = {"text": [shorten(text, 200) for text in first.texts]}
    for name, values in first.labels.items():
        table[name if name not in table else f"{name} (label)"] = list(values)
    height = ROW_HEIGHT * (len(first.texts) + 1) + 3
    st.dataframe(pd.DataFrame(table), hide_index=True, height=height)


# --- managing ------------------------------------------------------------------------------------


@contextmanager
def _run_page_after_change() -> Iterator[None]:
    """Run the page again after the change of a corpus; show an error of the change."""
    try:
        yield
    except NeuralvizError as error:
        show_error(error)
    else:
        run_page_again()


def _manage(corpus: Corpus) -> None:
    if may_change(corpus):
        _rename(corpus)
    if is_large(corpus.n_texts):
        st.caption(
            f"This corpus has more than {MOST_WHOLE:,} texts. To download it, use "
            "`neuralviz corpus export`."
        )
    if may_change(corpus):
        _show_import_form(corpus)
        _delete(corpus)


def _export_corpus(corpus: Corpus, ending: str) -> bytes:
    return table_bytes(ending, corpus_table(corpus_store(), corpus))


def _rename(corpus: Corpus) -> None:
    key = f"corpus-name-{corpus.id}"
    name = st.text_input(
        "Name", corpus.name, max_chars=MAX_NAME, key=key, help="Press Enter to rename the corpus."
    )
    if name != corpus.name:
        with _run_page_after_change():
            corpus_store().rename(corpus, name)
            st.session_state[_NEXT] = corpus.id  # so that the box shows the new name


def _show_import_form(corpus: Corpus) -> None:
    file = st.file_uploader(
        "Import embeddings",
        type=[ending[1:] for ending in ENDINGS],
        key=f"corpus-vectors-{corpus.id}",
        help=(
            "Vectors that you computed elsewhere: a Parquet file with the vectors in a column and "
            "the texts or IDs of the corpus in another, in any order, or a .npy array with one "
            "row per text, in the order of the corpus."
        ),
    )
    source = Source(file.name, file.getvalue()) if file is not None else None
    columns = list_vector_columns(source) if source is not None else []
    column = ""
    if len(columns) > 1:
        column = st.selectbox("Column with the vectors", columns, key="corpus-import-column")
    in_order = st.checkbox(
        "Match by row",
        key="corpus-import-in-order",
        help=(
            "For Parquet files without texts and IDs whose rows are in the order of the corpus. "
            "The rows of .npy arrays always are."
        ),
    )
    if not st.button("Import", icon=":material/upload_file:", key="corpus-import", width="stretch"):
        return
    if source is None:
        st.info("Choose a .npy or .parquet file first.")
        return
    with _run_page_after_change():
        _import(corpus, read_vectors(source, column), in_order=in_order)


def _import(corpus: Corpus, read: ReadVectors, *, in_order: bool = False) -> None:
    """Import vectors, which the next run of the page announces and shows."""
    imported = import_vectors(corpus_store(), corpus, read, in_order=in_order)
    label = imported_label(corpus_store(), corpus, imported.kept)
    st.session_state[_IMPORTED] = (
        f"Imported {many(corpus.n_texts, 'embedding')} of {imported.kept.dim:,} values as the "
        f"method “{label}”. {imported.matched}"
    )
    st.session_state[f"map-{PLACES[0][0]}-imported"] = label  # for this session alone: links stay


def _delete(corpus: Corpus) -> None:
    label = "Delete the corpus with its maps and embeddings"
    is_sure = st.checkbox(label, key=f"corpus-sure-{corpus.id}")
    if not st.button("Delete", key="corpus-delete", icon=":material/delete:", width="stretch"):
        return
    if not is_sure:
        st.info(f"Tick “{label}” first.")
        return
    run = current_run(corpus)
    if run is not None:
        run.stop()
    with _run_page_after_change():
        corpus_store().delete(corpus)
        st.session_state.pop(CORPUS, None)


def current_run(corpus: Corpus) -> Run[MapsState] | None:
    """This session's last run on the corpus, else the one under way that the address names."""
    return RUNS.meet(
        lambda task: isinstance(task, MakeMaps) and task.corpus_id == corpus.id,
        unnamed=effective_settings().private or not effective_settings().open,
    )
