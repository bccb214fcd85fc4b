"""The command that makes a map of a saved corpus."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from neuralviz.cli import options
from neuralviz.cli.console import print_message, print_notes, run_work, stop
from neuralviz.cli.corpus import (
    OptionsOption,
    embed_whole_corpus,
    find_embedder,
    find_spec,
    open_corpus,
    unique_label,
)
from neuralviz.embedders import make_embedder
from neuralviz.errors import NeuralvizError
from neuralviz.jobs.task import Progress
from neuralviz.maps.kept import corpus_pieces
from neuralviz.maps.mapping import check_enough_texts, make_map, place_on_processes
from neuralviz.maps.opened import OpenCorpus, OpenMap
from neuralviz.maps.projection import STAGES, ProjectionEvent, ProjectionSettings
from neuralviz.models.shared import LOADERS
from neuralviz.plots.corpus_map import (
    CLUSTERS,
    colour_points,
    drawn_rows,
    list_page_colours,
    page_of_maps,
)
from neuralviz.store.writing import check_destination, write_pieces, write_text
from neuralviz.words import many

PAGE = ".html"

LINES = {
    "reducer": "Projection: umap, pca or tsne.",
    "dimensions": "Number of dimensions: 2 or 3.",
    "n_neighbors": "Number of neighbours (UMAP).",
    "min_dist": "Minimum distance between points (UMAP).",
    "metric": "Distance between embeddings: cosine, euclidean or manhattan.",
    "perplexity": "Perplexity (t-SNE).",
    "seed": "Random seed. The same seed gives the same map.",
}

commands = typer.Typer(add_completion=False)


@commands.command(cls=options.RayCommand)
@options.take_options(projection=options.setting_options(ProjectionSettings, LINES))
def project(
    corpus: options.CorpusArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Output file: .html for an interactive map, or .parquet, .csv or .jsonl for its "
            "points.",
        ),
    ],
    *,
    method: options.MethodOption = "mean",
    option: OptionsOption = None,
    model: options.MethodsModel = None,
    projection: dict[str, Any],
    colour: Annotated[
        str | None,
        typer.Option(
            "--colour",
            "--color",
            help="Column to colour the points by (.html only). Default: clusters.",
        ),
    ] = None,
    ray: options.RayOption = None,
) -> None:
    """Make a map of a saved corpus, or reuse an existing one."""
    check_destination(output, PAGE)
    as_page = output.suffix.lower() == PAGE
    if colour is not None and not as_page:
        raise NeuralvizError("--colour works only with .html output.")
    settings = ProjectionSettings(**projection)
    store, saved_corpus = open_corpus(corpus)
    spec = find_spec(store, saved_corpus, method, option, model)
    if colour is not None:
        saved_corpus.column(colour)
    check_enough_texts(saved_corpus)
    label = unique_label(store, spec)
    with options.open_ray(ray) as ray_embedding:
        spread = place_on_processes if ray_embedding is None else ray_embedding.place
        if spec.is_imported:
            embedder = find_embedder(store, saved_corpus, spec)
        else:
            saved_corpus, last, _ = embed_whole_corpus(
                store, saved_corpus, label, make_embedder(spec, LOADERS), ray_embedding
            )
            embedder = last.embedder

        make = partial(make_map, store, saved_corpus, embedder, settings, spread=spread)
        kept = run_work(make, _find_progress)
    if kept is None:
        raise stop("Stopped before the map was finished. The embeddings are saved.")
    print_notes(kept.notes)
    if as_page:
        open_map = OpenMap(OpenCorpus(store, saved_corpus), kept, label)
        write_text(output, _build_page(open_map, colour))
    else:
        write_pieces(output, corpus_pieces(store, saved_corpus, kept=kept))
    size = f"{many(saved_corpus.n_texts, 'text')} with {many(len(kept.cluster_words), 'cluster')}"
    print_message(f"Wrote a map of {size} to {output}{options.describe_learning([spec])}.")


def _find_progress(event: ProjectionEvent) -> Progress:
    return Progress(event.n_done, event.total, doing=STAGES[event.stage])


def _build_page(open_map: OpenMap, colour: str | None) -> str:
    """The map as an offline page; of many texts, a random sample."""
    corpus, n = open_map.corpus, open_map.corpus.n_texts
    options = {CLUSTERS: "Clusters", **list_page_colours(corpus)}
    if colour is not None:
        kind = "number" if colour in corpus.number_names else "label"
        options = {f"{kind}:{colour}": colour, **options}
    rows = drawn_rows(n)
    if len(rows) < n:
        print_message(
            f"The map shows a random sample of {len(rows):,} of the {n:,} texts. Export "
            ".parquet, .csv or .jsonl for all of them."
        )
    colours = {name: colour_points(open_map, option) for option, name in options.items()}
    return page_of_maps([open_map], [colours], rows)
