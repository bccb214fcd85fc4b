"""The neighbours of some texts of a large corpus, as runs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neuralviz.jobs.callbacks import stream_events
from neuralviz.jobs.task import LatestTask, Progress
from neuralviz.maps.kept import KeptMaps
from neuralviz.maps.searching import neighbours_of_rows, sampled_rows
from neuralviz.store.corpora import CorpusStore
from neuralviz.words import many

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from neuralviz.errors import ShouldStop
    from neuralviz.maps.neighbours import Neighbours
    from neuralviz.store.corpora import Corpus


@dataclass(frozen=True, eq=False)
class SampledNeighbours:
    """Some texts of a large corpus, always the same, and what is near them.

    Attributes:
        rows: [text] row numbers.
        near: their neighbours by the vectors, among all texts; by an index, a few may be missed.
    """

    rows: np.ndarray
    near: Neighbours


@dataclass(frozen=True, eq=False)
class NeighbourSearch:
    """How far the neighbours of some texts are found.

    Attributes:
        n_compared, total: different texts that were compared, and all of them, where all must be.
        neighbours: None until all are found.
    """

    n_compared: int = 0
    total: int = 0
    neighbours: SampledNeighbours | None = None


@dataclass(frozen=True)
class FindingTask(LatestTask[NeighbourSearch]):
    """Find the neighbours of some texts of a large corpus by one of its maps.

    Attributes:
        corpus_id, map_id: of them.
        k: neighbours.
    """

    corpus_id: str
    map_id: str
    k: int

    def events(self, should_stop: ShouldStop) -> Generator[NeighbourSearch, None, None]:
        def find(
            report: Callable[[NeighbourSearch], None], should_stop: ShouldStop
        ) -> SampledNeighbours:
            store = CorpusStore()
            corpus = store.corpus(self.corpus_id)
            rows = self._rows(corpus)
            near = neighbours_of_rows(
                store,
                corpus,
                KeptMaps(store).by_id(corpus, self.map_id),
                rows,
                self.k,
                on_progress=lambda n_compared, total: report(NeighbourSearch(n_compared, total)),
                should_stop=should_stop,
            )
            return SampledNeighbours(rows, near)

        yield NeighbourSearch(neighbours=(yield from stream_events(find, should_stop)))

    @abstractmethod
    def _rows(self, corpus: Corpus) -> np.ndarray:
        """[text] rows of the texts."""

    def progress(self, result: NeighbourSearch | None) -> Progress:
        if result is None or not result.total:
            return Progress()
        counted = f"{result.n_compared:,} of {many(result.total, 'different text')} compared"
        return Progress(result.n_compared, result.total, doing=counted)


@dataclass(frozen=True)
class SampleNeighbours(FindingTask):
    """Find the neighbours of some texts of a large corpus, by which its maps are measured.

    Attributes:
        n: texts.
    """

    is_short: ClassVar[bool] = True

    n: int

    @property
    def label(self) -> str:
        return "Neighbours of a sample"

    def _rows(self, corpus: Corpus) -> np.ndarray:
        return sampled_rows(corpus, self.n)


@dataclass(frozen=True)
class FindNeighbours(FindingTask):
    """Find the neighbours of one text of a large corpus.

    Attributes:
        row: of the text.
    """

    row: int

    @property
    def label(self) -> str:
        return "Neighbours of a text"

    def _rows(self, corpus: Corpus) -> np.ndarray:
        return np.array([self.row])
