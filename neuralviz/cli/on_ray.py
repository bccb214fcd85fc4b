"""What the commands for corpora do with ``--ray``."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from neuralviz.cli.common import say
from neuralviz.cli.vectors import progress_bars
from neuralviz.embedders.labels import method_label
from neuralviz.errors import NeuralvizError
from neuralviz.maps.kept import KeptMaps
from neuralviz.words import many

if TYPE_CHECKING:
    from neuralviz.cluster.connecting import Cluster
    from neuralviz.embedders import Embedder, EmbedderSpec
    from neuralviz.store.corpora import Corpus, CorpusStore
    from neuralviz.store.embedding import EmbeddingEvent

LOCAL = "local"
NAMED = 5  # texts that were left out and are named
_ADDRESS = re.compile(r"auto|local|(ray://)?(\[[0-9a-fA-F:]+\]|[\w.-]+):\d+")

RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help=(
            "Use Ray: all cores of this machine, or the cluster whose head is at ADDRESS "
            "(HOST:PORT, or “auto” on a machine of the cluster). For corpora of any size."
        ),
    ),
]


class WithRay(TyperCommand):
    """A command whose ``--ray`` may stand alone: an address goes with it, and nothing else does."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give a ``--ray`` that stands alone its value."""
        return super().parse_args(ctx, with_address(args))


def with_address(args: Sequence[str]) -> list[str]:
    """Arguments in which ``--ray`` has a value: what follows where it is an address, else local."""
    found: list[str] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            return [*found, arg, *rest]
        if arg == "--ray":
            is_address = bool(rest) and _ADDRESS.fullmatch(rest[0]) is not None
            arg = f"--ray={rest.pop(0) if is_address else LOCAL}"
        found.append(arg)
    return found


@contextmanager
def cluster_at(address: str) -> Iterator[Cluster]:
    """The cluster at an address.

    Raises:
        NeuralvizError: Ray is not installed, or there is no cluster.
    """
    if find_spec("ray") is None or find_spec("lance") is None:
        raise NeuralvizError('--ray needs Ray. Install it with: pip install "neuralviz[ray]"')
    from neuralviz.cluster.connecting import connected

    with connected(address) as cluster:
        if address != LOCAL:
            gpus = f" and {many(cluster.n_gpus, 'GPU')}" if cluster.n_gpus else ""
            size = f"{many(cluster.n_nodes, 'machine')}, {many(cluster.n_cpus, 'core')}{gpus}"
            say(f"Connected to the cluster at {address}: {size}.")
        yield cluster


def add_with_ray(
    store: CorpusStore,
    paths: Sequence[str],
    name: str,
    column: str | None,
    id_column: str | None,
    limit: int | None,
) -> tuple[Corpus, bool]:
    """The corpus of some files, and whether it is new; what was left out is said.

    Raises:
        NeuralvizError: as of `add_on_cluster`.
    """
    from neuralviz.cluster.adding import Reading, add_on_cluster, layout_of
    from neuralviz.reading.blocks import find_parts

    parts = find_parts(paths)
    layout = layout_of(parts, column, id_column)
    if column is None:
        say(f"Reading texts from the column “{layout.text}”. Use --column to choose another.")
    with progress_bars(counted=False) as bars:
        task = bars.add_task("Reading texts", total=None)

        def tell(reading: Reading) -> None:
            bars.update(task, completed=reading.n_texts)

        added = add_on_cluster(store, name, parts, layout, limit, tell=tell)
    for note in added.notes:
        say(note)
    return added.corpus, added.is_new


class RayEmbedding:
    """Embeds corpora on a cluster, as `embed_corpus` does here; remembers what was left out.

    Args:
        cluster: that is connected.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._left_out: dict[int, str] = {}

    def __call__(
        self, store: CorpusStore, corpus: Corpus, embedder: Embedder
    ) -> Generator[EmbeddingEvent, None, None]:
        """As `embed_on_cluster`."""
        from neuralviz.cluster.embedding import embed_on_cluster

        left_out = yield from embed_on_cluster(store, corpus, embedder, self._cluster)
        self._left_out.update(left_out)

    def leave_out(self, store: CorpusStore, corpus: Corpus, spec: EmbedderSpec) -> Corpus:
        """Take the texts that could not be embedded out of a corpus without maps, and name them.

        Raises:
            StoreError: it cannot be written.
        """
        left_out, self._left_out = self._left_out, {}
        if not left_out:
            return corpus
        rows = sorted(left_out)
        named = zip(store.ids(corpus, rows[:NAMED]), rows, strict=False)
        reasons = "; ".join(f"ID {one}: {left_out[row].rstrip('.')}" for one, row in named)
        more = f", and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
        what = f"{many(len(rows), 'text')} that {method_label(spec)} cannot embed ({reasons}{more})"
        if KeptMaps(store).of(corpus):
            say(f"Not embedded: {what}. The corpus has maps already, so they stay in it.")
            return corpus
        say(f"Left out {what}.")
        return store.leave_out(corpus, rows)
