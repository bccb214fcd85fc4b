"""The command that makes a map of a saved corpus."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuralviz.cli.console import print_message, print_notes, run_task, stop
from neuralviz.cli.corpus import (
    OptionsOption,
    embed_whole_corpus,
    find_corpus,
    find_embedder,
    find_spec,
    open_store,
    unique_label,
)
from neuralviz.cli.options import (
    CorpusArgument,
    MethodOption,
    MethodsModel,
    RayCommand,
    RayOption,
    describe_learning,
    ray_work,
)
from neuralviz.embedders import make_embedder
from neuralviz.errors import NeuralvizError
from neuralviz.jobs.mapping import stream_events
from neuralviz.jobs.task import LatestTask, Progress
from neuralviz.maps.clusters import cluster_centres
from neuralviz.maps.exporting import corpus_pieces
from neuralviz.maps.filtering import category_names
from neuralviz.maps.kept import KeptMap, KeptMaps
from neuralviz.maps.mapping import DEFAULT, Fitting, check_enough_texts, make_map
from neuralviz.maps.projection import (
    REDUCERS,
    SETTING_NAMES,
    STAGES,
    ProjectionEvent,
    ProjectionSettings,
)
from neuralviz.models.shared import LOADERS
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
    from collections.abc import Generator

    from neuralviz.errors import ShouldStop
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
    method: MethodOption = "mean",
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
    spec = find_spec(store, saved_corpus, method, option, model)
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
            embedder = find_embedder(store, saved_corpus, spec)
        else:
            saved_corpus, last, _ = embed_whole_corpus(
                store, saved_corpus, label, make_embedder(spec, LOADERS), ray_embedding
            )
            embedder = last.embedder
        kept, _ = run_task(ProjectCorpus(store, saved_corpus, embedder, settings, fitting))
    if not isinstance(kept, KeptMap):
        raise stop("Stopped before the map was finished. The embeddings are saved.")
    print_notes(kept.notes)
    if as_page:
        write_text(output, _build_page(store, saved_corpus, kept, label, colour))
    else:
        write_pieces(output, corpus_pieces(store, saved_corpus, kept=kept))
    print_message(
        f"Wrote a map of {many(saved_corpus.n_texts, 'text')} with "
        f"{many(len(kept.cluster_words), 'cluster')} to {output}{describe_learning([spec])}."
    )


@dataclass(frozen=True)
class ProjectCorpus(LatestTask["ProjectionEvent | KeptMap"]):
    """Make a map of an embedded corpus, or find it; the last event is the map."""

    store: CorpusStore
    corpus: Corpus
    embedder: KeptEmbedder
    settings: ProjectionSettings
    fitting: Fitting = DEFAULT

    def events(self, should_stop: ShouldStop) -> Generator[ProjectionEvent | KeptMap, None, None]:
        project = partial(
            make_map, self.store, self.corpus, self.embedder, self.settings, fitting=self.fitting
        )
        yield (yield from stream_events(project, should_stop))

    def progress(self, result: ProjectionEvent | KeptMap | None) -> Progress:
        if not isinstance(result, ProjectionEvent):
            return Progress()
        return Progress(result.n_done, result.total, doing=STAGES[result.stage])


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
    relevant = kept.settings.relevant() | {"reducer": REDUCERS[kept.settings.reducer]}
    settings |= {SETTING_NAMES.get(name, name): str(value) for name, value in relevant.items()}
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
