"""Work by layer: on a text, the words of a corpus, or scored pairs."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from neuralviz.errors import ShouldStop, check_stop
from neuralviz.jobs.task import LatestTask, Progress
from neuralviz.models import tokenize
from neuralviz.models.shared import ModelRef, shared_text_model

if TYPE_CHECKING:
    from neuralviz.evaluation.layer_pairs import LayerPairs
    from neuralviz.layers.geometry import TokenStates
    from neuralviz.layers.settings import SbertWkSettings
    from neuralviz.layers.words import TokenWeights, WordVariances
    from neuralviz.reading.pairs import ScoredPairs

TEXTS_HELD = 4  # cached with their token vectors


@dataclass(frozen=True)
class FollowWords(LatestTask["WordVariances"]):
    """Measure how much words vary from layer to layer (SBERT-WK, Table I)."""

    model: ModelRef
    texts: tuple[str, ...]

    def events(self, should_stop: ShouldStop) -> Generator[WordVariances, None, None]:
        from neuralviz.layers.words import word_variances

        model = shared_text_model(self.model.id)
        yield from word_variances(model, tokenize(model, self.texts), should_stop=should_stop)

    def progress(self, result: WordVariances | None) -> Progress:
        return _count_progress(result.n_read, result.total, "texts") if result else Progress()


@dataclass(frozen=True)
class MeasureLayers(LatestTask["LayerPairs"]):
    """Measure how a model's layers, poolings and SBERT-WK's parts follow human scores."""

    model: ModelRef
    pairs: ScoredPairs

    def events(self, should_stop: ShouldStop) -> Generator[LayerPairs, None, None]:
        from neuralviz.evaluation import layer_pairs

        model = shared_text_model(self.model.id)
        yield from layer_pairs.measure_layers(model, self.pairs, should_stop=should_stop)

    def progress(self, result: LayerPairs | None) -> Progress:
        return _count_progress(len(result.pairs), result.total, "pairs") if result else Progress()


@dataclass(frozen=True, eq=False)
class FollowedText:
    """A text's token vectors at every layer, and what SBERT-WK makes of them."""

    states: TokenStates
    weights: TokenWeights


@dataclass(frozen=True)
class FollowText(LatestTask[FollowedText]):
    """Follow the tokens of one text from layer to layer (SBERT-WK, sections III and IV)."""

    lane = "short"

    model: ModelRef
    text: str
    settings: SbertWkSettings

    def events(self, should_stop: ShouldStop) -> Generator[FollowedText, None, None]:
        from neuralviz.layers.words import token_weights

        states = _token_states(self.model, self.text)
        check_stop(should_stop)
        yield FollowedText(states, token_weights(states, self.settings))


@lru_cache(maxsize=TEXTS_HELD)
def _token_states(model: ModelRef, text: str) -> TokenStates:
    from neuralviz.layers.words import follow_tokens

    network = shared_text_model(model.id)
    return follow_tokens(network, tokenize(network, [text])[0])


def _count_progress(n_done: int, total: int, unit: str) -> Progress:
    return Progress(n_done, total, f"{n_done:,} of {total:,} {unit}")
