"""The command that makes a map of a saved corpus."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuralviz.cli.common import INTERRUPTED, print_message
from neuralviz.cli.loading import load_embedders
from neuralviz.cli.ray_option import RayCommand, RayOption, ray_work
from neuralviz.cli.saved_corpora import (
    CorpusArgument,
    OptionsOption,
    corpus_spec,
    embed_whole_corpus,
    find_corpus,
    find_embedder,
    open_store,
    unique_label,
    warn_of_missing,
)
from neuralviz.cli.vectors import MethodsModel, describe_learning, progress_bars
from neuralviz.errors import NeuralvizError, Stopped
from neuralviz.maps.clusters import cluster_centres
from neuralviz.maps.exporting import corpus_pieces
from neuralviz.maps.filtering import category_names
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.mapping import DEFAULT, Fitting, check_enough_texts, make_map
from neuralviz.maps.projection import STAGES
from neuralviz.maps.settings import ProjectionSettings
from neuralviz.plots.corpus_map import drawn_rows
from neuralviz.plots.map_page import PageMap, map_page
from neuralviz.plots.point_colours import (
    cluster_names,
    colour_by_category,
    colour_by_code,
    colour_by_number,
)
from neuralviz.plots.standalone import About
from neuralviz.store.writing import check_destination, write_pieces, write_text
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.maps.kept import KeptMap
    from neuralviz.maps.projection import ProjectionEvent
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.vectors import KeptEmbedder

PAGE = ".html"


commands = typer.Typer(add_completion=False)


@commands.command(cls=RayCommand)
def project(
    corpus: CorpusArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help=(
                "Output file: .html for an interactive map, or .parquet, .csv or .jsonl "
                "for its points."
            ),
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            help=(
                "Embedding method, or several concatenated, such as neural+mean. `neuralviz "
                "methods` lists all methods."
            )
        ),
    ] = "mean",
    option: OptionsOption = None,
    model: MethodsModel = None,
    reducer: Annotated[str, typer.Option(help="Projection: umap, pca or tsne.")] = "umap",
    dimensions: Annotated[int, typer.Option(help="Number of dimensions: 2 or 3.")] = 2,
    n_neighbors: Annotated[int, typer.Option(help="Number of neighbours (UMAP).")] = 15,
    min_dist: Annotated[float, typer.Option(help="Minimum distance between points (UMAP).")] = 0.1,
    metric: Annotated[
        str, typer.Option(help=("Distance between embeddings: cosine, euclidean or manhattan."))
    ] = "cosine",
    perplexity: Annotated[float, typer.Option(help="Perplexity (t-SNE).")] = 30.0,
    seed: Annotated[int, typer.Option(help="Random seed. The same seed gives the same map.")] = 42,
    colour: Annotated[
        str | None,
        typer.Option(
            "--colour",
            "--color",
            help=("Column to colour the points by (.html only). Default: clusters."),
        ),
    ] = None,
    ray: RayOption = None,
) -> None:
    """Make a map of a saved corpus, or reuse an existing one."""

    check_destination(output, PAGE)
    as_page = output.suffix.lower() == PAGE
    if colour is not None and not as_page:
        raise NeuralvizError("--colour works only with .html output.")
    settings = ProjectionSettings(
        reducer, dimensions, n_neighbors, min_dist, metric, perplexity, seed
    )
    store = open_store()
    saved_corpus = find_corpus(store, corpus)
    spec = corpus_spec(store, saved_corpus, method, option, model)
    if colour is not None:
        saved_corpus.column(colour)
    check_enough_texts(saved_corpus)
    label = unique_label(store, spec)
    with ExitStack() as stack:
        fitting, ray_embedding = DEFAULT, None
        if ray is not None:
            work = ray_work()
            ray_embedding = work.RayEmbedding(stack.enter_context(work.open_cluster(ray)))
            fitting = Fitting(spread=work.place_on_cluster)
        if spec.is_imported:
            stored_embedder = find_embedder(store, saved_corpus, spec)
        else:
            (embedder,) = load_embedders([spec])
            if ray_embedding is None:
                warn_of_missing(store, saved_corpus, [embedder])
            saved_corpus, last, _ = embed_whole_corpus(
                store, saved_corpus, label, embedder, ray_embedding
            )
            stored_embedder = last.embedder
        kept = _make_map(store, saved_corpus, stored_embedder, settings, fitting)
    for note in kept.notes:
        print_message(note)
    if as_page:
        write_text(output, _build_page(store, saved_corpus, kept, label, colour))
    else:
        write_pieces(output, corpus_pieces(store, saved_corpus, kept=kept))
    n_clusters = len(kept.cluster_words)
    method_note = describe_learning([spec])
    print_message(
        f"Wrote a map of {many(saved_corpus.n_texts, 'text')} with "
        f"{many(n_clusters, 'cluster')} to {output}{method_note}."
    )


def _make_map(
    store: CorpusStore,
    corpus: Corpus,
    embedder: KeptEmbedder,
    settings: ProjectionSettings,
    fitting: Fitting = DEFAULT,
) -> KeptMap:
    with progress_bars() as bars:
        task = bars.add_task(STAGES["neighbours"], total=None)

        def on_progress(event: ProjectionEvent) -> None:
            bars.update(
                task,
                description=STAGES[event.stage],
                completed=event.n_done,
                total=event.total or None,
            )

        try:
            kept = make_map(
                store, corpus, embedder, settings, on_progress=on_progress, fitting=fitting
            )
        except (KeyboardInterrupt, Stopped) as stop:
            print_message("Stopped before the map was finished. The embeddings are saved.")
            raise typer.Exit(INTERRUPTED) from stop
        bars.update(task, completed=1, total=1)
    return kept


def _build_page(
    store: CorpusStore, corpus: Corpus, kept: KeptMap, method: str, colour: str | None
) -> str:
    """The map as a page that needs no network; of many texts a random sample."""

    coordinates, clusters = KeptMaps(store).points(kept)
    names = cluster_names(kept.cluster_words)
    n = corpus.n_texts
    rows = drawn_rows(n)
    of_clusters = colour_by_code("cluster", clusters.labels, names, missing="no cluster")
    colours = {"Clusters": of_clusters.select(rows)}
    offered = {colour, *category_names(store, corpus)}
    for column in corpus.columns:
        if column.kind == "number":
            values = store.labels(corpus, column.name, rows)
            colours[column.name] = colour_by_number(column.name, values)
        elif column.name in offered:
            labels = store.labels(corpus, column.name, rows)
            colours[column.name] = colour_by_category(column.name, labels.tolist())
    if colour is not None:
        colours = {colour: colours[colour], **colours}
    settings = {"corpus": f"{corpus.name}, {many(n, 'text')}", "method": method}
    settings |= {name: str(value) for name, value in kept.settings.relevant().items()}
    if len(rows) < n:
        settings["drawn"] = f"a random sample of {len(rows):,}"
        print_message(
            f"The map shows a random sample of {len(rows):,} of the {n:,} texts. Export "
            ".parquet, .csv or .jsonl for all of them."
        )
    page_map = PageMap(
        method,
        coordinates[rows],
        colours,
        tuple(zip(names, cluster_centres(coordinates, clusters), strict=True)),
    )
    return map_page(
        [page_map], store.texts(corpus, rows), About(f"{corpus.name}, {method}", settings)
    )
